"""Memory that programs leave on a card: some stays, some stays for a while, much goes at once."""

from __future__ import annotations

import contextlib
import time
from types import SimpleNamespace

import pytest

from elimina import MemoryLimitError
from elimina.backends.cuda import device
from elimina.backends.cuda.backend import CudaBackend
from elimina.backends.cuda.device import KEEP, CudaDevice

SECONDS = 0.3
PATIENCE = 10.0
"""Seconds for a thread to do what it is about to."""


class Pool:
    """A pool of a card's memory, which keeps what is free."""

    def __init__(self):
        self.free = 0

    def free_bytes(self):
        return self.free

    def free_all_blocks(self):
        self.free = 0


@pytest.fixture
def card(monkeypatch):
    """A stand-in of 16 GiB."""
    pool, error = Pool(), type("CUDARuntimeError", (Exception,), {})
    cuda = SimpleNamespace(
        Device=lambda number: contextlib.nullcontext(),
        runtime=SimpleNamespace(CUDARuntimeError=error),
        driver=SimpleNamespace(CUDADriverError=error),
    )
    made = object.__new__(CudaDevice)
    made.number, made.keeps_memory, made.pool, made._most_left = 99, False, pool, 4 << 30
    made.cupy, made._device = SimpleNamespace(cuda=cuda), contextlib.nullcontext()
    monkeypatch.setattr(device, "_pools", lambda cupy: (pool, None))
    monkeypatch.setattr(device, "LINGER_SECONDS", SECONDS)
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


def test_much_goes_at_once(card):
    leave(card, 5 << 30)
    assert card.pool.free == 0


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


def test_it_stays_between_programs_that_follow_each_other(card):
    card.keeps_memory = True
    leave(card, 5 << 30)
    assert card.pool.free == 5 << 30


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
    assert backend.pool.free_bytes() <= KEEP
