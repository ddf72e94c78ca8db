"""Estimates of sums and marginals by sequences of linked clique trees, with larger and larger cliques."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import stopped
from elimina.methods.linked_trees import (
    Forecasts,
    LimitReachedError,
    LinkedTrees,
    TreesTooLargeError,
    ZeroSumError,
)
from elimina.methods.ranked_factors import RankedFactors
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.planning.options import Options
from elimina.problem.preparation import Problem

NAME = "linked clique trees"
"""Name in ``Result.stats["method"]``."""

_ORDER_SECONDS = 0.3
"""Time limit of the search for an order."""

_MAX_VARIABLES = 50_000
"""Most variables: each takes about a millisecond of bookkeeping."""

_FIRST_CELLS, _GROWTH = 1 << 9, 8.0
"""Largest number of cells of the first trees' cliques, and times as many that the next ones may have."""

_MEMORY_SHARE, _BYTES_EXPONENT, _LEAST_GROWTH = 0.8, 0.85, 1.4
"""Memory that a sequence of trees is planned to take, as a share of the limit; its growth as a power of the cliques'
cells; and the least growth of these that is worth another sequence."""

_MAX_PASSES = 8
"""Passes in both directions over one sequence of trees."""

_CONVERGED_CHANGE = 1e-7
"""Mean Hellinger distance between two passes, below which the later one is the last."""

_STEADY_CHANGE = 0.01
"""Mean change in the last pass, relative to the first one's, from which trees did not converge."""

_MAX_REPETITIONS = 4
"""Sequences of the largest cliques, if passes do not converge: each begins with the forecasts of the one before."""


class _Pass(NamedTuple):
    """Marginals by rank, and the natural logarithm of the sum."""

    shares: NDArray[np.float64]
    log_z: float


def incremental_trees(problem: Problem, options: Options, limits: Limits) -> Iterator[SumEstimate]:
    """Yield estimates by sequences of linked clique trees with larger and larger cliques.

    Each sequence is passed forward and backward until its marginals do not change. Where they do not converge, the next
    sequence is approximated by the forecasts of the one before. An estimate is exact if nothing was approximated. Its
    error is estimated from its difference to the estimates before it.

    Args:
        problem: Problem of the task ``pr``.
        options: Options of the plan.
        limits: Limits of time and memory.
    """
    if len(problem.free) > _MAX_VARIABLES or _table_bytes(problem) > limits.memory_bytes:
        return
    factors = RankedFactors.of(problem, limits.seed, min(_ORDER_SECONDS, limits.seconds))
    if factors.log_constant == -math.inf:
        yield SumEstimate(NAME, -math.inf, 0.0)
        return
    estimator = _Estimator(problem, factors, limits)
    while True:
        try:
            yield from estimator.estimates()
            return
        except LimitReachedError:
            yield estimator.latest
            if limits.is_over:
                return


def _table_bytes(problem: Problem) -> float:
    """Return the bytes of the factors' tables."""
    return 8 * float(problem.groups.cells(problem.model.sizes).sum())


