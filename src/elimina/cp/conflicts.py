"""Minimal conflicts: sets of constraints that contradict each other, but no longer if any one is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from elimina.display import with_types_as_written

Name = TypeVar("Name")


@with_types_as_written
class Conflict(NamedTuple):
    """Named constraints without a solution, given all constraints without a name.

    Attributes:
        names: Names of the constraints, in the order in which they were posted.
        is_minimal: True if there is a solution when any single one is left out; False if the time was too short to
            find out.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x = m.int_var(0, 9, "x")
        >>> for name, condition in {"small": x < 3, "even": x % 2 == 0, "large": x > 5}.items():
        ...     with m.named(name):
        ...         m.add(condition)
        >>> conflict = m.conflict()
        >>> conflict.names, conflict.is_minimal
        (('small', 'large'), True)
    """

    names: tuple[str, ...]
    is_minimal: bool


def minimal_conflict(names: Sequence[Name], is_infeasible: Callable[[Sequence[Name]], bool]) -> list[Name]:
    """Return a minimal subset of names with infeasible constraints, if the constraints of all names are infeasible.

    The subset is empty if the constraints without a name are infeasible. The names are halved again and again
    (QuickXplain; Junker, AAAI 2004).

    Args:
        names: Different names.
        is_infeasible: Function that returns True if the constraints of some names are known to be infeasible.
    """

    def conflict_within(background: Sequence[Name], is_changed: bool, candidates: Sequence[Name]) -> list[Name]:
        if is_changed and is_infeasible(background):
            return []
        if len(candidates) == 1:
            return list(candidates)
        middle = len(candidates) // 2
        first, second = candidates[:middle], candidates[middle:]
        of_second = conflict_within([*background, *first], True, second)
        of_first = conflict_within([*background, *of_second], bool(of_second), first)
        return [*of_first, *of_second]

    if not names or is_infeasible([]):
        return []
    return conflict_within([], False, names)
