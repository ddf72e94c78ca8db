"""Exact answers against brute force, for every task, kind of model and backend."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import Options
from elimina._core import exact_count
from elimina.methods import counting
from elimina.model.model import Model
from elimina.model.variable import Variable
from tests.devices import on_devices
from tests.random_models import KINDS, models
from tests.reference import brute

pytestmark = pytest.mark.usefixtures("planned")

COSTS = [kind for kind in KINDS if kind != "probability"]


def some_evidence(data, model):
    observed = (
        data.draw(st.lists(st.sampled_from(range(len(model.sizes))), max_size=2, unique=True)) if model.sizes else []
    )
    return {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_optimum(device, kind, data):
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    result = elimina.solve(model, "mpe", evidence=evidence, device=device)
    brute.check_optimum(model, result, evidence)


@on_devices
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_partition(device, data):
    model = data.draw(models("probability"))
    evidence = some_evidence(data, model)
    result = elimina.solve(model, "pr", evidence=evidence, device=device)
    expected = brute.partition(model, evidence)
    if expected == -math.inf:
        assert result.status == "infeasible"
        assert result.log10_z == -math.inf
    else:
        assert result.log10_z == pytest.approx(expected, rel=1e-11, abs=1e-9)


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_count(device, kind, data):
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    result = elimina.solve(model, "count", evidence=evidence, device=device)
    assert result.value == brute.count(model, evidence)
    assert isinstance(result.value, int)


@on_devices
@pytest.mark.parametrize(("length", "colours"), [(3, 2), (40, 3), (64, 2), (200, 5), (1000, 7)])
def test_count_of_any_size(device, length, colours):
    different = 1 - np.eye(colours)
    chain = Model.from_arrays(
        [colours] * length, [((i, i + 1), different) for i in range(length - 1)], sense="probability"
    )
    assert elimina.solve(chain, "count", device=device).value == colours * (colours - 1) ** (length - 1)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_counts_in_long_integers(kind, data):
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    expected = brute.count(model, evidence) * 2**600
    wide = Model(
        [*model.variables, *(Variable(f"free{v}", 2) for v in range(600))],
        model.factors,
        sense=model.sense,
        constant=model.constant,
        upper_bound=model.upper_bound,
    )
    result = elimina.solve(wide, "count", evidence=evidence, device="cpu", options=Options(tables="dense"))
    assert result.value == expected


@pytest.mark.parametrize(("memory", "times"), [(None, 1), ("600kB", 1), ("500kB", 0)])
def test_counts_of_many_bits(monkeypatch, memory, times):
    """A count of thousands of bits takes one run in long integers, unless these need too much memory."""
    runs = []
    monkeypatch.setattr(counting, "exact_count", lambda *parts: (runs.append(parts), exact_count(*parts))[1])
    rng = np.random.default_rng(4)
    tree = [((v - 1 - int(rng.integers(min(v, 50))), v), 1 - np.eye(3)) for v in range(1, 3000)]
    model = Model.from_arrays([3] * 3000, tree, sense="probability")
    assert elimina.solve(model, "count", device="cpu", memory=memory).value == 3 * 2**2999
    assert len(runs) == times


def test_nothing_is_counted_where_nothing_is_allowed(monkeypatch):
    """Three steps upwards of four variables with three values: no long integers are made."""
    monkeypatch.setattr(counting, "exact_count", None)
    upper = np.triu(np.ones((3, 3)), 1)
    chain = [((v, v + 1), np.ones((3, 3))) for v in range(3000)] + [((0, 1), upper), ((1, 2), upper), ((2, 3), upper)]
    model = Model.from_arrays([3] * 3001, chain, sense="probability")
    assert elimina.solve(model, "count", device="cpu").value == 0


def test_tables_that_allow_everything_do_not_count():
    """A clique of costs would need 2^60 cells; only the chain of its constraints is counted."""
    rng = np.random.default_rng(0)
    soft = [((v, w), rng.integers(0, 9, (2, 2))) for v in range(60) for w in range(v)]
    hard = [((v, v + 1), np.array([[0, 0], [0, elimina.FORBIDDEN]])) for v in range(59)]
    model = Model.from_arrays([2] * 60, soft + hard)
    fibonacci = [1, 2]
    while len(fibonacci) <= 60:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert elimina.solve(model, "count", device="cpu").value == fibonacci[60]


@on_devices
def test_count_of_nothing_constrained(device):
    assert elimina.solve(Model.from_arrays([3] * 500, []), "count", device=device).value == 3**500


@on_devices
def test_partition_beyond_the_range_of_floats(device):
    """Each message alone spans 10^-250 to 1, so their products underflow: the run is repeated in logarithms."""
    tiny = np.array([[1.0, 1e-250], [1e-250, 1e-250]])
    factors = [((0, i), tiny) for i in range(1, 9)] + [((0,), np.array([0.0, 1.0]))]
    model = Model.from_arrays([2] * 9, factors, sense="probability")
    result = elimina.solve(model, "pr", device=device)
    assert result.log10_z == pytest.approx(8 * math.log10(2e-250), rel=1e-13)
    assert result.value is None


@on_devices
def test_partition_of_a_long_chain_is_scaled(device):
    model = Model.from_arrays(
        [2] * 3000, [((i, i + 1), [[1e-3, 2e-3], [3e-3, 4e-3]]) for i in range(2999)], sense="probability"
    )
    power, exponent = np.eye(2), 0
    for _ in range(2999):
        power = power @ np.array([[1.0, 2.0], [3.0, 4.0]])
        exponent += math.frexp(power.max())[1]
        power /= 2.0 ** math.frexp(power.max())[1]
    expected = -3 * 2999 + math.log10(power.sum()) + exponent * math.log10(2)
    assert elimina.solve(model, "pr", device=device).log10_z == pytest.approx(expected, rel=1e-12)
