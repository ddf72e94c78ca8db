"""Single buckets with their tables' axes in every order, against ``einsum``, on every path."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from elimina._core import dense_instruction_set, dense_instruction_sets, use_dense_instruction_set
from tests.adversary import steps
from tests.adversary.case import Setting
from tests.adversary.steps import KINDS
from tests.paths import counted_paths, reachable_paths
from tests.reference.steps import draw_form
from tests.seeds import run_seed

CASES = 12
"""Buckets of each semiring and dtype, which take half a second on an idle machine."""


def run(device, semiring, dtype, cases, large=False):
    for number in range(cases):
        rng = random.Random(f"{semiring} {dtype} {run_seed()} {number}")
        form = draw_form(rng, semiring, dtype, 4 if large else 24, large)
        steps.check({"device": device, "threads": 1 + number % 2, "layouts": number % 4 == 0, "form": form})


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_buckets_on_the_cpu(semiring, dtype):
    run("cpu", semiring, dtype, CASES)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_that_a_library_takes(dtype):
    """On the CPU the calls of the library are replaced by NumPy's products."""
    run("cpu", "sum-product", dtype, 4, large=True)


@pytest.mark.gpu
@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_buckets_on_a_gpu(semiring, dtype):
    run("cuda", semiring, dtype, CASES)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_library_products_on_a_gpu(dtype):
    run("cuda", "sum-product", dtype, 20, large=True)


def product(rows, columns, orders, dtype="float64"):
    """A form of a matrix product over 200 values, with rows and columns of these sizes."""
    axes = range(1, 1 + len(rows) + len(columns))
    return {
        "semiring": "sum-product",
        "dtype": dtype,
        "parameter": 0,
        "weight": 1.0,
        "sizes": [200, *rows, *columns],
        "joins": False,
        "outer": 0,
        "mid": len(rows),
        "scopes": [[0, *axes[: len(rows)]], [0, *axes[len(rows) :]]],
        "messages": [False, False],
        "padded": [False, False, False],
        "orders": orders,
        "fixed": [],
        "seed": 1,
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("swapped", [(1, 2), (2, 2), (2, 4), (4, 2), (3, 4), (4, 6), (6, 4), (8, 6), (2, 24), (12, 2)])
def test_panels_of_transposed_axes(dtype, swapped):
    """The first and the last cell of two transposed axes are as far apart as those of contiguous ones."""
    rows = columns = (5, *swapped)
    orders = [
        [[0, *left], [0, *right]]
        for left, right in itertools.product(([1, 2, 3], [1, 3, 2]), ([4, 5, 6], [4, 6, 5], [6, 4, 5]))
    ]
    steps.check({"device": "cpu", "threads": 1, "layouts": False, "form": product(rows, columns, orders, dtype)})


def test_the_buckets_reach_every_path_of_dense_steps():
    """Else an enumeration would say nothing about that path."""
    dense = {
        path for path in reachable_paths() if path.startswith(("plain", "vector", "product", "tile", "pack", "avx512"))
    }
    # Outputs beyond the caches, and more tables than a bucket here has.
    dense -= {"vector-tile-past-caches", "vector-tile-many-streamed"}
    missing = dense
    for seed in range(600):
        case = steps.make(random.Random(f"paths {seed}"), Setting())
        with counted_paths() as counts:
            steps.check({**case, "layouts": False})
        missing = {path for path in missing if not counts[path]}
        if not missing:
            break
    assert not missing


def test_a_session_uses_the_instruction_set_that_was_chosen():
    used = dense_instruction_set()
    assert dense_instruction_sets()[0] == used
    try:
        for name in dense_instruction_sets():
            use_dense_instruction_set(name)
            assert dense_instruction_set() == name
    finally:
        use_dense_instruction_set(used)
    with pytest.raises(ValueError, match="no kernels for the instruction set sse9"):
        use_dense_instruction_set("sse9")


def test_a_wrong_cell_is_a_defect(monkeypatch):
    case = {"device": "cpu", "threads": 1, "layouts": False, "form": product((4, 2), (8,), [[[0, 1, 2], [0, 3]]])}
    steps.check(case)
    right = steps.expected(case["form"])
    monkeypatch.setattr(steps, "expected", lambda form, fixed=(): np.where(right == right.max(), 0, right))
    with pytest.raises(AssertionError, match="wrong cells in run 0"):
        steps.check(case)
