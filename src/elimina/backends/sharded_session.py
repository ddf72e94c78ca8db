"""A program that is divided among several GPUs, phase by phase."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import Stop, Stopped, obey, stopped
from elimina.backends.protocols import Backend, Progress, RunOutput
from elimina.errors import DeviceError
from elimina.planning.program import Program, work_of
from elimina.planning.shard_copies import boxes
from elimina.planning.shard_program import Phase

if TYPE_CHECKING:
    from elimina.backends.cuda.peer_session import PeerSession

Result = TypeVar("Result")

_LOOK_SECONDS = 0.02
"""Seconds between a waiting thread's checks for a request to end."""


class ShardedSession:
    """A program divided among devices: see ``Session``.

    Args:
        members: The devices' backends.
        program: Program, the same for all devices.
        factors: The arena's first ``factor_cells`` elements, of the program's dtype.

    Raises:
        DeviceError: A device failed, or is out of memory.
    """

    def __init__(self, members: Sequence[Backend], program: Program, factors: NDArray[np.generic]) -> None:
        assert program.shards is not None
        self._program, self._shards = program, program.shards
        self._stop = Stop()
        self._pool = ThreadPoolExecutor(len(members), "elimina")
        self._opened: dict[int, PeerSession] = {}

        def open_one(gpu: int) -> None:
            self._opened[gpu] = cast("PeerSession", members[gpu].open(program, factors))

        started = time.perf_counter()
        try:
            self._together(open_one)
        except BaseException:
            self.close()
            raise
        self._upload = time.perf_counter() - started

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> RunOutput:
        """Run the whole program, phase by phase: see ``Session.run``.

        All phases are queued at once: the devices wait for each other, and not for this thread.
        """
        assert steps is None
        sessions = [self._opened[gpu] for gpu in range(self._shards.gpus)]
        started = time.perf_counter()
        try:
            with self._explained():
                self._queue(sessions)
                # Only the first device reports progress.
                runs = [session.finish(progress if gpu == 0 else None) for gpu, session in enumerate(sessions)]
        except BaseException:
            list(self._pool.map(_cancel, sessions))
            raise
        exchange = runs[0].seconds["exchange"]
        ran = time.perf_counter() - started - exchange
        return runs[0]._replace(seconds={"upload": self._upload, "run": ran, "exchange": exchange})

    def _queue(self, sessions: Sequence[PeerSession]) -> None:
        peers_of_sessions = [[peer for peer in sessions if peer is not session] for session in sessions]

        def meet() -> None:
            for session, peers in zip(sessions, peers_of_sessions, strict=True):
                session.follow(peers)

        work = 0
        meet()
        for phase in self._shards.phases:
            if stopped():
                raise Stopped
            if phase.copies:
                for gpu in range(len(sessions)):
                    self._copy(phase, gpu)
                meet()
            numbers = np.arange(phase.first, phase.end)
            work += work_of(self._program, numbers)
            for session in sessions:
                session.queue(numbers, work / self._program.work)
            meet()
            if phase.joined:
                # The last step of the phase is divided, and later steps need the range of its whole output.
                for session, peers in zip(sessions, peers_of_sessions, strict=True):
                    session.join_peaks(peers, phase.end - 1)

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of each arena: see ``Session.load``."""
        self._together(lambda gpu: self._opened[gpu].load(offset, values))

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write output ranges on each device: see ``Session.load_peaks``."""
        self._together(lambda gpu: self._opened[gpu].load_peaks(peaks, first))

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return elements of the first device's arena: see ``Session.fetch``."""
        return self._opened[0].fetch(offset, span)

    def close(self) -> None:
        """Release the memory."""
        self._pool.shutdown()
        for session in self._opened.values():
            # Memory of a failed device cannot be released.
            with contextlib.suppress(DeviceError):
                session.close()
        self._opened.clear()

    def _copy(self, phase: Phase, gpu: int) -> None:
        self._opened[gpu].copy_from(
            (self._opened[box.gpu], box.source, box.target)
            for copy in phase.copies
            for box in boxes(copy, gpu, self._shards.gpus)
        )

    def _together(self, work: Callable[[int], Result]) -> list[Result]:
        """Return the results of work on each device, each in a separate thread."""

        def obeying(gpu: int) -> Result:
            obey(self._stop)
            try:
                return work(gpu)
            finally:
                obey(None)

        futures = [self._pool.submit(obeying, gpu) for gpu in range(self._shards.gpus)]
        try:
            pending: set[Future[Result]] = set(futures)
            while pending and not any(future.done() and future.exception() for future in futures):
                _, pending = wait(futures, _LOOK_SECONDS, FIRST_EXCEPTION)
                if stopped():
                    raise Stopped
        finally:
            if not all(future.done() for future in futures):
                self._stop.request()
                wait(futures)
        errors = [error for future in futures if (error := future.exception())]
        if errors:
            # If a session fails, the others are stopped and raise ``Stopped``. Only the first failure is reported.
            with self._explained():
                raise next((error for error in errors if not isinstance(error, Stopped)), errors[0])
        return [future.result() for future in futures]

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DeviceError as error:
            raise DeviceError(
                f"{error}; the plan is divided among {self._shards.gpus} devices, which are all needed: name other GPUs"
            ) from error


def _cancel(session: PeerSession) -> None:
    with contextlib.suppress(DeviceError):
        session.cancel()
