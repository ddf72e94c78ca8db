"""Bounds on a sum by weighted mini-buckets whose weights and cost shifts are optimised (Liu and Ihler 2011).

Any weights and any shifts bound the sum by Hölder's inequality. The upper bound is a convex function of both; the lower
bound, with negative weights, is smooth. Both are improved by a quasi-Newton method, in trees of rising i-bounds.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedTree, WeightedMiniBuckets
from elimina.errors import MemoryLimitError
from elimina.methods.local_search import AssignmentSearch
from elimina.methods.quasi_newton import VECTORS, minimise
from elimina.methods.search_state import Listener
from elimina.planning.machine import cpu_machine
from elimina.planning.options import Options
from elimina.planning.order import Method
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import MAX_BYTES
from elimina.planning.planner import make_plan
from elimina.planning.tree import Bound, node_weights, plan_tree, tree_of
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result
from elimina.running.bounded_results import sum_between
from elimina.running.encoding import encode
from elimina.running.host import host_memory

Clock = Callable[[], float]
"""Clock of a budget: ``time.monotonic`` for a time limit. Where there is none, ``time.thread_time``: other work on the
machine then makes no bound worse."""

METHOD = "mbe"
"""Name of the method in ``Result.stats``."""

MAX_SECONDS = 12.0
"""Seconds of the optimisation without a time limit."""

ORDERS: tuple[tuple[Method, int], ...] = (("min-fill", 0), ("min-fill", 1), ("min-fill", 2))
"""Heuristics of orders that are tried, and numbers that are added to their seeds."""

_ORDER_SECONDS = 0.2
"""Limit of the search for such an order in seconds."""

_TRIAL_SHARE = 0.02
"""Share of the time for the bound from above that tells which order is best."""

_RUNG_SHARES = (0.2, 1.0)
"""Shares of the remaining time of the rungs: rising i-bounds, of which the last one has all that is left."""

_STEPS = 20
"""Evaluations of each side for which there is to be time at an i-bound: by then most of the gain is made."""

_MAX_TRIAL_OVERRUN = 2.0
"""Times of its share of the time that a trial takes at most before another one."""

_MAX_BITS = 500.0
"""Base-2 logarithm of the most cells that are told apart: far more than any machine holds."""

CELL_SECONDS = 4e-8
"""Seconds of an evaluation for each cell, until it is measured."""

MEMORY_SHARE = 0.75
"""Share of the memory that the tree's tables and the parameters take."""

_SHARED_VARIABLES, _SHIFT_CELLS = 5, 256
"""Most variables and cells of a shift. On a 40 x 40 grid (i-bound 9), one variable leaves a gap of 11.3 in log10, four
6.0, seven no less."""

_SLICES = 16
"""Assignments of the variables that are fixed, for the bound from below."""

_ASSIGNMENT_SHARE = 0.1
"""Share of the time for a local search for an assignment, where no message leads to one."""

_STALLED_STEPS, _STALLED_GAIN = 10, 2e-3
"""Steps whose gain, relative to the gap (or to 1), is so small that a rung ends."""

_ULPS = 4
"""Units in the last place that a constant may be off."""


class SumBounds(NamedTuple):
    """Bounds on the natural logarithm of a sum, and an estimate of its distribution.

    Attributes:
        lower: Lower bound; minus infinity: there is none.
        upper: Upper bound; minus infinity: the sum is 0.
        tree: Mini-buckets that were improved last.
        order: Variables of ``shares``: the free ones in elimination order.
        shares: Estimated marginals, those of one variable after another; empty: there are none.
    """

    lower: float
    upper: float
    tree: MiniBucketTree
    order: Sequence[int]
    shares: NDArray[np.float64]


