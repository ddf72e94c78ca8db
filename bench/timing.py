"""Timing of repeated calls, after one that is not counted."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds_of(call: Callable[[], object], repeat: int) -> list[float]:
    """Return the seconds of several calls."""
    call()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return times


def median_seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the median time of several calls."""
    return statistics.median(seconds_of(call, repeat))


def best_seconds(call: Callable[[], object], repeat: int) -> float:
    """Return the shortest time of several calls: other processes can only add to it."""
    return min(seconds_of(call, repeat))
