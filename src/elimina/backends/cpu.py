"""The CPU backend: a whole program in one call of the compiled core."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from elimina._core import DenseSession
from elimina.backends.base import Run
from elimina.errors import DeviceError
from elimina.planning.program import Program


class CpuBackend:
    """Runs programs on the host's cores.

    Args:
        threads: Number of threads; None for as many as the process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or len(os.sched_getaffinity(0))

    @property
    def name(self) -> str:
        """Always ``cpu``."""
        return "cpu"

    def memory(self) -> int:
        """Bytes that may be taken: four fifths of what the system, or the process' control group, has left."""
        return available_memory() * 4 // 5

    def run(
        self, program: Program, factors: NDArray[np.generic], progress: Callable[[float], None] | None = None
    ) -> Run:
        """Run a program: see ``Backend.run``."""
        started = time.perf_counter()
        session = self.session(program)
        session.factors[:] = factors
        uploaded = time.perf_counter()
        run = session.run(progress)
        return run._replace(seconds={"upload": uploaded - started, **run.seconds})

    def session(self, program: Program) -> CpuSession:
        """Translate a program once, to run it again and again on other factors.

        Raises:
            DeviceError: The host is out of memory.
        """
        return CpuSession(program, self.threads)


class CpuSession:
    """A program with its arena.

    Attributes:
        program: As given.
        arena: Array of shape (arena_cells,): factors and messages, to be read between runs.
        factors: Array of shape (factor_cells,) and the program's dtype, inside the arena: fill in all of it before the
            first run, and what changes before each later one.
    """

    def __init__(self, program: Program, threads: int) -> None:
        self.program = program
        try:
            self.arena = np.empty(program.arena_cells, dtype=program.dtype)
        except MemoryError as error:
            raise DeviceError(f"the host has no {program.arena_cells * program.dtype.itemsize} bytes left") from error
        self.factors: NDArray[np.generic] = self.arena[: program.factor_cells]
        self._peaks = np.zeros((len(program.starts), 2))
        self._assignment = np.zeros(program.variables, dtype=np.int32) if program.decode else None
        self._core = DenseSession(
            program.semiring,
            float(program.parameter),
            int(program.parameter) if program.dtype.kind in "iu" else 0,
            program.words,
            program.starts,
            self.arena,
            self._peaks.reshape(-1),
            self._assignment,
            threads,
        )

    def run(self, progress: Callable[[float], None] | None = None) -> Run:
        """Run the program on the factors as they are now; not from two threads at a time.

        Args:
            progress: Called now and then with the share of the work that is done.

        Raises:
            KeyboardInterrupt: The user interrupted.
        """
        started = time.perf_counter()
        work = self.program.work
        self._core.run(None if progress is None else lambda done: progress(min(1.0, done / work)))
        seconds = {"run": time.perf_counter() - started}
        assignment = None if self._assignment is None else self._assignment.copy()
        return Run(self.arena[self.program.roots], self._peaks.copy(), assignment, seconds)


def available_memory() -> int:
    """Bytes of memory that this process can still take without swapping."""
    with open("/proc/meminfo") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    free = int(fields["MemAvailable"].split()[0]) * 1024
    try:
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as current:
            bound = limit.read().strip()
            return free if bound == "max" else min(free, int(bound) - int(current.read()))
    except OSError:
        return free
