"""State from which the next search of the same problem resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elimina.problem.preparation import Problem

if TYPE_CHECKING:
    from elimina.methods.cost_shifting import ShiftedProblem
    from elimina.methods.local_search import AssignmentSearch
    from elimina.methods.soft_consistency import SoftConsistency

FIRST_CONSISTENCY_SECONDS = 0.25
"""Seconds of soft local consistency before any other method."""

MIN_KEPT_MEMORY_BYTES = 1 << 30
"""Least memory limit, in bytes, at which the state of a search is stored."""


class PausedSearch:
    """Stored state of a search, for the next search of the same problem.

    Attributes:
        problem: Problem of the paused search and of the next one; None: no search has been paused.
        original: The problem with its costs shifted.
        improvement: Paused local search; None: it has not begun, or its tables are too large.
        consistency: Paused soft local consistency; None: it has not begun, or has to restart.
        first_order: Elimination order from a quick search; None: no such order.
        order: Number of the elimination order of soft local consistency (``consistency_order``).
        orders: Number of the latest order that was tried.
        is_spent: True if soft local consistency has finished.
        unit: Unit of the costs when soft local consistency last finished.
    """

    def __init__(self) -> None:
        self.clear()

    def within(self, problem: Problem, memory: int) -> PausedSearch:
        """Return this state, cleared if it belongs to another problem, or a new state if memory is scarce."""
        if memory < MIN_KEPT_MEMORY_BYTES:
            return PausedSearch()
        if self.problem is not problem:
            self.clear(problem)
        return self

    def clear(self, problem: Problem | None = None) -> None:
        """Discard the state, and set the problem of the next search."""
        self.problem = problem
        self.original: ShiftedProblem | None = None
        self.improvement: AssignmentSearch | None = None
        self.consistency: SoftConsistency | None = None
        self.first_order: tuple[int, ...] | None = None
        self.order = self.orders = 0
        self.is_spent = False
        self.unit: int | float = 0
