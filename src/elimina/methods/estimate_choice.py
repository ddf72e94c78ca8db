"""Choice among the estimates of different methods, or their mean, by the estimated error of each.

The error of samples is their standard error. The error of another estimate is measured by samples in independent folds:
the noise of two folds cancels in the mean of their products. Samples with very different weights measure nothing, and
may have missed most of the sum. They are dropped if a reliable method finds a larger sum, or if samples with a more
certain sum contradict them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.methods.sum_estimate import SampleFolds, SumEstimate, hellinger_distances

DOUBT_SHARE = 0.25
"""Share of an unexplained distance from another method's estimate that counts as error if no samples decide. The stated
error of the other method explains a part of the distance."""

RELIABLE_TRUST = 3
"""Least rank at which a method's stated error is trusted: it is usually within a factor of three of the true error."""

SUM_DOUBT_SHARE = 0.5
"""Least error of marginals if no samples decide: this share of the error of the sum's logarithm, divided by the number
of variables."""

MAX_LOG_ERROR, UNKNOWN_SUM_TRUST = 1.0, 1
"""Largest standard error of a sum's natural logarithm with which samples keep the rank of their method, and their rank
above this limit. Above it, a single sample may have most of the weight."""

AGREEMENT_SHARE = 0.5
"""Largest distance between estimates that agree, as a share of the error of the more reliable one."""

TRUST_FACTOR = 3.0
"""Largest error, relative to the least one, at which a more trusted method is chosen if no samples decide."""

SIGNIFICANT_DEVIATIONS = 2.0
"""Number of standard deviations above which a distance exceeds the noise of samples, and two sums differ."""

RELIABLE_LOG_ERROR = 0.5
"""Largest standard error of a sum's natural logarithm at which samples measure other estimates."""

MIX_FACTOR = 3.0
"""Largest ratio between the error limits of two estimates that are averaged. With a larger ratio, the mean is hardly
better than the better estimate."""

LEAST_ERROR = 1e-12
"""Least error in the weights of a mean, which keeps them finite."""

MIN_FOLD_PAIRS = 0.5
"""Least weight of all pairs of different folds at which samples measure other estimates. The weight of a pair is the
product of the folds' weights, and the weights of all pairs, including those of a fold with itself, add up to 1."""


class Candidate(NamedTuple):
    """The best estimate of a method.

    Attributes:
        estimate: The estimate; it has marginals, or its sum is 0.
        trust: Rank of the method if no samples decide; from ``RELIABLE_TRUST`` on, the error that it states is
            reliable.
    """

    estimate: SumEstimate
    trust: int


def choose_estimate(candidates: Sequence[Candidate], sizes: NDArray[np.int64]) -> SumEstimate | None:
    """Return the estimate with the least expected error, or the mean of similar estimates; None without candidates.

    The error of the returned estimate is its estimated distance from the exact answer.

    Args:
        candidates: The best estimates of several methods.
        sizes: Number of states of each variable.
    """
    for candidate in candidates:
        if candidate.estimate.error == 0:
            return candidate.estimate
    sampled = _unrefuted([candidate for candidate in candidates if candidate.estimate.folds is not None])
    others = [candidate for candidate in candidates if candidate.estimate.folds is None]
    consistent = _consistent([candidate.estimate for candidate in sampled], sizes)
    reliable = [other.estimate for other in others if other.trust >= RELIABLE_TRUST]
    judges = [
        samples
        for samples in consistent
        if _is_reliable(samples)
        and not any(_is_surer(other, samples) and _refutes(other, samples) for other in reliable)
    ]
    if judges:
        judge = min(judges, key=lambda estimate: estimate.error)
        samples = [_Measured(estimate, estimate.error, estimate.error) for estimate in judges]
        measured = (_measured(row, others, judge, sizes) for row in others)
        closest = min(measured, key=lambda row: row.weight_error, default=None)
        if closest is not None and closest.limit <= judge.error and closest.estimate.error <= judge.error / MIX_FACTOR:
            # The closest estimate may be far better than samples can measure, so a mean with the samples could be
            # worse.
            return closest.estimate
        return _mixed(samples if closest is None else [*samples, closest])
    # Estimates that contradict each other get equal errors; ties are broken by the errors that their methods state.
    rows = [(other.trust, _doubted(other, candidates, sizes), other.estimate.error) for other in others]
    for row in sampled:
        if not rows or not any(_refutes(other.estimate, row.estimate) for other in others):
            is_known = row.estimate.log_z is None or row.estimate.log_z_error <= MAX_LOG_ERROR
            rows.append((row.trust if is_known else UNKNOWN_SUM_TRUST, row.estimate, row.estimate.error))
    least = min((estimate.error for _, estimate, _ in rows), default=0.0)
    trusted = [row for row in rows if row[1].error <= TRUST_FACTOR * least]
    return max(trusted, key=lambda row: (row[0], -row[1].error, -row[2]))[1] if trusted else None


