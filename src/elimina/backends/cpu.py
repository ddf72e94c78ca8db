"""The CPU backend: a whole program in one call of the compiled core."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from elimina._core import run_program
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
        try:
            arena = np.empty(program.arena_cells, dtype=program.dtype)
        except MemoryError as error:
            raise DeviceError(f"the host has no {program.arena_cells * program.dtype.itemsize} bytes left") from error
        arena[: program.factor_cells] = factors
        peaks = np.zeros((len(program.starts), 2))
        assignment = np.zeros(program.variables, dtype=np.int32) if program.decode else None
        work = program.work
        report = None if progress is None else lambda done: progress(min(1.0, done / work))
        uploaded = time.perf_counter()
        integer = int(program.parameter) if program.dtype.kind in "iu" else 0
        run_program(
            program.semiring,
            float(program.parameter),
            integer,
            program.words,
            program.starts,
            arena,
            peaks.reshape(-1),
            assignment,
            self.threads,
            report,
        )
        seconds = {"upload": uploaded - started, "run": time.perf_counter() - uploaded}
        outputs = tuple(arena[at : at + span].copy() for _, at, span in program.outputs.tolist())
        return Run(outputs, peaks, assignment, seconds)


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
