"""Statistics of samples' weights: mean, standard error, and a confidence interval that is valid for heavy tails.

The interval is a confidence sequence by betting (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
variables by betting"). Bets against a wrong mean multiply their capital, whereas bets against the true mean are
unlikely to do so at any time. Means against which the capital has grown enough are excluded. The interval contains the
true mean with the stated probability, whenever sampling stops. Its lower end only requires non-negative weights; its
upper end requires a bound on the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from elimina.result import Interval

Floats = NDArray[np.float64]

LEVEL = 0.95
"""Confidence level of intervals: least probability that an interval contains the true value."""

_BINS_PER_UNIT = 1024
"""Number of bins of weights per unit of their natural logarithm; the rounding widens intervals by 0.0004 in log10."""

_STAKES = 0.99 * 4.0 ** -np.arange(13)
"""Stakes of the bets. The capital is split into equal parts, one for each stake, and a part always bets this share of
itself. The smallest stake is suited to about 10^7 samples."""

_BORDER_WIDTH = 1e-4
"""Precision of the ends of an interval, in natural logarithms."""

_MAX_SHORTFALL = 24.0
"""Largest distance of the interval's lower end from the mean, in natural logarithms."""

_TAIL_SHARE, _TAIL_ROOTS = 0.2, 3.0
"""The tail contains at most this share of all weights, and at most this multiple of the square root of their number."""

_MIN_TAIL = 5
"""Least number of weights in a tail whose shape is estimated."""

_LEAST_EXCESS = 1e-100
"""Least difference between a weight of the tail and the largest weight outside it, as a share of the largest weight.
Smaller differences are left out, because their quotients could overflow."""

_PRIOR_SHAPE, _PRIOR_WEIGHTS = 0.5, 10
"""Prior mean of the shape; it counts as much as the shape of a tail with this number of weights."""


