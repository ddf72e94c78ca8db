"""Answers of agents that were stopped: bounds that hold, and an assignment that is worth what is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.dcop import Problem
from elimina.dcop.solve import early_answer
from elimina.model.model import Model
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["random", "scale-free", "grid"]), st.integers(0, 500), st.integers(1, 60))
def test_stopped_after_some_messages(kind, seed, steps):
    problem = random_problem(kind, seed)
    exact = solve(problem)
    left = [steps]

    def stop(_):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    for algorithm in (("dpop", {}), ("adpop", {"ibound": 1})):
        found = solve(problem, algorithm[0], listener=stop, **algorithm[1])
        left[0] = steps
        if found.ended_by is None:
            continue
        assert (found.task, found.ended_by) == ("dcop", "interrupt")
        if exact.status == "infeasible":
            assert found.assignment is None
            continue
        sign = 1 if problem.model.sense == "min-cost" else -1
        bound = found.lower_bound if sign == 1 else found.upper_bound
        slack = 0 if problem.model.is_integer else 1e-6 * max(1.0, abs(exact.value))
        assert sign * bound <= sign * exact.value + slack
        if found.assignment is not None:
            chosen = [v.index(found.assignment[v.name]) for v in problem.model.variables]
            assert problem.model.score(chosen) == pytest.approx(found.value)
            assert sign * found.value >= sign * exact.value - slack


def test_a_function_that_allows_nothing():
    nothing = Model.from_arrays([2, 2], [((0, 1), [[math.inf] * 2] * 2)], sense="min-cost")
    assert early_answer(Problem.from_model(nothing)).status == "infeasible"


def test_an_assignment_before_agents_have_values():
    model = Model.from_arrays([2, 2], [((0, 1), [[3, 1], [1, 3]])], sense="min-cost")
    found = early_answer(Problem.from_model(model))
    assert (found.task, found.value, found.lower_bound) == ("dcop", 1, 1)
    assert model.score([found.assignment[v.name] for v in model.variables]) == 1


def test_the_time_limit_within_a_large_table():
    """About 3 * 10^10 combinations in one elimination."""
    tables = np.random.default_rng(1).integers(0, 1 << 30, (3, 3000, 3000))
    scopes = [(0, 1), (1, 2), (0, 2)]
    model = Model.from_arrays([3000] * 3, list(zip(scopes, tables, strict=True)), sense="min-cost")
    found = solve(Problem.from_model(model), threads=1, time_limit=0.1)
    assert (found.status, found.ended_by) == ("bounded", "time-limit")
    assert found.value is None or found.lower_bound <= found.value
    assert found.stats["seconds"]["total"] < 3


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
@pytest.mark.parametrize(("algorithm", "options"), [("dpop", {}), ("adpop", {"ibound": 1})])
def test_bounds_of_costs_that_cancel(sense, algorithm, options):
    sign = 1 if sense == "min-cost" else -1
    tables = [((0,), sign * np.array([1.0, -1e300])), ((0,), sign * np.array([0.0, 1e300]))]
    problem = Problem.from_model(Model.from_arrays([2], tables, sense=sense))
    found = solve(problem, algorithm, **options)
    # x0 = 1 is worth 0, which no sum of floats by function shows.
    assert found.lower_bound <= 0 <= found.upper_bound
    early = early_answer(problem)
    assert early.lower_bound <= 0 <= early.upper_bound


def test_costs_of_one_size_are_no_doubt():
    rng = np.random.default_rng(1)
    tables = [((v, v + 1), rng.random((3, 3))) for v in range(200)]
    found = solve(Problem.from_model(Model.from_arrays([3] * 201, tables, sense="min-cost")))
    assert found.status == "optimal"
