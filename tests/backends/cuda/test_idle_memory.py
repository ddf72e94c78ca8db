"""Memory that programs leave on a GPU: some stays, some stays for a while, much goes at once."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from types import SimpleNamespace

import pytest

from elimina import MemoryLimitError
from elimina.backends.cuda import device, idle_memory
from elimina.backends.cuda.backend import CudaBackend
from elimina.backends.cuda.device import KEPT_BYTES, RESERVED_BYTES, CudaDevice
from elimina.backends.cuda.idle_memory import LINGER_SECONDS, SHORT_LINGER_SECONDS

BUSY_SECONDS = 0.3
"""Seconds that a release takes in the tests that meet one under way."""
PATIENCE = 10.0
"""Seconds for a thread to do what it is about to."""


class Timer:
    """A timer of a clock that only tests move, so that no test depends on the load of the machine."""

    def __init__(self, clock, interval, function, args):
        self.function, self.args, self.due, self.cancelled = function, args, clock.now + interval, False
        self.clock = clock

    def start(self):
        self.clock.timers.append(self)

    def cancel(self):
        self.cancelled = True


class Clock:
    """Seconds, and timers that run in threads when they are due."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def advance(self, seconds):
        self.now += seconds
        due = [timer for timer in self.timers if timer.due <= self.now and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer.due > self.now]
        threads = [threading.Thread(target=timer.function, args=timer.args) for timer in due]
        for thread in threads:
            thread.start()
        return threads


class Memory:
    """A GPU's memory, which keeps what is idle."""

    def __init__(self):
        self.idle, self.driver, self.busy = 0, 8 << 30, 0.0

    def idle_bytes(self):
        return self.idle

    def used_bytes(self):
        return 0

    def release(self):
        left, self.idle = self.idle, 0
        time.sleep(self.busy)
        self.driver += left

    def allocate(self, size):
        self.driver -= max(0, size - self.idle)
        self.idle = max(self.idle, size)


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(device.threading, "Timer", functools.partial(Timer, made))
    return made


@pytest.fixture
def gpu(monkeypatch, clock):
    """A stand-in of 16 GiB."""
    memory, error = Memory(), type("CUDARuntimeError", (Exception,), {})
    cuda = SimpleNamespace(
        Device=lambda number: contextlib.nullcontext(),
        runtime=SimpleNamespace(CUDARuntimeError=error, memGetInfo=lambda: (memory.driver, 16 << 30)),
        driver=SimpleNamespace(CUDADriverError=error),
    )
    made = object.__new__(CudaDevice)
    made.number, made.keeps_memory, made.device_memory, made._most_left = 99, False, memory, 4 << 30
    made._reserving, made.stream = None, contextlib.nullcontext()
    made.cupy, made._device = SimpleNamespace(cuda=cuda), contextlib.nullcontext()
    monkeypatch.setattr(idle_memory, "return_locks", {99: threading.Lock()})
    monkeypatch.setattr(idle_memory, "device_memory", lambda cupy, number: memory)
    monkeypatch.setattr(idle_memory, "EXIT_SECONDS", PATIENCE)
    yield made
    made.claim()


def leave(gpu, size):
    gpu.device_memory.idle = size
    gpu.trim()


def wait_until_left(gpu, most):
    until = time.monotonic() + PATIENCE
    while gpu.device_memory.idle_bytes() > most and time.monotonic() < until:
        time.sleep(0.01)
    assert gpu.device_memory.idle_bytes() <= most


def pass_seconds(clock, seconds):
    for thread in clock.advance(seconds):
        thread.join(PATIENCE)


def release_slowly(gpu, clock, size):
    """Leave memory whose release is under way."""
    gpu.device_memory.busy = BUSY_SECONDS
    leave(gpu, size)
    clock.advance(LINGER_SECONDS)
    wait_until_left(gpu, 0)


def test_little_stays(gpu, clock):
    leave(gpu, KEPT_BYTES)
    pass_seconds(clock, 2 * LINGER_SECONDS)
    assert gpu.device_memory.idle == KEPT_BYTES


def test_more_stays_for_a_while(gpu, clock):
    leave(gpu, 2 << 30)
    pass_seconds(clock, 0.9 * LINGER_SECONDS)
    assert gpu.device_memory.idle == 2 << 30
    pass_seconds(clock, 0.2 * LINGER_SECONDS)
    assert gpu.device_memory.idle == 0


def test_much_goes_earlier(gpu, clock):
    leave(gpu, 5 << 30)
    pass_seconds(clock, 0.9 * SHORT_LINGER_SECONDS)
    assert gpu.device_memory.idle == 5 << 30
    pass_seconds(clock, 0.2 * SHORT_LINGER_SECONDS)
    assert gpu.device_memory.idle == 0


