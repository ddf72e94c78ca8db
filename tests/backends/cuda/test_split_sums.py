"""Steps of few cells and many values, in parts; by their records alone, without CUDA."""

from __future__ import annotations

import random

import pytest

from elimina.backends.cuda import split_sums
from tests.adversary import steps
from tests.reference.steps import build, draw_form
from tests.seeds import run_seed


@pytest.mark.parametrize(("semiring", "dtype"), steps.KINDS)
def test_the_parts_of_a_step_have_its_sums(semiring, dtype):
    rng = random.Random(f"{run_seed()} {semiring} {dtype}")
    for _ in range(30):
        form = draw_form(rng, semiring, dtype, 6, False)
        steps._check_layouts(form, build(form))


def record_of(domain, cells):
    """A step that reads a table of ``domain`` x ``cells`` from the arena's start on, and writes behind it."""
    header = [0, domain, 0, 1, 0, 0, 1, 1, cells, 1, 0, 1, domain * cells, 0]
    record = [*header, cells, 1, 1, 0, cells, -1, 1]
    record[0] = len(record)
    return record


@pytest.mark.parametrize(
    ("domain", "cells", "depths"),
    [
        (4096, 4096, [64, 64]),
        (4099, 4096, [64, 3, 65]),
        (10**6, 1, [1000, 32, 8, 32]),
        (127, 16, []),
        (1000, 10**6, []),
    ],
)
def test_depth_of_the_parts(domain, cells, depths):
    """All values are in one part; the last sum is over few parts."""
    divided = split_sums.split_sum(record_of(domain, cells), 1 << 30, 132)
    if not depths:
        assert divided is None
        return
    records = [*divided.partial, divided.total]
    assert [record[1] for record in records] == depths
    assert divided.total[12] == domain * cells
    assert divided.scratch_cells < 2 * max(132 * split_sums.BUSY_CELLS, 2000 * split_sums.ALIGNED_CELLS)
