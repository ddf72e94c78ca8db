"""Sessions on a stand-in for a GPU: launches that come again become a graph."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda import session as cuda_session
from elimina.backends.cuda.layout_cache import kept_layout
from elimina.backends.cuda.session import CudaSession
from elimina.backends.cuda.translation import lay_out
from elimina.backends.protocols import run_once
from tests.reference import cuda
from tests.reference.random_programs import random_program


class Block:
    """Device memory that goes back to its pool when it is forgotten."""

    def __init__(self, pool, size):
        self._free = pool[size]
        self._memory = self._free.pop() if self._free else cuda.Pointer(size)
        self.ptr = self._memory.ptr

    def __del__(self):
        self._free.append(self._memory)


class Event(cuda.Event):
    def __init__(self, disable_timing=False):
        super().__init__(disable_timing)


class Gpu(cuda.Device):
    """A GPU whose launches are runs of the plain executor."""

    numbers, blas = itertools.count(), None

    def __init__(self, program):
        super().__init__(program)
        self.number = next(self.numbers)
        self.cupy.cuda.Event, self.cupy.cuda.get_elapsed_time = Event, lambda first, last: 0.0
        self.stream = cuda.Queue(non_blocking=True)
        self.device_memory = SimpleNamespace(allocate=functools.partial(Block, defaultdict(list)))
        self.steps = self.graphs = 0
        self.recording = None

    def lay_out(self, program, steps=None):
        return kept_layout(program, self.multiprocessors, self.shared_limit, False)

    def compile(self, names):
        self.compiled = list(names)

    def recorded(self, work):
        self.recording = []
        work()
        parts, self.recording = self.recording, None

        def again():
            self.graphs += 1
            for part in parts:
                part()

        return again

    def open(self, program, factors):
        return CudaSession(self, program, factors)


@pytest.fixture(autouse=True)
def launches(monkeypatch):
    def launch_steps(session, part, marked):
        program, gpu = session._program, session._backend
        places = session.arena, session._base + part.layout.peaks_at
        gpu.steps += 1

        def work():
            arena = cuda.memory(places[0], program.dtype, program.arena_cells)
            run = run_once(CpuBackend(1), program, arena[: program.factor_cells])
            arena[slice(*program.zone)] = run.zone
            cuda.memory(places[1], np.float64, run.peaks.size)[:] = run.peaks.reshape(-1)

        work() if gpu.recording is None else gpu.recording.append(work)

    monkeypatch.setattr(CudaSession, "launch_steps", launch_steps)


def compare(program, factors, found):
    expected = run_once(CpuBackend(1), program, factors)
    # Elements between the outputs have no value.
    places = program.outputs[:, 1] - program.zone[0]
    np.testing.assert_array_equal(found.zone[places], expected.zone[places])
    np.testing.assert_array_equal(found.peaks, expected.peaks)


def check(gpu, program, factors, progress=None):
    compare(program, factors, run_once(gpu, program, factors, progress))


@pytest.fixture
def known():
    program, factors = random_program(np.random.default_rng(3), "sum-product", "float64")
    return program._replace(keep=False), factors, Gpu(program)


def test_only_the_first_session_has_its_kernels_compiled(known):
    program, factors, gpu = known
    check(gpu, program, factors)
    assert gpu.compiled
    gpu.compiled = None
    check(gpu, program, factors)
    assert gpu.compiled is None


def test_later_sessions_upload_values_only(known, monkeypatch):
    program, factors, gpu = known
    sizes, plain = [], CudaSession.upload
    monkeypatch.setattr(
        CudaSession,
        "upload",
        lambda session, to, pieces: sizes.append(sum(map(len, pieces))) or plain(session, to, pieces),
    )
    check(gpu, program, factors)
    assert sum(sizes) > factors.nbytes + program.words.nbytes
    first = gpu.open(program, factors)  # beside another one
    sizes.clear()
    check(gpu, program, factors * 2)
    assert sum(sizes) == factors.nbytes
    compare(program, factors, first.run())


def test_steps_that_are_laid_out_for_one_session_keep_no_copy(known, monkeypatch):
    program, factors, gpu = known
    monkeypatch.setattr(gpu, "lay_out", lambda program, some=None: lay_out(program, 8, 1 << 16, some))
    check(gpu, program, factors)
    gpu.kept = None
    check(gpu, program, factors * 2)


def test_later_sessions_launch_a_graph(known):
    program, factors, gpu = known
    for number in range(5):
        check(gpu, program, factors * (1 + number), lambda share: None)
    assert gpu.steps == 2  # the first session's, and those that were recorded
    assert gpu.graphs == 4


def test_a_session_at_other_addresses_has_a_graph_of_its_own(known):
    program, factors, gpu = known
    for number in range(3):
        check(gpu, program, factors * (1 + number))
    first = gpu.open(program, factors)
    check(gpu, program, factors * 7)
    assert gpu.steps == 3
    compare(program, factors, first.run())
    assert gpu.steps == 3
    # Another constant of the kernels: the same addresses do not suffice.
    first.close()
    check(gpu, program._replace(parameter=program.parameter + 1), factors)
    assert gpu.steps == 4


def test_a_graph_belongs_to_its_stream(known):
    """Memory that one stream gave back to the GPU may come to another one, which must not run on its own."""
    program, factors, gpu = known
    for number in range(3):
        check(gpu, program, factors * (1 + number))
    assert (gpu.steps, gpu.graphs) == (2, 2)
    gpu.stream = cuda.Queue(non_blocking=True)
    gpu.stream.ptr = 1
    check(gpu, program, factors)
    assert (gpu.steps, gpu.graphs) == (3, 2)


def test_long_runs_report_before_their_end(known, monkeypatch):
    program, factors, gpu = known
    monkeypatch.setattr(cuda_session, "MIN_MARKED_WORK", 0)
    for _ in range(3):
        check(gpu, program, factors, lambda share: None)
    assert (gpu.steps, gpu.graphs) == (3, 0)
    check(gpu, program, factors)
    assert gpu.graphs == 1


def test_a_plan_that_keeps_its_messages_is_recorded_at_once(known):
    program, factors, gpu = known
    session = gpu.open(program._replace(keep=True), factors)
    for _ in range(3):
        session.run()
    assert (gpu.steps, gpu.graphs) == (2, 2)


@pytest.fixture
def laid_out(known, monkeypatch):
    """Record the steps that are laid out, where even a little work is worth it."""
    gpu, steps = known[2], []
    plain = gpu.lay_out
    monkeypatch.setattr(gpu, "lay_out", lambda program, some=None: steps.append(some) or plain(program, some))
    monkeypatch.setattr(cuda_session, "MIN_SAVED_WORK", 0)
    return steps


@pytest.mark.parametrize("is_busy", [True, False])
def test_steps_that_will_run_are_laid_out_while_the_gpu_is_busy(known, laid_out, monkeypatch, is_busy):
    program, factors, gpu = known
    looks = itertools.count()
    monkeypatch.setattr(cuda_session, "has_passed", lambda runtime, event: not is_busy or next(looks) > 1)
    session = gpu.open(program, factors)
    count = len(program.starts)
    rare, frequent = (np.arange(first, count) for first in (0, count - 1))
    for steps in (rare, frequent):
        session.expect(steps)
    session.run()
    assert [steps for steps in laid_out if steps is not None] == ([frequent, rare] if is_busy else [])
    session.run(frequent)
    assert sum(steps is frequent for steps in laid_out) == 1


def test_what_saves_little_is_not_laid_out_ahead(known, laid_out, monkeypatch):
    program, factors, gpu = known
    looks = itertools.count()
    monkeypatch.setattr(cuda_session, "MIN_SAVED_WORK", program.work + 1)
    monkeypatch.setattr(cuda_session, "has_passed", lambda runtime, event: next(looks) > 1)
    session = gpu.open(program, factors)
    session.expect(np.arange(1, len(program.starts)))
    session.run()
    assert laid_out == [None]
