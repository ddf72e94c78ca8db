"""A clock that goes on by the looks at it, for methods that draw as long as there is time: their runs repeat."""

from __future__ import annotations

import time
from types import ModuleType

import pytest


class TickingClock:
    """A stand-in for the module ``time``; each look takes the same time.

    Args:
        seconds: Seconds between two looks.
    """

    def __init__(self, seconds: float) -> None:
        self._now, self._seconds = time.monotonic(), seconds

    def monotonic(self) -> float:
        """Return the time, and go on."""
        self._now += self._seconds
        return self._now

    perf_counter = monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


def let_looks_take(seconds: float, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> TickingClock:
    """Give modules a clock, each look at which takes some seconds."""
    clock = TickingClock(seconds)
    for module in modules:
        monkeypatch.setattr(module, "time", clock)
    return clock
