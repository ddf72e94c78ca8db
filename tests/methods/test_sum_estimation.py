"""Estimates of sums and counts between hard bounds: many random models against brute force.

``ELIMINA_RANDOM_MODELS=5000`` runs as many models.
"""

from __future__ import annotations

import itertools
import math
import os
import time

import numpy as np
import pytest

from elimina import Interval, Model, Options, solve
from elimina.methods import message_sweeps, sum_estimation
from elimina.methods.bound_optimisation import BoundOptimisation
from elimina.methods.count_bounds import sum_of
from elimina.methods.join_graph_propagation import propagate
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.methods.sum_estimation import SumEstimation, combined, estimated_sum, surest
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from elimina.result import Result
from elimina.running.combination import combine
from tests.adversary.estimates import LEVEL, MEMORY_BYTES, OPTIONS, count, random_model, sampled
from tests.methods.test_generalised_belief_propagation import grid
from tests.methods.test_junction_tree import joint
from tests.seeds import run_seed

MODELS = int(os.environ.get("ELIMINA_RANDOM_MODELS", "150"))


def test_estimates_of_random_models():
    """Intervals cover at their level, bounds hold always, and sums of samples are unbiased."""
    assert not count(range(run_seed(), run_seed() + MODELS)).defects


def test_estimates_beside_bounds():
    """An estimate, its error and its interval stay between the bounds of the same answer."""
    for seed in range(run_seed(), run_seed() + 50):
        problem = prepare(random_model(seed), "pr", {})
        ticks = itertools.count()
        *_, bounds = BoundOptimisation(problem, OPTIONS, 1 << 20, 30, lambda ticks=ticks: next(ticks)).run()
        ends = [end / math.log(10) for end in (bounds.lower, bounds.upper)]
        answer = combine(estimated_sum(sampled(problem, seed), "pr"), Result("bounded", "pr", None, *ends), 1)
        check_between(answer, *ends)
        assert answer.log10_z - answer.error <= ends[1]


def check_between(answer: Result, lower: float, upper: float) -> None:
    """Check that an estimate keeps within bounds."""
    assert answer.status == "estimated"
    assert (answer.lower_bound, answer.upper_bound) == (lower, min(upper, answer.upper_bound))
    assert lower <= answer.log10_z <= answer.upper_bound
    assert lower <= answer.interval.low <= answer.interval.high <= answer.upper_bound
    assert 0 <= answer.error <= answer.upper_bound - lower


