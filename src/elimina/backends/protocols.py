"""Interface of backends: they run a whole program, and return the parts of the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from elimina.planning.bucket_tables import BucketTables, ValueCosts
from elimina.planning.machine import Machine
from elimina.planning.program import Program
from elimina.planning.step import FactorLayout

if TYPE_CHECKING:
    from elimina._core import CasePlanner


class RunOutput(NamedTuple):
    """Output of a run.

    Attributes:
        zone: Elements of the arena within ``Program.zone``, which contains all outputs; of the program's dtype.
        peaks: float64 of shape (steps, 2): the largest and the smallest positive value of each step's output, before
            scaling, or bounds of them; zeros unless the semiring is scaled (``sum-product``).
        assignment: int32, a value for each variable that a step eliminates (others 0); None unless the program decodes.
            Ties go to the smallest value index.
        seconds: Time by phase: ``upload``, ``run``, ``decode``, ``download``.
        rows: Number of tuples of sparse tables that were considered, and number of those that messages keep.
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
        """Write elements of the arena's dtype from an offset on; ``values`` must not change until the next run."""
        ...

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> RunOutput:
        """Run the program, or only some of its steps, which then read the earlier results of the others.

        Args:
            steps: int64, ascending numbers of steps; None for all.
            progress: Called now and then with the share of the work that is done.

        Raises:
            DeviceError: The device failed.
            KeyboardInterrupt: The user interrupted.
        """
        ...

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return elements of the arena after a run of a program that keeps its messages.

        The result is valid until the next run.
        """
        ...

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Set output ranges from another session (``RunOutput.peaks``), for steps that read its messages.

        Args:
            peaks: Output ranges of successive steps.
            first: Number of the first of these steps.
        """
        ...

    def close(self) -> None:
        """Release the memory."""
        ...


@runtime_checkable
class SlicingSession(Session, Protocol):
    """A session that computes only the cells consistent with observed values."""

    def fix(self, values: NDArray[np.int32]) -> None:
        """Restrict later runs to the cells in which some variables have given values.

        Every step with a variable whose value changed runs again, and so do its readers. All other cells of the outputs
        hold the semiring's zero. A message starts at its usual place, but lacks the axes of variables with given
        values: its remaining cells are stored row by row, without gaps.

        Args:
            values: int32, a value for each variable; -1 where none is given.
        """
        ...

    def run_cases(
        self, variables: NDArray[np.int32], values: NDArray[np.int32]
    ) -> tuple[NDArray[np.generic], NDArray[np.float64]]:
        """Run all steps once for each row of values; variables without a column have no given value.

        Args:
            variables: int32, the variables of the columns.
            values: int32 of shape ``(cases, columns)``; -1 where none is given.

        Returns:
            ``RunOutput.zone`` and ``RunOutput.peaks`` of each case, of shapes ``(cases, elements)`` and
            ``(cases, steps, 2)``.
        """
        ...

    def run_planned(
        self, planner: CasePlanner, variables: NDArray[np.int32], values: NDArray[np.int32]
    ) -> tuple[NDArray[np.generic], NDArray[np.float64], NDArray[np.bool_]]:
        """Run a separate plan for each row of values, in ``sum-product``; all messages of the program are lost.

        Args:
            planner: Planner of cases in the program's arena.
            variables: int32, the variables of the columns.
            values: int32 of shape ``(cases, columns)``; -1 where none is given.

        Returns:
            ``RunOutput.zone`` of each case, but without the outputs of the program's roots; the natural logarithm of
            the sum over all assignments; and whether both can be relied on: the case's plan fitted the arena, and no
            positive product can have become 0.
        """
        ...