class MiniBucketTree(NamedTuple):
    """A tree of mini-buckets, and its figures.

    Attributes:
        planned: The compiled tree.
        ibound: Largest number of variables of a message.
        shared: Largest number of variables of a shift.
        divided: True for each node of a divided bucket.
        largest_table: Cells of the largest message.
        total_cells: Cells of all mini-buckets.
        peak_bytes: Bytes of tables and parameters.
    """

    planned: PlannedTree
    ibound: int
    shared: int
    divided: NDArray[np.bool_]
    largest_table: int
    total_cells: int
    peak_bytes: int

    @staticmethod
    def of(problem: Problem, order: Sequence[int], ibound: int) -> MiniBucketTree:
        """Divide the buckets of an order."""
        sizes = np.array(problem.model.sizes, dtype=np.float64)
        planned = plan_tree(problem.groups.scopes, problem.model.sizes, order, (), ibound)
        starts, members = planned.separators
        bits = np.concatenate([[0.0], np.cumsum(np.log2(sizes)[members])])
        messages = np.exp2(np.minimum(bits[starts[1:]] - bits[starts[:-1]], _MAX_BITS))
        tables = sizes[planned.variables] * messages
        divided = np.bincount(planned.variables, minlength=len(sizes))[planned.variables] > 1
        widest = max(2, max((problem.model.sizes[v] for v in order), default=2))
        shared = max(1, min(_SHARED_VARIABLES, int(math.log(_SHIFT_CELLS) / math.log(widest))))
        parameters = float(np.minimum(tables[divided], widest**shared).sum()) + float(divided.sum())
        factors = float(problem.groups.cells(problem.model.sizes).sum())
        cells = float(messages.sum()) + 3 * float(tables.max(initial=1)) + 2 * factors + VECTORS * parameters
        largest = int(messages.max(initial=1))
        return MiniBucketTree(planned, ibound, shared, divided, largest, int(tables.sum()), int(8 * cells))

    @property
    def statistics(self) -> dict[str, Any]:
        """Figures for ``Result.stats``."""
        variables = self.planned.variables
        return {
            "method": METHOD,
            "device": "cpu",
            "dtype": "float64",
            "seconds": {},
            "partition": "scope",
            "induced_width": self.planned.width,
            "largest_table": self.largest_table,
            "total_cells": self.total_cells,
            "peak_bytes": self.peak_bytes,
            "ibound": self.ibound,
            "divided": len(np.unique(variables[self.divided])),
            "parts": len(variables),
        }


class Logarithms(NamedTuple):
    """Logarithms of a problem's factors along an order.

    Attributes:
        values: Cells of all factors, one after another.
        constants: Numbers that are added to the sum's logarithm; minus infinity: the sum is 0.
        zeros: True if each factor has a value of 0.
    """

    values: NDArray[np.float64]
    constants: tuple[float, ...]
    zeros: Sequence[bool]

    @staticmethod
    def of(problem: Problem, order: Sequence[int]) -> Logarithms:
        """Write the factors of a problem of the task ``pr``."""
        # The smallest mini-buckets have the layout of any.
        plan = make_plan(problem, order, cpu_machine(1), MAX_BYTES, "float64", ibound=1, side="upper")
        encoded = encode(problem, plan, "log-sum-exp")
        if encoded.impossible:
            return Logarithms(np.zeros(0), (-math.inf,), ())
        arena = encoded.arena
        tables = [
            np.lib.stride_tricks.as_strided(
                arena[factor.offset :], factor.sizes, [stride * arena.itemsize for stride in factor.strides]
            ).reshape(-1)
            for factor in plan.factors
        ]
        zeros = [bool((table == -math.inf).any()) for table in tables]
        constants = tuple(float(constant) for constant in encoded.constants)
        return Logarithms(np.concatenate([np.zeros(0), *tables]), constants, zeros)


