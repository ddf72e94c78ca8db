"""Budget of a strategy: its time, memory, and the bounds so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from elimina.result import Result


class Budget(NamedTuple):
    """Budget of a strategy: its time, the bounds and assignment so far, and a listener for its results.

    Attributes:
        deadline: Time by ``time.monotonic`` at which the strategy has to end; None: there is no limit.
        best_result: Best result so far.
        report: Function that gets bounds as soon as they are known.
        growth_bytes: Estimated bytes by which the process has grown since the call began.
    """

    deadline: float | None
    best_result: Result | None
    report: Callable[[Result], None]
    growth_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Seconds until the deadline; 0 after it, and infinity if there is none."""
        return math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())
