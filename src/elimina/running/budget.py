"""Budget of a strategy: its time and memory, and the bounds so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from elimina.result import Result


class Budget(NamedTuple):
    """Budget of a strategy: its time, the bounds and assignment so far, and a listener for its results.

    Attributes:
        deadline: Time by ``time.monotonic`` at which the strategy has to end; None: no limit.
        best_result: Best result so far.
        report: Function to call with each improvement of the bounds.
        growth_bytes: Estimated bytes by which the process has grown since the call began.
    """

    deadline: float | None
    best_result: Result | None
    report: Callable[[Result], None]
    growth_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Seconds until the deadline; 0 after it, infinity without one."""
        return math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())