class _Estimator:
    """Sequences of trees with larger and larger cliques.

    Args:
        problem: Problem of the task ``pr``.
        factors: Its factors.
        limits: Limits of time and memory.

    Attributes:
        latest: Latest estimate; without numbers before the first one.
    """

    def __init__(self, problem: Problem, factors: RankedFactors, limits: Limits) -> None:
        self._factors, self._limits = factors, limits
        rank = {v: place for place, v in enumerate(factors.order)}
        sizes = np.array(factors.shapes.sizes, dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        ranges = [np.arange(starts[rank[v]], starts[rank[v]] + sizes[rank[v]]) for v in problem.free]
        self._cells = np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)
        self._places = np.array([rank[v] for v in problem.free], dtype=np.int64)
        self._sizes = sizes
        self._least_cells = max([factors.shapes.cells(scope) for scope, _ in factors.tables], default=1)
        self._most_cells = max(_FIRST_CELLS, self._least_cells)
        self._repetitions = 0
        self._forecasts: Forecasts | None = None
        self._previous: _Pass | None = None
        self.latest = SumEstimate(NAME)

    def estimates(self) -> Iterator[SumEstimate]:
        """Yield estimates until no better one is to be had; again, from where a deadline ended it."""
        ceiling = math.inf
        while True:
            try:
                trees = LinkedTrees(self._factors, self._most_cells, self._limits, self._forecasts)
                yield from self._passes(trees)
            except TreesTooLargeError:
                ceiling = self._most_cells
                self._most_cells = max(self._least_cells, int(self._most_cells / _LEAST_GROWTH**2))
                if self._most_cells >= ceiling:
                    return
                continue
            except ZeroSumError:
                if self._is_zero():
                    self.latest = SumEstimate(NAME, -math.inf, 0.0)
                    yield self.latest
                return
            if trees.is_exact:
                return
            share = _MEMORY_SHARE * self._limits.memory_bytes / max(trees.bytes, 1)
            larger = min(ceiling / _LEAST_GROWTH, self._most_cells * min(_GROWTH, share ** (1 / _BYTES_EXPONENT)))
            if larger >= _LEAST_GROWTH * self._most_cells:
                self._most_cells = int(larger)
            elif self._forecasts is None or self._repetitions == _MAX_REPETITIONS:
                return
            else:
                self._repetitions += 1

    def _is_zero(self) -> bool:
        """Return whether the sum is 0 by the factors' supports alone, which do not underflow."""
        try:
            LinkedTrees(self._factors.supports(), self._most_cells, self._limits)
        except ZeroSumError:
            return True
        except TreesTooLargeError:
            pass
        return False

    def _passes(self, trees: LinkedTrees) -> Iterator[SumEstimate]:
        """Yield the estimates of a sequence of trees, pass by pass."""
        log_z = trees.log_z
        first = previous = _Pass(trees.pass_backward(), log_z)
        if trees.is_exact:
            yield self._estimate(first, np.zeros(len(self._sizes)), 0.0, trees)
            return
        changes: list[float] = []
        for _ in range(_MAX_PASSES):
            try:
                trees.pass_forward()
                current = _Pass(trees.pass_backward(), trees.log_z)
            except ZeroSumError:
                break
            if not np.isfinite(current.shares).all():
                break
            moved = hellinger_distances(current.shares, previous.shares, self._sizes)
            changes.append(float(moved.mean()))
            yield self._estimate(current, *self._errors(first, previous, current, trees), trees)
            previous = current
            if changes[-1] < _STEADY_CHANGE * changes[0] or changes[-1] < _CONVERGED_CHANGE:
                break
            if len(changes) > 2 and changes[-1] > 0.5 * changes[-2]:
                break
        has_converged = bool(changes) and changes[-1] <= _STEADY_CHANGE * changes[0]
        self._forecasts = None if has_converged else trees.forecast()
        self._previous = previous

    def _errors(
        self, first: _Pass, previous: _Pass, current: _Pass, trees: LinkedTrees
    ) -> tuple[NDArray[np.float64], float]:
        """Return the estimated errors of the marginals, by rank, and of the logarithm of the sum."""
        smoothing = hellinger_distances(current.shares, first.shares, self._sizes)
        change = hellinger_distances(current.shares, previous.shares, self._sizes)
        rung = None
        if self._previous is not None:
            rung = hellinger_distances(current.shares, self._previous.shares, self._sizes)
        self.debug = (smoothing.mean(), change.mean(), rung.mean() if rung is not None else math.nan, trees.divergence,
                      abs(current.log_z - first.log_z), abs(current.log_z - previous.log_z), abs(current.log_z - self._previous.log_z) if self._previous else math.nan)
        return smoothing, abs(current.log_z - first.log_z)

    def _estimate(
        self, current: _Pass, errors: NDArray[np.float64], log_z_error: float, trees: LinkedTrees
    ) -> SumEstimate:
        figures: dict[str, int | float | str] = {"largest_clique": self._most_cells, "trees": len(trees.trees)}
        self.latest = SumEstimate(
            NAME,
            current.log_z,
            log_z_error,
            current.shares[self._cells],
            errors[self._places],
            figures=figures,
        )
        return self.latest
