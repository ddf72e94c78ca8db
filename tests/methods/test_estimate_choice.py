"""Choice among estimates: errors measured against samples, and samples that missed most of the sum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elimina.methods.estimate_choice import Candidate, _squared_distance, choose_estimate
from elimina.methods.sum_estimate import SampleFolds, SumEstimate, hellinger_distances

COUNT = 400
SIZES = np.full(COUNT, 2)
FOLDS = 8


def shares_of(first: np.ndarray) -> np.ndarray:
    first = np.clip(first, 1e-9, 1 - 1e-9)
    return np.stack([first, 1 - first], axis=-1).reshape(*first.shape[:-1], -1)


def near(rng: np.random.Generator, exact: np.ndarray, deviation: float) -> tuple[np.ndarray, float]:
    """Marginals at a random distance from others, and the root of its mean square."""
    shares = shares_of(exact + deviation * rng.normal(size=COUNT))
    return shares, float(np.sqrt(np.square(hellinger_distances(shares, shares_of(exact), SIZES)).mean()))


def others(
    shares: np.ndarray, error: float, log_z: float = 0.0, log_z_error: float = 0.01, trust: int = 1
) -> Candidate:
    return Candidate(SumEstimate("others", log_z, log_z_error, shares, np.full(COUNT, error)), trust)


def samples(
    rng: np.random.Generator,
    exact: np.ndarray,
    deviation: float,
    log_z: float = 0.0,
    log_z_error: float = 0.01,
    is_correlated: bool = False,
    weights: np.ndarray | None = None,
) -> tuple[Candidate, float]:
    """Samples whose mean has a standard deviation from exact marginals, and the expected distance.

    The noise of a fold's variables is independent, or the same for all.
    """
    weights = np.full(FOLDS, 1 / FOLDS) if weights is None else weights
    deviations = deviation / np.sqrt(FOLDS * np.square(weights).sum() * weights)
    noise = rng.normal(size=(FOLDS, 1 if is_correlated else COUNT))
    folds = shares_of(exact + deviations[:, None] * noise)
    shares = weights @ folds
    error = deviation / np.sqrt(8 * exact * (1 - exact))
    estimate = SumEstimate("samples", log_z, log_z_error, shares, error, SampleFolds(weights, weights[:, None] * folds))
    return Candidate(estimate, 3), float(error.mean())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stated", [1e-5, 0.3])
def test_an_error_is_measured_by_samples_whatever_a_method_says(seed, stated):
    rng = np.random.default_rng(seed)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, _ = samples(rng, exact, 0.04)
    other, true = near(rng, exact, 0.03)
    chosen = choose_estimate([others(other, stated), sampled], SIZES)
    assert chosen.method == "others"
    assert true / 2 < chosen.error < 2 * true


def test_noise_that_variables_share_does_not_hide_an_error():
    """A mean over variables does not lower it."""
    rng = np.random.default_rng(7)
    too_low = 0
    for _ in range(200):
        exact = rng.uniform(0.2, 0.8, COUNT)
        sampled, _ = samples(rng, exact, 0.02, is_correlated=True)
        other, true = near(rng, exact, 0.04)
        too_low += choose_estimate([others(other, 1e-5), sampled], SIZES).error < true / 3
    assert too_low <= 20


@pytest.mark.parametrize("is_correlated", [False, True])
@pytest.mark.parametrize("weights", [np.full(FOLDS, 1 / FOLDS), np.arange(1, FOLDS + 1) / 36])
def test_measured_distances_are_unbiased_and_tell_their_noise(is_correlated, weights):
    rng = np.random.default_rng(8)
    exact = rng.uniform(0.3, 0.7, COUNT)
    other = others(*near(rng, exact, 0.01)).estimate
    measures = []
    for _ in range(1000):
        sampled, _ = samples(rng, exact, 0.02, is_correlated=is_correlated, weights=weights)
        measures.append(_squared_distance(other, sampled.estimate, SIZES))
    squares, deviations = np.array(measures).T
    standard_error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - other.error**2) < 4 * standard_error + 0.02 * other.error**2
    assert 0.6 < np.median(deviations) / squares.std() < 1.6 or (is_correlated and np.median(deviations) > 0)


@pytest.mark.parametrize("seed", range(5))
def test_rare_states_without_samples_are_no_error_of_another_estimate(seed):
    rng, probability, draws = np.random.default_rng(seed), 0.003, 15
    exact = np.full(COUNT, probability)
    folds = rng.binomial(draws, probability, (FOLDS, COUNT)) / draws
    folds = np.stack([folds, 1 - folds], axis=-1).reshape(FOLDS, -1)
    weights = np.full(FOLDS, 1 / FOLDS)
    shares = weights @ folds
    error = np.full(COUNT, hellinger_distances(shares, shares_of(exact), SIZES).mean())
    estimate = SumEstimate("samples", 0.0, 0.1, shares, error, SampleFolds(weights, weights[:, None] * folds))
    other, _ = near(rng, exact, 0.0003)
    chosen = choose_estimate([others(other, 0.004, trust=3), Candidate(estimate, 3)], SIZES)
    assert chosen.shares is other
    assert chosen.error < 0.01


def test_samples_of_one_mode_are_contradicted_by_those_whose_sum_is_surer():
    rng = np.random.default_rng(9)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sure, noise = samples(rng, exact, 0.01, log_z_error=0.001)
    stuck, _ = samples(rng, np.roll(exact, 1), 1e-12, log_z_error=0.3)
    chosen = choose_estimate([stuck, sure, others(shares_of(np.roll(exact, 1)), 1e-9)], SIZES)
    assert chosen.shares is sure.estimate.shares
    assert chosen.error == pytest.approx(noise)


def test_one_fold_with_most_of_the_weight_measures_nothing():
    rng = np.random.default_rng(10)
    exact = rng.uniform(0.2, 0.8, COUNT)
    weights = np.array([0.93, *[0.01] * 7])
    sampled, _ = samples(rng, exact, 0.01, weights=weights)
    chosen = choose_estimate([sampled, others(near(rng, exact, 0.1)[0], 1e-6)], SIZES)
    assert chosen.error > 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_samples_and_an_estimate_that_is_as_good_are_averaged(seed):
    rng = np.random.default_rng(seed)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = samples(rng, exact, 0.02)
    other, true = near(rng, exact, 0.02)
    chosen = choose_estimate([others(other, 0.02), sampled], SIZES)
    distance = float(hellinger_distances(chosen.shares, shares_of(exact), SIZES).mean())
    assert distance < 0.9 * min(noise, true)
    assert distance / 2 < chosen.error < 2 * distance
    assert chosen.folds is None


def test_noise_does_not_choose_between_estimates_that_it_hides():
    """A reliable method's own error tells that it is closer; noise hides a distance of 0 in all but a few cases."""
    far_choices = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        exact = rng.uniform(0.2, 0.8, COUNT)
        sampled, _ = samples(rng, exact, 0.04)
        reliable = others(near(rng, exact, 1e-6)[0], 1e-6, trust=3)
        other = others(near(rng, exact, 0.004)[0], 0.004, trust=2)
        chosen = choose_estimate([other, reliable, sampled], SIZES)
        far_choices += float(hellinger_distances(chosen.shares, shares_of(exact), SIZES).mean()) > 1e-4
    assert far_choices <= 5


