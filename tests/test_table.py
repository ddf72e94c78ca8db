"""Tables, dense and sparse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.errors import InputError
from elimina.table import FORBIDDEN, Table


@st.composite
def pairs(draw):
    """A dense table and the same one stored sparsely."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    scope = draw(st.permutations(range(5)))[: len(sizes)]
    cost = st.integers(-3, 3) | st.sampled_from([FORBIDDEN, 2**62])
    values = np.array(draw(st.lists(cost, min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes)))))
    values = values.reshape(sizes)
    default = int(values.flat[0])
    rows = np.argwhere(values != default)
    return Table(scope, values), Table(scope, values[tuple(rows.T)], sizes=sizes, rows=rows, default=default)


@given(pairs())
def test_sparse_and_dense_agree(tables):
    dense, sparse = tables
    assert not dense.is_sparse
    assert sparse.is_sparse
    assert sparse.cells == dense.cells == dense.values.size
    np.testing.assert_array_equal(sparse.dense(), dense.values)
    for key in itertools.product(*map(range, dense.sizes)):
        assignment = dict(zip(dense.scope, key, strict=True))
        assert dense.at(assignment) == sparse.at(assignment) == dense.values[key]


@given(pairs(), st.data())
def test_restriction_fixes_variables(tables, data):
    fixed = {}
    for v, size in zip(tables[0].scope, tables[0].sizes, strict=True):
        if data.draw(st.booleans()):
            fixed[v] = data.draw(st.integers(0, size - 1))
    for table in tables:
        part = table.restrict({**fixed, 99: 0})
        assert part.scope == tuple(v for v in table.scope if v not in fixed)
        for key in itertools.product(*map(range, part.sizes)):
            assignment = {**fixed, **dict(zip(part.scope, key, strict=True))}
            assert part.at(assignment) == table.at(assignment)


def test_restriction_to_other_variables_is_the_table_itself():
    table = Table([0], [1, 2])
    assert table.restrict({1: 0}) is table


def test_dtypes():
    assert Table([0], [True, False]).values.dtype == np.int64
    assert Table([0], np.array([1, 2], np.uint8)).values.dtype == np.int64
    assert Table([0], np.array([1, 2], np.float32)).values.dtype == np.float32
    assert Table([0], np.array([1, 2], np.float16)).values.dtype == np.float64
    assert isinstance(Table([0], [1, 2]).at([1]), int)
    assert isinstance(Table((), 2.5).at([]), float)


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        (([0, 0], [[1]]), {}, "names a variable twice"),
        (([0], [[1]]), {}, "needs as many axes"),
        (([0], [1]), {"rows": [[0]]}, "needs a scope, sizes and a default"),
        (([], [1]), {"rows": [[]], "sizes": [], "default": 0}, "needs a scope"),
        (([0], [1]), {"rows": [[0]], "sizes": [2, 2], "default": 0}, "got 2 sizes"),
        (([0], [1]), {"rows": [[2]], "sizes": [2], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": [[-1]], "sizes": [2], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": [[0]], "sizes": [2], "default": 0.5}, "needs an integer default"),
        (([0], np.array([2**63], np.uint64)), {}, "does not fit a signed 64-bit integer"),
    ],
)
def test_what_is_refused(arguments, options, problem):
    with pytest.raises(InputError, match=problem):
        Table(*arguments, **options)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([2**70, 0], "integers of 64 bits or floats, not object"),
        (["1", "2"], "integers of 64 bits or floats, not <U1"),
        ([1j, 0], "integers of 64 bits or floats, not complex128"),
    ],
)
def test_values_that_are_no_numbers_of_ours(values, problem):
    with pytest.raises(InputError, match=problem):
        Table([0], values)