@runtime_checkable
class GatheringSession(Session, Protocol):
    """A session whose arena lies in one piece."""

    def gather(self, cells: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return the elements of the arena at the given places, after a run of a program that keeps its messages."""
        ...

    def decode_buckets(self, tables: BucketTables, costs: ValueCosts) -> NDArray[np.int32]:
        """Give each variable the value of least cost in the tables of its bucket, in reverse elimination order.

        Args:
            tables: Tables of a program that keeps its messages, after its run.
            costs: Costs of values.

        Returns:
            Assignments, shape ``(assignments, variables)``. Of equally good values, the first one is taken; if all
            values of a variable are forbidden, also the first one.
        """
        ...

    def arena_in_place(self) -> AbstractContextManager[tuple[Any, Any]]:
        """Give access to the arena where it lies: the package of its arrays (NumPy or CuPy), and the arena."""
        ...


class TableSession(Session, Protocol):
    """A session that reads and writes its tables as arrays of its device: NumPy's or CuPy's."""

    def put(self, table: FactorLayout, values: Any, limit: float | None, forbidden: float) -> None:
        """Write a table of the arena before a run.

        Args:
            table: Address of the table.
            values: An array of the table's sizes, on the host or on the session's device. Its dtype may differ
                if the table's dtype can hold all cells below the limit.
            limit: Least value of a forbidden cell; None: cells are written as they are.
            forbidden: Value written for forbidden cells.
        """
        ...

    def read_table(self, table: FactorLayout) -> Any:
        """Return a copy of a table of the arena after a run, on the device."""
        ...


@runtime_checkable
class KeepingSession(Session, Protocol):
    """A session whose messages have no place in an arena."""

    def fetch_message(self, number: int) -> NDArray[np.uint8]:
        """Return the complete output of a step as bytes, after a run of the step."""
        ...

    def load_message(self, number: int, data: NDArray[np.uint8]) -> None:
        """Restore the output of a step from the bytes of ``fetch_message``, in another session of the same program."""
        ...

    def message_table(self, number: int) -> NDArray[np.generic]:
        """Return a step's output as a dense table with the step's axes, after the step has run."""
        ...

    def factor_table(self, number: int) -> NDArray[np.generic]:
        """Return a factor as a dense table, with the axes of its layout."""
        ...


@runtime_checkable
class ExpectingSession(Session, Protocol):
    """A session that prepares runs of some steps while the device is busy with another run."""

    def expect(self, steps: NDArray[np.int64]) -> None:
        """Prepare runs of these steps during the next run, as far as time permits, the latest request first."""
        ...


class Backend(Protocol):
    """A device that runs programs."""

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda``, with the device's own name where it has one."""
        ...

    @property
    def machine(self) -> Machine:
        """Description of the device for the planner."""
        ...

    @property
    def threads(self) -> int:
        """Number of CPU threads for the host's share of the work, such as encoding."""
        ...

    def memory(self) -> int:
        """Return the bytes that a program can have now."""
        ...

    def open(self, program: Program, factors: NDArray[np.generic]) -> Session:
        """Put a program on the device.

        Args:
            program: Packed steps.
            factors: The arena's first ``factor_cells`` elements, of the program's dtype.

        Raises:
            DeviceError: The device failed or is out of memory.
            MemoryLimitError: The host is out of memory.
        """
        ...


@runtime_checkable
class ReservingBackend(Backend, Protocol):
    """A device whose memory takes a while to allocate."""

    def reserve(self, program: Program) -> None:
        """Start allocating memory for a program that is opened soon; unused memory is released."""
        ...


@runtime_checkable
class GpuBackend(Backend, Protocol):
    """A GPU of a machine that may have several; its memory is kept between programs.

    Attributes:
        number: Number of the GPU.
        count: Number of GPUs of the machine; counting them opens none.
        keeps_memory: True while successive programs reuse the memory of earlier ones.
    """

    number: int
    count: int
    keeps_memory: bool

    def reaches(self, peer: int) -> bool:
        """Return whether this GPU can read the memory of another one directly."""
        ...

    def trim(self) -> None:
        """Release unused memory, except while ``keeps_memory`` is true."""
        ...


def run_once(
    backend: Backend, program: Program, factors: NDArray[np.generic], progress: Progress | None = None
) -> RunOutput:
    """Run a program in a new session, whose memory is always released: see ``Backend.open`` and ``Session.run``."""
    session = backend.open(program, factors)
    try:
        return session.run(progress=progress)
    finally:
        session.close()