def test_what_is_going_back_counts_as_free(gpu, clock):
    release_slowly(gpu, clock, 5 << 30)
    assert gpu.memory() == (13 << 30) - RESERVED_BYTES


def test_a_program_waits_for_what_is_going_back(gpu, clock):
    release_slowly(gpu, clock, 5 << 30)
    gpu.claim()
    assert gpu.device_memory.driver == 13 << 30


def test_what_is_claimed_stays_until_it_is_left_again(gpu, clock):
    leave(gpu, 2 << 30)
    gpu.claim()
    pass_seconds(clock, 2 * LINGER_SECONDS)
    assert gpu.device_memory.idle == 2 << 30
    leave(gpu, 2 << 30)
    pass_seconds(clock, LINGER_SECONDS)
    assert gpu.device_memory.idle == 0


def test_the_last_program_counts(gpu, clock):
    for _ in range(6):
        leave(gpu, 2 << 30)
        pass_seconds(clock, LINGER_SECONDS / 3)
        assert gpu.device_memory.idle == 2 << 30
    pass_seconds(clock, LINGER_SECONDS)
    assert gpu.device_memory.idle == 0


def test_without_a_thread_it_goes_at_once(gpu, monkeypatch):
    def refuse(thread):
        raise MemoryLimitError("no thread")

    monkeypatch.setattr(device, "start_thread", refuse)
    leave(gpu, 2 << 30)
    assert gpu.device_memory.idle == 0


def test_at_the_end_of_the_interpreter_nothing_is_under_way(gpu, clock):
    release_slowly(gpu, clock, 2 << 30)
    idle_memory._leave_driver()
    assert gpu.device_memory.driver == 10 << 30


def test_a_program_of_another_gpu_does_not_wait(gpu, monkeypatch):
    monkeypatch.setitem(idle_memory.return_locks, 98, threading.Lock())
    with idle_memory.return_locks[98]:
        gpu.claim()
        assert gpu.memory() == (8 << 30) - RESERVED_BYTES


def test_it_stays_between_programs_that_follow_each_other(gpu):
    gpu.keeps_memory = True
    leave(gpu, 5 << 30)
    assert gpu.device_memory.idle == 5 << 30


def program(size, **traits):
    return SimpleNamespace(**{"size": size, "sparse": None, "stream": None, "shards": None, **traits})


@pytest.fixture
def planned(gpu, monkeypatch):
    """The same, whose layouts take what a program says."""
    monkeypatch.setattr(gpu, "lay_out", lambda program: program)
    return gpu


def test_memory_is_reserved_while_the_caller_does_something_else(planned, clock):
    planned.reserve(program(5 << 30))
    planned.claim()
    assert planned.device_memory.idle == 5 << 30
    pass_seconds(clock, 2 * LINGER_SECONDS)
    assert planned.device_memory.idle == 5 << 30


def test_reserved_memory_goes_back_if_nobody_claims_it(planned, clock):
    planned.reserve(program(5 << 30))
    planned._reserving.join()
    assert planned.device_memory.idle == 5 << 30
    pass_seconds(clock, LINGER_SECONDS)
    assert planned.device_memory.idle == 0


def test_what_a_program_left_is_reserved(planned):
    leave(planned, 2 << 30)
    planned.reserve(program(2 << 30))
    planned.claim()
    assert (planned.device_memory.idle, planned.device_memory.driver) == (2 << 30, 8 << 30)


@pytest.mark.parametrize("trait", ["sparse", "stream", "shards"])
def test_other_programs_reserve_nothing(planned, trait):
    planned.reserve(program(5 << 30, **{trait: object()}))
    planned.claim()
    assert planned.device_memory.idle == 0


def test_a_program_that_finds_no_memory_says_so_itself(planned, monkeypatch):
    def refuse(size):
        raise MemoryError("out of memory")

    monkeypatch.setattr(planned.device_memory, "allocate", refuse)
    planned.reserve(program(5 << 30))
    planned.claim()
    assert planned.device_memory.idle == 0


@pytest.mark.gpu
def test_on_a_gpu():
    backend = CudaBackend()

    def use(size):
        with backend.at_work(0):
            memory = backend.device_memory.allocate(size)
            del memory
        backend.trim()

    backend._most_left = 3 << 30
    use(2 << 30)
    assert backend.device_memory.idle_bytes() >= 2 << 30
    wait_until_left(backend, KEPT_BYTES)
    use(4 << 30)
    wait_until_left(backend, KEPT_BYTES)
