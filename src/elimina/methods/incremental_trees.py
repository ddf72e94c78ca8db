"""Estimates of sums and marginals by sequences of linked clique trees with growing cliques.

Factors are added to a clique tree, and variables eliminated, as long as no clique exceeds a bound. Then the tree's
front (the cliques shared with later factors) is approximated by smaller cliques, which begin the next tree (Bathla and
Vasudevan 2023, "IBIA: an incremental build-infer-approximate framework for approximate inference of partition
function"). Marginals also need messages from later trees to earlier ones. In both directions, these are messages of
expectation propagation (Minka 2001) over the cliques of the fronts, so further passes also improve the approximations
of the fronts. The core (``core/approx/linked_trees.hpp``) builds the trees and passes the messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import (
    Forecasts,
    LinkedTrees,
    RankedFactors,
    Stopped,
    TreesTooLargeError,
    ZeroSumError,
    frugal_order,
)
from elimina.methods.factor_lists import FactorList, table_bytes
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.order import find_order
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem

NAME = "linked clique trees"
"""Name in ``Result.stats["method"]``."""

_ORDER_SECONDS, _MAX_SEARCHED_VARIABLES = 0.3, 10_000
"""Time limit of the search for an order, and largest number of variables for which the search finds a better order than
min-fill in this time."""

_FACTOR_COPIES = 2
"""Copies of the factors: one in the variables' sequence in the model, one in elimination order."""

_FIRST_CELLS, _FIRST_CELLS_OF_LARGE, _GROWTH = 1 << 9, 1 << 6, 8.0
"""Largest number of cells of a clique in the first trees, for models of up to ``_MAX_SEARCHED_VARIABLES`` variables and
for larger ones, and the factor by which this number grows from one sequence of trees to the next."""

_MEMORY_SHARE, _BYTES_EXPONENT, _LEAST_GROWTH = 0.8, 0.85, 1.4
"""Planned memory of a sequence of trees, as a share of the limit; exponent of the power law by which this memory grows
with the largest clique; least growth of the largest clique that justifies another sequence."""

_MAX_PASSES = 8
"""Largest number of passes in both directions over one sequence of trees."""

_CONVERGED_CHANGE = 1e-7
"""Mean Hellinger distance between two passes below which they have converged."""

_STEADY_CHANGE = 0.01
"""Trees count as converged if the mean change in the last pass is at most this share of that in the first one."""

_MAX_CHANGE_RATIO = 0.5
"""Largest ratio of consecutive changes at which passes are assumed to converge."""

_MAX_REPETITIONS, _MAX_ORDERS = 2, 9
"""Largest number of sequences with forecasts for one order, if passes do not converge; largest number of orders tried
once the cliques have reached their largest size."""

_PASSES_SHARE, _LARGE_CHANGE = 0.35, 0.05
"""Estimated error as a share of the change in the passes, for small changes; mean change at which this share is halved.
Both numbers and the next two are fitted to files of the UAI competitions."""

_PASSES_RATIO, _LOG_RUNGS_TIMES = 0.6, 2.0
"""Least error estimated from other trees, as a share of the error estimated from the passes; error of the sum's
logarithm, as a multiple of the difference between the logarithms of two sequences."""

_REPEATED_SHARE = 1e-6
"""Two sequences count as equal if they differ by less than this share of the change in the passes."""

_UNKNOWN_ERROR = 0.5
"""Estimated error of marginals that the passes do not change, if there are no others to compare with."""


class _Pass(NamedTuple):
    """Marginals of the free variables, and the natural logarithm of the sum."""

    shares: NDArray[np.float64]
    log_z: float


