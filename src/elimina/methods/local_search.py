"""Local search for assignments, and completion of a user's assignment.

Tabu moves alternate with large neighbourhoods that are solved exactly by elimination. A neighbourhood is a connected
part of the problem, from which variables are dropped until its induced width is small. It grows until it yields a
better assignment, as in variable neighbourhood search (A. Ouali et al., "Variable neighborhood search for graphical
model energy minimization", Artificial Intelligence 278, 2020).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from elimina._core import FORBIDDEN_COST, LocalSearch
from elimina.methods.first_bounds import ROUNDING_SLACK, result_of_assignment
from elimina.model.table import Ends
from elimina.model.variable import named
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result
from elimina.running.bounded_results import bounds_meet
from elimina.running.combination import NO_PLAN
from elimina.running.encoding import distances
from elimina.running.memory_shares import can_copy, cells_of, threads_within

MAX_COMPLETION_CELLS, MAX_COMPLETION_PASSES = 3e7, 1000
"""Largest number of cells that local search visits to complete or repair a hint (about 0.1 s), and largest mean number
of visits of each cell, which limits the time for small models to milliseconds."""


class AssignmentSearch:
    """A local search that can be resumed.

    Args:
        problem: Problem of the task ``mpe``, with free variables.
        core: The core's search over the free variables.
        least: Lower bound on the cost of an assignment; costs are negated totals if totals are maximised.
    """

    def __init__(self, problem: Problem, core: LocalSearch, least: float) -> None:
        self.problem, self._core, self._least = problem, core, least
        self.start([0] * len(problem.model.variables))

    @staticmethod
    def of(problem: Problem, memory: int, seed: int, threads: int = 1) -> AssignmentSearch | None:
        """Prepare a local search; return None if no variable is free, or the tables are too large or forbid everything.

        Args:
            problem: Problem of the task ``mpe``.
            memory: Memory limit of the search, in bytes.
            seed: Random seed.
            threads: Largest number of parallel searches; the best assignment of all is returned.
        """
        if not problem.free or not can_copy(cells_of(problem), len(problem.groups), memory):
            return None
        cost_distances = distances(problem, FORBIDDEN_COST)
        if not cost_distances.possible:
            return None
        costs = cost_distances.costs.astype(np.float64, copy=False)
        if problem.model.is_integer:
            costs[costs >= FORBIDDEN_COST] = math.inf
        search = LocalSearch(*problem.network, costs, seed, threads_within(problem, threads, memory))
        return AssignmentSearch(problem, search, cost_distances.offset - _slack(problem))

    def result(self) -> Result | None:
        """Return the best assignment; None if it is not allowed."""
        chosen = self.best
        score = self.problem.model.score(chosen)
        if math.isinf(score) or self.problem.model.is_beyond_bound(score):
            return None
        result = result_of_assignment(self.problem, self._least, chosen)
        return result.replace(stats={**result.stats, "method": "local search"})

    def start(self, chosen: Sequence[int]) -> None:
        """Restart the search at an assignment: a value for each variable of the model."""
        self._core.start([chosen[v] for v in self.problem.free])

    def run(self, seconds: float, cells: float = math.inf) -> bool:
        """Search, and return whether the best assignment has improved.

        Args:
            seconds: Time limit in seconds.
            cells: Approximate limit on the number of table cells that each thread visits.
        """
        return self._core.run(seconds, cells)

    @property
    def score(self) -> int | float:
        """The total of the best assignment."""
        return self.problem.model.score(self.best)

    @property
    def best(self) -> list[int]:
        """The value of each variable of the model in the best assignment."""
        chosen = [0] * len(self.problem.model.variables)
        for v, value in (*self.problem.fixed.items(), *zip(self.problem.free, self._core.best, strict=True)):
            chosen[v] = value
        return chosen


def first_assignment(problem: Problem, hint: Mapping[int, int], options: CheckedOptions, memory: int) -> Result | None:
    """Complete a hint to an assignment; return None if the result is forbidden or exceeds an upper bound.

    Args:
        problem: Problem of the task ``mpe``; its evidence takes precedence over the hint.
        hint: Variable -> index of its state.
        options: Options with ``seed``, and ``upper_bound``: worse assignments are dropped.
        memory: Memory limit of the completion, in bytes.
    """
    model = problem.model
    values = {**hint, **problem.fixed}
    chosen = [values.get(v, 0) for v in range(len(model.variables))]
    if len(values) < len(chosen):
        chosen = _improved(prepare(model, "mpe", values), chosen, options, memory)
    if math.isinf(model.score(chosen)):
        chosen = _improved(problem, chosen, options, memory)
    score = model.score(chosen)
    if math.isinf(score) or model.is_beyond_bound(score):
        return None
    sign = 1 if model.sense == "min-cost" else -1
    limit = options.upper_bound
    if limit is not None and sign * score > sign * limit and not bounds_meet(limit, score):
        return None
    lower, upper = (None, score) if sign == 1 else (score, None)
    stats = {**NO_PLAN, "method": "hint", "seconds": {}}
    return Result("bounded", "mpe", score, lower, upper, named(model.variables, chosen), stats=stats)


def _slack(problem: Problem) -> float:
    """Return the largest rounding error of the sum of the tables' least costs."""
    model = problem.model
    if model.is_integer:
        return 0
    bests = Ends.of(problem.tables.listed, model.sense).numbers(highest=model.sense != "min-cost")
    costs = map(math.log, bests) if model.sense == "probability" else bests
    return ROUNDING_SLACK * sum(map(abs, costs), abs(model.constant))


def _improved(problem: Problem, chosen: list[int], options: CheckedOptions, memory: int) -> list[int]:
    search = AssignmentSearch.of(problem, memory, options.seed)
    if search is None:
        return chosen
    search.start(chosen)
    search.run(math.inf, min(MAX_COMPLETION_CELLS, MAX_COMPLETION_PASSES * cells_of(problem)))
    return search.best
