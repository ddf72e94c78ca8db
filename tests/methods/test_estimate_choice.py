"""Choice among estimates: errors measured against samples, and samples that missed most of the sum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elimina.methods.estimate_choice import Candidate, choose_estimate
from elimina.methods.sum_estimate import SumEstimate, hellinger_distances

COUNT = 400
SIZES = np.full(COUNT, 2)


def shares_of(first: np.ndarray) -> np.ndarray:
    return np.stack([first, 1 - first], axis=1).reshape(-1)


def near(rng: np.random.Generator, exact: np.ndarray, deviation: float) -> tuple[np.ndarray, float]:
    """Marginals at a random distance from others, and the root of its mean square."""
    shares = shares_of(np.clip(exact + deviation * rng.normal(size=COUNT), 1e-9, 1 - 1e-9))
    return shares, float(np.sqrt(np.square(hellinger_distances(shares, shares_of(exact), SIZES)).mean()))


def candidate(shares: np.ndarray, error: float, log_z: float = 0.0, log_z_error: float = 0.01, **kind) -> Candidate:
    errors = np.full(COUNT, error)
    name = "samples" if kind.get("is_sampled") else "others"
    return Candidate(
        SumEstimate(name, log_z, log_z_error, shares, errors), kind.get("trust", 1), kind.get("is_sampled", False)
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stated", [1e-5, 0.3])
def test_an_error_is_measured_by_samples_whatever_a_method_says(seed, stated):
    rng = np.random.default_rng(seed)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = near(rng, exact, 0.04)
    other, true = near(rng, exact, 0.03)
    chosen = choose_estimate([candidate(other, stated), candidate(sampled, noise, is_sampled=True)], SIZES)
    assert chosen.method == "others"
    assert true / 2 < chosen.error < 2 * true


def test_samples_stand_where_they_are_better():
    rng = np.random.default_rng(1)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = near(rng, exact, 0.01)
    other, _ = near(rng, exact, 0.1)
    chosen = choose_estimate([candidate(other, 1e-6), candidate(sampled, noise, is_sampled=True)], SIZES)
    assert (chosen.method, chosen.error) == ("samples", pytest.approx(noise))


def test_what_samples_cannot_tell_is_between_their_limit_and_the_statement():
    rng = np.random.default_rng(2)
    exact = rng.uniform(0.2, 0.8, COUNT)
    sampled, noise = near(rng, exact, 0.04)
    other, _ = near(rng, exact, 1e-4)
    chosen = choose_estimate([candidate(other, 1e-4), candidate(sampled, noise, is_sampled=True)], SIZES)
    assert chosen.method == "others"
    assert 1e-4 < chosen.error < noise


@pytest.mark.parametrize(("log_z", "log_z_error", "method"), [(3.0, 0.1, "others"), (3.0, 2.0, "samples")])
def test_samples_that_miss_most_of_the_sum_are_refuted(log_z, log_z_error, method):
    """A sure and larger sum refutes samples whose weights differ too much; one that is not sure does not."""
    rng = np.random.default_rng(3)
    sampled, other = shares_of(rng.uniform(0, 1, COUNT)), shares_of(rng.uniform(0, 1, COUNT))
    candidates = [candidate(other, 0.2, log_z, log_z_error), candidate(sampled, 0.05, 0.0, 0.6, is_sampled=True)]
    assert choose_estimate(candidates, SIZES).method == method


def test_even_samples_are_not_refuted():
    rng = np.random.default_rng(4)
    sampled, other = shares_of(rng.uniform(0, 1, COUNT)), shares_of(rng.uniform(0, 1, COUNT))
    candidates = [candidate(other, 0.001, 3.0, 0.1), candidate(sampled, 0.05, 0.0, 0.01, is_sampled=True)]
    assert choose_estimate(candidates, SIZES).method == "samples"


def test_without_samples_trust_decides_between_contradictions():
    rng = np.random.default_rng(5)
    one, other = shares_of(rng.uniform(0, 1, COUNT)), shares_of(rng.uniform(0, 1, COUNT))
    chosen = choose_estimate([candidate(one, 0.001, trust=1), candidate(other, 0.001, trust=2)], SIZES)
    assert chosen.shares is other
    assert chosen.error > 0.05


def test_a_sum_of_zero_stands():
    zero = Candidate(SumEstimate("others", -math.inf, 0.0), 1, False)
    rng = np.random.default_rng(6)
    sampled = candidate(shares_of(rng.uniform(0, 1, COUNT)), 0.01, is_sampled=True)
    assert choose_estimate([sampled, zero], SIZES).log_z == -math.inf
    assert choose_estimate([], SIZES) is None
