"""Backends by their names, and several GPUs of one host as one backend."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from importlib import util
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import Stop, Stopped, obey, stopped
from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import Backend, Progress, Run
from elimina.errors import DeviceError, InputError
from elimina.planning.devices import HINT, cards_of
from elimina.planning.machine import cuda_machine
from elimina.planning.program import Program, boxes, work_of
from elimina.planning.shard_program import Phase

if TYPE_CHECKING:
    from elimina.backends.cuda.backend import CardSession
    from elimina.backends.protocols import Session
    from elimina.planning.machine import Machine

Made = TypeVar("Made")

_LOOK_SECONDS = 0.02
"""Between looks of a waiting thread at whether it is to end."""

_STARTS = 2
"""Starts of a card that work has to outlast for one to be opened."""


class Devices:
    """Devices of one kind as one backend: a plan is made for each of them alone, and independent work is shared out.

    Args:
        members: Their backends, which share nothing; the first one runs what cannot be shared out.
    """

    def __init__(self, members: Sequence[Backend]) -> None:
        self.members = tuple(members)

    @property
    def name(self) -> str:
        """Number of the devices and the first one's name."""
        return f"{len(self.members)} x {self.members[0].name}"

    @property
    def machine(self) -> Machine:
        """One of the devices as the planner sees it."""
        return self.members[0].machine

    def memory(self) -> int:
        """Return the bytes that a program may take at present on each of the devices."""
        return min(member.memory() for member in self.members)

    def open(self, program: Program, factors: NDArray[np.generic]) -> Session:
        """Put a program on the first device, or a divided one on all: see ``Backend.open``."""
        if program.shards is not None:
            return ShardSession(self.members[: program.shards.cards], program, factors)
        return self.members[0].open(program, factors)


class ShardSession:
    """A program divided among devices: see ``Session``.

    Args:
        members: The devices' backends.
        program: Program that is the same for all of them.
        factors: See ``Backend.open``.

    Raises:
        DeviceError: A device failed, or is out of memory.
    """

    def __init__(self, members: Sequence[Backend], program: Program, factors: NDArray[np.generic]) -> None:
        assert program.shards is not None
        self._program, self._shards = program, program.shards
        self._stop = Stop()
        self._pool = ThreadPoolExecutor(len(members), "elimina")
        self._opened: dict[int, CardSession] = {}

        def open_one(card: int) -> None:
            self._opened[card] = cast("CardSession", members[card].open(program, factors))

        started = time.perf_counter()
        try:
            self._together(open_one)
        except BaseException:
            self.close()
            raise
        self._upload = time.perf_counter() - started

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> Run:
        """Run the whole program, phase by phase: see ``Session.run``.

        All phases are queued at once: the devices wait for each other, and not for this thread.
        """
        assert steps is None
        sessions = [self._opened[card] for card in range(self._shards.cards)]
        started = time.perf_counter()
        try:
            with self._explained():
                self._queue(sessions)
                # Only the first one tells the progress.
                runs = [session.finish(progress if card == 0 else None) for card, session in enumerate(sessions)]
        except BaseException:
            list(self._pool.map(_cancel, sessions))
            raise
        exchange = runs[0].seconds["exchange"]
        ran = time.perf_counter() - started - exchange
        return runs[0]._replace(seconds={"upload": self._upload, "run": ran, "exchange": exchange})

    def _queue(self, sessions: Sequence[CardSession]) -> None:
        others = [[other for other in sessions if other is not session] for session in sessions]

        def meet() -> None:
            for session, peers in zip(sessions, others, strict=True):
                session.follow(peers)

        done = 0
        meet()
        for phase in self._shards.phases:
            if stopped():
                raise Stopped
            if phase.copies:
                for card in range(len(sessions)):
                    self._copy(phase, card)
                meet()
            numbers = np.arange(phase.first, phase.end)
            done += work_of(self._program, numbers)
            for session in sessions:
                session.queue(numbers, done / self._program.work)
            meet()
            if phase.joined:
                # The phase ends with its only divided step. Others may have run before, or run later.
                for session, peers in zip(sessions, others, strict=True):
                    session.join_peaks(peers, phase.end - 1)

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of each arena: see ``Session.load``."""
        self._together(lambda card: self._opened[card].load(offset, values))

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write output ranges on each device: see ``Session.load_peaks``."""
        self._together(lambda card: self._opened[card].load_peaks(peaks, first))

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return elements of the first device's arena: see ``Session.fetch``."""
        return self._opened[0].fetch(offset, span)

    def close(self) -> None:
        """Give the memory back."""
        self._pool.shutdown()
        for session in self._opened.values():
            # A device that failed keeps its memory to itself.
            with contextlib.suppress(DeviceError):
                session.close()
        self._opened.clear()

    def _copy(self, phase: Phase, card: int) -> None:
        self._opened[card].copy_from(
            (self._opened[box.card], box.source, box.target)
            for copy in phase.copies
            for box in boxes(copy, card, self._shards.cards)
        )

    def _together(self, work: Callable[[int], Made]) -> list[Made]:
        """Return the results of work that each device does in a thread of its own."""

        def obeying(card: int) -> Made:
            obey(self._stop)
            try:
                return work(card)
            finally:
                obey(None)

        futures = [self._pool.submit(obeying, card) for card in range(self._shards.cards)]
        try:
            left: set[Future[Made]] = set(futures)
            while left and not any(future.done() and future.exception() for future in futures):
                _, left = wait(futures, _LOOK_SECONDS, FIRST_EXCEPTION)
                if stopped():
                    raise Stopped
        finally:
            if not all(future.done() for future in futures):
                self._stop.request()
                wait(futures)
        errors = [error for future in futures if (error := future.exception())]
        if errors:
            # Of those that were stopped, the other one's error is of interest.
            with self._explained():
                raise next((error for error in errors if not isinstance(error, Stopped)), errors[0])
        return [future.result() for future in futures]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DeviceError as error:
            raise DeviceError(
                f"{error}; the plan is divided among {self._shards.cards} devices, which are all needed: "
                "name others (--device)"
            ) from error


