"""References and criteria of the benchmark of estimates, against joint sums, exact answers and figures by hand."""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import time
from pathlib import Path

import numpy as np
import pytest

import elimina

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


def test_transfer_matrices_of_a_grid(bench):
    ising = bench("ising")
    grid = ising.random_grid(3, 4, seed=3)
    weights = np.zeros((2, 12))
    total = 0.0
    for spins in itertools.product((1, -1), repeat=12):
        s = np.array(spins).reshape(3, 4)
        energy = (
            (grid.fields * s).sum() + (grid.right * s[:, :-1] * s[:, 1:]).sum() + (grid.down * s[:-1] * s[1:]).sum()
        )
        total += math.exp(energy)
        weights[(1 - np.array(spins)) // 2, range(12)] += math.exp(energy)
    assert ising.log10_z(grid, 3) == pytest.approx(math.log10(total), rel=1e-12)
    for row in range(3):
        shares = ising.row_shares(grid, row, 3)
        assert shares == pytest.approx(weights[0, 4 * row : 4 * row + 4] / total, rel=1e-12)


def test_strips_approach_the_exact_answer(bench):
    ising = bench("ising")
    grid = ising.random_grid(12, 9)
    exact = elimina.solve(ising.model_of(grid), "mar")
    errors = [abs(ising.log10_z(grid, height) - exact.log10_z) for height in (3, 6, 9, 12)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-9
    shares = ising.named(ising.row_shares(grid, 5, 12), 5)
    assert len(shares) == 9
    for name, probabilities in shares.items():
        assert probabilities == pytest.approx(list(exact.marginals[name].values()), rel=1e-9)


@pytest.mark.parametrize("observed", [0, 5])
def test_samples_of_a_network_approach_the_exact_answer(bench, observed):
    instances, estimates = bench("approximate_instances"), bench("estimates")
    model, evidence = instances.build_network(30, observed)
    exact = elimina.solve(model, "mar", evidence=evidence)
    reference = instances.network_reference(30, observed)
    assert len(reference.shares) == 30 - observed
    assert reference.log10_z == pytest.approx(exact.log10_z, abs=0.01)
    distances = [
        estimates.hellinger(probabilities, list(exact.marginals[name].values()))
        for name, probabilities in reference.shares.items()
    ]
    assert max(distances) < 0.01


def test_hellinger_distances(bench):
    hellinger = bench("estimates").hellinger
    assert hellinger([1, 0], [0, 1]) == 1
    assert hellinger([0.5, 0.5], [0.5, 0.5]) == 0
    assert hellinger([1, 0], [0.5, 0.5]) == pytest.approx(math.sqrt(1 - math.sqrt(0.5)))


def sleeping_model() -> tuple[elimina.Model, dict]:
    time.sleep(60)
    return elimina.Model([], []), {}


def small_grid(side: int) -> tuple[elimina.Model, dict]:
    table = elimina.Table([0, 1], [[1.0, 2.0], [3.0, side]])
    return elimina.Model([elimina.Variable("a", 2), elimina.Variable("b", 2)], [table], sense="probability"), {"b": 0}


def test_a_question_is_answered_in_a_process(bench, monkeypatch):
    estimates = bench("estimates")
    answer = estimates.answer_of(estimates.Question(functools.partial(small_grid, 4), "mar", 5.0))
    assert (answer.status, answer.shares["a"]) == ("exact", [0.25, 0.75])
    assert answer.log10_z == pytest.approx(math.log10(4))
    monkeypatch.setattr(estimates, "BUILD_SECONDS", 0.1)
    answer = estimates.answer_of(estimates.Question(sleeping_model, "mar", 5.0))
    assert (answer.status, answer.message) == ("no answer", "not ready in time")


def run_of(bench, mean: float | None, stated: float | None = None, name: str = "x", **answer):
    approximate, estimates = bench("approximate"), bench("estimates")
    instances = bench("approximate_instances")
    peers = (
        instances.Peer("dai-BP", 0.2, 0.3, 1.0),
        instances.Peer("mer-WMB 8", 0.1, 0.5, 2.0),
    )
    instance = instances.Instance(name, "f", "mar", None, None, peers)
    return approximate.Run(
        instance,
        "auto",
        3.0,
        estimates.Answer("estimated", error=stated, **answer),
        estimates.Distance(mean, mean, mean),
        estimates.Reference({}, 5.0, ""),
    )


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("mean distance at most that of the best peer", [(0.1, True), (0.11, False), (None, False)]),
        ("mean distance at most half of that", [(0.05, True), (0.06, False)]),
        ("mean distance at most twice that of BP", [(0.4, True), (0.41, False)]),
        ("error of log10 Z at most that of the best peer", [(1.0, True), (1.1, False), (None, False)]),
        ("error of log10 Z at most twice that of BP", [(2.0, True), (2.1, False)]),
    ],
)
def test_criteria_compare_with_peers(bench, text, runs):
    criterion = next(criterion for criterion in bench("approximate").CRITERIA if criterion.text == text)
    for mean, expected in runs:
        assert criterion.is_met(run_of(bench, mean)) is expected


def test_criteria_of_errors_and_bounds(bench):
    approximate = bench("approximate")
    assert approximate.is_stated_well(run_of(bench, 0.1, 0.034)) is True
    assert approximate.is_stated_well(run_of(bench, 0.1, 0.03)) is False
    assert approximate.is_stated_well(run_of(bench, 0.1)) is False
    assert approximate.holds_bounds(run_of(bench, 0.1, lower=4.0, upper=5.0)) is True
    assert approximate.holds_bounds(run_of(bench, 0.1, lower=5.1)) is False
    assert approximate.holds_bounds(run_of(bench, 0.1)) is None
    assert approximate.is_hard_one_solved(run_of(bench, 0.04)) is None
    assert approximate.is_hard_one_solved(run_of(bench, 0.04, name="Grids_11")) is True
    assert approximate.is_hard_one_solved(run_of(bench, 0.06, name="Grids_11")) is False
