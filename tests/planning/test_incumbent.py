"""The quick solution that narrows the integers of a plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina.generate import grid_model
from elimina.model import Model
from elimina.planning import incumbent, planner
from elimina.planning.incumbent import incumbent_cost
from elimina.planning.prepare import allowed_ranges, prepare
from tests.reference import brute
from tests.strategies import models


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few visits, and a search for every plan that could gain."""
    monkeypatch.setattr(incumbent, "_VISITS", 200)
    monkeypatch.setattr(planner, "_WORTH_A_SOLUTION", -1.0)


@pytest.mark.parametrize("kind", ["integer", "max-integer", "big-integer"])
@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_bounds_the_optimum_which_is_still_found(kind, data):
    model = data.draw(models(kind))
    expected = brute.optimum(model)
    result = elimina.solve(model, device="cpu")
    assert result.value == expected
    problem = prepare(model, "mpe", {})
    cost = incumbent_cost(problem)
    ranges = allowed_ranges(problem.tables, model.sense)
    if cost is None or None in ranges or expected is None:
        return
    if model.sense == "min-cost":
        assert expected <= model.constant + sum(low for low, _ in ranges) + cost
    else:
        assert expected >= model.constant + sum(high for _, high in ranges) - cost


def test_it_is_the_optimum_of_an_easy_problem_and_the_same_every_time():
    chain = Model.from_arrays([3] * 20, [((i, i + 1), 5 * np.eye(3, dtype=int)) for i in range(19)])
    problem = prepare(chain, "mpe", {})
    assert incumbent_cost(problem) == 0
    grid = prepare(grid_model(6, 4, 0.2, seed=1), "mpe", {})
    assert incumbent_cost(grid) == incumbent_cost(grid)


def test_a_solution_narrows_the_integers(monkeypatch):
    monkeypatch.setattr(incumbent, "_VISITS", 5000)
    rng = np.random.default_rng(0)
    soft = [((i, i + 1), rng.integers(0, 9, (4, 4))) for i in range(40)]
    hard = [((i, i + 2), np.where(rng.random((4, 4)) < 0.1, 10**6, 0)) for i in range(39)]
    model = Model.from_arrays([4] * 41, soft + hard)
    plan = elimina.plan(model, device="cpu")
    assert plan.dtype == "int16"
    assert elimina.solve(model, device="cpu").value == elimina.solve(model, device="cpu", dtype="int64").value


def test_slices_do_not_look_for_a_solution_again(monkeypatch):
    calls = []
    monkeypatch.setattr(planner, "incumbent_cost", lambda problem: calls.append(problem))
    random = np.random.default_rng(0)
    scopes = [(i, j) for i in range(9) for j in range(i)]
    model = Model.from_arrays([3] * 9, [(scope, random.integers(0, 2**33, (3, 3))) for scope in scopes])
    plan = elimina.plan(model, device="cpu", memory=300, tables="dense")
    assert plan.slicing is not None
    assert len(calls) <= 1
