"""Likelihoods and tables over the whole range of doubles: posteriors against exact rationals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import JunctionTree, Model, Table, Variable
from elimina.errors import ImpossibleEvidenceError
from elimina.methods.batch import Batch
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.evidence import with_leaves
from tests import calls
from tests.reference import brute
from tests.strategies.test_marginal_map import best_marginal

pytestmark = pytest.mark.usefixtures("planned")

EDGES = [0.0, 5e-324, 2e-310, 1e-300, 1e-170, 1e-123, 0.5, 1.0, 3.0, 1e123, 1e300, 1.5e308]
NUMBERS = st.sampled_from(EDGES) | st.floats(0.0, 1.7e308) | st.floats(1e-4, 1.0)


@st.composite
def extreme_models(draw) -> Model:
    """Few variables and factors, so that several likelihoods meet in one table."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    factors = []
    for _ in range(draw(st.integers(1, 4))):
        scope = draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=3, unique=True))
        shape = [sizes[v] for v in scope]
        values = NUMBERS if draw(st.booleans()) else st.sampled_from([0.0, 0.25, 0.5, 1.0])
        cells = draw(st.lists(values, min_size=math.prod(shape), max_size=math.prod(shape)))
        factors.append(Table(scope, np.reshape(cells, shape)))
    return Model([Variable(f"v{i}", size) for i, size in enumerate(sizes)], factors, sense="probability")


@st.composite
def likelihoods(draw, model: Model) -> dict[int, list[float]]:
    """Likelihoods of some variables."""
    which = draw(st.sets(st.integers(0, len(model.sizes) - 1)))
    return {v: draw(st.lists(NUMBERS, min_size=model.sizes[v], max_size=model.sizes[v])) for v in which}


def check_posteriors(tables, log10, expected, model, tolerance=1e-9):
    log, posteriors = expected
    assert log10 == pytest.approx(log / math.log(10), rel=tolerance, abs=tolerance)
    for name, table in tables.items():
        assert list(table) == pytest.approx(posteriors[model.index(name)], rel=0, abs=tolerance)


def test_the_product_of_likelihoods_in_one_table_underflows():
    model = Model.from_arrays({"a": 2, "b": 2}, [(["a", "b"], [[0.9, 0.1], [0.2, 0.8]])], sense="probability")
    tree = JunctionTree(model)
    tree.set_evidence({"a": [1e-170, 2e-170], "b": [3e-180, 1e-180]})
    assert tree.log10_evidence == pytest.approx(-349.2518119729937)
    assert tree.marginals()["a"] == pytest.approx([0.5, 0.5])


def test_a_loss_that_decides_is_seen():
    model = Model.from_arrays({"a": 2, "b": 2}, [(["a", "b"], [[0.5, 0.5], [0.5, 0.0]])], sense="probability")
    evidence = {"a": [1e-200, 1e-123], "b": [1e-200, 1.4e-123]}
    tree = JunctionTree(model)
    tree.set_evidence(evidence)
    for marginals in (tree.marginals(), {k: list(v.values()) for k, v in _mar(model, evidence).marginals.items()}):
        assert marginals["a"] == pytest.approx([7 / 12, 5 / 12])


@pytest.mark.parametrize("ratio", [5e-324, 1e-320])
def test_a_likelihood_ratio_below_every_float(ratio):
    """The only allowed state of `a` is as unlikely as a double can say."""
    model = Model.from_arrays({"a": 2, "b": 2}, [(["a", "b"], [[0.25, 0.75], [0.0, 0.0]])], sense="probability")
    result = _mar(model, {"a": [ratio, 1.7e308]})
    assert result.status != "infeasible"
    assert list(result.marginals["b"].values()) == pytest.approx([0.25, 0.75])
    assert result.log10_z == pytest.approx(math.log10(ratio))


@given(st.lists(NUMBERS, min_size=1, max_size=4))
def test_leaves_hold_a_likelihood(weights):
    """The leaves' probabilities times the constant are the likelihood, in exact terms but for the last digits."""
    model = Model([Variable("a", len(weights))], [], sense="probability")
    observed = with_leaves(model, {0: np.array(weights)})
    if 0 in observed.values:
        return
    for state, weight in enumerate(weights):
        tables = [table.values[state, 1] for table in observed.model.factors]
        assert all(0.0 <= value <= 1.0 for value in tables)
        if weight == 0:
            assert min(tables) == 0
        else:
            log = observed.model.constant + math.fsum(map(math.log, tables))
            assert log == pytest.approx(math.log(weight), rel=1e-12, abs=1e-12)


