"""Results and limits of approximate methods for sums and marginals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import stopped
from elimina.methods.factor_lists import FactorList, factors_of
from elimina.problem.preparation import Problem
from elimina.result import Interval

_REACH_POWER, _USUAL_REACH = 0.25, 4.0
"""Parameters of the error that is stated for samples: a weighted geometric mean of the standard error and of the
confidence interval's reach (the distance of its farther end from the estimate). The first number is the weight of the
reach, fitted to files of the UAI competitions. The second number is the usual reach, in standard errors, for samples of
similar weights, by which the reach is divided."""


@dataclass(slots=True)
class Limits:
    """Limits of an approximate method.

    Attributes:
        deadline: End of the method's turn by ``time.monotonic``; infinity: no deadline. A method continues if the
            deadline is moved between two estimates.
        memory_bytes: Memory limit of tables, messages and samples, in bytes.
        seed: Random seed.
        has_estimate: True if there is an estimate; if not, the first one may end late.
        find_order: Function that quickly finds an elimination order, as positions among the free variables. It is
            called when a method first needs the order; None: methods find their own.
    """

    deadline: float
    memory_bytes: int
    seed: int = 0
    find_order: Callable[[], Sequence[int]] | None = None
    has_estimate: bool = field(default=False, init=False)
    _order: Sequence[int] | None = field(default=None, init=False)
    _factors: FactorList | None = field(default=None, init=False)

    @property
    def order(self) -> Sequence[int] | None:
        """Elimination order from ``find_order`` as positions among the free variables; None: methods find their own."""
        if self._order is None and self.find_order is not None:
            self._order = self.find_order()
        return self._order

    def factors_of(self, problem: Problem) -> FactorList:
        """Return the factors of the problem, shared by all methods with these limits."""
        if self._factors is None:
            self._factors = factors_of(problem)
        return self._factors

    @property
    def seconds(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def is_over(self) -> bool:
        """True if the method has to yield its current estimate."""
        return stopped() or time.monotonic() >= self.deadline


class SampleFolds(NamedTuple):
    """Samples in independent folds: in products of two folds, their noise averages to 0.

    Attributes:
        weights: Weight of each fold as a share of the weight of all samples, shape ``(folds,)``.
        shares: Contribution of each fold to the marginals, shape ``(folds, cells)``; the contributions add up to the
            marginals of all samples.
    """

    weights: NDArray[np.float64]
    shares: NDArray[np.float64]


class SumEstimate(NamedTuple):
    """Estimate of the sum of a problem's products, and of the marginals of its free variables.

    Attributes:
        method: Name, as in ``Result.stats["method"]``.
        log_z: Natural logarithm of the sum, including constants; minus infinity if the sum is 0; None if the method has
            no estimate.
        log_z_error: Estimated error of ``log_z``; for samples, the standard error.
        shares: Marginals of ``problem.free``, one variable after another; None if the method has no estimate.
        errors: Estimated Hellinger distance of each variable's marginal from the exact one, shape
            ``(len(problem.free),)``.
        folds: Samples in folds; None: the method has no samples.
        interval: Confidence interval of ``log_z``; None: the method has no samples.
        lower: Lower bound on ``log_z``.
        upper: Upper bound on ``log_z``.
        figures: Further entries of ``Result.stats``.
        is_exact: True if nothing was approximated.
    """

    method: str
    log_z: float | None = None
    log_z_error: float = math.inf
    shares: NDArray[np.float64] | None = None
    errors: NDArray[np.float64] | None = None
    folds: SampleFolds | None = None
    interval: Interval | None = None
    lower: float = -math.inf
    upper: float = math.inf
    figures: Mapping[str, int | float | str] = MappingProxyType({})
    is_exact: bool = False

    @property
    def is_zero(self) -> bool:
        """True if the sum is proved to be 0; samples and underflow do not prove it."""
        return self.log_z == -math.inf and self.log_z_error == 0

    @property
    def error(self) -> float:
        """Mean of the estimated errors of the marginals: 0 if the sum is 0, infinity if there are no marginals."""
        if self.is_zero:
            return 0.0
        if self.errors is None:
            return math.inf
        return float(self.errors.mean()) if len(self.errors) else 0.0

    @property
    def stated_log_error(self) -> float:
        """Error of ``log_z`` stated in an answer: between ``log_z_error`` and the reach of the interval.

        An interval that extends over many standard errors indicates very different weights, so even larger weights may
        be missing from the samples.
        """
        if self.interval is None or self.log_z is None or not 0 < self.log_z_error < math.inf:
            return self.log_z_error
        reaches = [self.log_z - self.interval.low, self.interval.high - self.log_z]
        reach = max((end for end in reaches if 0 <= end < math.inf), default=0.0) / _USUAL_REACH
        return max(self.log_z_error, math.pow(self.log_z_error, 1 - _REACH_POWER) * math.pow(reach, _REACH_POWER))


def log10_interval(interval: Interval | None, log_factor: float = 0.0) -> Interval | None:
    """Convert an interval of a natural logarithm to base 10; None stays None.

    Args:
        interval: The interval, or None.
        log_factor: Natural logarithm of a factor by which the interval is multiplied.
    """
    if interval is None:
        return None
    low, high, level = interval
    return Interval((low + log_factor) / math.log(10), (high + log_factor) / math.log(10), level)


def hellinger_distances(
    shares: NDArray[np.float64], others: NDArray[np.float64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the Hellinger distance between two marginals of each variable.

    Args:
        shares: Marginals, one variable after another.
        others: Other marginals of the same variables.
        sizes: Number of states of each variable, at least 1.

    Examples:
        >>> hellinger_distances(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([2]))
        array([1.])
    """
    if not len(sizes):
        return np.zeros(0)
    squares = (np.sqrt(shares) - np.sqrt(others)) ** 2
    return np.sqrt(np.minimum(np.add.reduceat(squares, np.cumsum(sizes) - sizes) / 2, 1.0))
