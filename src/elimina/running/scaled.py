"""Scaled numbers with an exponent beyond the range of floats, and their sums."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import NamedTuple

from elimina.result import Result


class ScaledNumber(NamedTuple):
    """The non-negative number ``fraction * 2**exponent``. Whole numbers below 2^53 are exact.

    Attributes:
        fraction: 0, or a float in [0.5, 1).
        exponent: Power of two; 0 for the number 0.
    """

    fraction: float
    exponent: int

    @staticmethod
    def product(factors: Iterable[float], exponent: int = 0) -> ScaledNumber:
        """Return the product of finite factors, times a power of two."""
        fraction, exponent = 1.0, int(exponent)
        for factor in factors:
            # The factor is split first, because a product with a subnormal number would lose precision.
            fraction_of_factor, power = math.frexp(factor)
            fraction, carried = math.frexp(fraction * fraction_of_factor)
            exponent += power + carried
        fraction_of_factor, carried = math.frexp(fraction)
        return ScaledNumber(fraction_of_factor, exponent + carried) if fraction_of_factor else ScaledNumber(0.0, 0)

    @staticmethod
    def from_log2(log: float) -> ScaledNumber:
        """Return the number with this base-2 logarithm; 0 for minus infinity."""
        if log == -math.inf:
            return ScaledNumber(0.0, 0)
        exponent = math.floor(log)
        return ScaledNumber.product([2.0 ** (log - exponent)], exponent)

    def times(self, other: ScaledNumber) -> ScaledNumber:
        """Return the product with another number."""
        return ScaledNumber.product([self.fraction, other.fraction], self.exponent + other.exponent)

    @property
    def value(self) -> float | None:
        """The number as a float; None if it exceeds the normal range."""
        if self.fraction and not sys.float_info.min_exp <= self.exponent <= sys.float_info.max_exp:
            return None
        return math.ldexp(self.fraction, self.exponent)

    @property
    def log10(self) -> float:
        """Base-10 logarithm; minus infinity for 0."""
        if not self.fraction:
            return -math.inf
        value = self.value
        return math.log10(self.fraction) + self.exponent * math.log10(2) if value is None else math.log10(value)


class ScaledSum:
    """A sum of numbers that are added one at a time. It is rounded only on reading, so their order does not matter.

    Non-overlapping floats (Shewchuk 1997) represent the sum exactly, down to 2^-1074 times the largest number.

    Args:
        top: Largest exponent of the numbers so far.
        partial_sums: Floats whose sum, times two to the power of ``top``, is the sum of the numbers.
    """

    def __init__(self, top: int = 0, partial_sums: Iterable[float] = ()) -> None:
        self._top, self._partial_sums = top, list(partial_sums)

    @property
    def state(self) -> tuple[int, list[float]]:
        """Arguments that construct the same sum."""
        return self._top, list(self._partial_sums)

    def add(self, number: ScaledNumber) -> None:
        """Add a number exactly, except for digits below 2^-1074 times the largest number."""
        if not number.fraction:
            return
        if not self._partial_sums or number.exponent > self._top:
            lowered = (math.ldexp(partial_sum, self._top - number.exponent) for partial_sum in self._partial_sums)
            self._top, self._partial_sums = number.exponent, [partial_sum for partial_sum in lowered if partial_sum]
        carry = math.ldexp(number.fraction, number.exponent - self._top)
        partial_sums = []
        for partial_sum in self._partial_sums:
            large, small = (carry, partial_sum) if carry >= abs(partial_sum) else (partial_sum, carry)
            carry = large + small
            if error := small - (carry - large):
                partial_sums.append(error)
        self._partial_sums = [*partial_sums, carry]

    @property
    def total(self) -> ScaledNumber:
        """The sum."""
        return ScaledNumber.product([math.fsum(self._partial_sums)], self._top)


def partition_result(total: ScaledNumber) -> Result:
    """Return the result of the task ``pr`` for a sum; infeasible if the sum is 0."""
    return Result("exact" if total.fraction else "infeasible", "pr", total.value, log10_z=total.log10)
