"""Intervals of the mean of weights: their level with heavy tails, at any time, and their width."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.methods.weight_statistics import LEVEL, WeightStatistics

RUNS = 200
MISSES = 20
"""More than 5 % of 200 intervals, exceeded once in 1,000 tests (binomial distribution)."""


def _tails(rng: np.random.Generator, kind: str, count: int) -> tuple[np.ndarray, float]:
    """Return weights from 0 to 1, and their expectation."""
    if kind == "rare":
        return (rng.random(count) < 0.001).astype(float), 0.001
    if kind == "heavy":
        # Powers of a uniform number: the mean is made by a few large ones.
        return rng.random(count) ** 40, 1 / 41
    if kind == "log":
        logs = rng.integers(-30, 1, count)
        return np.exp(logs), float(np.exp(np.arange(-30, 1)).mean())
    return rng.random(count), 0.5


@pytest.mark.parametrize("kind", ["rare", "heavy", "log", "even"])
def test_intervals_cover_at_their_level_at_any_time(kind):
    misses = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        statistics = WeightStatistics()
        is_missed = False
        for count in (20, 60, 200, 500):
            weights, mean = _tails(rng, kind, count)
            with np.errstate(divide="ignore"):
                statistics.add(np.log(weights))
            low, high, _ = statistics.interval(0.0)
            is_missed |= not low <= math.log(mean) <= high
        misses += is_missed
    assert misses <= MISSES


@pytest.mark.parametrize("kind", ["heavy", "log", "even"])
def test_intervals_shrink(kind):
    widths = []
    rng, statistics = np.random.default_rng(0), WeightStatistics()
    for count in (100, 1000, 10_000, 100_000):
        statistics.add(np.log(_tails(rng, kind, count)[0]))
        low, high, _ = statistics.interval(0.0)
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2] > widths[3]
    # Seven standard errors on both sides, and rounding to bins.
    assert widths[3] < 14 * statistics.log_error + 0.003


def test_without_a_bound_there_is_a_lower_end():
    statistics = WeightStatistics()
    statistics.add(np.log(np.random.default_rng(1).random(1000)) + 700)
    low, high, _ = statistics.interval(math.inf)
    assert 699 < low < 700 + math.log(0.5) < high == math.inf


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.floats(-900, 900), st.just(-math.inf)), min_size=1, max_size=40))
def test_sums_in_batches(logs):
    logs = np.array(logs)
    statistics = WeightStatistics()
    for batch in np.array_split(logs, 3):
        statistics.add(batch)
    peak = logs.max()
    if peak == -math.inf:
        assert statistics.log_mean == -math.inf
        assert statistics.effective_size == 0
        assert statistics.interval(0.0).low == -math.inf
        return
    weights = np.exp(logs - peak)
    assert statistics.count == len(logs)
    assert statistics.log_mean == pytest.approx(peak + math.log(weights.mean()), rel=1e-12, abs=1e-12)
    assert statistics.effective_size == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-12)
    low, high, _ = statistics.interval(peak)
    assert low <= statistics.log_mean <= high + 1e-9
    assert high <= peak + 1e-9


def test_one_sample():
    statistics = WeightStatistics()
    statistics.add(np.array([-3.0]))
    low, high, _ = statistics.interval(0.0)
    # Markov's inequality: the mean is hardly ever below a fortieth of one weight.
    assert low < -3 + math.log((1 - LEVEL) / 2)
    assert -0.01 < high <= 0
    # How much weights differ takes two.
    assert statistics.log_error == math.inf
    statistics.add(np.array([-3.0]))
    assert statistics.log_error == 0


def test_a_single_large_weight_counts_as_uncertain():
    statistics = WeightStatistics()
    statistics.add(np.array([0.0, *([-50.0] * 999)]))
    assert statistics.log_error > 1


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.8, 1.2])
def test_the_shape_of_the_tail_is_that_of_a_pareto_distribution(shape):
    shapes = []
    for seed in range(20):
        statistics = WeightStatistics()
        for logs in shape * np.random.default_rng(seed).exponential(size=(4, 5000)):
            statistics.add(logs)
        shapes.append(statistics.tail_shape)
    assert abs(np.mean(shapes) - shape) < 0.1
    assert max(np.abs(np.array(shapes) - shape)) < 0.4


@pytest.mark.parametrize("kind", ["log", "even"])
def test_the_tail_of_bounded_weights_is_light(kind):
    statistics = WeightStatistics()
    statistics.add(np.log(_tails(np.random.default_rng(0), kind, 1000)[0]))
    assert not statistics.tail_shape > 0.5


def test_few_or_equal_weights_have_no_tail():
    for logs in (np.zeros(0), np.zeros(1000), np.full(1000, -math.inf), np.arange(20.0)):
        statistics = WeightStatistics()
        statistics.add(logs)
        assert math.isnan(statistics.tail_shape)


@given(st.lists(st.integers(-2000, 0), min_size=1, max_size=20), st.integers(1, 300), st.integers(0, 2**32))
def test_any_weights_have_a_tail_shape_or_none(levels, count, seed):
    statistics = WeightStatistics()
    statistics.add(np.random.default_rng(seed).choice(np.array(levels, dtype=float), count))
    assert math.isnan(statistics.tail_shape) or math.isfinite(statistics.tail_shape)
