"""The CPU backend against the plain executor on random programs: every semiring and dtype; threads; interrupts."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import dense_instruction_set, run_program
from elimina.backends import get_backend, run_once
from elimina.backends.cpu import CpuBackend, available_memory
from elimina.errors import DeviceError, InputError
from tests.reference import program as reference
from tests.reference.random_programs import Builder, random_program

FLOATS = ("float32", "float64")
KINDS = [
    *(("min-sum", dtype) for dtype in ("int16", "int32", "int64", *FLOATS)),
    *((ring, dtype) for ring in ("max-sum", "max-product", "sum-product", "log-sum-exp") for dtype in FLOATS),
    ("count", "uint64"),
]


def check(program, factors, threads=1):
    found = run_once(CpuBackend(threads), program, factors)
    reference.assert_same(program, found, reference.run(program, factors))


def wide_bucket(semiring, dtype, domain=60, sizes=(40, 30, 35), seed=0):
    """A bucket of some 10^6 rows that is worth several threads, and what sums its output up."""
    builder = Builder(np.random.default_rng(seed), semiring, dtype, padding=0.0)
    axes = [builder.variable(size) for size in sizes]
    variable = builder.variable(domain)
    number = builder.step(
        variable, axes, [[variable, *axes[1:]], [variable, axes[0]], [variable, axes[2]]], [], outer=0, mid=1
    )
    for axis in list(axes):
        axes.remove(axis)
        number = builder.step(axis, axes, [], [number], outer=0, mid=0)
    return builder.program(decode=semiring in ("min-sum", "max-sum"))


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_random_programs(semiring, dtype, seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([3000, 40_000]))
    program, factors = random_program(
        rng, semiring, dtype, rows=rows, depth=2, decode=semiring in ("min-sum", "max-sum") and bool(rng.integers(2))
    )
    check(program, factors)


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_a_wide_bucket_on_two_threads(semiring, dtype):
    program, factors = wide_bucket(semiring, dtype)
    check(program, factors, threads=2)


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_the_number_of_threads_does_not_show(semiring, dtype):
    program, factors = wide_bucket(semiring, dtype, seed=5)
    one, two = (run_once(CpuBackend(threads), program, factors) for threads in (1, 2))
    np.testing.assert_array_equal(reference.cells(program, one), reference.cells(program, two))
    np.testing.assert_array_equal(one.peaks, two.peaks)
    np.testing.assert_array_equal(one.assignment, two.assignment)


def test_no_steps():
    builder = Builder(np.random.default_rng(0), "min-sum", "int32")
    builder.factors.append(np.zeros(4, np.int32))
    builder.factor_cells = 4
    builder.spans.append((0, 0))
    program, factors = builder.program(decode=True)
    run = run_once(CpuBackend(), program, factors)
    assert run.outputs == ()
    assert len(run.assignment) == 0


def test_progress_goes_up_to_one():
    program, factors = wide_bucket("min-sum", "int32", domain=200, sizes=(160, 160, 160))
    shares: list[float] = []
    run_once(CpuBackend(2), program, factors, shares.append)
    assert shares
    assert shares == sorted(shares)
    assert 0 < shares[0] < 1
    assert shares[-1] <= 1


def test_an_error_of_the_listener_propagates():
    program, factors = wide_bucket("min-sum", "int32", domain=200, sizes=(160, 160, 160))

    class Stopped(Exception):
        pass

    def stop(share):
        raise Stopped

    backend = CpuBackend(2)
    with pytest.raises(Stopped):
        run_once(backend, program, factors, stop)
    expected = run_once(backend, program, factors)
    reference.assert_same(program, run_once(backend, program, factors), expected)


def test_an_interrupt_ends_the_run():
    program, factors = wide_bucket("sum-product", "float64", domain=1000, sizes=(200, 200, 200))
    backend = CpuBackend(1)
    expected = wide_bucket("min-sum", "int32")
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_once(backend, program, factors)
    timer.join()
    assert time.monotonic() - started < 3
    check(*expected)


def test_memory_that_cannot_be_had():
    program, factors = wide_bucket("min-sum", "int32")
    with pytest.raises(DeviceError, match="bytes left"):
        run_once(CpuBackend(), program._replace(arena_cells=2**60), factors)


def test_available_memory():
    assert 2**20 < available_memory() < 2**50
    assert 0 < CpuBackend().memory() < 2**50


def test_the_core_refuses_what_it_has_no_kernel_for():
    words = np.zeros(0, np.int64)
    peaks = np.zeros(0)
    with pytest.raises(ValueError, match="unknown semiring most"):
        run_program("most", 0, 0, words, words, words, np.zeros(1, np.int32), peaks, None, 1, None)
    with pytest.raises(ValueError, match="no kernel for the arena's dtype"):
        run_program("sum-product", 0, 0, words, words, words, np.zeros(1, np.int32), peaks, None, 1, None)


def test_devices_by_name():
    assert get_backend("cpu", 3).threads == 3
    assert get_backend("cpu").name == "cpu"
    assert dense_instruction_set() in ("baseline", "avx2", "avx512")
    with pytest.raises(InputError, match="unknown device 'tpu'"):
        get_backend("tpu")