@pytest.mark.parametrize("seed", range(5))
def test_an_estimate_far_closer_than_samples_can_tell_is_not_averaged(seed):
    """Its limit is the samples' noise, though its distance is far below."""
    rng = np.random.default_rng(seed)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = samples(rng, exact, 0.04)
    other, _ = near(rng, exact, 1e-6)
    chosen = choose_estimate([others(other, 1e-6), sampled], SIZES)
    assert float(hellinger_distances(chosen.shares, shares_of(exact), SIZES).mean()) < 1e-4 * noise


def test_two_samples_of_similar_error_are_averaged():
    rng = np.random.default_rng(11)
    exact = rng.uniform(0.2, 0.8, COUNT)
    one, noise = samples(rng, exact, 0.02)
    another, _ = samples(rng, exact, 0.02)
    rough, _ = samples(rng, exact, 0.1)
    chosen = choose_estimate([one, another, rough], SIZES)
    assert float(hellinger_distances(chosen.shares, shares_of(exact), SIZES).mean()) < 0.85 * noise
    assert chosen.error == pytest.approx(noise / math.sqrt(2), rel=0.1)


def test_samples_stand_where_they_are_better():
    rng = np.random.default_rng(1)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = samples(rng, exact, 0.01)
    other, _ = near(rng, exact, 0.1)
    chosen = choose_estimate([others(other, 1e-6), sampled], SIZES)
    assert (chosen.method, chosen.error) == ("samples", pytest.approx(noise))


