"""Choice among the estimates of different methods: how far each is from the truth, by what the others say.

Samples say how far they are from it, as a rule: their error is a standard error. How far another estimate is follows
from its distance from theirs, as both errors add up in squares. Samples whose weights differ too much measure nothing,
and may have missed most of the sum: a method that is sure of a larger one refutes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.methods.sum_estimate import SumEstimate, hellinger_distances

DOUBT_SHARE = 0.25
"""Share of the distance from another method's estimate that counts as error, if no samples decide."""

TRUST_FACTOR = 3.0
"""Largest error of a more trusted method relative to the least error, if no samples decide."""

SIGNIFICANT_DEVIATIONS = 2.0
"""Standard deviations that tell a distance from the noise of samples, or two sums from each other."""

RELIABLE_LOG_ERROR = 0.5
"""Standard error of a sum's natural logarithm, up to which others are measured by samples."""


class Candidate(NamedTuple):
    """The best estimate of a method.

    Attributes:
        estimate: The estimate: it has marginals, or its sum is 0.
        trust: Rank of its method, where no samples decide.
        is_sampled: True if its errors are those of samples, by which others are measured.
    """

    estimate: SumEstimate
    trust: int
    is_sampled: bool


def choose_estimate(candidates: Sequence[Candidate], sizes: NDArray[np.int64]) -> SumEstimate | None:
    """Return the estimate that is closest to the truth, with its error; None without any.

    Args:
        candidates: The best estimates of several methods.
        sizes: Number of states of each variable.
    """
    for candidate in candidates:
        if candidate.estimate.error == 0:
            return candidate.estimate
    sampled = [candidate for candidate in candidates if candidate.is_sampled]
    others = [candidate for candidate in candidates if not candidate.is_sampled]
    judges = [row.estimate for row in sampled if row.estimate.log_z_error <= RELIABLE_LOG_ERROR]
    if judges:
        judge = min(judges, key=lambda estimate: estimate.error)
        measured = [_measured(row.estimate, judge, sizes) for row in candidates if row.estimate is not judge]
        return min([judge, *measured], key=lambda estimate: estimate.error)
    estimates = [candidate.estimate for candidate in candidates]
    rows = [(other.trust, _doubted(other.estimate, estimates, sizes)) for other in others]
    for row in sampled:
        if not rows or not any(_refutes(other.estimate, row.estimate) for other in others):
            rows.append((row.trust, row.estimate))
    least = min((estimate.error for _, estimate in rows), default=0.0)
    trusted = [row for row in rows if row[1].error <= TRUST_FACTOR * least]
    return max(trusted, key=lambda row: (row[0], -row[1].error))[1] if trusted else None


def _refutes(estimate: SumEstimate, sampled: SumEstimate) -> bool:
    """Return whether an estimate is sure of a larger sum than samples."""
    if estimate.log_z is None or sampled.log_z is None:
        return False
    least = estimate.log_z - SIGNIFICANT_DEVIATIONS * estimate.log_z_error
    return least > sampled.log_z + SIGNIFICANT_DEVIATIONS * sampled.log_z_error


def _measured(estimate: SumEstimate, judge: SumEstimate, sizes: NDArray[np.int64]) -> SumEstimate:
    """Return an estimate with its error by its distance from samples."""
    assert estimate.shares is not None
    assert judge.shares is not None
    assert judge.errors is not None
    distances = hellinger_distances(estimate.shares, judge.shares, sizes)
    square, noise = float(np.square(distances).mean()), float(np.square(judge.errors).mean())
    deviation = noise * math.sqrt(2 / len(sizes))
    if square - noise > SIGNIFICANT_DEVIATIONS * deviation:
        return _with_error(estimate, math.sqrt((square - noise) / square) * float(distances.mean()))
    # Each measured distance is a limit: the truth is between it and the method's own error.
    limit = judge.error * len(sizes) ** -0.25
    return _with_error(estimate, math.sqrt(min(estimate.error, limit) * limit))


def _doubted(estimate: SumEstimate, others: Sequence[SumEstimate], sizes: NDArray[np.int64]) -> SumEstimate:
    """Return an estimate with a larger error where others contradict it: they may be right."""
    assert estimate.shares is not None
    error = estimate.error
    for other in others:
        if other is not estimate and other.shares is not None:
            distance = float(hellinger_distances(estimate.shares, other.shares, sizes).mean())
            error = max(error, DOUBT_SHARE * distance)
    return _with_error(estimate, error)


def _with_error(estimate: SumEstimate, error: float) -> SumEstimate:
    """Return an estimate with another mean error: variables keep their shares of it."""
    assert estimate.errors is not None
    if error == estimate.error:
        return estimate
    if not estimate.error < math.inf or not estimate.error:
        return estimate._replace(errors=np.full(len(estimate.errors), error))
    return estimate._replace(errors=np.minimum(1.0, estimate.errors * (error / estimate.error)))
