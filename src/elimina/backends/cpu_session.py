"""A dense program in the host's memory, run by the compiled core."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import CasePlanner, decode_buckets
from elimina.backends.core_session import dense_session
from elimina.backends.protocols import Progress, RunOutput
from elimina.errors import MemoryLimitError
from elimina.number_texts import bytes_text
from elimina.option_names import option
from elimina.planning.arrays import view_of
from elimina.planning.bucket_tables import BucketTables, ValueCosts
from elimina.planning.program import Program, work_of
from elimina.planning.step import FactorLayout
from elimina.problem.semirings import SEMIRINGS

_OWN_PAGES_BYTES = 1 << 20
"""Least size in bytes of an arena that ``_empty_arena`` allocates in separate pages."""


def _empty_arena(program: Program) -> NDArray[np.generic]:
    """Allocate an arena; for bounds on sums, in separate pages, which return to the system when the arena is freed.

    The C library would keep freed blocks of less than 32 MiB for reuse by the same thread. These blocks would count
    against the memory limit when the next, larger mini-buckets are planned. Allocating pages takes much less time than
    a run.
    """
    size = program.arena_cells * program.dtype.itemsize
    if not SEMIRINGS[program.semiring].is_weighted or size < _OWN_PAGES_BYTES:
        return np.empty(program.arena_cells, dtype=program.dtype)
    import mmap

    return np.frombuffer(mmap.mmap(-1, size), dtype=program.dtype)


class CpuSession:
    """A program in the host's memory: see ``Session``."""

    def __init__(self, program: Program, factors: NDArray[np.generic], threads: int) -> None:
        self._program = program
        started = time.perf_counter()
        try:
            self._arena = _empty_arena(program)
        except (MemoryError, OSError) as error:
            size = bytes_text(program.arena_cells * program.dtype.itemsize)
            raise MemoryLimitError(
                f"cannot allocate {size} of host memory; set a smaller {option('memory')}"
            ) from error
        self._arena[: program.factor_cells] = factors
        self._peaks = np.zeros((program.steps, 2))
        outputs = np.ascontiguousarray(program.outputs[:, 0])
        self._core = dense_session(
            program, program.words, program.starts, self._arena, self._peaks, threads, outputs=outputs
        )
        self._zone = slice(*program.zone)
        self._upload = time.perf_counter() - started

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of the arena: see ``Session.load``."""
        self._arena[offset : offset + len(values)] = values

    def fix(self, values: NDArray[np.int32]) -> None:
        """Compute only the cells in which some variables have given values: see ``SlicingSession.fix``."""
        self._core.fix(values)

    def run_cases(
        self, variables: NDArray[np.int32], values: NDArray[np.int32]
    ) -> tuple[NDArray[np.generic], NDArray[np.float64]]:
        """Run all steps once for each row of values: see ``SlicingSession.run_cases``."""
        first, last = self._program.zone
        zones = np.empty((len(values), last - first), dtype=self._program.dtype)
        peaks = np.empty((len(values), self._peaks.size))
        unset = np.full(self._program.variables, -1, dtype=np.int32)
        self._core.run_cases(variables, values, unset, first, zones, peaks)
        return zones, peaks.reshape(len(values), -1, 2)

    def run_planned(
        self, planner: CasePlanner, variables: NDArray[np.int32], values: NDArray[np.int32]
    ) -> tuple[NDArray[np.generic], NDArray[np.float64], NDArray[np.bool_]]:
        """Run a separate plan for each row of values: see ``SlicingSession.run_planned``."""
        first, last = self._program.zone
        zones = np.zeros((len(values), last - first), dtype=self._program.dtype)
        logs, sound = np.zeros(len(values)), np.zeros(len(values), dtype=bool)
        unset = np.full(self._program.variables, -1, dtype=np.int32)
        self._core.run_planned(planner, variables, values, unset, zones, logs, sound)
        return zones, logs, sound

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> RunOutput:
        """Run all or some of the steps: see ``Session.run``."""
        started = time.perf_counter()
        if progress is None:
            self._core.run(steps, None)
        else:
            work = self._program.work if steps is None else max(1, work_of(self._program, steps))
            self._core.run(steps, lambda done: progress(min(1.0, done / work)))
        upload, self._upload = self._upload, 0.0
        ran = time.perf_counter()
        program = self._program
        assignment = self._core.decode(program.variables, program.first_decoded) if program.decode else None
        seconds = {"upload": upload, "run": ran - started, "decode": time.perf_counter() - ran, "download": 0.0}
        return RunOutput(self._arena[self._zone].copy(), self._peaks.copy(), assignment, seconds)

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return elements of the arena itself: see ``Session.fetch``."""
        return self._arena[offset : offset + span]

    def gather(self, cells: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return the elements of the arena at the given places: see ``GatheringSession.gather``."""
        return self._arena[cells]

    def decode_buckets(self, tables: BucketTables, costs: ValueCosts) -> NDArray[np.int32]:
        """Decode assignments: see ``GatheringSession.decode_buckets``."""
        forbidden = self._program.dtype.type(costs.forbidden).item()
        return decode_buckets(self._arena, tables, forbidden, costs.sign, costs.noise)

    def arena_in_place(self) -> AbstractContextManager[tuple[Any, Any]]:
        """Give access to the arena: see ``GatheringSession.arena_in_place``."""
        return nullcontext((np, self._arena))

    def put(self, table: FactorLayout, values: Any, limit: float | None, forbidden: float) -> None:
        """Write a table: see ``TableSession.put``."""
        view = self._view(table)
        np.copyto(view, values, casting="unsafe")
        if limit is not None:
            view[values >= limit] = forbidden

    def read_table(self, table: FactorLayout) -> NDArray[np.generic]:
        """Copy a table: see ``TableSession.read_table``."""
        return self._view(table).copy()

    def _view(self, table: FactorLayout) -> NDArray[np.generic]:
        return view_of(self._arena, table.offset, table.sizes, table.strides)

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write the output ranges of another session: see ``Session.load_peaks``."""
        self._peaks[first : first + len(peaks)] = peaks

    def close(self) -> None:
        """Drop the arena."""
        del self._core, self._arena
