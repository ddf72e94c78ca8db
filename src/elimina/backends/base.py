"""What a backend is: it runs a whole program, and returns what the answer is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina.planning.program import Program


class Run(NamedTuple):
    """What a backend returns.

    Attributes:
        outputs: For each of the program's outputs its elements, paddings included; of the program's dtype.
        peaks: float64 of shape (steps, 2): the largest and the smallest positive value of each step's output, before
            scaling; zeros unless the semiring is scaled (``max-product``, ``sum-product``).
        assignment: int32, a value for each variable that a step eliminates (others 0); None unless the program decodes.
            Ties go to the smallest value index.
        seconds: Time by phase: ``upload``, ``run``, ``decode``.
    """

    outputs: tuple[NDArray[np.generic], ...]
    peaks: NDArray[np.float64]
    assignment: NDArray[np.int32] | None
    seconds: dict[str, float]


class Backend(Protocol):
    """Runs programs on one device."""

    @property
    def name(self) -> str:
        """``cpu`` or ``cuda``, with the device's own name where it has one."""
        ...

    def memory(self) -> int:
        """Bytes that a program may take at present."""
        ...

    def run(
        self, program: Program, factors: NDArray[np.generic], progress: Callable[[float], None] | None = None
    ) -> Run:
        """Run a program.

        Args:
            program: Packed steps.
            factors: The arena's first ``factor_cells`` elements, of the program's dtype.
            progress: Called now and then with the share of the work that is done.

        Raises:
            DeviceError: The device failed or is out of memory.
            KeyboardInterrupt: The user interrupted; the device's memory is free again.
        """
        ...
