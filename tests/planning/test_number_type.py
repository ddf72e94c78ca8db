"""The quick solution that narrows the integers of a plan."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina.generate import grid_model
from elimina.model.model import Model
from elimina.planning import number_type, planner
from elimina.planning.machine import cpu_machine
from elimina.planning.number_type import incumbent_cost
from elimina.planning.planner import Elimination
from elimina.problem.preparation import allowed_ranges, prepare
from elimina.running import plan_choice
from tests import calls
from tests.random_models import models
from tests.reference import brute
from tests.simulated import simulate


@pytest.fixture(autouse=True)
def always_worth_a_solution(monkeypatch):
    """A search for every plan that could gain."""
    monkeypatch.setattr(planner, "MIN_INCUMBENT_SECONDS", -1.0)


@pytest.fixture
def few_visits(monkeypatch):
    """A solution of a hasty search: worse than the optimum more often."""
    monkeypatch.setattr(number_type, "_MAX_VISITS", 200)


@pytest.mark.usefixtures("few_visits")
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


def test_a_solution_narrows_the_integers():
    rng = np.random.default_rng(0)
    soft = [((i, i + 1), rng.integers(0, 9, (4, 4))) for i in range(40)]
    hard = [((i, i + 2), np.where(rng.random((4, 4)) < 0.1, 10**6, 0)) for i in range(39)]
    model = Model.from_arrays([4] * 41, soft + hard)
    plan = elimina.plan(model, device="cpu")
    assert plan.dtype == "int16"
    assert elimina.solve(model, device="cpu").value == calls.solve(model, device="cpu", dtype="int64").value


def test_slices_do_not_look_for_a_solution_again(monkeypatch):
    looks = []
    monkeypatch.setattr(planner, "incumbent_cost", lambda problem: looks.append(problem))
    random = np.random.default_rng(0)
    scopes = [(i, j) for i in range(9) for j in range(i)]
    model = Model.from_arrays([3] * 9, [(scope, random.integers(0, 2**33, (3, 3))) for scope in scopes])
    plan = calls.plan(model, device="cpu", memory=300, tables="dense")
    assert plan.form.variables
    assert len(looks) <= 1


def test_steps_alone_are_not_worth_a_solution(monkeypatch) -> None:
    """A solution narrows cells, which many small steps hardly have."""
    rng = np.random.default_rng(0)
    tables = [((v, v + 1), rng.integers(0, 100, (2, 2))) for v in range(2000)]
    problem = prepare(Model.from_arrays([2] * 2001, tables, sense="min-cost"), "mpe", {})
    sought = []
    monkeypatch.setattr(planner, "incumbent_cost", sought.append)
    monkeypatch.setattr(planner, "MIN_INCUMBENT_SECONDS", 1e-3)
    machine = cpu_machine(1)
    plan = planner.make_plan(Elimination(problem, range(2001), machine, 1 << 30))
    assert plan.seconds > 1e-3
    assert not sought
    wide = prepare(Model.from_arrays([1500] * 2, [((0, 1), rng.integers(0, 10**6, (1500, 1500)))]), "mpe", {})
    planner.make_plan(Elimination(wide, range(2), machine, 1 << 30))
    assert sought


@pytest.mark.parametrize("gpu", [True, False])
def test_a_plan_that_only_compares_is_not_worth_a_solution(monkeypatch, gpu):
    """``auto`` looks for one only if the CPU is to run the plan."""
    model = grid_model(10, 5, 0.0, seed=1)
    sought = []
    monkeypatch.setattr(planner, "MIN_INCUMBENT_SECONDS", 0.5)
    monkeypatch.setattr(plan_choice, "MIN_INCUMBENT_SECONDS", 0.5)
    monkeypatch.setattr(planner, "incumbent_cost", sought.append)
    simulate(monkeypatch, 1 << 34)
    if not gpu:
        monkeypatch.setattr(plan_choice, "find_cuda", lambda threads: None)
    plan = calls.plan(model, order=range(100))
    assert plan.device == ("cuda" if gpu else "cpu")
    assert len(sought) == (0 if gpu else 1)


def test_a_descent_to_the_least_costs_ends_the_search() -> None:
    """Nothing is better, and moves until all visits are used took as long as for any other problem."""
    difference = np.subtract.outer(np.arange(100), np.arange(100))

    def seconds(least: int) -> float:
        """Time of a loop of equalities, one of which is off by so much: the least cost of an assignment."""
        scopes = [(0, 1), (1, 2), (2, 3), (0, 3)]
        tables = [(scope, np.abs(difference - (least if scope == (0, 3) else 0))) for scope in scopes]
        problem = prepare(Model.from_arrays([100] * 4, tables), "mpe", {})
        started = time.process_time()
        assert incumbent_cost(problem) == least
        return time.process_time() - started

    assert seconds(0) < seconds(1) / 3
