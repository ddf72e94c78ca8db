"""Counts of optima against brute force."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import elimina
from elimina import FORBIDDEN, InputError, MemoryLimitError, Model, UnsupportedError
from elimina.generate import random_model
from elimina.problem.preparation import prepare
from elimina.running.plan_choice import plan_on
from elimina.strategies import count_optima, portfolio
from tests import calls
from tests.cli.schema import validate
from tests.reference import broadcast
from tests.simulated import simulate

TASK = "count-optima"


def truth(model, evidence):
    """Return the optimum and the number of assignments that reach it."""
    costs = broadcast.costs(model)[tuple(evidence.get(v, slice(None)) for v in range(len(model.sizes)))]
    allowed = costs[costs != FORBIDDEN]
    if not allowed.size:
        return None, 0
    best = allowed.min() if model.sense == "min-cost" else allowed.max()
    return int(best), int((allowed == best).sum())


@st.composite
def questions(draw):
    """Draw a model of small integer costs, many of them equal, and evidence."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    sense = draw(st.sampled_from(["min-cost", "max-cost"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = []
    for _ in range(draw(st.integers(0, 7))):
        scope = tuple(rng.permutation(len(sizes))[: rng.integers(1, 4)].tolist())
        values = rng.integers(-2, 3, [sizes[v] for v in scope])
        is_forbidden = rng.random(values.shape) < (0.15 if sense == "min-cost" else 0.0)
        factors.append((scope, np.where(is_forbidden, FORBIDDEN, values)))
    evidence = draw(st.dictionaries(st.integers(0, len(sizes) - 1), st.just(0), max_size=2))
    return Model.from_arrays(sizes, factors, sense=sense), evidence


@settings(deadline=None, max_examples=150)
@given(questions(), st.sampled_from(["dense", "auto", "sparse"]))
def test_counts_and_optima_against_brute_force(question, tables):
    model, evidence = question
    result = calls.solve(model, TASK, evidence=evidence, device="cpu", tables=tables)
    value, count = truth(model, evidence)
    assert (result.value, result.count) == (value, count)
    assert result.status == ("exact" if count else "infeasible")
    validate(json.loads(result.to_json()))
    if count:
        assert model.score([v.index(result.assignment[v.name]) for v in model.variables]) == value


def test_counts_beyond_any_word_and_variables_in_no_table():
    model = Model.from_arrays([3] * 200, [((0, 1), [[1, 0, 0], [1, 1, 1], [1, 1, 1]])])
    result = elimina.solve(model, TASK)
    assert (result.value, result.count) == (0, 2 * 3**198)


def test_the_count_of_optimal_colourings_of_a_cycle():
    even = Model.from_arrays([2] * 10, [((i, (i + 1) % 10), np.eye(2, dtype=int)) for i in range(10)])
    odd = Model.from_arrays([2] * 9, [((i, (i + 1) % 9), np.eye(2, dtype=int)) for i in range(9)])
    assert [(r.value, r.count) for r in (elimina.solve(m, TASK) for m in (even, odd))] == [(0, 2), (1, 18)]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_devices_and_slices(monkeypatch, device):
    simulate(monkeypatch, 1 << 30, 1 << 30)
    model = Model.from_arrays([2] * 9, [((i, (i + 1) % 9), np.eye(2, dtype=int)) for i in range(9)])
    assert calls.solve(model, TASK, device=device).count == 18


def test_what_cannot_be_counted_says_so():
    with pytest.raises(UnsupportedError, match="needs integer costs, and this model has floats as costs: round"):
        elimina.solve(Model.from_arrays([2], [((0,), [0.5, 1.0])], sense="min-cost"), TASK)
    model = Model.from_arrays([8] * 6, [((i, j), np.zeros((8, 8), dtype=int)) for i in range(6) for j in range(i)])
    with pytest.raises(MemoryLimitError, match=r"counting optima needs .* cells .*; more memory \(memory\)"):
        calls.solve(model, TASK, memory=2000, method="eliminate")
    large = random_model(60, 4, 0.5, 0.0, seed=3)
    with pytest.raises(MemoryLimitError, match=r"cells \(induced width \d+\); a better order .* \(task=\"mpe\"\)"):
        calls.solve(large, TASK, method="eliminate")


