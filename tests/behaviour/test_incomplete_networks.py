"""Networks where distributions are missing, barren or given twice: every task against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import elimina
from elimina import JunctionTree, Model, Table, Variable
from elimina.errors import ImpossibleEvidenceError
from elimina.methods.batch import Batch
from elimina.planning.checked_options import CheckedOptions
from tests.methods.test_marginals import as_evidence, check, weights_of
from tests.problem.test_relevance import networks
from tests.reference import brute
from tests.strategies.test_marginal_map import best_marginal


@st.composite
def incomplete(draw) -> Model:
    """A network without some of its distributions."""
    sizes, scopes, children, tables = draw(networks())
    which = [number for number in range(len(children)) if draw(st.sampled_from([False, True, True]))]
    return Model(
        [Variable(f"v{i}", size) for i, size in enumerate(sizes)],
        [Table(scopes[n], tables[n]) for n in which],
        sense="probability",
        constant=draw(st.sampled_from([0.0, -1.5])),
        children=[children[n] for n in which],
    )


def two_variables() -> Model:
    """A variable without a distribution, and one apart from it."""
    return Model([Variable("a", 3), Variable("b", 2)], [Table([1], [0.25, 0.75])], sense="probability", children=[1])


def barren_child() -> Model:
    """A variable without a distribution whose only child is barren, and one apart from both."""
    tables = [Table([1], [0.25, 0.75]), Table([0, 2], [[0.5, 0.5]] * 3)]
    return Model([Variable("a", 3), Variable("b", 2), Variable("c", 2)], tables, sense="probability", children=[1, 2])


@pytest.mark.parametrize("model", [two_variables(), barren_child()])
def test_states_of_a_variable_without_a_distribution_count(model):
    assert elimina.solve(model, "pr").value == pytest.approx(3)
    assert elimina.solve(model, "mar", query=["b"]).log10_z == pytest.approx(math.log10(3))
    assert elimina.solve(model, "mmap", query=["b"]).value == pytest.approx(math.log(2.25))


def test_a_batch_counts_the_states_of_a_variable_whose_children_are_barren():
    with_names = JunctionTree(barren_child()).batch({"b": [0, 1]}, names=["b"])
    assert with_names.log10_evidence == pytest.approx(np.log10([0.75, 2.25]))


def test_a_batch_asks_for_or_observes_a_variable_whose_children_are_barren():
    tree = JunctionTree(barren_child())
    assert tree.batch({"b": [0, 1]}, names=["a"]).marginals["a"] == pytest.approx(np.full((2, 3), 1 / 3))
    assert tree.batch({"b": [0, 1], "a": [1, 2]}, names=["b"]).log10_evidence == pytest.approx(np.log10([0.25, 0.75]))


@settings(max_examples=150, deadline=None)
@given(incomplete(), st.data())
def test_sums_and_posteriors(model, data):
    weights = data.draw(weights_of(model))
    evidence = as_evidence(weights)
    expected = brute.posteriors(model, weights)
    log10_z = expected[0] / math.log(10)
    assert elimina.solve(model, "pr", evidence=evidence).log10_z == pytest.approx(log10_z, abs=1e-9)
    check(model, elimina.solve(model, "mar", evidence=evidence), expected)
    query = data.draw(st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True))
    some = elimina.solve(model, "mar", evidence=evidence, query=query)
    if some.status == "infeasible" or log10_z > -math.inf:
        check(model, some, expected)


@settings(max_examples=100, deadline=None)
@given(incomplete(), st.data())
def test_marginal_map(model, data):
    query = data.draw(st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True))
    observed = data.draw(st.sets(st.integers(0, len(model.sizes) - 1), max_size=2))
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    result = elimina.solve(model, "mmap", query=query, evidence=evidence)
    best, _ = best_marginal(model, query, evidence)
    assert (result.value is None) == (best == -math.inf)
    assert result.value is None or result.value == pytest.approx(best, rel=1e-9, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(incomplete(), st.data())
def test_batches(model, data):
    columns = data.draw(st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True))
    query = data.draw(st.none() | st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True))
    count = data.draw(st.integers(1, 4))
    cases = [[data.draw(st.integers(-1, model.sizes[v] - 1)) for v in columns] for _ in range(count)]
    batch = Batch(model, columns, query, CheckedOptions(threads=1), count)
    found = batch.run(np.array(cases, dtype=np.int32))
    for n, case in enumerate(cases):
        weights = {v: np.eye(model.sizes[v])[x].tolist() for v, x in zip(columns, case, strict=True) if x >= 0}
        log, posteriors = brute.posteriors(model, weights)
        assert found.log10_evidence[n] == pytest.approx(log / math.log(10), abs=1e-9)
        for name, table in found.marginals.items():
            assert table[n] == pytest.approx(posteriors[model.index(name)], abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(incomplete(), st.data())
def test_joint_distributions(model, data):
    weights = data.draw(weights_of(model))
    query = data.draw(st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, max_size=2, unique=True))
    tree = JunctionTree(model)
    tree.set_evidence(as_evidence(weights))
    log, posteriors = brute.posteriors(model, weights)
    assert tree.log10_evidence == pytest.approx(log / math.log(10), abs=1e-9)
    if log == -math.inf:
        with pytest.raises(ImpossibleEvidenceError):
            tree.joint(query)
        return
    table = tree.joint(query)
    assert table.sum(axis=tuple(range(1, len(query)))) == pytest.approx(posteriors[query[0]], abs=1e-9)
    assume(len(query) == 2)
    assert table.sum(axis=0) == pytest.approx(posteriors[query[1]], abs=1e-9)
