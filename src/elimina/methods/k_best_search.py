"""The k best assignments by branch and bound with soft local consistency, for models too wide for exact messages.

The search is that of ``soft_consistency``, but the upper bound is the cost of the k-th best assignment so far. No
variable is eliminated before the search, because elimination keeps only the best value of a variable.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from elimina._core import ConsistencySearch, stopped
from elimina.methods.soft_consistency import core_costs_of, shifted_costs, slack_of
from elimina.problem.preparation import Problem
from elimina.running.memory_shares import threads_within

_SOLUTION_BYTES, _VALUE_BYTES = 200, 12
"""Bytes of a stored solution without its values, and bytes of each value, summed over all containers."""

_RANKING_SECONDS = 0.05
"""Least time for the evaluation of assignments, in seconds, even if the call has to end."""

_SOLUTIONS_MEMORY_SHARE = 0.25
"""Share of the memory for solutions."""


def largest_k(problem: Problem, memory: int) -> int:
    """Return the largest number of assignments that fit the memory for solutions."""
    return int(_SOLUTIONS_MEMORY_SHARE * memory) // (_SOLUTION_BYTES + _VALUE_BYTES * len(problem.free))


Ranked = tuple[list[tuple[int | float, list[int]]], bool]
"""Assignments with their values, the best first, and a flag that is True if the list is complete."""


class KBestSearch:
    """A resumable search for the k best assignments.

    Args:
        problem: Problem of the task ``mpe``, with all values of all variables.
        order: The problem's free variables in elimination order.
        k: Number of assignments.
        threads: Largest number of CPU threads.
        memory: Memory limit in bytes.
        total: Value of a known assignment; worse assignments are excluded. None: no assignment is excluded.
        shift_seconds: Seconds after which no further pass of cost shifting is begun; 0: costs are not shifted.

    Attributes:
        is_possible: False if ``k``, the tables or the costs are too large, or no assignment is allowed.
        is_complete: True if the search has proved that no other assignments are better.
        nodes: Nodes searched.
        seconds: Seconds searched.
    """

    def __init__(
        self,
        problem: Problem,
        order: Sequence[int],
        k: int,
        threads: int,
        memory: int,
        total: int | None = None,
        shift_seconds: float = 0.0,
    ) -> None:
        self._problem, self._k, self._memory = problem, k, memory
        self.is_complete, self.nodes, self.seconds = False, 0, 0.0
        is_within = k <= largest_k(problem, memory)
        core_costs = core_costs_of(problem, total, False, shift_seconds > 0, memory) if is_within else None
        self.is_possible = core_costs is not None
        if core_costs is None:
            return
        number = {v: n for n, v in enumerate(problem.free)}
        network, constant = (*problem.network, core_costs.costs), 0
        if shift_seconds > 0:
            shifted = shifted_costs(network, constant, core_costs.spread, core_costs.top, shift_seconds)
            network = (shifted.sizes, shifted.starts, shifted.members, shifted.costs)
            constant = shifted.constant
        self._units = core_costs.units
        self._core = ConsistencySearch(
            *network,
            [number[v] for v in order],
            constant,
            core_costs.top,
            core_costs.step,
            slack_of(problem, core_costs.top),
            threads_within(problem, threads, memory),
            k,
        )

    @property
    def bound(self) -> int | float:
        """Bound on the values of all assignments that are not among the ranked ones, in the units of the model."""
        return self._units.total(self._core.bound)

    def add_assignment(self, chosen: Sequence[int]) -> None:
        """Add a known assignment (a value for each variable) as a candidate."""
        self._core.add_solution([chosen[v] for v in self._problem.free])

    def run(self, seconds: float) -> None:
        """Search until the time limit, the end of the search, or the end of the call."""
        begun = time.monotonic()
        outcome = self._core.run(seconds, float("inf"), self._memory, lambda *_: not stopped())
        self.seconds += time.monotonic() - begun
        self.nodes, self.is_complete = outcome["nodes"], outcome["done"]

    @property
    def solutions(self) -> int:
        """Number of assignments so far, counting only the variables that are in tables."""
        return self._core.solution_count

    @property
    def count(self) -> int:
        """Number of assignments so far, counting all values of variables that are in no table."""
        return self.solutions * math.prod(self._problem.model.sizes[v] for v in _idle(self._problem))

    def ranked(self, is_over: Callable[[], bool] = lambda: False) -> Ranked:
        """Return the best assignments so far: see ``ranked_solutions``."""
        return ranked_solutions(self._problem, self._k, map(self._core.solution, range(self.solutions)), is_over)


def ranked_solutions(
    problem: Problem, k: int, solutions: Iterable[Sequence[int]], is_over: Callable[[], bool] = lambda: False
) -> Ranked:
    """Return the best assignments with their values, and whether all of them were evaluated.

    If the call has to end, only some of them are evaluated.

    Args:
        problem: Problem of the task ``mpe``, with all values of all variables.
        k: Number of assignments.
        solutions: Values of the free variables in the best assignments, the best first.
        is_over: Function that returns whether the call is to end.

    Returns:
        Assignments, the best first, each as its value and the indices of the variables' values; and True if all were
        evaluated.
    """
    model, latest = problem.model, time.monotonic() + _RANKING_SECONDS
    ranked: list[tuple[int | float, list[int]]] = []
    is_whole = True
    for assignment in itertools.islice(_completed(problem, solutions), k):
        if ranked and time.monotonic() > latest and is_over():
            is_whole = False
            break
        ranked.append((model.score(assignment), assignment))
    allowed = [row for row in ranked if not model.is_beyond_bound(row[0])]
    return sorted(allowed, key=lambda row: model.sign * row[0]), is_whole


def _completed(problem: Problem, solutions: Iterable[Sequence[int]]) -> Iterator[list[int]]:
    """Yield solutions extended by all values of the variables in no table, which are equally good."""
    sizes, idle = problem.model.sizes, _idle(problem)
    for values in solutions:
        for others in itertools.product(*(range(sizes[v]) for v in idle)):
            yield problem.complete((*problem.free, *idle), (*values, *others))


def _idle(problem: Problem) -> list[int]:
    """Return the variables that are neither free nor fixed, because they are in no table."""
    return sorted(set(range(len(problem.model.sizes))).difference(problem.free, problem.fixed))
