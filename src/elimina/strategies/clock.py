"""The clock of a call: its start, its deadline, and the seconds of its phases."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager

from elimina.running.phases import phase_seconds


class Clock:
    """The time of one call.

    Args:
        time_limit: Time limit of the whole call, in seconds; None: no limit.
        begun: Start of the call by ``time.monotonic``; None: now.

    Attributes:
        started: Start of the call by ``time.monotonic``.
        deadline: Deadline by ``time.monotonic``; None: no time limit.
        innermost: Phase that is running; None between phases.
    """

    def __init__(self, time_limit: float | None = None, begun: float | None = None) -> None:
        self.started = time.monotonic() if begun is None else begun
        self.deadline = None if time_limit is None else self.started + time_limit
        self._booked: dict[str, float] = {}
        self._marked = self.started
        self.innermost: _Phase | None = None

    @property
    def seconds(self) -> float:
        """Seconds until the deadline; 0 after it, infinity without one."""
        return math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def age(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self.started

    def phase(self, name: str) -> AbstractContextManager[dict[str, float]]:
        """Time a block as a phase, without its inner phases; yield a dictionary for the seconds of its parts."""
        return _Phase(self, name)

    def mark(self, name: str) -> None:
        """Record the time since the last mark (at first, since the start of the call) as a phase."""
        now = time.monotonic()
        self._booked[name] = self._booked.get(name, 0.0) + now - self._marked
        self._marked = now

    def phase_seconds(self) -> dict[str, float]:
        """Return the seconds by phase for ``stats["seconds"]``; all running phases end."""
        phase, self.innermost = self.innermost, None
        while phase is not None:
            self.record(phase, {})
            phase = phase.outer
        return phase_seconds(self._booked, self.age)

    def record(self, phase: _Phase, part_seconds: Mapping[str, float]) -> None:
        """Record the seconds of a phase and of its parts; those of the phase exclude its parts and inner phases."""
        elapsed = time.perf_counter() - phase.started
        remaining, booked = elapsed - phase.inner_seconds, self._booked
        for name, seconds in part_seconds.items():
            share = min(max(0.0, seconds), max(0.0, remaining))
            booked[name] = booked.get(name, 0.0) + share
            remaining -= share
        booked[phase.name] = booked.get(phase.name, 0.0) + (remaining if remaining > 0.0 else 0.0)
        if phase.outer is not None:
            phase.outer.inner_seconds += elapsed


class _Phase:
    """A phase as a context manager; a generator would add 2 us to each small call.

    Attributes:
        name: Name of the phase.
        part_seconds: Seconds of its parts by their names.
        started: Start by ``time.perf_counter``.
        inner_seconds: Seconds of the phases within this one.
        outer: Phase around this one; None: no such phase.
    """

    __slots__ = ("_clock", "inner_seconds", "name", "outer", "part_seconds", "started")

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock, self.name, self.inner_seconds = clock, name, 0.0
        self.part_seconds: dict[str, float] = {}

    def __enter__(self) -> dict[str, float]:
        clock = self._clock
        self.started = time.perf_counter()
        self.outer, clock.innermost = clock.innermost, self
        return self.part_seconds

    def __exit__(self, *_: object) -> None:
        self._clock.innermost = self.outer
        self._clock.record(self, self.part_seconds)
