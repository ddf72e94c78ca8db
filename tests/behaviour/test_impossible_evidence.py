"""Impossible evidence that a query does not depend on, against brute force."""

from __future__ import annotations

import itertools
import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import ImpossibleEvidenceError, JunctionTree, Model, Options, Table, Variable
from elimina.methods import junction_structure, marginals
from tests import calls
from tests.reference import brute


@st.composite
def networks(draw):
    """Draw a network of several parts, with zeros in its distributions."""
    count = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = [draw(st.integers(1, 3)) for _ in range(count)]
    zeros = draw(st.sampled_from([0.0, 0.3, 0.6]))
    tables = []
    for v in range(count):
        parents = draw(st.lists(st.integers(0, v - 1), max_size=2, unique=True)) if v else []
        values = rng.random([sizes[p] for p in parents] + [sizes[v]]) + 0.1
        values[rng.random(values.shape) < zeros] = 0.0
        values[..., 0] += values.sum(axis=-1) == 0
        tables.append(Table([*parents, v], values / values.sum(axis=-1, keepdims=True)))
    names = [Variable(f"x{v}", size) for v, size in enumerate(sizes)]
    model = Model(names, tables, sense="probability", children=range(count))
    observed = draw(st.lists(st.integers(0, count - 1), unique=True))
    return model, {v: draw(st.integers(0, sizes[v] - 1)) for v in observed}, draw(st.integers(0, count - 1))


@pytest.mark.parametrize("order", ["auto", "min-fill"])
@given(drawn=networks())
@settings(max_examples=150, deadline=None)
def test_every_call_says_that_evidence_is_impossible(order, drawn):
    model, evidence, asked = drawn
    is_impossible = brute.partition(model, evidence) == -math.inf
    found = calls.solve(model, "mar", evidence=evidence, query=[asked], order=order)
    assert found.status == ("infeasible" if is_impossible else "exact")
    tree = JunctionTree(model, options=Options(order=order))
    tree.set_evidence(evidence)
    if is_impossible:
        with pytest.raises(ImpossibleEvidenceError):
            tree.marginals([asked])
        with pytest.raises(ImpossibleEvidenceError):
            tree.joint([asked])
    else:
        name = model.variables[asked].name
        shares = dict(enumerate(tree.marginals([asked])[name]))
        assert shares == pytest.approx(dict(enumerate(found.marginals[name].values())), abs=1e-9)
    case = {f"x{v}": value for v, value in evidence.items()} or {"x0": None}
    posteriors = JunctionTree(model, options=Options(order=order)).batch([case, case], [asked])
    assert (np.isneginf(posteriors.log10_evidence) == is_impossible).all()


def deterministic_chains(length: int) -> tuple[Model, dict[str, int]]:
    """Return a query alone, and copies of a root along two chains whose ends are observed to differ."""
    names = ["asked", "root", *(f"{side}{n}" for side in "ab" for n in range(length))]
    tables = [Table([0], [0.4, 0.6]), Table([1], [0.5, 0.5])]
    for side, n in itertools.product(range(2), range(length)):
        v = 2 + side * length + n
        tables.append(Table([v - 1 if n else 1, v], np.eye(2)))
    model = Model([Variable(name, 2) for name in names], tables, sense="probability", children=range(len(names)))
    return model, {f"a{length - 1}": 0, f"b{length - 1}": 1}


# A network that is answered as a whole shows all contradictions; with an order, the query is answered alone.
PRUNED = Options(order="min-fill")


@pytest.mark.parametrize("options", [Options(), PRUNED], ids=["whole", "pruned"])
@pytest.mark.parametrize("length", [1, 3, 200])
def test_contradiction_through_deterministic_chains(length, options):
    model, evidence = deterministic_chains(length)
    assert elimina.solve(model, "mar", evidence=evidence, query=["asked"], options=options).status == "infeasible"
    same = dict.fromkeys(evidence, 1)
    found = elimina.solve(model, "mar", evidence=same, query=["asked"], options=options)
    assert (found.status, list(found.marginals["asked"].values())) == ("exact", [0.4, 0.6])


def test_what_would_take_long_is_named(caplog, monkeypatch):
    monkeypatch.setattr(marginals, "CONTRADICTION_SECONDS", 0.0)
    monkeypatch.setattr(marginals, "CELLS_PER_SECOND", 1e-3)
    model, evidence = deterministic_chains(3)
    with caplog.at_level(logging.WARNING, "elimina"):
        found = elimina.solve(model, "mar", evidence=evidence, query=["asked"], options=PRUNED)
    assert found.status == "exact"
    assert "the evidence about a2, b2 does not change the answer, and may be impossible" in caplog.text


def test_networks_without_zeros_are_not_searched(monkeypatch):
    def fail(*_):
        raise AssertionError("a contradiction was looked for")

    model, evidence = deterministic_chains(3)
    tables = [Table(t.scope, (t.values + 0.01) / (t.values + 0.01).sum(axis=-1, keepdims=True)) for t in model.factors]
    monkeypatch.setattr(junction_structure, "rough_order", fail)
    monkeypatch.setattr(marginals, "rough_order", fail)
    positive = Model(model.variables, tables, sense="probability", children=model.children)
    found = elimina.solve(positive, "mar", evidence=evidence, query=["asked"], options=PRUNED)
    assert found.status == "exact"
