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
from elimina.option_names import option
from elimina.planning.machine import cpu_machine
from elimina.planning.options import Options
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import MAX_BYTES
from elimina.planning.planner import Elimination, Relaxation, make_plan
from elimina.planning.tree import Bound, node_weights, plan_tree, tree_of
from elimina.problem.preparation import Problem, prepare
from elimina.running.encoding import encode
from elimina.running.pool import spread

Clock = Callable[[], float]
"""Clock of a budget: ``time.monotonic`` for a time limit. Where there is none, ``time.thread_time``: other work on the
machine then makes no bound worse."""

METHOD = "mbe"
"""Name of the method in ``Result.stats``."""

MAX_SECONDS = 12.0
"""Seconds of the optimisation without a time limit."""

MAX_ORDERS = 8
"""Largest number of tried orders, by min-fill with different seeds."""

_ORDER_SECONDS = 0.2
"""Seconds of the search for one of these orders."""

_TRIALS_SHARE, _TRIAL_SHARE = 0.1, 0.02
"""Share of the time after which no other order is tried, and share of the time for the trial of one order."""

_TRIAL_EVALUATIONS = 12
"""Evaluations of each side in a trial: the gap after them tells which order is best."""

_RUNG_SHARES = (0.2, 1.0)
"""Shares of the remaining time for rising i-bounds; the last one gets the rest."""

_RUNG_EVALUATIONS = 40
"""Evaluations of each side for which an i-bound must leave time: most of the gain is made in these."""

_TURN_EVALUATIONS = 4
"""Evaluations of a side's turn; the gain decides about the next turn."""

_MAX_BITS = 500.0
"""Base-2 logarithm at which numbers of cells are clipped: far more than any machine holds."""

_MAX_CELLS = 1e15
"""Cells of messages above which no layout is made, because they cannot fit."""

CELL_SECONDS = 1e-8
"""Seconds of an evaluation for each cell, until it is measured."""

MEMORY_SHARE = 0.75
"""Share of the memory for the tree's tables and the parameters."""

_SHARED_VARIABLES, _SHIFT_CELLS = 5, 256
"""Largest number of variables and of cells of a shift. On a 40 x 40 grid (i-bound 9), one variable leaves a gap of 11.3
in log10, four 6.0, seven no less."""

_SLICES = 16
"""Number of assignments of fixed variables for the bound from below."""

_FIRST_SIDE_SHARE = 0.4
"""Share of a rung's time for the bound from above, if the bound from below needs its messages or its memory."""

_ASSIGNMENT_SHARE = 0.1
"""Share of the time for a local search for an assignment, if no message leads to one."""

_STALLED_STEPS, _STALLED_GAIN = 10, 2e-3
"""Number of steps with a small gain, relative to the gap (or to 1), after which an i-bound ends."""

_WEIGHT_SCALES: dict[Bound, float] = {"upper": 3.0, "lower": 0.3}
"""Scale of a weight's logarithm relative to shifts. From below, early changes of weights end at a bad optimum."""

_SIDES: tuple[Bound, Bound] = ("upper", "lower")
"""Sides of the bounds."""