def test_an_optimum_beyond_the_width_comes_with_bounds_on_the_number():
    model = Model.from_arrays([8] * 6, [((i, j), np.zeros((8, 8), dtype=int)) for i in range(6) for j in range(i)])
    result = elimina.solve(model, TASK, memory=1 << 20, device="cpu", time_limit=60)
    assert (result.status, result.value, result.count) == ("bounded", 0, None)
    assert (result.lower_bound, result.upper_bound) == (0, 0)
    assert 1 < result.stats["optima_lower_bound"] <= 8**6
    assert 8**6 <= result.stats["optima_upper_bound"] <= 1.001 * 8**6
    validate(json.loads(result.to_json()))
    assert elimina.solve(model, TASK).count == 8**6


def test_the_first_assignment_does_not_wait_for_an_order(monkeypatch):
    """No order of this model has tables that fit, and the search for one would take seconds."""
    plans, bounds = [], []
    make_plan = portfolio.Solver.plan
    monkeypatch.setattr(portfolio.Solver, "plan", lambda *args: plans.append(args) or make_plan(*args))
    model = random_model(80, 8, 0.5, 0.0, seed=3)
    options = elimina.Options(on_bounds=lambda known: bounds.append((known.upper, len(plans))))
    result = elimina.solve(model, TASK, time_limit=1, device="cpu", options=options)
    assert (result.status, model.score(model.indices_of(result.assignment))) == ("bounded", result.value)
    assert result.stats["optima_lower_bound"] == 1
    assert any(upper is not None and not made for upper, made in bounds)


@settings(deadline=None, max_examples=60)
@given(questions())
def test_few_optima_are_listed_where_messages_do_not_fit(question):
    model, evidence = question
    assume(prepare(model, "mpe", evidence).free)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_optima, "plan_on", lambda *args: plan_on(*args)._replace(memory_limit=-1))
        result = elimina.solve(model, TASK, evidence=evidence, device="cpu")
    value, count = truth(model, evidence)
    assert (result.value, result.count) == (value, count)
    assert result.status == ("exact" if count else "infeasible")


def test_the_optima_of_a_wide_grid_are_listed():
    """Two variables of 900 have two states of cost 0, and one is in no table."""
    tables = [((v,), [0, 0, 3, 9] if v in (100, 700) else [0, 1, 3, 9]) for v in range(900)]
    edges = [(v, v + 1) for v in range(900) if v % 30 < 29] + [(v, v + 30) for v in range(870)]
    tables += [(edge, np.diag([0, 0, 1, 1])) for edge in edges]
    model = Model.from_arrays([4] * 900 + [3], tables)
    result = elimina.solve(model, TASK, device="cpu", memory=1 << 26)
    assert (result.status, result.value, result.count) == ("exact", 0, 12)
    validate(json.loads(result.to_json()))


def test_an_optimum_that_search_cannot_prove_is_bounded():
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(60) for j in range(i) if rng.random() < 0.5]
    model = Model.from_arrays([4] * 60, [(pair, rng.integers(0, 10, (4, 4))) for pair in pairs])
    result = elimina.solve(model, TASK, device="cpu", time_limit=3)
    assert (result.status, result.count) == ("bounded", None)
    assert result.lower_bound <= result.value


def test_bounds_where_time_ends(monkeypatch, stuck):
    monkeypatch.setattr(portfolio, "plan_call", stuck)
    result = elimina.solve(random_model(12, 3, 0.5, 0.0, seed=3), TASK, device="cpu", time_limit=0.5)
    assert (result.status, result.task, result.ended_by) == ("bounded", TASK, "time-limit")
    assert result.lower_bound <= result.upper_bound
    assert result.count is None


def test_the_plan_names_the_task_that_is_asked():
    model = random_model(4, 2, 0.5, seed=1)
    plan = elimina.plan(model, TASK)
    assert plan.task == TASK
    assert f"task: {TASK} (min-sum" in " ".join(repr(plan).split())
    # The free memory, from which the limit comes, may change between the calls.
    assert plan == elimina.plan(model)._replace(task=TASK, memory_limit=plan.memory_limit)


def test_rounded_costs_are_not_counted():
    large = Model.from_arrays([2] * 5, [((v,), [-(2**61), 2**61]) for v in range(5)])
    with pytest.raises(InputError, match="exact sums of costs, which float64 rounds: leave the dtype out"):
        elimina.solve(large, TASK, options=elimina.Options(dtype="float64"))
    with pytest.raises(InputError, match=r"scale the costs down, or \(task mpe\) use dtype float64"):
        elimina.solve(large, TASK)
    scaled = Model.from_arrays([2] * 5, [((v,), [-(2**50), 2**50]) for v in range(5)])
    assert elimina.solve(scaled, TASK).count == 1
    assert elimina.solve(large, options=elimina.Options(dtype="float64")).value == -5 * 2**61