def test_stated_errors_of_random_models():
    """The error that an estimate states is seldom less than a third of the true one."""
    small, count = 0, max(30, MODELS // 10)
    for seed in range(count):
        model = random_model(seed)
        exact = math.log(joint(model, {}).sum())
        estimation = SumEstimation(prepare(model, "pr", {}), "pr", OPTIONS, 1 << 12)
        for answer in estimation.improve(time.monotonic() + 60):
            if answer.interval is not None:
                break
        best = estimation.estimate
        small += abs(best.log_z - exact) > 3 * best.log_z_error + 1e-9
    assert small <= 0.2 * count


def summed(log_z: float, error: float, interval: tuple[float, float] | None = None) -> SumEstimate:
    return SumEstimate("m", log_z, error, interval=None if interval is None else Interval(*interval, LEVEL))


def test_an_estimate_outside_the_interval_of_samples_is_refuted():
    samples = summed(5.0, 1.2, (4.0, 30.0))
    assert combined(summed(3.9, 0.01), samples) is samples
    assert combined(summed(31.0, 0.01), samples) is samples


def test_samples_confirm_an_estimate_no_closer_than_their_own_error():
    answer = combined(summed(6.0, 0.01), summed(5.0, 1.2, (4.0, 30.0)))
    assert (answer.log_z, answer.log_z_error) == (6.0, 1.2)
    assert combined(summed(9.0, 0.01), summed(5.0, 1.2, (4.0, 30.0))).log_z_error == pytest.approx(4.0 - 1.2)


def test_an_error_is_at_least_the_distance_from_the_closest_other_method():
    one, two, three = summed(5.0, 0.01), summed(5.3, 0.02), summed(9.0, 0.1)
    assert surest([one, three], 0.0).log_z_error == pytest.approx(4.0)
    chosen = surest([one, three, two], 0.0)
    assert (chosen.log_z, chosen.log_z_error) == (5.3, pytest.approx(0.3))


def test_an_error_that_allows_for_belief_propagation_is_unknown_without_another_one():
    assert surest([summed(5.0, math.inf)], 5.0).log_z_error == math.inf
    assert surest([summed(5.1, 0.2), summed(5.0, math.inf)], 5.0).log_z_error == math.inf
    assert surest([summed(5.1, 0.2), summed(5.0, 1e-6)], 5.0).log_z_error == pytest.approx(0.1)
    assert surest([summed(5.1, 0.2), summed(6.0, 0.5)], 5.0).log_z == 6.0
    assert surest([], 0.0) is None


def test_an_exact_estimate_stands():
    assert surest([summed(5.1, 0.2), summed(6.0, 0.0)], 6.0).log_z_error == 0


def test_a_stated_error_grows_with_the_reach_of_the_interval():
    errors = [summed(5.0, 1.2, (4.0, high)).stated_log_error for high in (6.0, 10.0, 30.0, 300.0)]
    assert errors[0] == 1.2
    assert errors == sorted(errors)
    assert errors[-1] > 3
    assert summed(5.0, 1.2).stated_log_error == 1.2
    assert summed(5.0, 0.0, (5.0, 5.0)).stated_log_error == 0
    assert summed(5.0, math.inf, (4.0, 9.0)).stated_log_error == math.inf


def spread(side: int, states: int, seed: int, kind: str) -> Model:
    """A grid of spins, of equal weights for different colours, or of random relations."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(side * side).reshape(side, side)
    edges = [*zip(numbers[:, :-1].flat, numbers[:, 1:].flat, strict=True)]
    edges += zip(numbers[:-1].flat, numbers[1:].flat, strict=True)
    tables = {
        "spins": lambda: np.exp(2 * rng.normal(size=(states, states))),
        "colours": lambda: 1 - np.eye(states),
        "relations": lambda: (rng.random((states, states)) > 0.2).astype(float),
    }
    return Model.from_arrays([states] * numbers.size, [(edge, tables[kind]()) for edge in edges], sense="probability")


@pytest.mark.parametrize("task", ["pr", "count"])
@pytest.mark.parametrize("kind", ["spins", "colours", "relations"])
@pytest.mark.parametrize("memory_bytes", [1 << 15, 1 << 19])
def test_no_interval_contradicts_the_stated_error(task, kind, memory_bytes):
    """The number lies in the interval, and the error is at least the samples' one: larger if their weights differ."""
    problem = prepare(spread(9, 3, 1, kind), task, {})
    estimation = SumEstimation(problem, task, OPTIONS, memory_bytes)
    for answer in estimation.improve(time.monotonic() + 2):
        if answer.interval is None:
            continue
        low, high, _ = answer.interval
        assert low <= answer.log10_z <= high
        samples = estimation._of_samples.log_z_error / math.log(10)
        assert answer.error >= samples - 1e-12
        if 0 < samples < math.inf:
            reach = max(answer.log10_z - low, high - answer.log10_z)
            assert answer.error >= 0.99 * (samples**3 * reach / 4) ** 0.25


@pytest.mark.parametrize("kind", ["spins", "colours", "relations"])
def test_posteriors_and_their_sum_have_one_interval_and_error(kind):
    answer = solve(spread(9, 3, 1, kind), "mar", device="cpu", memory="64KiB", time_limit=4, options=Options(threads=1))
    assert answer.status == "estimated"
    if answer.interval is not None:
        assert answer.interval.low <= answer.log10_z <= answer.interval.high
        assert answer.stats["log10_z_error"] > 0


def test_an_estimate_is_moved_between_the_bounds():
    estimate = Result(
        "estimated", "pr", log10_z=5.0, error=0.5, interval=Interval(4.0, 7.0, LEVEL), stats={"method": "m"}
    )
    bounds = Result("bounded", "pr", None, 1.0, 3.0, stats={"ibound": 2})
    for answer in (combine(estimate, bounds, 1), combine(bounds, estimate, 1)):
        assert (answer.status, answer.log10_z, answer.lower_bound, answer.upper_bound) == ("estimated", 3.0, 1.0, 3.0)
        assert answer.error == 2.0
        assert answer.interval == Interval(3.0, 3.0, LEVEL)
        assert answer.stats["method"] == "m"


def test_bounds_that_meet_are_the_answer():
    estimate = Result("estimated", "pr", log10_z=2.0, error=0.1)
    known = combine(estimate, Result("bounded", "pr", None, 2.5, 3.0), 1)
    assert combine(known, Result("bounded", "pr", None, 3.0, 3.5), 1).status == "exact"
    counted = Result("estimated", "count", log10_z=1.0, error=0.1)
    known = combine(counted, Result("bounded", "count", None, 3, 7), 1)
    assert known.log10_z == math.log10(7)
    assert combine(known, Result("bounded", "count", None, 7, 9), 1) == Result("exact", "count", 7, 7, 7)


def test_the_newer_estimate_stands():
    """Its error may be larger, because it shows that the older one was too sure."""
    sure, doubted = (Result("estimated", "pr", log10_z=2.0 + e, error=e) for e in (0.1, 0.5))
    assert combine(sure, doubted, 1).log10_z == 2.5
    assert combine(doubted, sure, 1).log10_z == 2.1


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_estimated(seed):
    rng = np.random.default_rng(seed)
    sizes = [3] * 6
    factors = [((u, v), (rng.random((3, 3)) > 0.2).astype(float)) for u, v in itertools.combinations(range(6), 2)]
    model = Model.from_arrays(sizes, factors, sense="probability")
    exact = int(joint(model, {}).sum())
    estimate = sampled(sum_of(prepare(model, "count", {})), seed)
    answer = combine(estimated_sum(estimate, "count"), Result("bounded", "count", None, 1, 3**6), 1)
    assert answer.value is None
    assert 10**answer.interval.low <= exact + 1e-9
    assert exact <= 10**answer.interval.high + 1e-9
    assert 0 <= answer.log10_z <= math.log10(3**6)


@pytest.mark.parametrize("task", ["pr", "count"])
def test_a_sum_of_zero_is_proven(task):
    model = Model.from_arrays([2, 2], [((0,), [1, 0]), ((0, 1), [[0, 0], [1, 1]])], sense="probability")
    estimation = SumEstimation(prepare(model, task, {}), task, OPTIONS, MEMORY_BYTES)
    *_, answer = estimation.improve(time.monotonic() + 60)
    assert (answer.status, answer.value) == (("infeasible", 0.0) if task == "pr" else ("exact", 0))


def test_propagation_on_colourings_does_not_claim_to_be_sure():
    """Larger join graphs change the sum ever more: the first changes are far smaller than the error."""
    problem = sum_of(prepare(spread(9, 3, 1, "colours"), "count", {}))
    exact = solve(spread(9, 3, 1, "colours"), "pr").log_z
    limits = Limits(time.monotonic() + 60, 1 << 18, 0)
    first: float | None = None
    for estimate in propagate(problem, OPTIONS, limits):
        first = estimate.log_z if first is None else first
        error = surest([estimate], first).log_z_error
        assert error > abs(estimate.log_z - exact) / 4


def test_a_large_model_is_estimated_before_its_join_graph_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_sweeps, "MIN_VARIABLES", 0)
    slow = [
        row._replace(method=row.method._replace(seconds_per_variable=1e3)) for row in sum_estimation.SUM_METHODS[1:]
    ]
    monkeypatch.setattr(sum_estimation, "SUM_METHODS", (sum_estimation.SUM_METHODS[0], *slow))
    problem = prepare(grid(3, 3, 0.5), "pr", {})
    estimation = SumEstimation(problem, "pr", CheckedOptions(device="cpu"), 1 << 28)
    first = next(estimation.improve(time.monotonic() + 60))
    assert (first.stats["method"], first.error) == (message_sweeps.METHOD, None)
    # Couplings of 0.5 make belief propagation nearly exact.
    assert first.log10_z == pytest.approx(solve(grid(3, 3, 0.5), "pr").log10_z, abs=0.2)
