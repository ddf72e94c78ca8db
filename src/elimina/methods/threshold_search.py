"""Search for the assignment with the best worst cost, by constraint problems that forbid costs above a threshold.

The optimum of such a bottleneck problem is the least threshold at which the constraint problem has a solution
(D. Dubois, H. Fargier, H. Prade, "Possibility theory in constraint satisfaction problems", Applied Intelligence 1996,
for fuzzy constraints). The thresholds are the costs of the tables. Branch and bound solves each constraint problem.
"""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import stopped
from elimina.methods.k_best_search import KBestSearch
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table, forbidden_value
from elimina.problem.preparation import Problem, prepare

_FIRST_SECONDS = 0.25
"""Seconds of the first search at a threshold; longer searches follow once all thresholds had their first one."""

Costs = NDArray[Any]


class ThresholdSearch:
    """A resumable search for the best worst cost.

    If larger values are better, costs are negated values.

    Args:
        problem: Problem of the task ``bottleneck``.
        order: The problem's free variables in elimination order.
        threads: Largest number of CPU threads.
        memory: Memory limit of the search, in bytes.

    Attributes:
        is_possible: False if the copies of the tables do not fit.
        chosen: A value for each variable of the model in the best assignment so far; None: no assignment.
        nodes: Nodes searched.
    """

    def __init__(self, problem: Problem, order: Sequence[int], threads: int, memory: int) -> None:
        self._problem, self._order, self._threads, self._memory = problem, order, threads, memory
        self.is_possible, self.nodes = True, 0
        self.chosen: list[int] | None = None
        costs = [self._costs(table) for table in problem.tables]
        self._highest = [values[-1] for values in costs]
        self._levels = self._levels_of(costs)
        # The optimum is one of the levels from `_first` to `_last`. `_last` is the number of levels as long as no
        # assignment is known.
        self._first, self._last = 0, len(self._levels)
        self._undecided: dict[int, float] = {}

    def _costs(self, table: Table) -> Costs:
        """Return the distinct costs of a table in ascending order."""
        values = table.values
        if table.default is not None and len(values) < table.cells:
            values = np.append(values, np.asarray(table.default, dtype=values.dtype))
        return np.unique(self._problem.model.sign * values)

    def _levels_of(self, costs: Sequence[Costs]) -> Costs:
        """Return the possible worst costs of assignments within the model's upper bound, in ascending order."""
        model = self._problem.model
        allowed = [c[c < model.sign * forbidden_value(model.sense, c.dtype)] for c in costs]
        if not all(map(len, allowed)):
            return np.array([])
        levels: Costs = np.unique(np.concatenate(allowed))
        levels = levels[levels >= max(c[0] for c in allowed)]
        return levels[: bisect.bisect_left(levels, True, key=lambda c: model.is_beyond_bound(model.sign * c.item()))]

    @property
    def is_complete(self) -> bool:
        """True if the optimum is known, or it is known that no assignment is allowed."""
        return self._first == self._last

    @property
    def bound(self) -> int | float | None:
        """Bound on the worst cost of any assignment, in the model's units; None if no assignment is allowed."""
        if self._first == len(self._levels):
            return None
        bound: int | float = self._problem.model.sign * self._levels[self._first].item()
        return bound

    def start(self, chosen: Sequence[int], worst: int | float) -> None:
        """Store an initial assignment with its worst cost in the model's units."""
        level = int(np.searchsorted(self._levels, self._problem.model.sign * worst))
        if level < self._last:
            self._last, self.chosen = level, list(chosen)

    def run(self, seconds: float) -> None:
        """Search until the time limit, the end of the search, or the end of the call."""
        deadline = time.monotonic() + seconds
        while self.is_possible and not self.is_complete and not stopped():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            level = self._next_level()
            budget = max(_FIRST_SECONDS, 2 * self._undecided.get(level, 0.0))
            self._undecided[level] = budget
            self._decide(level, min(budget, remaining))
            self._undecided = {n: spent for n, spent in self._undecided.items() if self._first <= n < self._last}

    def _next_level(self) -> int:
        """Return the level to decide next: the middle of the longest range of untried levels.

        If all levels were tried, it is the level with the least time so far; of several such levels, the highest.
        Problems with high thresholds are easily solved, and those with low thresholds are easily proved to have no
        solution.
        """
        marks = [self._first - 1, *sorted(self._undecided), self._last]
        low, high = max(itertools.pairwise(marks), key=lambda ends: ends[1] - ends[0])
        if high - low > 1:
            return (low + high) // 2
        return min(self._undecided, key=lambda level: (self._undecided[level], -level))

    def _decide(self, level: int, seconds: float) -> None:
        """Search for an assignment with all costs up to a level, and narrow the range of the optimum accordingly."""
        problem, threshold = self._problem, self._levels[level]
        sign = problem.model.sign
        tables = [
            table.mapped(lambda values: np.where(sign * values <= threshold, 0, FORBIDDEN))
            for table, highest in zip(problem.tables, self._highest, strict=True)
            if highest > threshold
        ]
        allowing = prepare(Model(problem.model.variables, tables, sense="min-cost"), "mpe", {})
        free = set(allowing.free)
        if not free:
            self._lower(level, problem.complete((), ()))
            return
        order = [v for v in self._order if v in free]
        search = KBestSearch(allowing, order, 1, self._threads, self._memory)
        if not search.is_possible:
            self.is_possible = False
            return
        search.run(seconds)
        self.nodes += search.nodes
        solutions = search.ranked()[0]
        if solutions:
            values = solutions[0][1]
            self._lower(level, problem.complete(problem.free, [values[v] for v in problem.free]))
        elif search.is_complete:
            self._first = level + 1

    def _lower(self, level: int, chosen: list[int]) -> None:
        """Store an assignment with all costs up to a level, and lower the last level to its worst cost."""
        model = self._problem.model
        worst = max(model.sign * term for term in model.terms(chosen, logarithms=False))
        self._last = min(level, int(np.searchsorted(self._levels, worst)))
        self.chosen = chosen
