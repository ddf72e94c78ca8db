"""Programs whose arena lies on the host: their tables pass through a smaller memory in tiles."""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from elimina.backends.core_session import dense_session
from elimina.backends.protocols import Progress, RunOutput
from elimina.planning.program import Program
from elimina.planning.record import DOMAIN, HEADER, LO_CELLS, OUTER_CELLS
from elimina.planning.stream import Schedule, StreamedStep
from elimina.problem.semirings import SEMIRINGS

Item = TypeVar("Item")


def with_following(items: Iterator[Item], ahead: int) -> Iterator[tuple[Item, list[Item]]]:
    """Yield each item with a list of the items after it, at most ``ahead`` of them."""
    waiting: list[Item] = []
    for item in items:
        waiting.append(item)
        if len(waiting) > ahead:
            yield waiting[0], waiting[1:]
            waiting.pop(0)
    while waiting:
        yield waiting[0], waiting[1:]
        waiting.pop(0)


Report = Callable[[float], None]


class TiledSession(ABC):
    """A program whose arena lies on the host: see ``Session``.

    Args:
        program: Packed program of a plan with ``stream``.
        arena: All tables, the factors among them.
        threads: Number of threads for the steps that run on the host.
        upload: Seconds that it took to fill the arena.
    """

    def __init__(self, program: Program, arena: NDArray[np.generic], threads: int, upload: float) -> None:
        assert program.stream is not None
        self.program, self.arena, self.upload_seconds = program, arena, upload
        self.scaled = SEMIRINGS[program.semiring].is_scaled
        self.peaks = np.zeros((len(program.starts), 2))
        self._streamed = {step.step: step for step in program.stream.steps}
        self._host = dense_session(program, program.words, program.starts, arena, self.peaks, threads)

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of the arena: see ``Session.load``."""
        self.arena[offset : offset + len(values)] = values

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return a copy of elements of the arena: see ``Session.fetch``."""
        return self.arena[offset : offset + span].copy()

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write the output ranges of an earlier session, until a run replaces them: see ``Session.load_peaks``."""
        self.peaks[first : first + len(peaks)] = peaks

    def close(self) -> None:
        """Drop the arena."""
        del self._host, self.arena

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> RunOutput:
        """Run all steps whatever ``steps`` says, since the device keeps no tables between runs: see ``Session.run``."""
        started = time.perf_counter()
        self.peaks[:] = 0
        if self.scaled:
            self.peaks[list(self._streamed), 1] = np.inf
        self.run_all(progress)
        ran = time.perf_counter()
        self.peaks[np.isinf(self.peaks[:, 1]), 1] = 0
        assignment = (
            self._host.decode(self.program.variables, self.program.first_decoded) if self.program.decode else None
        )
        seconds = {"upload": self.upload_seconds, "run": ran - started, "decode": time.perf_counter() - ran}
        return RunOutput(self.arena[slice(*self.program.zone)].copy(), self.peaks.copy(), assignment, seconds)

    def run_all(self, progress: Progress | None) -> None:
        """Run consecutive groups of steps, each on the host or on the device."""
        program, done = self.program, 0
        schedule = Schedule(program.words, program.starts, program.dtype.itemsize)
        numbers = range(len(program.starts))
        for on_device, stretch in itertools.groupby(numbers, self._streamed.__contains__):
            steps = list(stretch)
            report = self._reporter(progress, done)
            if on_device:
                self.run_tiles(schedule, [self._streamed[number] for number in steps], report)
            else:
                self._host.run(np.array(steps, dtype=np.int64), report)
                self.host_steps_ran()
            done += sum(self._work(number) for number in steps)
        if progress is not None:
            progress(1.0)

    @abstractmethod
    def run_tiles(self, schedule: Schedule, steps: Sequence[StreamedStep], report: Report | None) -> None:
        """Run consecutive steps in tiles; return when the arena has their results, and ``peaks`` their output ranges.

        Args:
            schedule: Schedule of the whole run.
            steps: Some steps of the program's stream.
            report: Called now and then with the work that is done.
        """

    def host_steps_ran(self) -> None:
        """Process the new output ranges of steps that ran on the host, if the session needs them."""
        return

    def _work(self, number: int) -> int:
        start = int(self.program.starts[number])
        words = self.program.words[start : start + HEADER].tolist()
        return int(words[DOMAIN] * math.prod(words[OUTER_CELLS : LO_CELLS + 1]))

    def _reporter(self, progress: Progress | None, before: int) -> Report | None:
        if progress is None:
            return None
        return lambda done: progress(min(1.0, (before + done) / self.program.work))
