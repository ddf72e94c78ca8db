"""Interface of backends: they run a whole program, and return the parts of the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from elimina.planning.machine import Machine
from elimina.planning.plan import FactorLayout
from elimina.planning.program import Program


class Run(NamedTuple):
    """Output of a run.

    Attributes:
        zone: The elements of all outputs, from ``Program.zone``'s start on; of the program's dtype.
        peaks: float64 of shape (steps, 2): the largest and the smallest positive value of each step's output, before
            scaling; zeros unless the semiring is scaled (``sum-product``).
        assignment: int32, a value for each variable that a step eliminates (others 0); None unless the program decodes.
            Ties go to the smallest value index.
        seconds: Time by phase: ``upload``, ``run``, ``decode``, ``download``.
        rows: Tuples of sparse tables that were considered, and those that messages kept.
    """

    zone: NDArray[np.generic]
    peaks: NDArray[np.float64]
    assignment: NDArray[np.int32] | None
    seconds: dict[str, float]
    rows: tuple[int, int] = (0, 0)


Progress = Callable[[float], None]


class Session(Protocol):
    """A program on a device, its arena kept between runs."""

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of the arena, of the program's dtype, from an offset on; they are read until the next run."""
        ...

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> Run:
        """Run the program, or only some of its steps on earlier results of the others.

        Args:
            steps: int64, ascending numbers of steps; None for all.
            progress: Called now and then with the share of the work that is done.

        Raises:
            DeviceError: The device failed.
            KeyboardInterrupt: The user interrupted.
        """
        ...

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return elements of the arena, after a run of a program that keeps its messages; a view until the next run."""
        ...

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write ``Run.peaks`` of another session, for steps that read messages which are not computed here.

        Args:
            peaks: Output ranges of successive steps.
            first: Number of the first of these steps.
        """
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


@runtime_checkable
class GatheringSession(Session, Protocol):
    """A session whose arena lies in one piece."""

    def gather(self, places: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return the elements of the arena at these places, after a run of a program that keeps its messages."""
        ...

    def arena_in_place(self) -> AbstractContextManager[tuple[Any, Any]]:
        """Give access to the arena where it lies: the package of its arrays (NumPy or CuPy), and the arena."""
        ...


class TableSession(Session, Protocol):
    """A session whose tables are put in and taken out as arrays of its device: NumPy's or CuPy's."""

    def put(self, table: FactorLayout, values: Any, limit: float | None, forbidden: float) -> None:
        """Write a table of the arena before a run.

        Args:
            table: Address of the table.
            values: An array of its sizes, on the host or on the session's device, of any dtype whose cells below the
                limit fit.
            limit: Limit from which on a cell is forbidden; None: cells are written as they are.
            forbidden: Value written for forbidden cells.
        """
        ...

    def take(self, table: FactorLayout) -> Any:
        """Return a table of the arena after a run: an array of its own, on the device."""
        ...


class Backend(Protocol):
    """A device that runs programs."""

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda``, with the device's own name where it has one."""
        ...

    @property
    def machine(self) -> Machine:
        """The device as the planner sees it."""
        ...

    def memory(self) -> int:
        """Return the bytes that a program may take at present."""
        ...

    def open(self, program: Program, factors: NDArray[np.generic]) -> Session:
        """Put a program on the device.

        Args:
            program: Packed steps.
            factors: The arena's first ``factor_cells`` elements, of the program's dtype.

        Raises:
            DeviceError: The device failed or is out of memory.
        """
        ...


def run_once(backend: Backend, program: Program, factors: NDArray[np.generic], progress: Progress | None = None) -> Run:
    """Open, run and close: see ``Session.run`` and ``Backend.open``; the device's memory is free again in any case."""
    session = backend.open(program, factors)
    try:
        return session.run(progress=progress)
    finally:
        session.close()