def _unrefuted(sampled: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the samples except those that miss a part of the sum found by other samples."""
    return [
        row
        for row in sampled
        if not any(_refutes(other.estimate, row.estimate) for other in sampled if other is not row)
    ]


def _refutes(estimate: SumEstimate, sampled: SumEstimate) -> bool:
    """Return whether an estimate reliably finds a larger sum than samples."""
    if estimate.log_z is None or sampled.log_z is None:
        return False
    least = estimate.log_z - SIGNIFICANT_DEVIATIONS * _sum_error(estimate)
    return least > sampled.log_z + SIGNIFICANT_DEVIATIONS * sampled.log_z_error


def _is_surer(estimate: SumEstimate, sampled: SumEstimate) -> bool:
    """Return whether the error of an estimate's sum is at most that of samples."""
    return _sum_error(estimate) <= sampled.log_z_error


def _sum_error(estimate: SumEstimate) -> float:
    """Return the error of the sum's logarithm: the stated one, or the one from the marginals if it is larger.

    Free energies are stationary in the marginals, so errors of marginals change the logarithm by about their squares.
    Sums from samples do not depend on their marginals.
    """
    if estimate.errors is None or estimate.folds is not None:
        return estimate.log_z_error
    return max(estimate.log_z_error, float(np.square(estimate.errors).sum()))


def _is_reliable(samples: SumEstimate) -> bool:
    """Return whether samples can measure other estimates."""
    if samples.folds is None or (samples.log_z is not None and samples.log_z_error > RELIABLE_LOG_ERROR):
        return False
    return _pairs(samples.folds) >= MIN_FOLD_PAIRS


def _consistent(sampled: Sequence[SumEstimate], sizes: NDArray[np.int64]) -> Sequence[SumEstimate]:
    """Return the samples except those contradicted by reliable samples with a more certain sum."""
    consistent: list[SumEstimate] = []
    for estimate in sorted(sampled, key=lambda estimate: (estimate.log_z_error, estimate.error)):
        if not any(_is_reliable(judge) and _contradicts(judge, estimate, sizes) for judge in consistent):
            consistent.append(estimate)
    return consistent


def _contradicts(judge: SumEstimate, estimate: SumEstimate, sizes: NDArray[np.int64]) -> bool:
    """Return whether samples measure a far larger error than an estimate states."""
    square, deviation = _squared_distance(estimate, judge, sizes)
    assert estimate.errors is not None
    stated = SIGNIFICANT_DEVIATIONS * float(np.sqrt(np.square(estimate.errors).mean()))
    return square - SIGNIFICANT_DEVIATIONS * deviation > stated**2


class _Measured(NamedTuple):
    """An estimate with its error measured by samples.

    Attributes:
        estimate: The estimate.
        limit: Value that the estimate's error is unlikely to exceed.
        weight_error: Error for the choice of estimates and for their weights in a mean: for a reliable method or
            samples, the error itself; for any other method, the limit.
    """

    estimate: SumEstimate
    limit: float
    weight_error: float


def _measured(
    candidate: Candidate, others: Sequence[Candidate], judge: SumEstimate, sizes: NDArray[np.int64]
) -> _Measured:
    """Return an estimate with its error measured by samples.

    Args:
        candidate: The estimate.
        others: Estimates of methods without samples.
        judge: Samples that measure the estimate.
        sizes: Number of states of each variable.
    """
    estimate = candidate.estimate
    assert estimate.shares is not None
    assert judge.shares is not None
    square, deviation = _squared_distance(estimate, judge, sizes)
    distances = hellinger_distances(estimate.shares, judge.shares, sizes)
    mean_by_root = float(distances.mean()) / (math.sqrt(float(np.square(distances).mean())) or 1.0)
    # If a state has no samples, its probability is 0 in all folds, and ``deviation`` does not show this error. The
    # noise is therefore at least the samples' own error.
    hidden = max(math.sqrt(SIGNIFICANT_DEVIATIONS * deviation), judge.error / math.sqrt(len(sizes)))
    # Noise hides distances up to ``hidden``.
    is_hidden = square <= hidden**2
    root = _hidden_error(candidate, others, square, hidden, sizes) if is_hidden else math.sqrt(square)
    error, limit = root * mean_by_root, math.sqrt(max(square, 0.0) + hidden**2) * mean_by_root
    weight_error = error if candidate.trust >= RELIABLE_TRUST else limit
    return _Measured(_with_error(estimate, error), limit, weight_error)


def _hidden_error(
    candidate: Candidate, others: Sequence[Candidate], square: float, hidden: float, sizes: NDArray[np.int64]
) -> float:
    """Return the error of an estimate whose distance from the exact answer is hidden by the noise of samples.

    The result is at most ``hidden``. For a reliable method, it is the stated error. For another method, it is at least
    the distance from every reliable method; if there are none, it is at least the geometric mean of the stated error
    and ``hidden``.

    Args:
        candidate: The estimate.
        others: Estimates of methods without samples.
        square: Squared distance measured by the samples, mostly noise.
        hidden: Largest distance that noise hides.
        sizes: Number of states of each variable.
    """
    error, shares = min(candidate.estimate.error, hidden), candidate.estimate.shares
    if candidate.trust >= RELIABLE_TRUST:
        return error
    assert shares is not None
    reliable = [other.estimate.shares for other in others if other.trust >= RELIABLE_TRUST]
    distances = [float(hellinger_distances(shares, other, sizes).mean()) for other in reliable if other is not None]
    least = max(error, *distances) if distances else math.sqrt(error * hidden)
    return min(hidden, math.sqrt(max(square, least**2)))


def _mixed(estimates: Sequence[_Measured]) -> SumEstimate:
    """Return the mean of estimates with similar limits, each weighted by its ``weight_error`` to the power -2.

    The errors of samples and of one other method have different causes, so the mean is better than either of them.
    Other figures are those of the estimate with the largest weight.
    """
    best = min(estimates, key=lambda row: row.limit)
    similar = [row for row in estimates if row.limit <= MIX_FACTOR * best.limit]
    if len(similar) == 1:
        return best.estimate
    precisions = np.array([max(row.weight_error, LEAST_ERROR) ** -2 for row in similar])
    weights = precisions / precisions.sum()
    shares = np.average([row.estimate.shares for row in similar], axis=0, weights=weights)
    squares = [np.square(weight * row.estimate.errors) for weight, row in zip(weights, similar, strict=True)]
    leader = similar[int(weights.argmax())].estimate
    return leader._replace(shares=shares, errors=np.sqrt(np.sum(squares, axis=0)), folds=None)


def _squared_distance(estimate: SumEstimate, samples: SumEstimate, sizes: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean squared Hellinger distance of marginals from the exact ones, and its standard error.

    The noise of two folds is independent, so it cancels in the mean of products of their differences from the estimate.
    The standard error is the jackknife's (Efron and Stein 1981), which leaves out one fold at a time.

    Args:
        estimate: Estimate whose distance is measured.
        samples: Samples that measure it, in folds.
        sizes: Number of states of each variable.
    """
    assert estimate.shares is not None
    assert samples.shares is not None
    assert samples.errors is not None
    assert samples.folds is not None
    weights, shares = samples.folds
    # The squared distance is the sum of (p - q)^2 / 2 (sqrt p + sqrt q)^2. The denominators must not depend on the
    # noise of q, because the noise of a state without samples would not cancel.
    own_roots, sampled_roots = np.sqrt(estimate.shares), np.sqrt(samples.shares)
    noise = SIGNIFICANT_DEVIATIONS * np.repeat(samples.errors, sizes)
    roots = own_roots + np.clip(own_roots, sampled_roots - noise, sampled_roots + noise)
    scales = np.divide(1.0, roots, out=np.zeros(len(roots)), where=roots > 0) / math.sqrt(2 * len(sizes))
    differences = (weights[:, None] * estimate.shares - shares) * scales
    squares, products = np.square(differences).sum(axis=1), differences @ differences.sum(axis=0)
    pairs, pair_weights = products.sum() - squares.sum(), _pairs(samples.folds)
    # Leaving a fold out removes its product with each other fold twice, because pairs count in both orders.
    without = (pairs - 2 * (products - squares)) / (pair_weights - 2 * weights * (1 - weights))
    count = len(weights)
    return float(pairs / pair_weights), math.sqrt(
        (count - 1) / count * float(np.square(without - without.mean()).sum())
    )


def _pairs(folds: SampleFolds) -> float:
    """Return the sum of the products of weights over ordered pairs of different folds."""
    return 1 - float(np.square(folds.weights).sum())


def _doubted(candidate: Candidate, others: Sequence[Candidate], sizes: NDArray[np.int64]) -> SumEstimate:
    """Return an estimate with a larger error if its sum is uncertain, or other estimates contradict it.

    The error of a less reliable method is at least the distance from a reliable one that agrees with it.
    """
    estimate, is_reliable = candidate.estimate, candidate.trust >= RELIABLE_TRUST
    assert estimate.shares is not None
    error = estimate.error
    if estimate.log_z_error < math.inf and len(sizes):
        error = max(error, SUM_DOUBT_SHARE * min(1.0, estimate.log_z_error / len(sizes)))
    for other in others:
        shares, other_error = other.estimate.shares, other.estimate.error
        if other is not candidate and shares is not None:
            distance = float(hellinger_distances(estimate.shares, shares, sizes).mean())
            # The stated error of the other estimate explains a part of the distance. Squares of errors add up.
            unexplained = math.sqrt(max(0.0, distance**2 - other_error**2))
            error = max(error, DOUBT_SHARE * unexplained)
            is_judged = not is_reliable and other.trust >= RELIABLE_TRUST and other.estimate.folds is None
            if is_judged and distance <= AGREEMENT_SHARE * other_error:
                error = max(error, distance)
    return _with_error(estimate, error)


def _with_error(estimate: SumEstimate, error: float) -> SumEstimate:
    """Return an estimate with a new mean error: errors are scaled, or all equal if they were 0 or unknown."""
    assert estimate.errors is not None
    if error == estimate.error:
        return estimate
    if not estimate.error < math.inf or not estimate.error:
        return estimate._replace(errors=np.full(len(estimate.errors), error))
    return estimate._replace(errors=np.minimum(1.0, estimate.errors * (error / estimate.error)))
