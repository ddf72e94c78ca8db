"""Bounds on a sum by weighted mini-buckets with optimised weights and cost shifts (Liu and Ihler 2011).

By Hölder's inequality, any weights and any shifts give a bound. The upper bound is a convex function of both; the lower
bound, which has negative weights, is smooth. Both are improved by a quasi-Newton method, in trees of growing i-bounds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError
from elimina.methods.bounded_side import SLICES, BoundedSide
from elimina.methods.factor_logarithms import FactorLogarithms
from elimina.methods.local_search import AssignmentSearch
from elimina.methods.mini_bucket_tree import MiniBucketTree, largest_tree
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.planning.tree import Bound
from elimina.problem.preparation import Problem, prepare
from elimina.running.pool import spread

Clock = Callable[[], float]
"""Clock of a time budget: ``time.monotonic`` if the call has a time limit, otherwise ``time.thread_time``, so that
other work on the machine does not worsen the bounds."""

MAX_SECONDS = 12.0
"""Seconds of the optimisation without a time limit."""

MAX_ORDERS = 8
"""Largest number of orders that are tried, by min-fill with different seeds."""

_ORDER_SECONDS = 0.2
"""Seconds of the search for each order that is tried."""

_TRIALS_SHARE, _TRIAL_SHARE = 0.1, 0.02
"""Share of the time for all trials of orders, and share of the time for one trial."""

_TRIAL_EVALUATIONS = 12
"""Number of evaluations of each side in the trial of an order; the smallest gap after them decides."""

_RUNG_SHARES = (0.2, 1.0)
"""Shares of the remaining time for the first, smaller i-bound and for the second one."""

_RUNG_EVALUATIONS = 40
"""The time for an i-bound must suffice for this number of evaluations of each side, which bring most of the gain."""

_TURN_EVALUATIONS = 4
"""Number of evaluations in one turn of a side; the gain of a turn decides which side is next."""

CELL_SECONDS = 1e-8
"""Assumed seconds per cell of an evaluation until they have been measured."""

MEMORY_SHARE = 0.8
"""Share of the memory for the tables and the parameters of a tree."""

_FIRST_SIDE_SHARE = 0.4
"""Share of an i-bound's time for the upper bound, if the lower bound needs the upper bound's messages or its memory."""

_ASSIGNMENT_SHARE = 0.1
"""Share of the time for a local search for an assignment, if no assignment can be decoded from messages."""

_STALLED_STEPS, _STALLED_GAIN = 10, 2e-3
"""The optimisation in a tree ends if this number of steps together gains at most this share of the gap between the
bounds. An infinite gap counts as 1."""

_SIDES: tuple[Bound, Bound] = ("upper", "lower")
"""Sides of the bounds."""


class SumBounds(NamedTuple):
    """Bounds on the natural logarithm of a sum, and estimated marginals.

    Attributes:
        lower: Lower bound; minus infinity if there is none, or if the sum is 0.
        upper: Upper bound; minus infinity if the sum is 0.
        tree: Mini-buckets whose bounds were improved last.
        order: Variables of ``shares``: the free variables in elimination order.
        shares: Estimated marginals, one variable after another; empty if there are none.
    """

    lower: float
    upper: float
    tree: MiniBucketTree
    order: Sequence[int]
    shares: NDArray[np.float64]


class _SideRun:
    """Optimisation of one side in a tree, in turns.

    Args:
        side: The side.
        clock: Clock of the budget: see ``Clock``.

    Attributes:
        bounds: Bounds found so far, each better than the one before.
        gain_rate: Gain per second in the last turn; infinity before the first turn.
        is_done: True if the optimisation has ended.
    """

    def __init__(self, side: BoundedSide, clock: Clock) -> None:
        self.side, self._clock, self._steps = side, clock, side.improve()
        self.bounds: list[float] = []
        self.gain_rate = math.inf
        self.is_done = False
        self._seconds = 0.0

    def take_turn(self, seconds: float) -> float:
        """Improve the bound by a few evaluations, until the optimisation or the time ends; return the time in s."""
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
        """Seconds per cell of an evaluation, as measured so far."""
        return self._seconds / max(1, self.side.evaluations) / max(1, self.side.tree.total_cells)

    def is_stalled(self, least: float) -> bool:
        """Return whether the last ``_STALLED_STEPS`` steps together gained at most ``least``."""
        return len(self.bounds) > _STALLED_STEPS and abs(self.bounds[-1] - self.bounds[-1 - _STALLED_STEPS]) <= least


def improve_bounds(
    problem: Problem, options: CheckedOptions, memory_bytes: int, deadline: float, clock: Clock = time.monotonic
) -> Iterator[SumBounds]:
    """Yield improving bounds on a sum.

    Args:
        problem: Problem of the task ``pr``.
        options: Options with the number of threads, the seed of orders, and a requested order or i-bound.
        memory_bytes: Memory limit of tables and parameters, in bytes.
        deadline: Deadline by the clock.
        clock: Function that returns the time in seconds.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    yield from BoundOptimisation(problem, options, int(MEMORY_SHARE * memory_bytes), deadline, clock).run()


