"""The CPU backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cpu_session import CpuSession
from elimina.planning.machine import Machine, cpu_machine
from elimina.planning.program import Program
from elimina.system import available_memory, available_threads, cached_property

if TYPE_CHECKING:
    from elimina.backends.disk_session import DiskSession
    from elimina.backends.sparse.session import SparseSession


class CpuBackend:
    """A backend that runs programs on the host's cores.

    Args:
        threads: Number of threads; None for as many as the process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._asked = threads

    @cached_property
    def threads(self) -> int:
        """Number of threads. It is determined on first use, because some callers only ask for the free memory."""
        return self._asked or available_threads()

    @property
    def name(self) -> str:
        """Always ``cpu``."""
        return "cpu"

    @property
    def machine(self) -> Machine:
        """Description of the host for the planner."""
        return cpu_machine(self.threads)

    def memory(self) -> int:
        """Return the bytes that may be used: four fifths of what the system and the limits of the process allow."""
        return available_memory() * 4 // 5

    def open(self, program: Program, factors: NDArray[np.generic]) -> CpuSession | DiskSession | SparseSession:
        """Put a program into memory, or into its scratch file: see ``Backend.open``."""
        if program.sparse is not None:
            # This import takes 19 ms, which dense programs need not spend.
            from elimina.backends.sparse.cpu import CpuSparseDevice
            from elimina.backends.sparse.session import SparseSession

            device = CpuSparseDevice(program.semiring, program.dtype, program.parameter, self.threads)
            return SparseSession(self, self, device, program, factors)
        if program.stream is not None:
            # This import takes 13 ms, which programs without a scratch file need not spend.
            from elimina.backends.disk_session import DiskSession

            return DiskSession(program, factors, self.threads)
        return CpuSession(program, factors, self.threads)
