"""Samples of models against their joint distribution: exact, from networks, weighted, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import elimina
from elimina import ImpossibleEvidenceError, InputError, MemoryLimitError, Model, Options, TimeLimitError
from elimina.io.cases import read_cases
from elimina.methods import model_sampling
from elimina.methods.proposals import mini_bucket_plan
from tests.methods.test_junction_tree import joint, random_evidence, random_model

COUNT = 20_000


def _check_frequencies(indices: np.ndarray, expected: np.ndarray) -> None:
    """Chi-square of all joint values; a right sampler exceeds the bound once in some 10^6 seeds."""
    found = np.zeros(expected.shape)
    np.add.at(found, tuple(indices.T), 1)
    assert (found[expected == 0] == 0).all()
    expected = expected / expected.sum() * len(indices)
    often = expected >= 5
    pairs = [(found[often], expected[often]), (found[~often].sum(), expected[~often].sum())]
    terms = [((f - e) ** 2 / np.maximum(e, 5)).sum() for f, e in pairs]
    freedom = int(often.sum())
    assert sum(terms) < freedom + 5 * math.sqrt(2 * max(freedom, 1)) + 12


def _network(rng: np.random.Generator, count: int = 6) -> Model:
    """A random network; half of its tables have zeros."""
    sizes = [int(size) for size in rng.integers(1, 4, count)]
    factors = []
    for v in range(count):
        parents = [int(u) for u in rng.permutation(v)[: rng.integers(0, 3)]]
        shape = [sizes[u] for u in (*parents, v)]
        table = rng.random(shape) * (rng.random(shape) >= 0.2 * (v % 2)) + 1e-9
        factors.append(((*parents, v), table / table.sum(axis=-1, keepdims=True)))
    # Children come before parents, too.
    turned = [int(v) for v in rng.permutation(count)]
    moved = [([turned[v] for v in scope], table) for scope, table in factors]
    return Model.from_arrays(
        [sizes[turned.index(v)] for v in range(count)], moved, sense="probability", children=turned
    )


def _grid(rows: int, coupling: float, seed: int) -> Model:
    rng = np.random.default_rng(seed)
    factors = [((v,), np.exp(0.3 * rng.normal(size=2))) for v in range(rows * rows)]
    for v in range(rows * rows):
        for u in [v + rows] * (v + rows < rows * rows) + [v + 1] * ((v + 1) % rows > 0):
            weight = coupling * rng.normal()
            factors.append(((v, u), np.exp([[weight, -weight], [-weight, weight]])))
    return Model.from_arrays([2] * (rows * rows), factors, sense="probability")


@pytest.mark.parametrize("seed", range(12))
def test_exact_samples(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, zeros=0.2)
    evidence, weights = random_evidence(rng, model)
    expected = joint(model, weights)
    if expected.sum() == 0:
        with pytest.raises(ImpossibleEvidenceError, match=r"probability 0|sum is 0"):
            elimina.sample(model, 5, evidence=evidence)
        return
    samples = elimina.sample(model, COUNT, evidence=evidence, seed=seed, options=Options(exact=True))
    assert samples.is_exact
    assert samples.effective_size == samples.count == COUNT
    assert (samples.log_weights == 0).all()
    assert samples.log10_z == pytest.approx(math.log10(expected.sum()), abs=1e-9)
    _check_frequencies(samples.indices, expected)


@pytest.mark.parametrize("seed", range(12))
def test_networks_with_and_without_evidence(seed):
    rng = np.random.default_rng(seed)
    model = _network(rng)
    _check_frequencies(elimina.sample(model, COUNT, seed=seed).indices, joint(model, {}))
    evidence, weights = random_evidence(rng, model)
    expected = joint(model, weights)
    samples = elimina.sample(model, COUNT, evidence=evidence, seed=seed)
    assert samples.log10_z == pytest.approx(math.log10(expected.sum()), abs=1e-9)
    _check_frequencies(samples.indices, expected)


def test_a_wide_network_without_evidence_below_is_exact_in_little_memory():
    rng = np.random.default_rng(0)
    factors = []
    for v in range(120):
        parents = [int(u) for u in rng.permutation(v)[:3]]
        table = rng.random([2] * (len(parents) + 1)) + 0.1
        factors.append(((*parents, v), table / table.sum(axis=-1, keepdims=True)))
    model = Model.from_arrays([2] * 120, factors, sense="probability", children=range(120))
    samples = elimina.sample(model, 2000, evidence={"x0": 1}, seed=1, memory="2MiB")
    assert samples.is_exact
    assert (samples["x0"] == 1).all()
    assert samples["x1"].mean() == pytest.approx(factors[1][1][1, 1], abs=0.06)


@pytest.mark.parametrize("method", ["mini-buckets", "network"])
def test_weighted_samples(method, monkeypatch):
    """Marginals and the sum by weights, from proposals that are not exact."""
    model = _grid(6, 0.5, 3) if method == "mini-buckets" else _network(np.random.default_rng(5), 12)
    evidence = {} if method == "mini-buckets" else {v.name: 0 for v in model.variables[:4]}
    answer = elimina.solve(model, "mar", evidence=evidence)
    truth = elimina.solve(model, "pr", evidence=evidence).log10_z
    monkeypatch.setattr(model_sampling, "_EXACT_SHARE", -1.0)
    monkeypatch.setattr(model_sampling, "mini_bucket_plan", _small if method == "mini-buckets" else _refused)
    samples = elimina.sample(model, COUNT, evidence=evidence, seed=4, options=Options(threads=1), time_limit=60)
    assert samples.log10_z == pytest.approx(truth, abs=0.02)
    assert not samples.is_exact
    assert 100 < samples.effective_size <= COUNT
    assert samples.weights.sum() == pytest.approx(1)
    slack = 5 / math.sqrt(samples.effective_size)
    for v in model.variables:
        shares = np.bincount(samples.indices[:, model.index(v.name)], weights=samples.weights, minlength=v.size)
        assert shares == pytest.approx(np.array(list(answer.marginals[v.name].values())), abs=slack)


def _small(problem, order, options, memory, seconds):
    return mini_bucket_plan(problem, order, replace(options, ibound=2), memory, seconds)


def _refused(*_):
    raise MemoryLimitError("mini-buckets do not fit")


def test_particle_filters_where_weights_differ_much():
    model = _grid(12, 1.5, 1)
    truth = elimina.solve(model, "pr").log10_z
    samples = elimina.sample(model, 3001, seed=1, memory="2MiB", options=Options(threads=1))
    assert not samples.is_exact
    assert samples.indices.shape == (3001, 144)
    assert 1 < samples.effective_size < 3001
    assert samples.log10_z == pytest.approx(truth, abs=0.5)
    with pytest.raises(MemoryLimitError, match=r"exact samples need .* more memory \(memory\), or take weighted"):
        elimina.sample(model, 3001, memory="2MiB", options=Options(exact=True))


def test_seeds_threads_and_batches():
    model = _grid(5, 0.3, 2)
    first = elimina.sample(model, 5000, seed=3, options=Options(threads=1))
    assert (elimina.sample(model, 5000, seed=3, options=Options(threads=3)).indices == first.indices).all()
    assert (elimina.sample(model, 700, seed=3).indices == first.indices[:700]).all()
    assert (elimina.sample(model, 5000, seed=4).indices != first.indices).any()
    assert (elimina.sample(model, 50).indices != elimina.sample(model, 50).indices).any()


def test_states_frames_and_files(tmp_path):
    pandas = pytest.importorskip("pandas")
    variables = [
        elimina.Variable("wet, or dry", 2, ["wet", "dry"]),
        elimina.Variable("n", 3),
        elimina.Variable("one", 1),
    ]
    table = elimina.Table([0, 1], np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 4.0]]))
    samples = elimina.sample(Model(variables, [table], sense="probability"), 50, seed=1)
    assert list(samples) == ["wet, or dry", "n", "one"]
    assert len(samples) == 3
    assert set(samples["wet, or dry"]) == {"wet", "dry"}
    assert samples["n"].dtype == np.int64
    assert (samples["one"] == 0).all()
    assert "50, exact" in repr(samples)
    frame = samples.to_frame()
    assert list(frame.columns) == list(samples)
    samples.save(tmp_path / "samples.csv.gz")
    columns, codes = read_cases(tmp_path / "samples.csv.gz", Model(variables, [table], sense="probability"))
    assert [variables[v].name for v in columns] == list(samples)
    assert (codes == samples.indices).all()
    assert pandas.read_csv(tmp_path / "samples.csv.gz")["n"].tolist() == samples["n"].tolist()
    with pytest.raises(InputError, match=r"written to \.csv"):
        samples.save(tmp_path / "samples.json")
    assert json.loads(samples.to_json())["states"]["n"] == samples["n"].tolist()


def test_no_samples_and_no_variables():
    model = _grid(3, 1.0, 1)
    samples = elimina.sample(model, 0)
    assert samples.indices.shape == (0, 9)
    assert samples.weights.shape == (0,)
    empty = elimina.sample(Model([], [elimina.Table((), np.array(0.5))], sense="probability"), 3)
    assert empty.indices.shape == (3, 0)
    assert empty.log10_z == pytest.approx(math.log10(0.5))


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"count": -1}, InputError, "count is -1; it must be at least 0"),
        ({"count": 2.5}, TypeError, "count"),
        ({"count": 10**12}, MemoryLimitError, "draw fewer at a time"),
        ({"count": 5, "seed": -1}, InputError, "seed is -1"),
        ({"count": 5, "options": Options(exact=1)}, TypeError, "True or False"),
        ({"count": 5, "options": Options(method="mbe")}, InputError, "does not take the option method"),
        ({"count": 5, "evidence": {"x99": 0}}, InputError, "x99"),
        ({"count": 5, "time_limit": 1e-9}, TimeLimitError, "time limit"),
    ],
)
def test_what_is_refused(arguments, error, problem):
    with pytest.raises(error, match=problem):
        elimina.sample(_grid(3, 1.0, 1), **arguments)


def test_costs_have_no_samples():
    with pytest.raises(InputError, match="samples are drawn from probabilities"):
        elimina.sample(Model.from_arrays([2], [((0,), [1, 2])]), 5)