class BoundOptimisation:
    """State of the optimisation of a problem's bounds."""

    def __init__(
        self, problem: Problem, options: CheckedOptions, memory_bytes: int, deadline: float, clock: Clock
    ) -> None:
        self._problem, self._options, self._memory_bytes = problem, options, memory_bytes
        self._deadline, self._clock = deadline, clock
        self._other_seconds = 0.0
        self._cell_seconds = CELL_SECONDS
        self._lower, self._upper = -math.inf, math.inf
        self._order: Sequence[int] = ()
        self._logarithms = FactorLogarithms(np.zeros(0), (), ())
        self._shares_order: Sequence[int] = ()
        self._shares = np.zeros(0)
        self._allowed: list[int] | None = None
        self._sums_slices = True
        self._sides = 2  # number of sides in memory at the same time

    @property
    def _now(self) -> float:
        """Time of the clock, including the time of other threads."""
        return self._clock() + self._other_seconds

    @property
    def _seconds(self) -> float:
        return max(0.0, self._deadline - self._now)

    @property
    def _sides_at_once(self) -> int:
        return min(self._sides, self._options.host_threads)

    def run(self) -> Iterator[SumBounds]:
        """Yield bounds in trees of growing i-bounds.

        Raises:
            MemoryLimitError: Not even the smallest mini-buckets fit.
        """
        yield from self._choose_order()
        logarithms, tree = self._logarithms, None
        above: BoundedSide | None = None
        for share in _RUNG_SHARES[-1:] if self._is_ibound_fixed else _RUNG_SHARES:
            larger = self._tree(1 if tree is None else tree.ibound + 1, share)
            if larger is None or (tree is not None and self._turn_seconds(larger) > self._seconds):
                break
            tree = larger
            if -math.inf in logarithms.constants:
                yield SumBounds(-math.inf, -math.inf, tree, self._order, np.zeros(0))
                return
            # The lower bound is not concave: the shifts of another tree would be a worse start than no shifts.
            above = BoundedSide(tree, logarithms, "upper", previous=above)
            below = BoundedSide(tree, logarithms, "lower")
            yield from self._improve(above, below, self._now + share * self._seconds)
            is_met = self._upper == -math.inf or self._lower >= self._upper
            if is_met or not tree.divided.any() or not self._seconds:
                return
            above.release_tables()
            below.release_tables()
        if tree is None:
            raise MemoryLimitError(
                f"mini-buckets of one variable exceed the memory: allow more memory ({option('memory')})"
            )

    @property
    def _is_ibound_fixed(self) -> bool:
        return self._options.ibound not in (None, "auto")

    def _choose_order(self) -> Iterator[SumBounds]:
        """Choose the order with the best bounds after a few steps in small mini-buckets; yield bounds for each."""
        best = math.inf, math.inf
        end = self._now + _TRIALS_SHARE * self._seconds
        tree: MiniBucketTree | None = None
        for order in self._orders():
            logarithms = FactorLogarithms.of(self._problem, order)
            if tree is None:
                self._order, self._logarithms = order, logarithms
                tree = self._tree(1, _TRIAL_SHARE)
            else:
                tree = MiniBucketTree.of(self._problem, order, tree.ibound, self._sides, self._memory_bytes)
            if tree is None or -math.inf in logarithms.constants:
                return
            bounds = self._trial(tree, logarithms, end)
            gap = bounds["upper"] - bounds["lower"]
            # Without a lower bound, the gap is infinite or undefined, so the upper bound decides.
            figure = gap if math.isfinite(gap) else math.inf, bounds["upper"]
            if figure < best:
                best, self._order, self._logarithms = figure, order, logarithms
            yield self._bounds(tree)
            if self._upper == -math.inf or not tree.divided.any() or self._now >= end:
                return

    def _trial(self, tree: MiniBucketTree, logarithms: FactorLogarithms, end: float) -> dict[Bound, float]:
        """Return the bound of each side after a few evaluations; infinite without a bound."""
        bounds: dict[Bound, float] = {"upper": math.inf, "lower": -math.inf}
        for sides in (_SIDES,) if self._sides == 2 else ((side,) for side in _SIDES):
            runs = [_SideRun(BoundedSide(tree, logarithms, side), self._clock) for side in sides]
            for _ in range(_TRIAL_EVALUATIONS // _TURN_EVALUATIONS):
                self._take_turns([run for run in runs if not run.is_done], end - self._now)
            bounds.update((side, run.bounds[-1]) for side, run in zip(sides, runs, strict=True) if run.bounds)
        return bounds

    def _orders(self) -> Iterator[Sequence[int]]:
        """Yield different orders from short searches, or only the requested order if there is one."""
        if not isinstance(self._options.order, str):
            yield elimination_order(self._problem, self._options)
            return
        seen = set()
        for number in range(MAX_ORDERS):
            seed = self._options.seed ^ number
            options = replace(self._options, order="min-fill", order_seconds=_ORDER_SECONDS, seed=seed)
            order = elimination_order(self._problem, options)
            if order not in seen:
                seen.add(order)
                yield order

    def _tree(self, least: int, share: float) -> MiniBucketTree | None:
        """Return the mini-buckets of the largest i-bound within the memory and a share of the time; None if none fit.

        If both sides do not fit at the same time, only one is in memory from then on.
        """
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

    def _turn_seconds(self, tree: MiniBucketTree) -> float:
        """Return the expected seconds of a turn of each side."""
        return _TURN_EVALUATIONS * 2 / self._sides_at_once * self._cell_seconds * tree.total_cells

    def _improve(self, above: BoundedSide, below: BoundedSide, end: float) -> Iterator[SumBounds]:
        """Improve the sides of a tree until ``end``; yield the bounds after each step."""
        tree, blocked = above.tree, below.is_blocked
        runs = [_SideRun(above, self._clock), _SideRun(below, self._clock)]
        if self._sides == 2 and not blocked.any():
            yield from self._improve_sides(runs, end)
            if self._sums_slices and self._upper > -math.inf:
                lower = below.slices(above.assignments(self._options.seed), below.is_divided)
                # If slices do not improve this bound, they are not tried with larger mini-buckets: they take longer
                # there.
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
        yield from self._improve_sides(runs, end - SLICES * self._cell_seconds * tree.total_cells)
        if blocked.any():
            self._lower = max(self._lower, below.slices(assignments, blocked))
            yield self._bounds(tree)

    def _allowed_assignment(self) -> NDArray[np.int32]:
        """Return an assignment in elimination order, with a positive product if local search finds one in time."""
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
        """Improve sides until ``end`` or until they stall; yield the bounds after each turn.

        Both sides run in parallel if threads and memory permit. Otherwise, each turn goes to the side with the larger
        gain per second.
        """
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
        """Improve sides in parallel, as far as there are threads, and store their bounds."""

        def work(_: int, items: Iterator[_SideRun]) -> Iterator[float]:
            for run in items:
                yield run.take_turn(seconds)

        started = self._clock()
        longest = max((spent or 0.0 for spent in spread(range(self._sides_at_once), runs, work)), default=0.0)
        # ``time.thread_time`` measures only the calling thread, so the time of other threads is added.
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
