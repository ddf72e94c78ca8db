"""Exact answers against brute force, for every task, kind of model and backend."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from tests.reference import brute
from tests.strategies import KINDS, models

COSTS = [kind for kind in KINDS if kind != "probability"]


def some_evidence(data, model):
    observed = data.draw(st.lists(st.sampled_from(range(len(model.sizes))), max_size=2, unique=True)) if model.sizes else []
    return {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_optimum(kind, data):
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    result = elimina.solve(model, "mpe", evidence=evidence, device="cpu")
    expected = brute.optimum(model, evidence)
    if expected is None:
        assert result.status == "infeasible"
        assert result.assignment is None
        return
    assert result.status == "optimal"
    chosen = [v.index(result.assignment[v.name]) for v in model.variables]
    assert all(chosen[v] == value for v, value in evidence.items())
    assert model.score(chosen) == result.value
    if model.is_integer:
        assert result.value == expected
        assert isinstance(result.value, int)
    else:
        assert result.value == pytest.approx(expected, rel=1e-12, abs=1e-9)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_partition(data):
    model = data.draw(models("probability"))
    evidence = some_evidence(data, model)
    result = elimina.solve(model, "pr", evidence=evidence, device="cpu")
    expected = brute.partition(model, evidence)
    if expected == -math.inf:
        assert result.status == "infeasible"
        assert result.log10_z == -math.inf
    else:
        assert result.log10_z == pytest.approx(expected, rel=1e-11, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_count(kind, data):
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    result = elimina.solve(model, "count", evidence=evidence, device="cpu")
    assert result.value == brute.count(model, evidence)
    assert isinstance(result.value, int)
