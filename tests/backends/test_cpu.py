"""The CPU backend against the plain executor on random programs: every semiring and dtype; threads; interrupts."""

from __future__ import annotations

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Model
from elimina._core import DenseSession, dense_instruction_set
from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import run_once
from elimina.backends.registry import get_backend
from elimina.errors import InputError, MemoryLimitError
from elimina.problem.semirings import SEMIRINGS
from elimina.system import available_memory
from tests.calls import solve
from tests.reference import program as reference
from tests.reference.random_programs import Builder, random_program

FLOATS = ("float32", "float64")
KINDS = [
    *((ring, dtype) for ring in ("min-sum", "min-max") for dtype in ("int16", "int32", "int64", *FLOATS)),
    *((ring, dtype) for ring in ("sum-product", "log-sum-exp") for dtype in FLOATS),
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
    return builder.program(decode=SEMIRINGS[semiring].is_idempotent)


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_random_programs(semiring, dtype, seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([3000, 40_000]))
    decode = SEMIRINGS[semiring].is_idempotent and bool(rng.integers(2))
    levels = SEMIRINGS[semiring].is_matched and not decode
    check(*random_program(rng, semiring, dtype, rows=rows, depth=2, decode=decode, levels=levels))


def any_position(rng, semiring, dtype, most):
    """Steps that eliminate an axis anywhere in their tables, as messages back down a tree do, and what sums them up."""
    builder = Builder(rng, semiring, dtype, padding=float(rng.choice([0.0, 0.5])))
    for _ in range(3):
        top = int(rng.choice([2, 3, 5, 9, 40]))
        axes: list[int] = []
        while len(axes) < 10 and rng.random() < 0.9:
            size = int(rng.integers(1, top + 1))
            if math.prod(builder.sizes[a] for a in axes) * size * 2 > most:
                break
            axes.append(builder.variable(size))
        room = most // math.prod(builder.sizes[a] for a in axes)
        variable = builder.variable(int(rng.integers(1, min(room, int(rng.choice([2, 4, 20, 100]))) + 1)))
        position = len(axes) if rng.random() < 0.5 else int(rng.integers(0, len(axes) + 1))
        everything = [*axes[:position], variable, *axes[position:]]
        keep = float(rng.choice([0.4, 0.8, 1.0]))
        scopes = [[a for a in everything if rng.random() < keep] for _ in range(int(rng.integers(1, 7)))]
        number = builder.step(variable, axes, scopes, [])
        while axes:
            axis = axes.pop(int(rng.integers(len(axes))))
            number = builder.step(axis, axes, [], [number], outer=0, mid=0)
    return builder.program(decode=SEMIRINGS[semiring].is_idempotent)


@pytest.mark.parametrize("most", [300, 4000, 60_000])
@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_the_eliminated_axis_may_be_anywhere(semiring, dtype, most, seed):
    check(*any_position(np.random.default_rng(seed), semiring, dtype, most))


SHAPES = {
    "dot products": ((9, 40, 11), [(0, 1, 2, 3), (1, 3), (0, 2, 3), (0, 1)], 37),
    "dot products of many tables": ((9, 40, 11), [(0, 1, 2, 3), (1, 3), (0, 2, 3), (0, 1), (3,), (1, 2, 3)], 20),
    "pairs": ((2,) * 14, [tuple(range(15)), tuple(range(4, 15)), (0, 3, 14)], 2),
    "the last axis but one": ((2,) * 14, [(*range(13), 14, 13), (2, 5, 14, 13)], 2),
    "short runs": ((20, 20, 6), [(0, 1, 3, 2), (0, 1, 3), (1, 2)], 11),
    "transposed with others that are not": ((20, 20, 30), [(3, 0, 1, 2), (0, 1, 2, 3), (3, 1, 2)], 37),
    "short rows of a long domain": ((5,), [(1, 0), (1,)], 1000),
    "six streamed": ((12, 30, 7), [(3, 0, 1, 2)] * 6, 35),
    "more streamed than a row takes": ((12, 30, 7), [(3, 0, 1, 2)] * 18, 5),
    "a broadcast over lo axes": ((30, 6, 9), [(3, 0, 1), (3, 0, 2), (3, 0), (0, 1, 2)], 8),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_shapes_of_junction_trees(semiring, dtype, shape):
    sizes, scopes, domain = SHAPES[shape]
    rng = np.random.default_rng(1)
    for outer, mid in {(0, 0), (0, min(1, len(sizes) - 1)), (min(1, len(sizes) - 1), 0)}:
        builder = Builder(rng, semiring, dtype, padding=0.0)
        axes = [builder.variable(size) for size in sizes]
        variable = builder.variable(domain)
        number = builder.step(variable, axes, [list(scope) for scope in scopes], [], outer=outer, mid=mid)
        while axes:
            number = builder.step(axes.pop(), axes, [], [number], outer=0, mid=0)
        check(*builder.program(decode=SEMIRINGS[semiring].is_idempotent))


@pytest.mark.parametrize(("semiring", "dtype"), [("sum-product", "float64"), ("min-sum", "int32")])
def test_a_session_runs_again_on_other_factors(semiring, dtype):
    program, factors = random_program(
        np.random.default_rng(3), semiring, dtype, rows=40_000, depth=2, decode=SEMIRINGS[semiring].is_idempotent
    )
    session = CpuBackend(1).open(program, factors)
    for shift in range(3):
        moved = np.roll(factors, shift)
        session.load(0, moved)
        reference.assert_same(program, session.run(), reference.run(program, moved))
    session.close()


def test_a_run_is_not_changed_by_the_next_one():
    program, factors = wide_bucket("sum-product", "float64", domain=9, sizes=(5, 6, 7))
    session = CpuBackend(1).open(program, factors)
    first = session.run()
    session.load(0, factors * 0.5)
    session.run()
    reference.assert_same(program, first, reference.run(program, factors))


def test_steps_that_do_not_exist():
    program, factors = wide_bucket("sum-product", "float64", domain=9, sizes=(5, 6, 7))
    session = CpuBackend(1).open(program, factors)
    for number in (-1, len(program.starts)):
        with pytest.raises(IndexError, match="no such step"):
            session.run(np.array([0, number], dtype=np.int64))


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_a_wide_bucket_on_two_threads(semiring, dtype):
    program, factors = wide_bucket(semiring, dtype)
    check(program, factors, threads=2)


@pytest.mark.parametrize("domain", [65, 97, 200])
@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_domains_that_take_several_turns(semiring, dtype, domain):
    """Rows of 35 cells end in vectors that overlap."""
    check(*wide_bucket(semiring, dtype, domain=domain, sizes=(9, 4, 35)))


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_the_number_of_threads_does_not_show(semiring, dtype):
    program, factors = wide_bucket(semiring, dtype, seed=5)
    one, two = (run_once(CpuBackend(threads), program, factors) for threads in (1, 2))
    np.testing.assert_array_equal(reference.cells(program, one), reference.cells(program, two))
    np.testing.assert_array_equal(one.peaks, two.peaks)
    np.testing.assert_array_equal(one.assignment, two.assignment)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind threads to processors")
def test_threads_that_share_a_processor_do_not_wait_for_each_other():
    """Threads of a busy machine must not spin. With barriers, two took nine times the processor time of one."""
    rng, side = np.random.default_rng(0), 11
    pairs = [(v, v + 1) for v in range(side * side) if (v + 1) % side] + [(v, v + side) for v in range(side**2 - side)]
    model = Model.from_arrays([3] * side**2, [(pair, rng.random((3, 3))) for pair in pairs], sense="probability")

    def seconds(threads: int) -> float:
        began = time.process_time()
        solve(model, "pr", device="cpu", threads=threads, order=range(side**2))
        return time.process_time() - began

    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        one, two = (min(seconds(threads) for _ in range(4)) for threads in (1, 2))
    finally:
        os.sched_setaffinity(0, allowed)
    assert two < 3 * one


def test_no_steps():
    builder = Builder(np.random.default_rng(0), "min-sum", "int32")
    builder.factors.append(np.zeros(4, np.int32))
    builder.factor_cells = 4
    builder.spans.append((0, 0))
    program, factors = builder.program(decode=True)
    run = run_once(CpuBackend(), program, factors)
    assert run.zone.shape == (0,)
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
    with pytest.raises(MemoryLimitError, match=r"cannot allocate .* of host memory"):
        run_once(CpuBackend(), program._replace(arena_cells=2**60), factors)


def test_available_memory():
    assert 2**20 < available_memory() < 2**50
    assert 0 < CpuBackend().memory() < 2**50


def test_the_core_refuses_what_it_has_no_kernel_for():
    words = np.zeros(0, np.int64)
    peaks = np.zeros(0)
    with pytest.raises(ValueError, match="unknown semiring most"):
        DenseSession("most", 0, 0, words, words, words, np.zeros(1, np.int32), peaks, 1)
    with pytest.raises(ValueError, match="no kernel for this dtype"):
        DenseSession("sum-product", 0, 0, words, words, words, np.zeros(1, np.int32), peaks, 1)


def test_devices_by_name():
    assert get_backend("cpu", 3).threads == 3
    assert get_backend("cpu").name == "cpu"
    assert dense_instruction_set() in ("baseline", "avx2", "avx512")
    with pytest.raises(InputError, match="unknown device 'tpu'"):
        get_backend("tpu")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_of_one_tile_reports_while_it_runs(threads):
    """Else nothing could end it: where memory is slow, such a step takes many seconds."""
    builder = Builder(np.random.default_rng(0), "min-sum", "int16", padding=0.0)
    rows, cells, variable = builder.variable(1 << 20), builder.variable(32), builder.variable(4)
    first = builder.step(variable, [rows, cells], [[variable, rows], [variable, cells]], [], outer=0, mid=1)
    last = builder.step(cells, [rows], [], [first], outer=0, mid=0)
    builder.step(rows, [], [], [last], outer=0, mid=0)
    told: list[float] = []
    run_once(CpuBackend(threads), *builder.program(), progress=told.append)
    # Turns that take little time are doubled, so that a fast machine reports after 1, 3 and 7 eighths.
    assert len(told) >= 3
    assert told[0] < 0.2
    assert told == sorted(told)