class WeightStatistics:
    """Weights of samples, added batch by batch as natural logarithms.

    Attributes:
        count: Number of samples.
    """

    def __init__(self) -> None:
        self.count = 0
        self._peak = -math.inf
        # Sum of the weights, and of their squares, relative to the largest weight.
        self._sum = self._squares = 0.0
        self._bins: dict[int, int] = {}

    def add(self, logs: Floats) -> tuple[Floats, float]:
        """Add weights.

        Args:
            logs: Natural logarithms of the weights of new samples.

        Returns:
            Weights relative to the largest one so far, and the factor that rescales earlier weights in the same way.
        """
        self.count += len(logs)
        peak = max(self._peak, float(logs.max(initial=-math.inf)))
        if peak == -math.inf:
            return np.zeros(len(logs)), 1.0
        factor = math.exp(self._peak - peak)
        weights: Floats = np.exp(logs - peak)
        self._sum = self._sum * factor + float(weights.sum())
        self._squares = self._squares * factor**2 + float((weights * weights).sum())
        self._peak = peak
        numbers, counts = np.unique(np.floor(logs[logs > -math.inf] * _BINS_PER_UNIT), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._bins[int(number)] = self._bins.get(int(number), 0) + count
        return weights, factor

    @property
    def log_peak(self) -> float:
        """Natural logarithm of the largest weight; minus infinity if all are 0."""
        return self._peak

    @property
    def log_mean(self) -> float:
        """Natural logarithm of the mean; minus infinity if all weights are 0."""
        return self._peak + math.log(self._sum / self.count) if self._sum else -math.inf

    @property
    def effective_size(self) -> float:
        """Number of independent samples of equal weight with the same information about an average (Kish 1965)."""
        return self._sum**2 / self._squares if self._squares else 0.0

    @property
    def log_error(self) -> float:
        """Standard error of ``log_mean``; infinite if there are fewer than two weights, or all are 0.

        It is raised if a single weight dominates the sum, because similar weights may be missing.
        """
        if not self._sum or self.count < 2:
            return math.inf
        variance = max(0.0, 1 / self.effective_size - 1 / self.count) * self.count / (self.count - 1)
        return math.hypot(math.sqrt(variance), 1 / self._sum if variance else 0.0)

    @property
    def tail_shape(self) -> float:
        """Shape of the Pareto distribution of the largest weights; NaN if they are few.

        With a shape of 0.5 or more, weights have no finite variance; with 1 or more, they have no finite mean.

        Vehtari, Simpson, Gelman, Yao and Gabry 2024, "Pareto smoothed importance sampling".
        """
        length = int(min(_TAIL_SHARE * self.count, _TAIL_ROOTS * math.sqrt(self.count)))
        if length < _MIN_TAIL:
            return math.nan
        numbers = np.array(sorted(self._bins, reverse=True))
        ends = np.cumsum([self._bins[number] for number in numbers.tolist()])
        last = int(np.searchsorted(ends, length + 1))
        if last == len(numbers):
            # All weights outside the tail are 0.
            return math.nan
        copies = np.diff(np.minimum(ends[:last], length), prepend=0)
        weights = np.repeat(np.exp((numbers[:last] - numbers[0]) / _BINS_PER_UNIT), copies)
        excesses = weights[::-1] - math.exp((numbers[last] - numbers[0]) / _BINS_PER_UNIT)
        excesses = excesses[excesses > _LEAST_EXCESS]
        return _pareto_shape(excesses) if len(excesses) >= _MIN_TAIL else math.nan

    def interval(self, log_bound: float, level: float = LEVEL) -> Interval:
        """Return a confidence interval of the logarithm of the expected weight.

        Args:
            log_bound: Upper bound on the natural logarithm of every weight; infinity if there is none.
            level: Probability with which the interval contains the logarithm.
        """
        # Each end of the interval gets half of the error probability, and each stake an equal part of the capital.
        goal = math.log(2 / (1 - level)) + math.log(len(_STAKES))
        numbers = np.array(list(self._bins), dtype=np.float64)
        counts = np.array(list(self._bins.values()), dtype=np.float64)
        empty = self.count - counts.sum()
        low = self._low(numbers / _BINS_PER_UNIT, counts, empty, goal)
        if log_bound == math.inf:
            return Interval(low, math.inf, level)
        high = self._high((numbers + 1) / _BINS_PER_UNIT - log_bound, counts, empty, goal) + log_bound
        return Interval(low, high, level)

    def _low(self, logs: Floats, counts: Floats, empty: float, goal: float) -> float:
        """Return the logarithm of the smallest mean that is not refuted; minus infinity if no mean is refuted.

        The weights' logarithms are rounded down.
        """
        if not len(logs):
            return -math.inf
        lost = np.log1p(-_STAKES)

        def is_refuted(log: float) -> bool:
            gains = np.log1p(_STAKES[:, None] * np.expm1(logs - log)) @ counts + empty * lost
            return bool(np.logaddexp.reduce(gains) > goal)

        low, high = self.log_mean - _MAX_SHORTFALL, self.log_mean
        return _border(low, high, is_refuted)[0] if is_refuted(low) else -math.inf

    def _high(self, logs: Floats, counts: Floats, empty: float, goal: float) -> float:
        """Return the logarithm of the quotient of the largest mean that is not refuted and the weights' bound."""
        weights = np.minimum(np.exp(logs), 1.0)

        def is_allowed(log: float) -> bool:
            mean = math.exp(log)
            gains = np.log1p(-_STAKES[:, None] * (weights - mean) / (1 - mean)) @ counts
            gains += empty * np.log1p(_STAKES * mean / (1 - mean))
            return bool(np.logaddexp.reduce(gains) <= goal)

        # Logarithms are relative to the bound, which the mean cannot exceed.
        low, high = math.log(1e-12 / max(1, self.count)), -1e-9
        if not self.count or is_allowed(high):
            return 0.0
        return _border(low, high, is_allowed)[1] if is_allowed(low) else low


def _pareto_shape(excesses: Floats) -> float:
    """Return the shape of a generalised Pareto distribution.

    Zhang and Stephens 2009, "A new and efficient estimation method for the generalized Pareto distribution".

    Args:
        excesses: Positive samples in ascending order.
    """
    count = len(excesses)
    points = 30 + int(math.sqrt(count))
    quartile = float(excesses[int(count / 4 + 0.5) - 1])
    roots = np.sqrt(points / (np.arange(points) + 0.5))
    rates = 1 / float(excesses[-1]) + (1 - roots) / (3 * quartile)
    shapes = np.log1p(-np.outer(rates, excesses)).mean(axis=1)
    # A shape of 0 is that of an exponential distribution.
    scales = np.divide(-shapes, rates, out=np.full(points, excesses.mean()), where=rates != 0)
    likelihoods = -count * (np.log(scales) + shapes + 1)
    weights = np.exp(likelihoods - likelihoods.max())
    rate = float(rates @ weights / weights.sum())
    shape = float(np.log1p(-rate * excesses).mean())
    return (count * shape + _PRIOR_WEIGHTS * _PRIOR_SHAPE) / (count + _PRIOR_WEIGHTS)


def _border(low: float, high: float, is_below: Callable[[float], bool]) -> tuple[float, float]:
    """Return two close values between which a condition changes from true (at ``low``) to false (at ``high``)."""
    while high - low > _BORDER_WIDTH:
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low, high
