"""Tasks of a schedule: each has a start, a duration, and a Boolean that is 1 if the task takes place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from elimina.cp.expressions import Expression, Operand
from elimina.errors import InputError
from elimina.system import Slotted


class IntervalVar(Slotted):
    """A task that `Model.interval_var` makes.

    ``result[task]`` is a pair of the task's start and end, or None if the task is absent.

    Attributes:
        start: Start of the task.
        duration: Duration, at least 0.
        presence: 1 if the task takes place, 0 if it is absent; a number if the task is not optional.
        name: Name of the task.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> task = m.interval_var((2, 5), 3)
        >>> m.minimize(task.end)
        >>> m.solve()[task]
        (2, 5)
    """

    __slots__ = ("duration", "name", "presence", "start")

    def __init__(self, start: Expression, duration: Operand, presence: Operand, name: str) -> None:
        self.start, self.duration, self.presence, self.name = start, duration, presence, name

    @property
    def end(self) -> Expression:
        """End of the task: its start plus its duration."""
        return self.start + self.duration

    def __repr__(self) -> str:
        optional = "" if isinstance(self.presence, int) else f", presence={self.presence}"
        return f"IntervalVar({self.name or 'a task'}: start={self.start}, duration={self.duration}{optional})"


Task: TypeAlias = "Operand | IntervalVar"
"""Start of a task, or a task."""


def intervals_of(name: str, tasks: Sequence[Task]) -> list[IntervalVar] | None:
    """Return tasks as intervals; None if they are starts.

    Raises:
        InputError: Some are intervals, and others are starts.
    """
    intervals = [task for task in tasks if isinstance(task, IntervalVar)]
    if intervals and len(intervals) < len(tasks):
        start = next(task for task in tasks if not isinstance(task, IntervalVar))
        raise InputError(f"{name}: {intervals[0]} is a task, and {start} is not: give tasks alone, or starts alone")
    return intervals or None
