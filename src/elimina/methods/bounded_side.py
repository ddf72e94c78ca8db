"""One side of the bounds on a sum by weighted mini-buckets, with its weights and cost shifts."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from elimina._core import WeightedMiniBuckets
from elimina.methods.factor_logarithms import FactorLogarithms
from elimina.methods.mini_bucket_tree import MiniBucketTree
from elimina.methods.quasi_newton import minimise
from elimina.planning.tree import Bound, node_weights, tree_of

SLICES = 16
"""Number of assignments of fixed variables in a lower bound from slices."""

_WEIGHT_SCALES: dict[Bound, float] = {"upper": 3.0, "lower": 0.3}
"""Scale of a weight's logarithm. It is small for lower bounds, because early changes of the weights
lead to a bad local optimum."""

_SHIFT_SCALE = 0.5
"""Scale of a shift, relative to the square root of the number of cells of its table. The curvature of the bound along a
shift is about the probability of its cell, so without this scale the first steps would be short where tables are
large."""

_ULPS = 4
"""Largest rounding error of a constant, in units in the last place."""


class BoundedSide:
    """One side of the bounds in a tree, with the best parameters so far.

    Args:
        tree: The mini-buckets.
        logarithms: Logarithms of the factors, in the layout of the tree's order.
        side: Side of the bound.
        maximised: Variables that are maximised instead of summed over (upper bounds only).
        previous: The same side in a tree of the same order; its parameters are the start if they give the better bound.
    """

    def __init__(
        self,
        tree: MiniBucketTree,
        logarithms: FactorLogarithms,
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
        shift_scales = _SHIFT_SCALE * np.sqrt(self._buckets.shift_cells)
        weights_count = len(self._parameters) - len(shift_scales)
        self._scales = np.concatenate([shift_scales, np.full(weights_count, _WEIGHT_SCALES[side])])
        self.evaluations = 0

    def release_tables(self) -> None:
        """Free the tables; the parameters remain."""
        self._buckets.release_tables()

    def temper(self, total: float) -> None:
        """Set the sum of weights of each maximised variable; a smaller sum is closer to a maximum."""
        self._buckets.set_totals(np.where(self._is_maximised, total, 1.0))

    @property
    def bound(self) -> float:
        """The bound with the best parameters so far, rounded outwards."""
        return self._rounded(self._buckets.bound(self._parameters))

    def improve(self) -> Iterator[float]:
        """Yield improving bounds, rounded outwards; none if the first one is infinite, which excludes no value."""
        for value, scaled in minimise(self._evaluate, self._parameters / self._scales):
            if value == math.inf:
                return
            self._parameters = scaled * self._scales
            yield self._rounded(self._sign * value)
            if value == -math.inf:
                return

    def _evaluate(self, scaled: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        self.evaluations += 1
        slope = self._buckets.gradient(scaled * self._scales)
        return self._sign * slope.bound, self._sign * slope.gradient * self._scales

    def _rounded(self, bound: float) -> float:
        """Add the constants to a bound, and round the result outwards; an infinite bound is unchanged."""
        if math.isinf(bound):
            return bound
        sizes = math.fsum(map(abs, self._constants)) + abs(bound)
        slack = self._buckets.rounding + _ULPS * sys.float_info.epsilon * sizes
        return math.fsum([bound, *self._constants]) + self._sign * slack

    @property
    def marginals(self) -> NDArray[np.float64]:
        """Marginals from the beliefs of the last evaluation, in elimination order."""
        return self._buckets.marginals

    def assignments(self, seed: int) -> NDArray[np.int32]:
        """Return ``SLICES`` assignments decoded from the messages, one per row, in elimination order."""
        self._buckets.bound(self._parameters)
        return self._buckets.decode(SLICES, seed % 2**32).reshape(SLICES, -1)

    def slices(self, assignments: NDArray[np.int32], is_fixed: NDArray[np.bool_]) -> float:
        """Return the lower bound from a sum over slices, which are the distinct assignments of the fixed variables."""
        bounds = []
        for values in np.unique(np.where(is_fixed, assignments, -1), axis=0).astype(np.int32):
            self._buckets.fix(values)
            bounds.append(self._rounded(self._buckets.bound(self._parameters)))
        # Each bound is already rounded outwards; the subtracted term covers rounding errors of their sum.
        return float(np.logaddexp.reduce(bounds)) - _ULPS * len(bounds) * sys.float_info.epsilon

    def fix_best(self, assignments: NDArray[np.int32], is_fixed: NDArray[np.bool_]) -> None:
        """Fix variables to their values in the assignment with the best lower bound."""
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
        """True for each variable with a partitioned bucket, in elimination order."""
        return np.isin(self.tree.planned.order, self.tree.planned.variables[self.tree.divided])

    @property
    def is_blocked(self) -> NDArray[np.bool_]:
        """True for each variable, in elimination order, with several mini-buckets that may be 0.

        For such a variable, negative weights would make the lower bound 0.
        """
        counts: dict[int, int] = {}
        may_be_zero: list[bool] = []
        for node in self._nodes.nodes:
            may_be_zero.append(any(self._zeros[f] for f in node.factors) or any(may_be_zero[c] for c in node.children))
            counts[node.variable] = counts.get(node.variable, 0) + may_be_zero[-1]
        return np.array([counts[v] > 1 for v in self._nodes.order], dtype=bool)
