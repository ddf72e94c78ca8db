"""Copies of tables whose rows have a pitch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.backends.cuda.array_copy import MIN_COPY_CELLS, cell_rows, copy_array
from tests.reference.tiles import table_strides


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.sampled_from([2, 4, 8]))
def test_rows_are_where_strides_say(sizes, itemsize) -> None:
    strides, _ = table_strides(sizes, itemsize)
    found = cell_rows(sizes, strides)
    assert found is not None
    places = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(*sizes)]
    assert places == [row * found.pitch + column for row in range(found.rows) for column in range(found.columns)]


def test_two_pitches_are_no_rows() -> None:
    assert cell_rows((3, 4, 5), (100, 10, 1)) is None
    assert cell_rows((3, 4), (1, 3)) is None
    assert cell_rows((3, 4, 5), (40, 10, 1)) == (12, 5, 10)
    assert cell_rows((1, 5), (900, 1)) == (1, 5, 5)


@pytest.mark.gpu
@pytest.mark.parametrize("kinds", [*itertools.product(("int16", "int32", "int64"), repeat=2), ("float64", "float64")])
def test_copies(kinds) -> None:
    import cupy

    from elimina.backends.cuda.backend import CudaBackend

    backend, rng = CudaBackend(), np.random.default_rng(0)
    for sizes in [(7, 3, 11, 700), (MIN_COPY_CELLS + 3,), (70000, 65), (2, 3, 4)]:
        cells = rng.integers(0, 100, sizes).astype(kinds[0])
        strides, span = table_strides(sizes, np.dtype(kinds[1]).itemsize)
        arena = cupy.zeros(span, kinds[1])
        view = cupy.lib.stride_tricks.as_strided(arena, sizes, [s * arena.itemsize for s in strides])
        for limit in (None, 70):
            done = copy_array(backend, cupy.asarray(cells), view, limit, 99)
            assert done == (cells.size >= MIN_COPY_CELLS)
            if done:
                expected = cells if limit is None else np.where(cells < limit, cells, 99)
                assert np.array_equal(view.get(), expected)
        back = cupy.zeros(sizes, kinds[1])
        if copy_array(backend, view, back):
            assert np.array_equal(back.get(), view.get())
