"""Estimates of sums and marginals: results and limits of approximate methods."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import stopped
from elimina.methods.factor_lists import FactorList, factors_of
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem
from elimina.result import Interval

_REACH_POWER, _USUAL_REACH = 0.25, 4.0
"""A stated error is a weighted geometric mean of the standard error and the interval's reach. Weight of the reach,
fitted to files of the UAI competitions; usual reach in standard errors, if the weights of samples are similar."""


@dataclass(slots=True)
class Limits:
    """Limits of an approximate method.

    Attributes:
        deadline: End of the method's turn by ``time.monotonic``; infinity: there is none. If it is moved between two
            estimates, the method continues.
        memory_bytes: Bytes of its tables, messages and samples.
        seed: Random seed.
        find_order: Function that returns the positions of the free variables in a quick order of elimination, when a
            method first asks for it; None: a method finds one.
    """

    deadline: float
    memory_bytes: int
    seed: int = 0
    find_order: Callable[[], Sequence[int]] | None = None
    _order: Sequence[int] | None = field(default=None, init=False)
    _factors: FactorList | None = field(default=None, init=False)

    @property
    def order(self) -> Sequence[int] | None:
        """Positions of the free variables in a quick order of elimination; None: a method finds one."""
        if self._order is None and self.find_order is not None:
            self._order = self.find_order()
        return self._order

    def factors_of(self, problem: Problem) -> FactorList:
        """Return the factors of the problem, which all methods of the same limits share."""
        if self._factors is None:
            self._factors = factors_of(problem)
        return self._factors

    @property
    def seconds(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def is_over(self) -> bool:
        """True if the method has to yield its estimate now."""
        return stopped() or time.monotonic() >= self.deadline


class SampleFolds(NamedTuple):
    """Samples in independent folds, whose noise is independent, so that it cancels in products of two folds.

    Attributes:
        weights: Share of each fold in the weight of all samples, shape ``(folds,)``.
        shares: Part of each fold in the marginals, shape ``(folds, cells)``; the parts of all folds add up to the
            marginals of all samples.
    """

    weights: NDArray[np.float64]
    shares: NDArray[np.float64]


class SumEstimate(NamedTuple):
    """Estimate of the sum of a problem's products, and of the marginals of its free variables.

    Attributes:
        method: Name, as in ``Result.stats["method"]``.
        log_z: Natural logarithm of the sum, constants included; None if the method has none. Minus infinity: the sum
            is 0.
        log_z_error: Estimated error of ``log_z``; for samples, the standard error.
        shares: Marginals of ``problem.free``, those of one variable after another; None if the method has none.
        errors: Estimated Hellinger distance of each variable's marginal from the exact one, shape
            ``(len(problem.free),)``.
        folds: Samples in folds; None: there are no samples.
        interval: Confidence interval of ``log_z``; None: there are no samples.
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
        """True if the sum is proved to be 0; samples and underflowed messages do not prove it."""
        return self.log_z == -math.inf and self.log_z_error == 0

    @property
    def error(self) -> float:
        """Mean of the estimated errors of the marginals: 0 if the sum is 0, infinity if there are none."""
        if self.is_zero:
            return 0.0
        if self.errors is None:
            return math.inf
        return float(self.errors.mean()) if len(self.errors) else 0.0

    @property
    def stated_log_error(self) -> float:
        """Error of ``log_z`` that an answer states: between ``log_z_error`` and the reach of the interval.

        If the interval extends over many standard errors, the weights of the samples differ much, so even larger
        weights may be missing.
        """
        if self.interval is None or self.log_z is None or not 0 < self.log_z_error < math.inf:
            return self.log_z_error
        reaches = [self.log_z - self.interval.low, self.interval.high - self.log_z]
        reach = max((end for end in reaches if 0 <= end < math.inf), default=0.0) / _USUAL_REACH
        return max(self.log_z_error, math.pow(self.log_z_error, 1 - _REACH_POWER) * math.pow(reach, _REACH_POWER))


EstimateMethod = Callable[[Problem, CheckedOptions, Limits], Iterator[SumEstimate]]
"""A method that yields better and better estimates until its deadline, and ends when it cannot improve."""


def log10_interval(interval: Interval | None, log_factor: float = 0.0) -> Interval | None:
    """Return an interval of a natural logarithm as one of the base-10 logarithm; None stays None.

    Args:
        interval: The interval, if there is one.
        log_factor: Natural logarithm of a factor on the estimate.
    """
    if interval is None:
        return None
    low, high, level = interval
    return Interval((low + log_factor) / math.log(10), (high + log_factor) / math.log(10), level)


def hellinger_distances(
    shares: NDArray[np.float64], others: NDArray[np.float64], sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the Hellinger distance of each variable's two marginals.

    Args:
        shares: Marginals, those of one variable after another.
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
