"""Seconds of a call by phase."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

from elimina.result import Result


@contextlib.contextmanager
def timed(clock: dict[str, float], name: str) -> Iterator[None]:
    """Add the time of a block to a phase, even if an exception ends the block."""
    started = time.perf_counter()
    try:
        yield
    finally:
        clock[name] = clock.get(name, 0.0) + time.perf_counter() - started


def phase_seconds(phases: Mapping[str, float], total: float) -> dict[str, float]:
    """Return ``stats["seconds"]``: the phases, ``other`` for the time between them, and their sum ``total``.

    Args:
        phases: Seconds by phase.
        total: Wall time of the call in seconds.
    """
    # Seconds are summed as whole microseconds, because rounding to decimals would take four times as long.
    micros = {phase: round(1e6 * seconds) for phase, seconds in phases.items() if phase not in ("other", "total")}
    timed_micros = sum(micros.values())
    total_micros = max(round(1e6 * total), timed_micros)
    micros["other"] = total_micros - timed_micros
    micros["total"] = total_micros
    return {phase: count / 1e6 for phase, count in micros.items()}


def with_reading(result: Result, seconds: float) -> Result:
    """Add a first phase to a result: the time that was spent reading a file before the call."""
    phases = result.stats.get("seconds", {})
    total = phases.get("total", sum(phases.values()))
    seconds_by_phase = phase_seconds({"read": seconds, **phases}, seconds + total)
    return result.replace(stats={**result.stats, "seconds": seconds_by_phase})
