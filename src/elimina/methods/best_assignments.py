"""Assignments in the order of their values, by best-first search guided by the messages of an elimination.

R. Dechter, N. Flerova, R. Marinescu, "Search algorithms for m best solutions for graphical models", AAAI 2012. The
messages of one elimination give the regret of each value: its cost minus that of the best value. With exact messages,
the search only visits prefixes of assignments that it returns. Messages of mini-buckets are bounds: the looser they
are, the more additional prefixes are visited.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.methods.mini_buckets import Heuristic, heuristic_of, mini_bucket_statistics
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.number_texts import bytes_text
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.number_type import cost_bound
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.problem.evidence import with_evidence
from elimina.problem.preparation import Problem, prepare
from elimina.result import RankedAssignment
from elimina.running.bounded_results import bounds_meet
from elimina.running.execution import Execution, statistics
from elimina.running.host import backend_of, host_memory
from elimina.running.mini_bucket_plans import plan_within
from elimina.running.plan_choice import plan_on
from elimina.running.rounding import TOLERANCES, rounding

TIE_TOLERANCE = 1e-9
"""Relative difference up to which float costs count as equal; the depth then decides."""

MAX_COST_SUM = 2**53
"""Limit on sums of integer costs, which are compared as floats."""

MESSAGE_MEMORY_SHARE = 0.5
"""Share of the memory for messages of mini-buckets; the search gets the rest."""

MESSAGE_SECONDS = 10.0
"""Limit on the estimated time of mini-buckets, in seconds. Mini-buckets are used if exact messages do not fit."""

_BRANCH_BYTES, _SIBLING_BYTES = 400, 24
"""Bytes of a branch without its arrays, and of each sibling in it."""


class _Level(NamedTuple):
    """Choice of a variable's value, given the values at earlier levels.

    Attributes:
        size: Number of values.
        offsets: Offset of each table and each message that a value's regret is computed from. The tables are added, and
            the messages that these tables replace are subtracted.
        strides: Strides of the variable in the tables; 0 for messages.
        signs: 1 for tables, -1 for messages.
        levels: Earlier levels on which each table or message depends, concatenated.
        level_strides: Stride of each of ``levels`` in its table or message.
        owners: Number of the table or message to which each of ``levels`` belongs.
    """

    size: int
    offsets: NDArray[np.int64]
    strides: NDArray[np.int64]
    signs: NDArray[np.int64]
    levels: NDArray[np.int64]
    level_strides: NDArray[np.int64]
    owners: NDArray[np.int64]


class _Branch(NamedTuple):
    """A path of the search, and its siblings: untried values at the levels of the path, sorted by cost.

    Attributes:
        values: Value at each level.
        costs: Least cost of each sibling.
        levels: Level of each sibling.
        siblings: Value of each sibling at its level.
    """

    values: NDArray[np.int32]
    costs: list[float]
    levels: list[int]
    siblings: list[int]


class BestAssignments:
    """A best-first search that yields assignments in the order of their values.

    Args:
        problem: Problem of the task ``mpe``, with all values of all variables.
        options: Options of the plan.
        distance: Least number of variables in which an assignment has to differ from each earlier one.
        is_over: Function that returns whether the search has to end.

    Attributes:
        statistics: Statistics of the elimination, as in ``Result.stats``.
        is_complete: True if there are no further assignments.
        unproven: The next assignment with its value and the largest rounding error, if rounding hides whether other
            assignments are better; otherwise None.

    Raises:
        MemoryLimitError: Not even small mini-buckets fit.
        UnsupportedError: Integer costs are too large.
    """

    def __init__(
        self, problem: Problem, options: CheckedOptions, distance: int = 1, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        if problem.model.is_integer and (bound := cost_bound(problem)) > MAX_COST_SUM:
            raise UnsupportedError(
                f"the search for the best assignments compares costs up to {MAX_COST_SUM:,}, and the tables' ranges "
                f"add up to {bound - 1:,}: scale the costs down"
            )
        self._problem = problem
        heuristic, self.statistics = _messages(problem, options)
        self._is_over = is_over
        self.is_complete = False
        self.unproven: tuple[float, float, list[int]] | None = None
        self._heuristic, self._arena = heuristic, heuristic.arena
        self._is_exact = heuristic.plan.minibuckets is None
        self._sum_type = np.int64 if heuristic.is_integer else np.float64
        self._tie_tolerance = 0.0 if heuristic.is_integer else TIE_TOLERANCE
        self._memory = host_memory(options)
        self._order = [*reversed(heuristic.plan.order)]
        # Variables in no table come last, because all of their values are equally good.
        idle = set(range(len(problem.model.variables))).difference(self._order, problem.fixed)
        self._order += sorted(idle)
        self._levels = _levels(heuristic, [problem.model.sizes[v] for v in sorted(idle)])
        self._distance = distance
        self._earlier = np.zeros((0, len(self._order)), dtype=np.int32)
        self._numbers = itertools.count()
        self._bytes = 0

    @property
    def bound(self) -> int | float | None:
        """Bound on the best value, in the model's units; None if no assignment is allowed."""
        cost = self._heuristic.cost
        return self._heuristic.bound_of(cost) if math.isfinite(cost) else None

    def __iter__(self) -> Iterator[tuple[int | float, list[int]]]:
        """Yield values in the model's units, and a value index for each variable; end if rounding hides the order.

        Raises:
            MemoryLimitError: The paths of the search do not fit.
        """
        if not math.isfinite(self._heuristic.cost):
            self.is_complete = True
            return
        model = self._problem.model
        self._heap: list[tuple[float, int, int, _Branch]] = []
        leaf, cost = self._descend(np.zeros(len(self._order), dtype=np.int32), 0, 0.0)
        while True:
            if leaf is not None:
                assignment = self._problem.complete(self._order, leaf.tolist())
                value = model.score(assignment)
                if model.is_beyond_bound(value):
                    self.is_complete = True
                    return
                error = self._rounding_error(cost)
                if error and not bounds_meet(value - error, value, TOLERANCES[self._heuristic.plan.dtype]):
                    self.unproven = value, error, assignment
                    return
                yield value, assignment
                if self._distance > 1:
                    self._earlier = np.vstack([self._earlier, leaf])
            if self._is_over():
                return
            if not self._heap:
                self.is_complete = True
                return
            cost, _, position, branch = heapq.heappop(self._heap)
            if position + 1 < len(branch.costs):
                heapq.heappush(self._heap, (branch.costs[position + 1], -next(self._numbers), position + 1, branch))
            values, level = branch.values.copy(), branch.levels[position]
            values[level] = branch.siblings[position]
            leaf, cost = self._descend(values, level + 1, cost)

    def _rounding_error(self, cost: float) -> float:
        """Return the largest rounding error of the total of a path with this cost; 0 for integers."""
        if self._heuristic.is_integer:
            return 0.0
        total = self._heuristic.cost + cost
        return rounding(self._problem, self._heuristic.plan, total, self._heuristic.encoded.constants, len(self._order))

    def _descend(self, values: NDArray[np.int32], level: int, cost: float) -> tuple[NDArray[np.int32] | None, float]:
        """Descend by best values while no other branch is better; return the values (None: incomplete) and the cost."""
        limit = self._heap[0][0] if self._heap else math.inf
        siblings: list[tuple[float, int, int]] = []
        # Number of variables in which the path differs from each earlier assignment.
        differences = (self._earlier[:, :level] != values[:level]).sum(axis=1)
        if len(differences) and differences.min() + len(self._levels) - level < self._distance:
            return None, cost
        while level < len(self._levels):
            costs = cost + self._regrets(level, values)
            if len(differences):
                missing = self._distance - differences - (len(self._levels) - level - 1)
                costs[self._earlier[missing > 0, level]] = math.inf
                if missing.max() > 1:
                    costs[:] = math.inf
            best = int(costs.argmin())
            finite = np.flatnonzero(np.isfinite(costs))
            is_better_elsewhere = costs[best] > limit + self._tie_tolerance * max(1.0, cost)
            others = finite if is_better_elsewhere else finite[finite != best]
            siblings += [(float(costs[x]), level, int(x)) for x in others]
            limit = min(limit, costs[others].min(initial=math.inf))
            if is_better_elsewhere or not len(finite):
                break
            cost, values[level] = float(costs[best]), best
            differences += self._earlier[:, level] != best
            level += 1
        if siblings:
            # Ties are broken by depth: the deepest node is closest to an assignment.
            siblings.sort(key=lambda sibling: (sibling[0], -sibling[1]))
            branch = _Branch(values, *map(list, zip(*siblings, strict=True)))
            self._charge(_BRANCH_BYTES + values.nbytes + _SIBLING_BYTES * len(siblings))
            heapq.heappush(self._heap, (branch.costs[0], -next(self._numbers), 0, branch))
        return (values if level == len(self._levels) else None), cost

    def _regrets(self, level: int, values: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the increase of the bound for each value of a level."""
        size, offsets, strides, signs, levels, level_strides, owners = self._levels[level]
        if not len(offsets):
            return np.zeros(size)
        at = offsets + np.bincount(owners, values[levels] * level_strides, len(offsets)).astype(np.int64)
        cells = self._arena[at[:, None] + strides[:, None] * np.arange(size)]
        is_forbidden = (cells == self._heuristic.plan.forbidden).any(axis=0)
        totals = (signs @ np.where(is_forbidden, 0, cells).astype(self._sum_type)).astype(np.float64)
        totals[is_forbidden] = math.inf
        least = totals.min()
        # Rounding errors must not make a path better than its prefix.
        return totals - least if self._is_exact and math.isfinite(least) else np.maximum(totals, 0.0)

    def _charge(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._memory:
            raise MemoryLimitError(
                f"the paths of the search for the best assignments take more than {bytes_text(self._memory)}: ask for "
                "fewer assignments, or give more memory"
            )


def _messages(problem: Problem, options: CheckedOptions) -> tuple[Heuristic, dict[str, Any]]:
    """Run an elimination, by mini-buckets if exact messages do not fit; return its heuristic and its statistics."""
    order = elimination_order(problem, options)
    backend = backend_of(options)
    # Each variable needs its own bucket, so no step may eliminate several variables.
    plan = plan_on(backend, problem, order, options)
    if not plan.fits:
        message_bytes = MESSAGE_MEMORY_SHARE * host_memory(options)
        planned = plan_within(problem, order, replace(options, ibound="auto"), message_bytes, MESSAGE_SECONDS)
        plan, backend = planned.plan, planned.backend
    execution, clock = Execution(problem, plan, backend), dict[str, float]()
    heuristic = heuristic_of(execution, clock)
    return heuristic, {**statistics(execution, clock), **mini_bucket_statistics(plan)}


def _levels(heuristic: Heuristic, idle_sizes: Sequence[int]) -> list[_Level]:
    """Return the levels of the search: variables in reverse elimination order, then those in no table."""
    guide = heuristic.guide
    last = len(guide.sizes) - 1
    tables: list[list[tuple[int, int, int, Sequence[tuple[int, int]]]]] = [[] for _ in guide.sizes]
    words, at = guide.tables.tolist(), 0
    while at < len(words):
        offset, home, stride, origin, count = words[at : at + 5]
        pairs = list(zip(words[at + 5 : at + 5 + 2 * count : 2], words[at + 6 : at + 5 + 2 * count : 2], strict=True))
        at += 5 + 2 * count
        if home >= 0:
            tables[home].append((offset, stride, 1, pairs))
        if origin >= 0:
            tables[origin].append((offset, 0, -1, [*pairs, (home, stride)] if home >= 0 else pairs))
    levels = []
    for v in reversed(range(len(tables))):
        offsets, strides, signs = (np.array([table[n] for table in tables[v]], dtype=np.int64) for n in range(3))
        dependences = [(last - u, s, n) for n, table in enumerate(tables[v]) for u, s in table[3]]
        columns = np.array(dependences, dtype=np.int64).reshape(-1, 3).T
        levels.append(_Level(guide.sizes[v], offsets, strides, signs, *columns))
    nothing = np.zeros(0, dtype=np.int64)
    return [*levels, *(_Level(size, *[nothing] * 6) for size in idle_sizes)]


def ranked_assignments(
    model: Model, evidence: Evidence, options: CheckedOptions, within: float, distance: int
) -> Iterator[RankedAssignment]:
    """Yield the assignments of a model in the order of their values, the best first.

    Args:
        model: Any model.
        evidence: Evidence for the model.
        options: Options of the plan.
        within: Largest distance of a value from the value of the first assignment.
        distance: Least number of variables in which an assignment has to differ from each earlier one.
    """
    observed = with_evidence(model, "mpe", evidence)
    problem = prepare(observed.model, "mpe", observed.values)
    first: int | float | None = None
    search = BestAssignments(problem, options, distance)
    for value, assignment in search:
        first = value if first is None else first
        slack = 0.0 if isinstance(value, int) else TIE_TOLERANCE * max(1.0, abs(first))
        if abs(value - first) > within + slack:
            return
        yield RankedAssignment(value, model.states_at(assignment))
    if search.unproven is not None:
        value, error, _ = search.unproven
        if first is not None and abs(value - first) - error > within:
            return
        raise UnsupportedError(
            f"rounding hides the order of the next assignments: their values are about {value:.6g}, with errors of up "
            f"to {error:.2g}; write forbidden costs as infinity, or scale the costs down to integers"
        )