def incremental_trees(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield estimates from sequences of linked clique trees with growing cliques; none if memory is short.

    Messages pass each sequence forward and backward until the marginals converge. If they do not converge, the next
    sequence approximates its fronts by forecasts of the previous one. Once cliques are as large as memory allows,
    sequences with other orders follow, and the estimate is the median over the orders. An estimate is exact if no front
    was approximated. Otherwise, its error is estimated from its distance to earlier estimates.

    Args:
        problem: Problem of the task ``pr``.
        options: Options of the plan.
        limits: Limits of time and memory.
    """
    if _FACTOR_COPIES * table_bytes(problem) > limits.memory_bytes:
        return
    factors = limits.factors_of(problem)
    if factors.log_scale == -math.inf:
        yield _zero(problem)
        return
    estimator = _Estimator(problem, factors, limits)
    while True:
        try:
            yield from estimator.estimates()
            return
        except Stopped:
            yield estimator.latest
            if limits.is_over:
                return


def _zero(problem: Problem) -> SumEstimate:
    """Return the estimate of a sum that is 0."""
    return SumEstimate(NAME, -math.inf, 0.0, errors=np.zeros(len(problem.free)))


class _Final(NamedTuple):
    """The last pass of a sequence.

    Attributes:
        marginals: Answers of the pass.
        has_converged: True if the passes converged.
        errors: Least errors of the marginals, estimated from the passes' changes.
        log_error: Least error of the sum's logarithm, estimated in the same way.
    """

    marginals: _Pass
    has_converged: bool
    errors: NDArray[np.float64]
    log_error: float


class _Order:
    """Factors over variables that are numbered by their rank in an elimination order.

    Args:
        factors: Factors of a problem.
        sizes: Number of states of each free variable.
        order: Indices of the free variables in elimination order.
    """

    def __init__(self, factors: FactorList, sizes: NDArray[np.int64], order: NDArray[np.int64]) -> None:
        self._sizes, self._scopes = sizes[order], factors.scopes
        self._rank = np.empty(len(order), dtype=np.int32)
        self._rank[order] = np.arange(len(order), dtype=np.int32)
        self.factors = self.ranked(factors)
        starts = np.cumsum(self._sizes) - self._sizes
        shifts = starts[self._rank] - (np.cumsum(sizes) - sizes)
        self._cells = np.arange(int(sizes.sum())) + np.repeat(shifts, sizes)

    def ranked(self, factors: FactorList) -> RankedFactors:
        """Return factors with variables replaced by their ranks; their scopes must be those of this order's factors."""
        return RankedFactors(self._sizes, self._scopes.starts, self._rank[self._scopes.members], factors.values)

    def sorted(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return marginals in the sequence of the free variables, from marginals in elimination order."""
        ordered: NDArray[np.float64] = shares[self._cells]
        return ordered


class _Estimator:
    """Estimates from sequences of trees with growing cliques, and then with other orders.

    Args:
        problem: Problem of the task ``pr``.
        factors: Factors of the problem.
        limits: Limits of time and memory.

    Attributes:
        latest: Latest estimate; before the first pass, one without a sum and marginals.
    """

    def __init__(self, problem: Problem, factors: FactorList, limits: Limits) -> None:
        self._problem, self._factors, self._limits = problem, factors, limits
        self._sizes = problem.free_sizes
        self._order: _Order | None = None
        largest_factor = int(problem.groups.cells(problem.model.size_array).max(initial=1))
        self._least_cells = max(largest_factor, int(self._sizes.max(initial=1)))
        self._is_large = len(self._sizes) > _MAX_SEARCHED_VARIABLES
        self._most_cells = max(_FIRST_CELLS_OF_LARGE if self._is_large else _FIRST_CELLS, self._least_cells)
        self._ceiling = math.inf
        self._is_largest = False
        self._bytes = 0
        self._forecasts: Forecasts | None = None
        self._last: _Final | None = None
        self._finals: list[_Final] = []
        self._repetitions = 0
        self.latest = SumEstimate(NAME)

    def estimates(self) -> Iterator[SumEstimate]:
        """Yield estimates until no further sequence is worth its time; a call after a deadline resumes."""
        while not self._is_largest or len(self._finals) < _MAX_ORDERS:
            order = self._searched_order()
            try:
                trees = self._trees(order.factors, self._forecasts)
                yield from self._passes(trees, order)
            except TreesTooLargeError:
                if not self._shrink():
                    return
                continue
            except ZeroSumError:
                if not self._finals and self._is_zero(order):
                    self.latest = _zero(self._problem)
                    yield self.latest
                return
            if trees.is_exact:
                return
            self._advance(trees)

    def _searched_order(self) -> _Order:
        """Return the factors in the current elimination order; search for an order if there is none."""
        if self._order is None:
            sizes, scopes, seed = self._sizes.tolist(), self._factors.scopes, self._limits.seed + len(self._finals)
            if self._is_large:
                result = find_order(sizes, scopes, method="min-fill", iterations=1, seed=seed)
            else:
                result = find_order(sizes, scopes, seconds=min(_ORDER_SECONDS, self._limits.seconds), seed=seed)
            tree = plan_tree(scopes, sizes, result.order)
            self._order = _Order(self._factors, self._sizes, frugal_order(tree).astype(np.int64))
        return self._order

    def _trees(self, factors: RankedFactors, forecasts: Forecasts | None = None) -> LinkedTrees:
        """Return a sequence of trees built from factors."""
        trees = LinkedTrees(factors, self._most_cells, self._limits.memory_bytes, forecasts)
        trees.build(self._limits.seconds)
        return trees

    def _shrink(self) -> bool:
        """Reduce the size of cliques after trees did not fit the memory; return whether a smaller size was possible."""
        self._ceiling = self._most_cells
        self._most_cells = max(self._least_cells, int(self._most_cells / _LEAST_GROWTH**2))
        return self._most_cells < self._ceiling

    def _advance(self, trees: LinkedTrees) -> None:
        """Choose the cliques' size, the order and the forecasts of the next sequence."""
        if not self._is_largest:
            share = _MEMORY_SHARE * self._limits.memory_bytes / max(trees.bytes, 1)
            growth = min(_GROWTH, share ** (1 / _BYTES_EXPONENT))
            larger = min(self._ceiling / _LEAST_GROWTH, self._most_cells * growth)
            if larger >= _LEAST_GROWTH * self._most_cells:
                self._most_cells = int(larger)
                return
            self._is_largest = True
        if self._forecasts is not None and self._repetitions < _MAX_REPETITIONS:
            self._repetitions += 1
            return
        assert self._last is not None
        self._finals.append(self._last)
        self._repetitions, self._forecasts, self._order = 0, None, None

    def _is_zero(self, order: _Order) -> bool:
        """Return whether the factors' supports prove a sum of 0; unlike the factors, supports do not underflow."""
        try:
            self._trees(order.ranked(self._factors.supports()))
        except ZeroSumError:
            return self._factors.is_complete
        except TreesTooLargeError:
            pass
        return False

    def _passes(self, trees: LinkedTrees, order: _Order) -> Iterator[SumEstimate]:
        """Yield the estimates of a sequence of trees, pass by pass."""
        log_z, limits = trees.log_z, self._limits
        first = previous = _Pass(order.sorted(trees.pass_backward(limits.seconds)), self._complete(log_z))
        if trees.is_exact:
            yield self._estimate(first, np.zeros(len(self._sizes)), 0.0, trees)
            return
        changes: list[float] = []
        for _ in range(_MAX_PASSES):
            try:
                trees.pass_forward(limits.seconds)
                shares = order.sorted(trees.pass_backward(limits.seconds))
                current = _Pass(shares, self._complete(trees.log_z))
            except ZeroSumError:
                break
            if not np.isfinite(current.shares).all():
                break
            changes.append(float(self._distances(current, previous).mean()))
            is_contracting = len(changes) == 1 or changes[-1] < _MAX_CHANGE_RATIO * changes[-2]
            if not self._finals:
                yield self._estimate(current, *self._errors(first, previous, current, is_contracting), trees)
            previous = current
            if changes[-1] < max(_STEADY_CHANGE * changes[0], _CONVERGED_CHANGE):
                break
            if len(changes) > 2 and not is_contracting:
                break
        has_converged = bool(changes) and changes[-1] <= _STEADY_CHANGE * changes[0]
        self._last = _Final(
            previous,
            has_converged,
            _PASSES_RATIO * self._errors_of_passes(first, previous),
            _PASSES_SHARE * abs(previous.log_z - first.log_z),
        )
        if self._finals:
            yield self._combined(trees)
        self._forecasts = None if has_converged else trees.forecast(limits.seconds)

    def _complete(self, log_z: float) -> float:
        """Add the scaling of the factors to the logarithm of a sum."""
        return log_z + self._factors.log_scale

    def _distances(self, first: _Pass, second: _Pass) -> NDArray[np.float64]:
        return hellinger_distances(first.shares, second.shares, self._sizes)

    def _errors(
        self, first: _Pass, previous: _Pass, current: _Pass, is_contracting: bool
    ) -> tuple[NDArray[np.float64], float]:
        """Return the estimated errors of the marginals and of the logarithm of the sum.

        The error with smaller cliques is about equal to the distance from the result with larger cliques, and the error
        with larger cliques is seldom much smaller. If passes converge, the remaining error is a fraction of their
        change.
        """
        change = self._distances(current, previous)
        passes = self._distances(current, first)
        remaining = self._errors_of_passes(first, current)
        log_passes = abs(current.log_z - first.log_z)
        if not is_contracting:
            return passes + change, log_passes or math.inf
        smaller = self._last.marginals if self._last is not None and self._last.has_converged else current
        rungs = self._distances(current, smaller)
        log_rungs = abs(current.log_z - smaller.log_z)
        if smaller is current and max(float(passes.mean()), log_passes) < _CONVERGED_CHANGE:
            # Passes that change nothing do not measure the error of the approximated fronts.
            return np.full(len(self._sizes), _UNKNOWN_ERROR), math.inf
        if float(rungs.mean()) < _REPEATED_SHARE * float(passes.mean()):
            return remaining + change, _PASSES_SHARE * log_passes or math.inf
        log_error = max(_LOG_RUNGS_TIMES * log_rungs, _PASSES_SHARE * log_passes)
        return np.maximum(rungs, _PASSES_RATIO * remaining) + change, log_error or math.inf

    def _errors_of_passes(self, first: _Pass, current: _Pass) -> NDArray[np.float64]:
        """Return the errors of the marginals, estimated from the changes between passes."""
        passes = self._distances(current, first)
        return passes * _PASSES_SHARE / (1 + float(passes.mean()) / _LARGE_CHANGE) if len(passes) else passes

    def _combined(self, trees: LinkedTrees) -> SumEstimate:
        """Return the medians over the estimates of all orders: outliers hardly change medians."""
        assert self._last is not None
        finals = [*self._finals, self._last]
        converged = [final.marginals for final in finals if final.has_converged]
        compared = converged if len(converged) > 1 else [final.marginals for final in finals]
        shares = np.median([marginals.shares for marginals in compared], axis=0)
        sums = np.add.reduceat(shares, np.cumsum(self._sizes) - self._sizes)
        median = _Pass(
            shares / np.repeat(sums, self._sizes), float(np.median([marginals.log_z for marginals in compared]))
        )
        times = len(compared) / (len(compared) - 1)
        errors = times * np.mean([self._distances(marginals, median) for marginals in compared], axis=0)
        # Estimates from nearly equal trees differ by less than their errors, so the errors of the passes are lower
        # limits.
        errors = np.maximum(errors, np.mean([final.errors for final in finals], axis=0))
        log_z_error = times * float(np.mean([abs(marginals.log_z - median.log_z) for marginals in compared]))
        log_z_error = max(_LOG_RUNGS_TIMES * log_z_error, float(np.mean([final.log_error for final in finals])))
        return self._estimate(median, errors, log_z_error or math.inf, trees)

    def _estimate(
        self, current: _Pass, errors: NDArray[np.float64], log_z_error: float, trees: LinkedTrees
    ) -> SumEstimate:
        figures: dict[str, int | float | str] = {"largest_clique": self._most_cells, "trees": len(trees)}
        self.latest = SumEstimate(
            NAME,
            current.log_z,
            log_z_error,
            current.shares,
            errors,
            figures=figures,
        )
        return self.latest