class BoundedSide:
    """One side of the bounds in a tree, and the parameters that make it best.

    Args:
        tree: The mini-buckets.
        logarithms: Logarithms of the factors along the tree's order.
        side: Side of the bound.
        maximised: Variables that are not summed over (upper bounds only).
    """

    def __init__(
        self, tree: MiniBucketTree, logarithms: Logarithms, side: Bound, maximised: Collection[int] = ()
    ) -> None:
        self.tree, self._constants, self._zeros = tree, logarithms.constants, logarithms.zeros
        self._nodes = tree_of(tree.planned)
        self._sign = 1 if side == "upper" else -1
        weights = np.array(node_weights(self._nodes, side, logarithms.zeros, maximised), dtype=np.float64)
        self._buckets = WeightedMiniBuckets(tree.planned, logarithms.values, weights, tree.shared)
        self._is_maximised = np.isin(tree.planned.order, list(maximised))
        self._parameters = self._buckets.initial
        self.evaluations = 0

    def temper(self, total: float) -> None:
        """Set the sum of the weights of each variable that is maximised: the smaller, the closer to the largest."""
        self._buckets.set_totals(np.where(self._is_maximised, total, 1.0))

    @property
    def bound(self) -> float:
        """The bound with the best parameters so far, rounding included."""
        return self._rounded(self._buckets.bound(self._parameters))

    def improve(self) -> Iterator[float]:
        """Yield better and better bounds, rounding included; none if there is none."""
        for value, parameters in minimise(self._evaluate, self._parameters):
            if value == math.inf:
                return
            self._parameters = parameters
            yield self._rounded(self._sign * value)
            if value == -math.inf:
                return

    def _evaluate(self, parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        self.evaluations += 1
        bound, gradient = self._buckets.gradient(parameters)
        return self._sign * bound, self._sign * gradient

    def _rounded(self, bound: float) -> float:
        """Return the bound on the whole sum, rounded outwards."""
        if math.isinf(bound):
            return bound
        sizes = math.fsum(map(abs, self._constants)) + abs(bound)
        slack = self._buckets.rounding + _ULPS * sys.float_info.epsilon * sizes
        return math.fsum([bound, *self._constants]) + self._sign * slack

    @property
    def marginals(self) -> NDArray[np.float64]:
        """Marginals by the beliefs of the last evaluation, in elimination order."""
        return self._buckets.marginals

    def assignments(self, seed: int) -> NDArray[np.int32]:
        """Return assignments to which the messages lead, a row each, in elimination order."""
        self._buckets.bound(self._parameters)
        return self._buckets.decode(_SLICES, seed % 2**32).reshape(_SLICES, -1)

    def slices(self, assignments: NDArray[np.int32], is_fixed: NDArray[np.bool_]) -> float:
        """Return the bound from below by the values that assignments give some variables."""
        bounds = []
        for values in np.unique(np.where(is_fixed, assignments, -1), axis=0).astype(np.int32):
            self._buckets.fix(values)
            bounds.append(self._rounded(self._buckets.bound(self._parameters)))
        # The first one has the greatest share, as a rule; rounding of their sum is less than that of each.
        return float(np.logaddexp.reduce(bounds)) - _ULPS * len(bounds) * sys.float_info.epsilon

    def fix_best(self, assignments: NDArray[np.int32], is_fixed: NDArray[np.bool_]) -> None:
        """Fix variables to the values of that assignment which gives the best bound."""
        best, chosen = -math.inf, None
        for values in np.unique(np.where(is_fixed, assignments, -1), axis=0).astype(np.int32):
            self._buckets.fix(values)
            bound = self._buckets.bound(self._parameters)
            if chosen is None or bound > best:
                best, chosen = bound, values
        if chosen is not None:
            self._buckets.fix(chosen)

    @property
    def is_divided(self) -> NDArray[np.bool_]:
        """True for each variable of a divided bucket, in elimination order."""
        return np.isin(self.tree.planned.order, self.tree.planned.variables[self.tree.divided])

    @property
    def is_blocked(self) -> NDArray[np.bool_]:
        """True for each variable several of whose mini-buckets may be 0: negative weights make such a bound 0."""
        counts: dict[int, int] = {}
        may_be_zero: list[bool] = []
        for node in self._nodes.nodes:
            may_be_zero.append(any(self._zeros[f] for f in node.factors) or any(may_be_zero[c] for c in node.children))
            counts[node.variable] = counts.get(node.variable, 0) + may_be_zero[-1]
        return np.array([counts[v] > 1 for v in self._nodes.order], dtype=bool)


def largest_tree(
    problem: Problem, order: Sequence[int], least: int, memory_bytes: int, cells: float
) -> MiniBucketTree | None:
    """Return the mini-buckets of the largest i-bound within limits; None if the memory does not hold the least.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        least: I-bound that may have more cells than the limit.
        memory_bytes: Bytes that tables and parameters may take.
        cells: Cells of all mini-buckets.
    """
    best: MiniBucketTree | None = None
    for ibound in itertools.count(least):
        tree = MiniBucketTree.of(problem, order, ibound)
        if tree.peak_bytes > memory_bytes or (best is not None and tree.total_cells > cells):
            break
        best = tree
        if not tree.divided.any():
            break
    return best


def optimised_sum(
    problem: Problem, options: Options, deadline: float, learn: Listener, clock: Clock = time.monotonic
) -> Result:
    """Bound a sum.

    Args:
        problem: Problem of the task ``pr``.
        options: Options with the memory that may be used, the seed of orders, and an order that is asked for.
        deadline: Deadline by the clock.
        learn: Called with each improvement.
        clock: Returns the time in seconds.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    result = Result("unknown", "pr")
    for bounds in improve_bounds(problem, options, host_memory(options), deadline, clock):
        ends = bounds.lower / math.log(10), bounds.upper / math.log(10)
        result = sum_between(*ends).replace(stats=bounds.tree.statistics)
        learn(result)
    return result


def improve_bounds(
    problem: Problem, options: Options, memory_bytes: int, deadline: float, clock: Clock = time.monotonic
) -> Iterator[SumBounds]:
    """Yield better and better bounds on a sum.

    Args:
        problem: Problem of the task ``pr``.
        options: Options with the seed of orders, and an order or i-bound that is asked for.
        memory_bytes: Bytes that tables and parameters may take.
        deadline: Deadline by the clock.
        clock: Returns the time in seconds.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    yield from BoundOptimisation(problem, options, int(MEMORY_SHARE * memory_bytes), deadline, clock).run()


class BoundOptimisation:
    """State of the optimisation of a problem's bounds."""

    def __init__(self, problem: Problem, options: Options, memory_bytes: int, deadline: float, clock: Clock) -> None:
        self._problem, self._options, self._memory_bytes = problem, options, memory_bytes
        self._deadline, self._clock = deadline, clock
        self._cell_seconds = CELL_SECONDS
        self._lower, self._upper = -math.inf, math.inf
        self._order: Sequence[int] = ()
        self._shares = np.zeros(0)
        self._allowed: list[int] | None = None

    @property
    def _seconds(self) -> float:
        return max(0.0, self._deadline - self._clock())

    def run(self) -> Iterator[SumBounds]:
        """Yield bounds in trees of rising i-bounds."""
        order, logarithms = self._best_order()
        ibound = 0
        for share in _RUNG_SHARES:
            tree = self._tree(order, ibound + 1, share)
            if tree is None:
                break
            ibound = tree.ibound
            yield from self._improve(tree, order, logarithms, self._clock() + share * self._seconds)
            is_met = self._upper == -math.inf or self._lower >= self._upper
            if is_met or not tree.divided.any() or not self._seconds or self._is_ibound_fixed:
                return
        if not ibound:
            raise MemoryLimitError("mini-buckets of one variable exceed the memory: allow more memory (--memory)")

    @property
    def _is_ibound_fixed(self) -> bool:
        return self._options.ibound not in (None, "auto")

    def _best_order(self) -> tuple[Sequence[int], Logarithms]:
        """Return the order whose small mini-buckets bound the sum best after a few steps."""
        best: tuple[float, Sequence[int], Logarithms] | None = None
        trial_seconds = _TRIAL_SHARE * self._seconds
        for order in self._orders():
            logarithms = Logarithms.of(self._problem, order)
            tree = self._tree(order, 1, _TRIAL_SHARE)
            if tree is None or -math.inf in logarithms.constants:
                return order, logarithms
            bound, started = math.inf, self._clock()
            for bound in self._descend(BoundedSide(tree, logarithms, "upper")):  # noqa: B007
                if self._clock() >= started + trial_seconds:
                    break
            if best is None or bound < best[0]:
                best = (bound, order, logarithms)
            if bound == -math.inf or self._clock() - started > _MAX_TRIAL_OVERRUN * trial_seconds:
                break
        assert best is not None
        return best[1:]

    def _orders(self) -> Iterator[Sequence[int]]:
        """Yield different orders that are quickly made, or the one that is asked for."""
        if not isinstance(self._options.order, str):
            yield elimination_order(self._problem, self._options)
            return
        seen = set()
        for method, number in ORDERS:
            own = self._options._replace(order=method, order_seconds=_ORDER_SECONDS, seed=self._options.seed ^ number)
            order = elimination_order(self._problem, own)
            if order not in seen:
                seen.add(order)
                yield order

    def _tree(self, order: Sequence[int], least: int, share: float) -> MiniBucketTree | None:
        """Return the mini-buckets of the largest i-bound for which memory and a share of the time suffice, if any."""
        if self._is_ibound_fixed:
            asked = MiniBucketTree.of(self._problem, order, int(self._options.ibound or 1))
            return asked if asked.peak_bytes <= self._memory_bytes else None
        cells = share * self._seconds / (2 * _STEPS * self._cell_seconds)
        return largest_tree(self._problem, order, least, self._memory_bytes, cells)

    def _improve(
        self, tree: MiniBucketTree, order: Sequence[int], logarithms: Logarithms, end: float
    ) -> Iterator[SumBounds]:
        """Improve both sides in a tree until a time, each for half of it."""
        if -math.inf in logarithms.constants:
            self._upper = -math.inf
            yield SumBounds(-math.inf, -math.inf, tree, order, np.zeros(0))
            return
        middle = (self._clock() + end) / 2
        above = BoundedSide(tree, logarithms, "upper")
        for bound in self._until(self._descend(above), middle):
            if bound < self._upper:
                self._upper, self._order, self._shares = bound, order, above.marginals
        yield self._bounds(tree)
        if self._upper == -math.inf:
            return
        assignments = above.assignments(self._options.seed)
        del above
        below = BoundedSide(tree, logarithms, "lower")
        lower = below.slices(assignments, below.is_divided)
        if lower == -math.inf:
            assignments = np.vstack([self._allowed_assignment(order), assignments])
            lower = below.slices(assignments, below.is_divided)
        self._lower = max(self._lower, lower)
        yield self._bounds(tree)
        blocked = below.is_blocked
        below.fix_best(assignments, blocked)
        for bound in self._until(self._descend(below), end):
            self._lower = max(self._lower, bound)
        if blocked.any():
            self._lower = max(self._lower, below.slices(assignments, blocked))
        yield self._bounds(tree)

    def _allowed_assignment(self, order: Sequence[int]) -> NDArray[np.int32]:
        """Return an assignment of a positive product, in elimination order, if local search has one in time."""
        if self._allowed is None:
            problem = self._problem
            optimum = prepare(problem.model, "mpe", problem.fixed)
            search = AssignmentSearch.of(optimum, self._memory_bytes, self._options.seed)
            self._allowed = [0] * len(problem.model.variables)
            if search is not None:
                search.run(_ASSIGNMENT_SHARE * self._seconds)
                self._allowed = search.best
        return np.array([self._allowed[v] for v in order], dtype=np.int32)

    def _descend(self, side: BoundedSide) -> Iterator[float]:
        """Yield the bounds of a side, and measure the time of an evaluation."""
        started = self._clock()
        for bound in side.improve():
            self._cell_seconds = (self._clock() - started) / side.evaluations / max(1, side.tree.total_cells)
            yield bound

    def _until(self, bounds: Iterator[float], end: float) -> Iterator[float]:
        """Yield bounds until a time, or until they stall."""
        last: list[float] = []
        for bound in bounds:
            yield bound
            last.append(bound)
            gap = self._upper - self._lower
            least = _STALLED_GAIN * (gap if math.isfinite(gap) else 1.0)
            is_stalled = len(last) > _STALLED_STEPS and abs(bound - last[-1 - _STALLED_STEPS]) <= least
            if is_stalled or self._clock() >= end:
                return

    def _bounds(self, tree: MiniBucketTree) -> SumBounds:
        return SumBounds(min(self._lower, self._upper), self._upper, tree, self._order, self._shares)