def _mar(model, evidence):
    return elimina.solve(model, "mar", evidence=evidence, device="cpu")


@settings(max_examples=300, deadline=None)
@given(extreme_models(), st.data())
def test_a_tree_with_any_likelihoods(model, data):
    """One after another, so that weights that are taken back leave nothing behind."""
    dtype = data.draw(st.sampled_from(["float64", "float64", "float32"]))
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    tree = calls.junction_tree(model, device="cpu", dtype=dtype)
    for _ in range(2):
        weights = data.draw(likelihoods(model))
        expected = brute.posteriors(model, weights)
        tree.set_evidence(weights)
        if expected[0] == -math.inf:
            assert tree.log10_evidence == -math.inf
            with pytest.raises(ImpossibleEvidenceError):
                tree.marginals()
            continue
        check_posteriors(tree.marginals(), tree.log10_evidence, expected, model, tolerance)
        joint = tree.joint([0])
        assert joint == pytest.approx(expected[1][0], rel=0, abs=tolerance)
        best = tree.max_marginals()
        for v, size in enumerate(model.sizes):
            logs = np.array([_best_with(model, weights, v, state) for state in range(size)])
            assert best[model.variables[v].name] == pytest.approx(
                np.exp(logs - logs.max()), rel=0, abs=max(tolerance, 1e-9)
            )


def _best_with(model, weights, variable, state):
    """The largest logarithm of a product with a state."""
    return max(
        model.score(a) + sum(math.log(w[a[v]]) if w[a[v]] > 0 else -math.inf for v, w in weights.items())
        for a in brute.assignments(model, {variable: state})
    )


@settings(max_examples=150, deadline=None)
@given(extreme_models(), st.data())
def test_tasks_with_any_likelihoods(model, data):
    weights = data.draw(likelihoods(model))
    expected = brute.posteriors(model, weights)
    log10 = expected[0] / math.log(10)
    assert elimina.solve(model, "pr", evidence=weights, device="cpu").log10_z == pytest.approx(
        log10, rel=1e-9, abs=1e-9
    )
    result = _mar(model, weights)
    if log10 == -math.inf:
        assert result.status == "infeasible"
    else:
        tables = {name: list(values.values()) for name, values in result.marginals.items()}
        check_posteriors(tables, result.log10_z, expected, model)
    weighed = Model(
        model.variables, [*model.factors, *(Table([v], w) for v, w in weights.items())], sense="probability"
    )
    best, _ = best_marginal(weighed, [0], {})
    found = elimina.solve(model, "mmap", query=[0], evidence=weights, device="cpu")
    if best == -math.inf:
        assert found.status == "infeasible"
    else:
        assert found.value == pytest.approx(best, rel=1e-9, abs=1e-9)
    best = brute.optimum(weighed)
    found = elimina.solve(model, "mpe", evidence=weights, device="cpu")
    assert (found.value is None) == (best is None)
    assert best is None or found.value == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(extreme_models(), st.data())
def test_batches_case_by_case_and_in_chunks(model, data):
    columns = data.draw(st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True))
    count = data.draw(st.integers(1, 3))
    cases = np.array(
        [[data.draw(st.integers(-1, model.sizes[v] - 1)) for v in columns] for _ in range(count)], np.int32
    )
    batch = Batch(model, columns, None, CheckedOptions("cpu", threads=1), count)
    for way in (None, *batch._ways):
        batch._choose = lambda values, way=way: way
        found = batch.run(cases)
        for n, case in enumerate(cases):
            weights = {v: np.eye(model.sizes[v])[x].tolist() for v, x in zip(columns, case, strict=True) if x >= 0}
            tables = {name: table[n] for name, table in found.marginals.items()}
            check_posteriors(tables, found.log10_evidence[n], brute.posteriors(model, weights), model)


@settings(max_examples=30, deadline=None)
@given(extreme_models(), st.data())
def test_samples_are_of_the_posterior(model, data):
    weights = data.draw(likelihoods(model))
    log, posteriors = brute.posteriors(model, weights)
    tree = JunctionTree(model, device="cpu")
    tree.set_evidence(weights)
    if log == -math.inf:
        return
    samples = tree.sample(2000, seed=1, indices=True)
    for v, posterior in enumerate(posteriors):
        shares = np.bincount(samples[:, v], minlength=model.sizes[v]) / len(samples)
        assert shares == pytest.approx(posterior, rel=0, abs=0.07)
        assert all(weights.get(v, [1.0] * model.sizes[v])[x] > 0 for x in set(samples[:, v].tolist()))