_ULPS = 4
"""Largest error of a constant in units in the last place."""


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
        peak_bytes: Bytes of tables and parameters, those of all sides.
        has_large_tables: True if the tables alone exceed the memory, as those of larger i-bounds will. If only the
            parameters exceed it, a larger i-bound, which may have fewer, can still fit.
    """

    planned: PlannedTree
    ibound: int
    shared: int
    divided: NDArray[np.bool_]
    largest_table: int
    total_cells: int
    peak_bytes: int
    has_large_tables: bool

    @staticmethod
    def of(
        problem: Problem, order: Sequence[int], ibound: int, sides: int = 2, memory_bytes: float = math.inf
    ) -> MiniBucketTree:
        """Partition the buckets of an order, with shifts of as many variables as fit.

        Args:
            problem: Problem of the task ``pr``.
            order: The free variables in elimination order.
            ibound: Largest number of variables of a message.
            sides: Number of sides whose tables are in the memory at the same time.
            memory_bytes: Bytes that tables and parameters may take.
        """
        sizes = np.array(problem.model.sizes, dtype=np.float64)
        planned = plan_tree(problem.groups.scopes, problem.model.sizes, order, (), ibound)
        starts, members = planned.separators
        bits = np.concatenate([[0.0], np.cumsum(np.log2(sizes)[members])])
        messages = np.exp2(np.minimum(bits[starts[1:]] - bits[starts[:-1]], _MAX_BITS))
        tables = sizes[planned.variables] * messages
        divided = np.bincount(planned.variables, minlength=len(sizes))[planned.variables] > 1
        factors = float(problem.groups.cells(problem.model.sizes).sum())
        cells = float(messages.sum())
        fixed = 16 * factors + (WeightedMiniBuckets.bytes(planned) if cells < _MAX_CELLS else 8 * cells)
        widest = max(2, max((problem.model.sizes[v] for v in order), default=2))
        shared = max(1, min(_SHARED_VARIABLES, int(math.log(_SHIFT_CELLS) / math.log(widest))))
        while True:
            parameters = float(np.minimum(tables[divided], widest**shared).sum()) + float(divided.sum())
            peak = sides * (fixed + 8 * VECTORS * parameters)
            if peak <= memory_bytes or shared == 1:
                break
            shared -= 1
        largest, total = int(messages.max(initial=1)), int(tables.sum())
        return MiniBucketTree(planned, ibound, shared, divided, largest, total, int(peak), sides * fixed > memory_bytes)

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
        zeros: Flag of each factor: True if it has a value of 0.
    """

    values: NDArray[np.float64]
    constants: tuple[float, ...]
    zeros: Sequence[bool]

    @staticmethod
    def of(problem: Problem, order: Sequence[int]) -> Logarithms:
        """Return the logarithms of the factors of a problem of the task ``pr``."""
        # The layout of the factors does not depend on the mini-buckets, so the smallest ones are planned.
        plan = make_plan(
            Elimination(problem, order, cpu_machine(1), MAX_BYTES, "float64"), relaxation=Relaxation(1, side="upper")
        )
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
    """One side of the bounds in a tree, with its best parameters.

    Args:
        tree: The mini-buckets.
        logarithms: Logarithms of the factors along the tree's order.
        side: Side of the bound.
        maximised: Variables that are not summed over (upper bounds only).
        previous: Same side in a tree of the same order, whose parameters are continued if they are a better start.
    """

    def __init__(
        self,
        tree: MiniBucketTree,
        logarithms: Logarithms,
        side: Bound,
        maximised: Collection[int] = (),
        previous: BoundedSide | None = None,
    ) -> None:
        self.tree, self._constants, self._zeros = tree, logarithms.constants, logarithms.zeros
        self._nodes = tree_of(tree.planned)
        self.is_upper = side == "upper"
        self._sign = 1 if self.is_upper else -1
        weights = np.array(node_weights(self._nodes, side, logarithms.zeros, maximised), dtype=np.float64)
        self._buckets = WeightedMiniBuckets(tree.planned, logarithms.values, weights, tree.shared)
        self._is_maximised = np.isin(tree.planned.order, list(maximised))
        self._parameters = self._buckets.initial
        if previous is not None:
            starts = self._parameters, self._buckets.continued(previous._buckets, previous._parameters)
            self._parameters = min(starts, key=lambda start: self._sign * self._buckets.bound(start))
        self._scales = np.ones(len(self._parameters))
        self._scales[self._buckets.shifts :] = _WEIGHT_SCALES[side]
        self.evaluations = 0

    def release_tables(self) -> None:
        """Free the tables; the parameters remain."""
        self._buckets.release_tables()

    def temper(self, total: float) -> None:
        """Set the sum of weights of each maximised variable: the smaller, the closer to a maximum."""
        self._buckets.set_totals(np.where(self._is_maximised, total, 1.0))

    @property
    def bound(self) -> float:
        """The bound with the best parameters so far, rounding included."""
        return self._rounded(self._buckets.bound(self._parameters))

    def improve(self) -> Iterator[float]:
        """Yield better and better bounds, rounding included; none if the first one would be infinite."""
        for value, scaled in minimise(self._evaluate, self._parameters / self._scales):
            if value == math.inf:
                return
            self._parameters = scaled * self._scales
            yield self._rounded(self._sign * value)
            if value == -math.inf:
                return

    def _evaluate(self, scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        self.evaluations += 1
        bound, gradient = self._buckets.gradient(scaled * self._scales)
        return self._sign * bound, self._sign * gradient * self._scales

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
        """Return assignments found along the messages, a row each, in elimination order."""
        self._buckets.bound(self._parameters)
        return self._buckets.decode(_SLICES, seed % 2**32).reshape(_SLICES, -1)

    def slices(self, assignments: NDArray[np.int32], is_fixed: NDArray[np.bool_]) -> float:
        """Return the bound from below by a sum over slices: different assignments of the fixed variables."""
        bounds = []
        for values in np.unique(np.where(is_fixed, assignments, -1), axis=0).astype(np.int32):
            self._buckets.fix(values)
            bounds.append(self._rounded(self._buckets.bound(self._parameters)))
        # Each bound is rounded outwards already; the slack covers the rounding of their sum.
        return float(np.logaddexp.reduce(bounds)) - _ULPS * len(bounds) * sys.float_info.epsilon

    def fix_best(self, assignments: NDArray[np.int32], is_fixed: NDArray[np.bool_]) -> None:
        """Fix variables to the values of the assignment with the best bound."""
        best, best_values = -math.inf, None
        for values in np.unique(np.where(is_fixed, assignments, -1), axis=0).astype(np.int32):
            self._buckets.fix(values)
            bound = self._buckets.bound(self._parameters)
            if best_values is None or bound > best:
                best, best_values = bound, values
        if best_values is not None:
            self._buckets.fix(best_values)

    @property
    def is_divided(self) -> NDArray[np.bool_]:
        """True for each variable of a divided bucket, in elimination order."""
        return np.isin(self.tree.planned.order, self.tree.planned.variables[self.tree.divided])

    @property
    def is_blocked(self) -> NDArray[np.bool_]:
        """True for each variable, in elimination order, with several mini-buckets that may be 0.

        Negative weights would make the bound from below 0.
        """
        counts: dict[int, int] = {}
        may_be_zero: list[bool] = []
        for node in self._nodes.nodes:
            may_be_zero.append(any(self._zeros[f] for f in node.factors) or any(may_be_zero[c] for c in node.children))
            counts[node.variable] = counts.get(node.variable, 0) + may_be_zero[-1]
        return np.array([counts[v] > 1 for v in self._nodes.order], dtype=bool)


def largest_tree(
    problem: Problem, order: Sequence[int], least: int, memory_bytes: int, cells: float, sides: int = 2
) -> MiniBucketTree | None:
    """Return the mini-buckets of the largest i-bound within limits; None if not even the smallest fit the memory.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        least: Smallest i-bound, which may have more cells than the limit.
        memory_bytes: Bytes that tables and parameters may take.
        cells: Limit on the cells of all mini-buckets.
        sides: Number of sides whose tables are in the memory at the same time.
    """
    best: MiniBucketTree | None = None
    for ibound in itertools.count(least):
        tree = MiniBucketTree.of(problem, order, ibound, sides, memory_bytes)
        if tree.has_large_tables or (best is not None and tree.total_cells > cells):
            break
        if tree.peak_bytes <= memory_bytes:
            best = tree
        if not tree.divided.any():
            break
    return best


class _SideRun:
    """Optimisation of one side in a tree, in turns.

    Args:
        side: The side.
        clock: Clock of the budget: see ``Clock``.

    Attributes:
        bounds: Better and better bounds.
        gain_rate: Gain of the last turn for each second; infinity before the first one.
        is_done: True if the optimisation has ended.
    """

    def __init__(self, side: BoundedSide, clock: Clock) -> None:
        self.side, self._clock, self._steps = side, clock, side.improve()
        self.bounds: list[float] = []
        self.gain_rate = math.inf
        self.is_done = False
        self._seconds = 0.0

    def take_turn(self, seconds: float) -> float:
        """Improve the bound by some evaluations, within a time; return the seconds taken."""
        started, elapsed = self._clock(), 0.0
        before = self.bounds[-1:]
        last = self.side.evaluations + _TURN_EVALUATIONS
        while self.side.evaluations < last:
            bound = next(self._steps, None)
            elapsed = self._clock() - started
            self.is_done = bound is None
            if bound is None:
                break
            self.bounds.append(bound)
            if elapsed >= seconds:
                break
        self._seconds += elapsed
        if before:
            self.gain_rate = abs(self.bounds[-1] - before[0]) / max(elapsed, sys.float_info.min)
        return elapsed

    @property
    def cell_seconds(self) -> float:
        """Seconds of an evaluation for each cell."""
        return self._seconds / max(1, self.side.evaluations) / max(1, self.side.tree.total_cells)

    def is_stalled(self, least: float) -> bool:
        """Return whether the last steps gained at most a given amount."""
        return len(self.bounds) > _STALLED_STEPS and abs(self.bounds[-1] - self.bounds[-1 - _STALLED_STEPS]) <= least


def improve_bounds(
    problem: Problem, options: Options, memory_bytes: int, deadline: float, clock: Clock = time.monotonic
) -> Iterator[SumBounds]:
    """Yield better and better bounds on a sum.

    Args:
        problem: Problem of the task ``pr``.
        options: Options with the threads, the seed of orders, and an order or i-bound that is asked for.
        memory_bytes: Bytes that tables and parameters may take.
        deadline: Deadline by the clock.
        clock: Function that returns the time in seconds.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    yield from BoundOptimisation(problem, options, int(MEMORY_SHARE * memory_bytes), deadline, clock).run()


class BoundOptimisation:
    """State of the optimisation of a problem's bounds."""

    def __init__(self, problem: Problem, options: Options, memory_bytes: int, deadline: float, clock: Clock) -> None:
        self._problem, self._options, self._memory_bytes = problem, options, memory_bytes
        self._deadline, self._clock = deadline, clock
        self._other_seconds = 0.0
        self._cell_seconds = CELL_SECONDS
        self._lower, self._upper = -math.inf, math.inf
        self._order: Sequence[int] = ()
        self._logarithms = Logarithms(np.zeros(0), (), ())
        self._shares_order: Sequence[int] = ()
        self._shares = np.zeros(0)
        self._allowed: list[int] | None = None
        self._sums_slices = True
        self._sides = 2  # number of sides in the memory at the same time

    @property
    def _now(self) -> float:
        """Time by the clock, including other threads."""
        return self._clock() + self._other_seconds

    @property
    def _seconds(self) -> float:
        return max(0.0, self._deadline - self._now)

    @property
    def _sides_at_once(self) -> int:
        return min(self._sides, self._options.host_threads)

    def run(self) -> Iterator[SumBounds]:
        """Yield bounds in trees of rising i-bounds."""
        yield from self._choose_order()
        logarithms, tree = self._logarithms, None
        above: BoundedSide | None = None
        for share in _RUNG_SHARES[-1:] if self._is_ibound_fixed else _RUNG_SHARES:
            larger = self._tree(1 if tree is None else tree.ibound + 1, share)
            if larger is None:
                break
            tree = larger
            if -math.inf in logarithms.constants:
                yield SumBounds(-math.inf, -math.inf, tree, self._order, np.zeros(0))
                return
            # On the other side, whose bound is not concave, shifts of another tree are a worse start than none.
            above = BoundedSide(tree, logarithms, "upper", previous=above)
            below = BoundedSide(tree, logarithms, "lower")
            yield from self._improve(above, below, self._now + share * self._seconds)
            is_met = self._upper == -math.inf or self._lower >= self._upper
            if is_met or not tree.divided.any() or not self._seconds:
                return
            above.release_tables()
        if tree is None:
            raise MemoryLimitError(
                f"mini-buckets of one variable exceed the memory: allow more memory ({option('memory')})"
            )

    @property
    def _is_ibound_fixed(self) -> bool:
        return self._options.ibound not in (None, "auto")

    def _choose_order(self) -> Iterator[SumBounds]:
        """Choose the order whose small mini-buckets bound the sum best after a few steps; yield their bounds."""
        best = math.inf, math.inf
        end = self._now + _TRIALS_SHARE * self._seconds
        tree: MiniBucketTree | None = None
        for order in self._orders():
            logarithms = Logarithms.of(self._problem, order)
            if tree is None:
                self._order, self._logarithms = order, logarithms
                tree = self._tree(1, _TRIAL_SHARE)
            else:
                tree = MiniBucketTree.of(self._problem, order, tree.ibound, self._sides, self._memory_bytes)
            if tree is None or -math.inf in logarithms.constants:
                return
            bounds = self._trial(tree, logarithms, end)
            gap = bounds["upper"] - bounds["lower"]
            # Without a lower bound, the upper bound decides.
            figure = gap if math.isfinite(gap) else math.inf, bounds["upper"]
            if figure < best:
                best, self._order, self._logarithms = figure, order, logarithms
            yield self._bounds(tree)
            if self._upper == -math.inf or not tree.divided.any() or self._now >= end:
                return

    def _trial(self, tree: MiniBucketTree, logarithms: Logarithms, end: float) -> dict[Bound, float]:
        """Return the bounds after a few evaluations."""
        bounds: dict[Bound, float] = {"upper": math.inf, "lower": -math.inf}
        for sides in (_SIDES,) if self._sides == 2 else ((side,) for side in _SIDES):
            runs = [_SideRun(BoundedSide(tree, logarithms, side), self._clock) for side in sides]
            for _ in range(_TRIAL_EVALUATIONS // _TURN_EVALUATIONS):
                self._take_turns([run for run in runs if not run.is_done], end - self._now)
            bounds.update((side, run.bounds[-1]) for side, run in zip(sides, runs, strict=True) if run.bounds)
        return bounds

    def _orders(self) -> Iterator[Sequence[int]]:
        """Yield different quick orders, or the requested one."""
        if not isinstance(self._options.order, str):
            yield elimination_order(self._problem, self._options)
            return
        seen = set()
        for number in range(MAX_ORDERS):
            seed = self._options.seed ^ number
            options = self._options._replace(order="min-fill", order_seconds=_ORDER_SECONDS, seed=seed)
            order = elimination_order(self._problem, options)
            if order not in seen:
                seen.add(order)
                yield order

    def _tree(self, least: int, share: float) -> MiniBucketTree | None:
        """Return the mini-buckets of the largest i-bound for which memory and a share of the time suffice, if any."""
        evaluations = _RUNG_EVALUATIONS * 2 / self._sides_at_once
        cells = share * self._seconds / (evaluations * self._cell_seconds)
        while True:
            if self._is_ibound_fixed:
                ibound = int(self._options.ibound or 1)
                asked = MiniBucketTree.of(self._problem, self._order, ibound, self._sides, self._memory_bytes)
                tree = asked if asked.peak_bytes <= self._memory_bytes else None
            else:
                tree = largest_tree(self._problem, self._order, least, self._memory_bytes, cells, self._sides)
            if tree is not None or least > 1 or self._sides == 1:
                return tree
            self._sides = 1

    def _improve(self, above: BoundedSide, below: BoundedSide, end: float) -> Iterator[SumBounds]:
        """Improve both sides in a tree until a time."""
        tree, blocked = above.tree, below.is_blocked
        runs = [_SideRun(above, self._clock), _SideRun(below, self._clock)]
        if self._sides == 2 and not blocked.any():
            yield from self._improve_sides(runs, end)
            if self._sums_slices and self._upper > -math.inf:
                lower = below.slices(above.assignments(self._options.seed), below.is_divided)
                # Slices without a gain are not tried again: in larger mini-buckets, they would take longer.
                self._sums_slices = lower > self._lower
                self._lower = max(self._lower, lower)
                yield self._bounds(tree)
            return
        yield from self._improve_sides(runs[:1], self._now + _FIRST_SIDE_SHARE * (end - self._now))
        if self._upper == -math.inf:
            return
        assignments = above.assignments(self._options.seed)
        if self._sides == 1:
            del runs[0]
            above.release_tables()
        lower = below.slices(assignments, below.is_divided)
        if lower == -math.inf:
            assignments = np.vstack([self._allowed_assignment(), assignments])
            lower = below.slices(assignments, below.is_divided)
        self._lower = max(self._lower, lower)
        yield self._bounds(tree)
        below.fix_best(assignments, blocked)
        yield from self._improve_sides(runs, end - _SLICES * self._cell_seconds * tree.total_cells)
        if blocked.any():
            self._lower = max(self._lower, below.slices(assignments, blocked))
            yield self._bounds(tree)

    def _allowed_assignment(self) -> NDArray[np.int32]:
        """Return an assignment in elimination order: of a positive product, if local search finds one in time."""
        if self._allowed is None:
            problem = self._problem
            optimum = prepare(problem.model, "mpe", problem.fixed)
            search = AssignmentSearch.of(optimum, self._memory_bytes, self._options.seed)
            self._allowed = [0] * len(problem.model.variables)
            if search is not None:
                search.run(_ASSIGNMENT_SHARE * self._seconds)
                self._allowed = search.best
        return np.array([self._allowed[v] for v in self._order], dtype=np.int32)

    def _improve_sides(self, runs: Sequence[_SideRun], end: float) -> Iterator[SumBounds]:
        """Improve sides until a time, or until they stall: together, or the one that gained most last."""
        while True:
            gap = self._upper - self._lower
            least = _STALLED_GAIN * (gap if math.isfinite(gap) else 1.0)
            active = [run for run in runs if not run.is_done and not run.is_stalled(least)]
            if self._sides_at_once == 1:
                active.sort(key=lambda run: -run.gain_rate)
            if active:
                self._take_turns(active[: self._sides_at_once], end - self._now)
                yield self._bounds(runs[0].side.tree)
            if not active or self._now >= end or self._upper == -math.inf:
                return

    def _take_turns(self, runs: Sequence[_SideRun], seconds: float) -> None:
        """Improve sides in parallel, as far as there are threads, and keep their bounds."""

        def work(_: int, items: Iterator[_SideRun]) -> Iterator[float]:
            for run in items:
                yield run.take_turn(seconds)

        started = self._clock()
        longest = max((spent or 0.0 for spent in spread(range(self._sides_at_once), runs, work)), default=0.0)
        # ``time.thread_time`` does not include the time of other threads, so it is added.
        self._other_seconds += max(0.0, longest - (self._clock() - started))
        for run in runs:
            side, bounds = run.side, run.bounds
            self._cell_seconds = run.cell_seconds
            if not bounds:
                continue
            if not side.is_upper:
                self._lower = max(self._lower, bounds[-1])
            elif bounds[-1] < self._upper:
                self._upper, self._shares_order, self._shares = bounds[-1], side.tree.planned.order, side.marginals

    def _bounds(self, tree: MiniBucketTree) -> SumBounds:
        return SumBounds(min(self._lower, self._upper), self._upper, tree, self._shares_order, self._shares)