def _cancel(session: CardSession) -> None:
    with contextlib.suppress(DeviceError):
        session.cancel()


def devices_of(backend: Backend) -> tuple[Backend, ...]:
    """Return the backends of single devices that a backend consists of."""
    return backend.members if isinstance(backend, Devices) else (backend,)


def get_backend(device: str, threads: int | None = None) -> Backend:
    """Return the backend of a device, or of several GPUs.

    Args:
        device: A name from ``device_name``, but for ``auto``.
        threads: Number of CPU threads; None for all.

    Raises:
        InputError: Unknown device.
        DeviceError: There is no such device, or it cannot be used.
    """
    if device == "cpu":
        return CpuBackend(threads)
    cards = cards_of(device)
    if not cards:
        raise InputError(f"unknown device {device!r}: {HINT}")
    from elimina.backends.cuda.backend import CudaBackend

    if len(cards) == 1:
        return CudaBackend(cards[0])
    # Contexts of several cards are made at the same time.
    with ThreadPoolExecutor(len(cards)) as pool:
        return Devices(list(pool.map(CudaBackend, cards)))


@functools.cache
def is_cupy_installed() -> bool:
    """Return whether CuPy is installed, as this process first saw it: a look through all folders takes 0.1 ms."""
    return util.find_spec("cupy") is not None


def outlasts_card_start(seconds: float) -> bool:
    """Return whether work of an estimated time is worth a card's start, which is short where a card is open."""
    if seconds <= _STARTS * cuda_machine(is_open=True).start:
        return False
    is_open = False
    if is_cupy_installed():
        from elimina.backends.cuda.device import is_any_open

        is_open = is_any_open()
    return seconds > _STARTS * cuda_machine(is_open).start


def find_cuda() -> Backend | None:
    """Return the backend of the first card if it can be used here."""
    if not is_cupy_installed():
        return None
    try:
        return get_backend("cuda")
    except DeviceError:
        return None


def card_count(backend: Backend) -> int:
    """Return the cards of the machine that a card is in, none of which is opened; 1 for other devices."""
    from elimina.backends.cuda.device import CudaDevice

    return backend.count if isinstance(backend, CudaDevice) else 1


def reach_each_other(backend: Backend, count: int) -> bool:
    """Return whether so many devices read each other's memory: cards may; what stands for them does."""
    from elimina.backends.cuda.device import CudaDevice

    cards = [card for card in devices_of(backend) if isinstance(card, CudaDevice)]
    numbers = range(count) if len(cards) == 1 else [card.number for card in cards]
    return all(card.reaches(number) for card in cards for number in numbers)


@contextlib.contextmanager
def keeping_memory(backend: Backend) -> Iterator[None]:
    """Let a card keep the memory of each program for the next one; what is not used at the end is given back."""
    from elimina.backends.cuda.device import CudaDevice

    if not isinstance(backend, CudaDevice):
        yield
        return
    backend.keeps_memory = True
    try:
        yield
    finally:
        backend.keeps_memory = False
        # A card that failed keeps its memory to itself.
        with contextlib.suppress(DeviceError):
            backend.trim()


def with_other_cards(backend: Backend, least: int) -> Backend:
    """Return a backend of the first card and of all others that have so many bytes of free memory."""
    others = map(_card_or_none, range(1, card_count(backend)))
    found = [card for card in others if card and card.memory() >= least]
    return Devices([backend, *found]) if found else backend


def _card_or_none(number: int) -> Backend | None:
    try:
        return get_backend(f"cuda:{number}")
    except DeviceError:
        return None