def test_a_reliable_error_stands_for_what_samples_cannot_tell():
    """The error of another method is then at least its distance from the reliable one."""
    rng = np.random.default_rng(15)
    far_off = 0
    for _ in range(50):
        exact = rng.uniform(0.2, 0.8, COUNT)
        sampled, _ = samples(rng, exact, 0.04)
        reliable, true = near(rng, exact, 1e-5)
        other, distance = near(rng, exact, 1e-3)
        chosen = choose_estimate([others(reliable, true, trust=3), sampled], SIZES)
        far_off += chosen.error > 3 * true
        chosen = choose_estimate([others(other, 1e-9), others(reliable, true, trust=3)], SIZES)
        assert chosen.shares is reliable
        chosen = choose_estimate([others(other, 1e-9), sampled, others(shares_of(exact + 0.2), 0.2, trust=3)], SIZES)
        assert chosen.error > distance
    assert far_off <= 5


def test_what_samples_cannot_tell_is_between_their_limit_and_the_statement():
    rng = np.random.default_rng(2)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = samples(rng, exact, 0.04)
    other, _ = near(rng, exact, 1e-4)
    chosen = choose_estimate([others(other, 1e-4), sampled], SIZES)
    assert chosen.method == "others"
    assert 1e-4 < chosen.error < noise


@pytest.mark.parametrize(
    ("error", "log_z_error", "method"), [(0.02, 0.1, "others"), (0.02, 2.0, "samples"), (0.2, 0.1, "samples")]
)
def test_samples_that_miss_most_of_the_sum_are_refuted(error, log_z_error, method):
    """A sure and larger sum refutes samples whose weights differ too much; one that is not sure does not.

    The sum of an estimate with errors of 0.2 in all marginals is not sure.
    """
    rng = np.random.default_rng(3)
    other = shares_of(rng.uniform(0, 1, COUNT))
    sampled, _ = samples(rng, rng.uniform(0.2, 0.8, COUNT), 0.05, log_z_error=0.6)
    assert choose_estimate([others(other, error, 3.0, log_z_error), sampled], SIZES).method == method


@pytest.mark.parametrize(
    ("trust", "log_z_error", "method"), [(2, 0.1, "samples"), (3, 0.1, "others"), (3, 0.4, "samples")]
)
def test_a_reliable_and_surer_sum_refutes_samples_of_similar_weights(trust, log_z_error, method):
    """Chains that have not left their modes agree on a sum that is too small."""
    rng = np.random.default_rng(13)
    other = shares_of(rng.uniform(0, 1, COUNT))
    sampled, _ = samples(rng, rng.uniform(0.2, 0.8, COUNT), 0.05, log_z_error=0.3)
    assert choose_estimate([others(other, 0.01, 3.0, log_z_error, trust), sampled], SIZES).method == method


@pytest.mark.parametrize(("quotient", "method"), [(0.6, "others"), (4.0, "samples")])
def test_samples_of_very_different_weights_are_not_trusted_more_than_other_methods(quotient, method):
    rng = np.random.default_rng(18)
    sampled, noise = samples(rng, rng.uniform(0.2, 0.8, COUNT), 0.1, log_z_error=1.4)
    other = others(sampled.estimate.shares, quotient * noise, trust=2)
    assert choose_estimate([other, sampled], SIZES).method == method


