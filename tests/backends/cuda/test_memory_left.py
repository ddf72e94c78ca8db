"""Memory that programs leave on a card: some stays, some stays for a while, much goes at once."""

from __future__ import annotations

import contextlib
import threading
import time
from types import SimpleNamespace

import pytest

from elimina import MemoryLimitError
from elimina.backends.cuda import device
from elimina.backends.cuda.backend import CudaBackend
from elimina.backends.cuda.device import KEEP, RESERVE, CudaDevice

SECONDS, MUCH_SECONDS = 0.3, 0.1
PATIENCE = 10.0
"""Seconds for a thread to do what it is about to."""


class Pool:
    """A pool of a card's memory, which keeps what is free."""

    def __init__(self):
        self.free, self.driver, self.busy = 0, 8 << 30, 0.0

    def free_bytes(self):
        return self.free

    def free_all_blocks(self):
        left, self.free = self.free, 0
        time.sleep(self.busy)
        self.driver += left

    def malloc(self, size):
        self.driver -= max(0, size - self.free)
        self.free = max(self.free, size)


@pytest.fixture
def card(monkeypatch):
    """A stand-in of 16 GiB."""
    pool, error = Pool(), type("CUDARuntimeError", (Exception,), {})
    cuda = SimpleNamespace(
        Device=lambda number: contextlib.nullcontext(),
        runtime=SimpleNamespace(CUDARuntimeError=error, memGetInfo=lambda: (pool.driver, 16 << 30)),
        driver=SimpleNamespace(CUDADriverError=error),
    )
    made = object.__new__(CudaDevice)
    made.number, made.keeps_memory, made.pool, made._most_left = 99, False, pool, 4 << 30
    made._reserving, made.stream = None, contextlib.nullcontext()
    made.cupy, made._device = SimpleNamespace(cuda=cuda), contextlib.nullcontext()
    monkeypatch.setattr(device, "_going_back", {99: threading.Lock()})
    monkeypatch.setattr(device, "_pools", lambda cupy: (pool, None, None))
    monkeypatch.setattr(device, "LINGER_SECONDS", SECONDS)
    monkeypatch.setattr(device, "MUCH_SECONDS", MUCH_SECONDS)
    yield made
    made.claim()


def leave(card, size):
    card.pool.free = size
    card.trim()


def wait_until_left(card, most):
    until = time.monotonic() + PATIENCE
    while card.pool.free_bytes() > most and time.monotonic() < until:
        time.sleep(0.01)
    assert card.pool.free_bytes() <= most


def test_little_stays(card):
    leave(card, KEEP)
    time.sleep(2 * SECONDS)
    assert card.pool.free == KEEP


def test_more_stays_for_a_while(card):
    leave(card, 2 << 30)
    assert card.pool.free == 2 << 30
    wait_until_left(card, 0)


def test_much_goes_earlier(card, monkeypatch):
    monkeypatch.setattr(device, "LINGER_SECONDS", 10 * PATIENCE)
    leave(card, 5 << 30)
    assert card.pool.free == 5 << 30
    wait_until_left(card, 0)


def test_what_is_going_back_counts_as_free(card):
    card.pool.busy = SECONDS
    leave(card, 5 << 30)
    wait_until_left(card, 0)  # under way
    assert card.memory() == (13 << 30) - RESERVE


def test_a_program_waits_for_what_is_going_back(card):
    card.pool.busy = SECONDS
    leave(card, 5 << 30)
    wait_until_left(card, 0)
    card.claim()
    assert card.pool.driver == 13 << 30


def test_what_is_claimed_stays_until_it_is_left_again(card):
    leave(card, 2 << 30)
    card.claim()
    time.sleep(2 * SECONDS)
    assert card.pool.free == 2 << 30
    leave(card, 2 << 30)
    wait_until_left(card, 0)


def test_the_last_program_counts(card):
    for _ in range(6):
        leave(card, 2 << 30)
        time.sleep(SECONDS / 3)
        assert card.pool.free == 2 << 30
    wait_until_left(card, 0)


def test_without_a_thread_it_goes_at_once(card, monkeypatch):
    def refuse(thread):
        raise MemoryLimitError("no thread")

    monkeypatch.setattr(device, "start_thread", refuse)
    leave(card, 2 << 30)
    assert card.pool.free == 0


def test_at_the_end_of_the_interpreter_nothing_is_under_way(card):
    card.pool.busy = SECONDS
    leave(card, 2 << 30)
    wait_until_left(card, 0)  # under way
    device._leave_driver()
    assert card.pool.driver == 10 << 30


def test_a_program_of_another_card_does_not_wait(card, monkeypatch):
    monkeypatch.setitem(device._going_back, 98, threading.Lock())
    with device._going_back[98]:
        card.claim()
        assert card.memory() == (8 << 30) - RESERVE


def test_it_stays_between_programs_that_follow_each_other(card):
    card.keeps_memory = True
    leave(card, 5 << 30)
    assert card.pool.free == 5 << 30


def program(size, **traits):
    return SimpleNamespace(**{"size": size, "sparse": None, "stream": None, "shards": None, **traits})


@pytest.fixture
def planned(card, monkeypatch):
    """The same, whose layouts take what a program says."""
    monkeypatch.setattr(card, "lay_out", lambda program: program)
    return card


def test_memory_is_reserved_while_the_caller_does_something_else(planned):
    planned.reserve(program(5 << 30))
    planned.claim()
    assert planned.pool.free == 5 << 30
    time.sleep(2 * SECONDS)
    assert planned.pool.free == 5 << 30


def test_reserved_memory_goes_back_if_nobody_claims_it(planned):
    planned.reserve(program(5 << 30))
    planned._reserving.join()
    assert planned.pool.free == 5 << 30
    wait_until_left(planned, 0)


def test_what_a_program_left_is_reserved(planned):
    leave(planned, 2 << 30)
    planned.reserve(program(2 << 30))
    planned.claim()
    assert (planned.pool.free, planned.pool.driver) == (2 << 30, 8 << 30)


@pytest.mark.parametrize("trait", ["sparse", "stream", "shards"])
def test_other_programs_reserve_nothing(planned, trait):
    planned.reserve(program(5 << 30, **{trait: object()}))
    planned.claim()
    assert planned.pool.free == 0


def test_a_program_that_finds_no_memory_says_so_itself(planned, monkeypatch):
    def refuse(size):
        raise MemoryError("out of memory")

    monkeypatch.setattr(planned.pool, "malloc", refuse)
    planned.reserve(program(5 << 30))
    planned.claim()
    assert planned.pool.free == 0


@pytest.mark.gpu
def test_on_a_card(monkeypatch):
    monkeypatch.setattr(device, "LINGER_SECONDS", SECONDS)
    backend = CudaBackend()

    def use(size):
        with backend.at_work(0):
            memory = backend.pool.malloc(size)
            del memory
        backend.trim()

    backend._most_left = 3 << 30
    use(2 << 30)
    assert backend.pool.free_bytes() >= 2 << 30
    wait_until_left(backend, KEEP)
    use(2 << 30)
    with backend.arrays():
        assert backend.pool.free_bytes() <= KEEP
    use(4 << 30)
    wait_until_left(backend, KEEP)
