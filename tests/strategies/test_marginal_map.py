"""Marginal MAP against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, MemoryLimitError, Model
from tests import calls
from tests.devices import on_devices
from tests.random_models import models
from tests.reference import brute


def best_marginal(model, query, evidence):
    """The largest of the sums over all else, as a logarithm; and that of each assignment of the query."""
    sums = {}
    for assignment in brute.assignments(model, evidence):
        score = model.score(assignment)
        key = tuple(assignment[v] for v in query)
        sums[key] = np.logaddexp(sums.get(key, -math.inf), score)
    return max(sums.values()), sums


@on_devices
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_small_models(device, data):
    model = data.draw(models("probability").filter(lambda model: len(model.variables) > 0))
    query = data.draw(st.lists(st.integers(0, len(model.variables) - 1), min_size=1, unique=True))
    observed = data.draw(st.sets(st.integers(0, len(model.variables) - 1), max_size=2))
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    method = data.draw(st.sampled_from(["auto", "eliminate", "search"]))
    known = {model.variables[v].name: model.variables[v].state(x) for v, x in evidence.items()}
    result = calls.solve(model, "mmap", query=query, evidence=known, device=device, method=method)
    best, sums = best_marginal(model, query, evidence)
    if best == -math.inf:
        assert result.status == "infeasible"
        return
    assert result.status == "optimal"
    assert result.value == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert set(result.assignment) == {model.variables[v].name for v in query}
    chosen = tuple(model.variables[v].index(result.assignment[model.variables[v].name]) for v in query)
    assert sums[chosen] == pytest.approx(best, rel=1e-9, abs=1e-9)


def network():
    """A chain of ten variables, each the child of the one before."""
    rng = np.random.default_rng(3)
    tables = [([0], rng.dirichlet(np.ones(3)))]
    tables += [([v - 1, v], rng.dirichlet(np.ones(3), 3)) for v in range(1, 10)]
    return Model.from_arrays([3] * 10, tables, sense="probability")


def test_all_variables_are_the_best_explanation():
    model = network()
    both = elimina.solve(model, "mmap", query=range(10)), elimina.solve(model, "mpe")
    assert both[0].value == pytest.approx(both[1].value)
    assert both[0].assignment == both[1].assignment


def test_it_is_not_a_part_of_the_best_explanation():
    joint = [[0.0, 0.4], [0.3, 0.3]]
    model = Model.from_arrays([2, 2], [([0, 1], joint)], sense="probability")
    assert elimina.solve(model, "mpe").assignment["x0"] == 0
    result = elimina.solve(model, "mmap", query=["x0"])
    assert (result.assignment, result.value) == ({"x0": 1}, pytest.approx(math.log(0.6)))


def test_soft_evidence():
    model = network()
    weights = [0.1, 0.0, 0.7]
    result = elimina.solve(model, "mmap", query=["x2"], evidence={"x7": weights})
    marginals = elimina.solve(model, "mar", query=["x2"], evidence={"x7": weights}).marginals["x2"]
    assert marginals[result.assignment["x2"]] == max(marginals.values())


def test_bad_calls():
    with pytest.raises(InputError, match="needs a query"):
        elimina.solve(network(), "mmap")
    with pytest.raises(InputError, match="this model has costs"):
        elimina.solve(Model.from_arrays([2], [([0], [1, 2])]), "mmap", query=["x0"])
    with pytest.raises(InputError, match="leave it out for mmap"):
        calls.solve(network(), "mmap", query=["x1"], checkpoint="somewhere")
    with pytest.raises(MemoryLimitError, match="summing out 8 variables, with 2 that stay"):
        elimina.solve(network(), "mmap", query=["x1", "x4"], memory="10B", device="cpu")


def test_mini_buckets_without_an_i_bound():
    model = Model.from_arrays([1], [], sense="probability")
    result = calls.solve(model, "mmap", query=["x0"], method="mbe")
    assert (result.status, result.value) == ("optimal", 0.0)