def test_samples_of_a_larger_sum_refute_others():
    """Sums of samples are unbiased: those that miss a part have smaller sums, whatever error they state."""
    rng = np.random.default_rng(16)
    exact = rng.uniform(0.2, 0.8, COUNT)
    missing, _ = samples(rng, np.roll(exact, 1), 0.01, log_z=-9.0, log_z_error=0.9)
    found, _ = samples(rng, exact, 0.1, log_z_error=1.0)
    assert choose_estimate([missing, found], SIZES).shares is found.estimate.shares
    unsure = Candidate(missing.estimate._replace(log_z_error=4.0), 3)
    assert choose_estimate([unsure, found], SIZES).shares is missing.estimate.shares


def test_even_samples_are_not_refuted():
    rng = np.random.default_rng(4)
    other = shares_of(rng.uniform(0, 1, COUNT))
    sampled, _ = samples(rng, rng.uniform(0.2, 0.8, COUNT), 0.05)
    assert choose_estimate([others(other, 0.001, 3.0, 0.1), sampled], SIZES).method == "samples"


def test_without_samples_trust_decides_between_contradictions():
    rng = np.random.default_rng(5)
    one, other = shares_of(rng.uniform(0, 1, COUNT)), shares_of(rng.uniform(0, 1, COUNT))
    chosen = choose_estimate([others(one, 0.001, trust=1), others(other, 0.001, trust=2)], SIZES)
    assert chosen.shares is other
    assert chosen.error > 0.05


def test_the_error_of_a_less_reliable_method_is_at_least_its_distance_from_a_reliable_one():
    """Two methods agree far better than the reliable one states, so both are probably that close to the truth."""
    rng = np.random.default_rng(17)
    exact = rng.uniform(0.2, 0.8, COUNT)
    (quick, _), (reliable, _) = near(rng, exact, 0.001), near(rng, exact, 0.001)
    distance = hellinger_distances(quick, reliable, SIZES).mean()
    chosen = choose_estimate([others(quick, 1e-7), others(reliable, 20 * distance, trust=3)], SIZES)
    assert chosen.shares is quick
    assert chosen.error == pytest.approx(distance)
    chosen = choose_estimate([others(quick, 1e-7), others(reliable, 2.5 * distance, trust=3)], SIZES)
    assert chosen.shares is reliable
    assert chosen.error == pytest.approx(2.5 * distance)


def test_equal_doubts_leave_the_choice_to_the_methods_own_figures():
    rng = np.random.default_rng(12)
    one, other = shares_of(rng.uniform(0, 1, COUNT)), shares_of(rng.uniform(0, 1, COUNT))
    pair = [others(one, 0.02, trust=2), others(other, 0.01, trust=2)]
    for rows in (pair, pair[::-1]):
        assert choose_estimate(rows, SIZES).shares is other


def test_a_sum_of_zero_stands():
    zero = Candidate(SumEstimate("others", -math.inf, 0.0), 1)
    rng = np.random.default_rng(6)
    sampled, _ = samples(rng, rng.uniform(0.2, 0.8, COUNT), 0.01)
    assert choose_estimate([sampled, zero], SIZES).log_z == -math.inf
    assert choose_estimate([], SIZES) is None


def test_an_uncertain_sum_makes_marginals_uncertain():
    """Two methods agree on the marginals; the sum of one has changed by two for each variable."""
    shares = shares_of(np.full(COUNT, 0.5))
    unsure, sure = others(shares, 1e-3, log_z_error=2.0 * COUNT), others(shares, 2e-3)
    assert choose_estimate([unsure], SIZES).error == pytest.approx(0.5)
    assert choose_estimate([unsure, sure], SIZES).error == pytest.approx(2e-3)
    unknown = others(shares, 1e-3, log_z_error=math.inf)
    assert choose_estimate([unknown], SIZES).error == pytest.approx(1e-3)
