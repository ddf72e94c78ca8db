"""Bounds by mini-buckets: sound for every i-bound and option, exact where nothing is divided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import MemoryLimitError, Model
from elimina.generate import grid_model, random_model
from elimina.methods.cost_shifting import shift
from elimina.planning.options import DIVISIONS
from elimina.problem.preparation import prepare
from tests import calls
from tests.devices import on_devices
from tests.random_models import KINDS, models
from tests.reference import brute

SHIFTS = ("none", "tables", "clusters", "buckets", "all")


def check(model, result, exact=False):
    """Both bounds against every assignment."""
    best = brute.optimum(model)
    sign = 1 if model.sense == "min-cost" else -1
    slack = 0 if model.is_integer else 1e-9 * max(1.0, abs(best or 0.0))
    bound = result.lower_bound if sign == 1 else result.upper_bound
    if best is None:
        assert result.status == "infeasible" or (result.status == "bounded" and result.assignment is None)
        return
    assert result.status in ("bounded", "optimal")
    assert sign * (best - bound) >= -slack
    if result.assignment is not None:
        chosen = [v.index(result.assignment[v.name]) for v in model.variables]
        assert model.score(chosen) == result.value
        assert sign * (result.value - best) >= -slack
        assert result.value == (result.upper_bound if sign == 1 else result.lower_bound)
    if result.status == "optimal" or exact:
        assert result.status == "optimal"
        assert abs(result.value - best) <= slack


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_bounds_are_sound(device, kind, data):
    model = data.draw(models(kind))
    ibound = data.draw(st.integers(1, 5))
    options = {"shift": data.draw(st.sampled_from(SHIFTS)), "partition": data.draw(st.sampled_from(DIVISIONS))}
    result = calls.solve(model, method="mbe", ibound=ibound, device=device, order="min-fill", **options)
    check(model, result)
    assert result.stats["method"] == "mbe"


@on_devices
@pytest.mark.parametrize("costs", SHIFTS)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_a_large_ibound_is_exact(device, kind, costs, data):
    model = data.draw(models(kind))
    partition = data.draw(st.sampled_from(DIVISIONS))
    options = {"shift": costs, "partition": partition, "order": "min-fill"}
    result = calls.solve(model, method="mbe", ibound=6, device=device, **options)
    check(model, result, exact=True)


@pytest.mark.parametrize("costs", SHIFTS)
@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
def test_every_ibound_of_a_larger_model(sense, costs):
    model = grid_model(6, 3, 0.0, seed=5)
    model = Model(model.variables, model.factors, sense=sense)
    best = calls.solve(model, method="eliminate", device="cpu").value
    sign = 1 if sense == "min-cost" else -1
    for ibound in range(1, 8):
        result = calls.solve(model, method="mbe", ibound=ibound, shift=costs, device="cpu")
        bound, value = (result.lower_bound, result.upper_bound)[::sign]
        assert sign * bound <= sign * best <= sign * value
    assert (bound, value) == (best, best)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_shifting_keeps_every_total(kind, data):
    model = data.draw(models(kind))
    problem = prepare(model, "mpe", {})
    shifted = shift(problem, 1.0, 1 << 30)
    if shifted is None:
        return
    other = shifted.problem.model
    for assignment in brute.assignments(model):
        score, moved = model.score(assignment), other.score(assignment)
        if math.isinf(score):
            assert math.isinf(moved)
        elif model.is_integer:
            assert (moved, type(moved)) == (shifted.shifted(score), int)
        else:
            assert shifted.original(moved) == pytest.approx(score, rel=1e-9, abs=1e-9)
    best = brute.optimum(model)
    if best is not None:
        sign = 1 if model.sense == "min-cost" else -1
        slack = 0 if model.is_integer else 1e-9 * max(1.0, abs(best))
        assert sign * (best - shifted.original(other.constant)) >= -slack


def test_shifting_raises_the_constant():
    problem = prepare(grid_model(8, 4, 0.3, seed=1), "mpe", {})
    shifted = shift(problem, 5.0, 1 << 30)
    best = elimina.solve(problem.model, device="cpu").value
    least = sum(int(table.values.min()) for table in problem.tables)
    assert least + 0.9 * (best - least) < shifted.original(shifted.problem.model.constant) <= best


def test_shifting_keeps_within_memory():
    problem = prepare(grid_model(8, 4, 0.3, seed=1), "mpe", {})
    assert shift(problem, 5.0, 1000) is None


def test_matching_helps():
    model = random_model(20, 4, 0.4, 0.0, seed=8)
    gains = []
    for ibound in (2, 3, 4):
        plain, matched = (
            calls.solve(model, method="mbe", ibound=ibound, shift=costs, device="cpu", order="min-fill").lower_bound
            for costs in ("none", "buckets")
        )
        gains.append(matched - plain)
    assert min(gains) > 0


def test_too_little_memory_for_the_factors():
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        calls.solve(grid_model(4, 3, 0.3), method="mbe", memory=100, device="cpu")


def test_no_shifts_where_memory_is_short():
    model = random_model(20, 4, 0.4, 0.0, seed=8)
    order = elimina.plan(model, device="cpu").order
    options = {"ibound": 7, "device": "cpu", "order": order, "dtype": "int32", "partition": "scope"}
    plain, matched = (calls.plan(model, shift=costs, **options).peak_bytes for costs in ("none", "buckets"))
    memory = (plain + matched) // 2
    found = calls.solve(model, method="mbe", shift="buckets", memory=memory, **options)
    assert found.lower_bound == calls.solve(model, method="mbe", shift="none", **options).lower_bound
    assert plain == found.stats["peak_bytes"] <= memory < matched


def test_evidence_and_models_without_variables():
    model = Model.from_arrays([3, 3], [([0, 1], np.arange(9.0).reshape(3, 3)), ([0], [4.0, 0.0, 7.0])])
    assert calls.solve(model, method="mbe", evidence={"x0": 2}, device="cpu").value == 13.0
    assert calls.solve(model, method="mbe", evidence={"x0": 2, "x1": 1}, device="cpu").value == 14.0
    assert calls.solve(Model.from_arrays([], []), method="mbe", device="cpu").value == 0


@pytest.mark.parametrize("costs", SHIFTS[1:])
@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
def test_bounds_with_shifts_are_never_worse(sense, costs):
    model = random_model(16, 5, 0.5, 0.0, seed=4)
    model = Model(model.variables, model.factors, sense=sense)
    order = elimina.plan(model, device="cpu").order
    for ibound in range(1, 6):
        plain, shifted = (
            calls.solve(model, method="mbe", ibound=ibound, shift=kind, order=order, device="cpu")
            for kind in ("none", costs)
        )
        assert plain.lower_bound <= shifted.lower_bound <= shifted.upper_bound <= plain.upper_bound
        chosen = [v.index(shifted.assignment[v.name]) for v in model.variables]
        assert (
            model.score(chosen)
            == shifted.value
            == (shifted.lower_bound if sense == "max-cost" else shifted.upper_bound)
        )


@pytest.mark.parametrize("ibound", [2**31, 2**64])
@pytest.mark.parametrize("method", ["mbe", "search"])
def test_ibounds_beyond_the_cores_integers_are_those_of_all_variables(method, ibound):
    model = elimina.Model.from_arrays([2, 2], [((0, 1), [[3, 1], [2, 5]])])
    found = calls.solve(model, method=method, ibound=ibound)
    assert (found.status, found.value) == ("optimal", 1)
    assert calls.plan(model, ibound=ibound).fits


def test_bounds_without_shifts_order_variables_that_shifted_tables_lost():
    # Beside costs of 1e300, the shifted table of both variables is a constant.
    factors = [([0], np.array([1e300, 0.0])), ([], np.array(-1e300)), ([1, 0], np.array([[0.0, 0.0], [1.0, 0.0]]))]
    model = Model.from_arrays([2, 2], factors, sense="max-cost")
    result = calls.solve(model, "mpe", method="mbe", order="pseudo-tree", ibound=1, device="cpu")
    assert result.lower_bound <= 1.0 <= result.upper_bound
