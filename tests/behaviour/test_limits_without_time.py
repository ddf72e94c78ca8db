"""Calls whose time is over before their work begins bound their answers, and refuse questions that make no sense."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np
import pytest

import elimina
from elimina import InputError, Model, TimeLimitError, UnsupportedError
from elimina._core import stopped
from elimina.model.table import forbidden_value
from elimina.problem.tasks import tasks_that
from elimina.strategies import call
from tests import calls
from tests.reference import brute

TASKS = tasks_that(lambda task: task.has_first_bounds)
LIMITS = [1e-300, 1e-9, 1e-4]


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no work of a call begin."""
    monkeypatch.setattr(call, "do_in_thread", lambda work: threading.current_thread())


def random_case(task: str, seed: int) -> tuple[Model, dict[int, int], tuple[int, ...]]:
    """Return a model with forbidden tuples that suits a task, evidence, and a query."""
    rng = np.random.default_rng(seed)
    sizes = [int(rng.choice([1, 2, 3])) for _ in range(5)]
    sense = "probability" if task in ("pr", "mmap") else str(rng.choice(["min-cost", "max-cost"]))
    factors: list[tuple[tuple[int, ...], Any]] = []
    for _ in range(6):
        scope = tuple(rng.choice(5, size=rng.integers(0, 4), replace=False).tolist())
        shape = tuple(sizes[v] for v in scope)
        costs = rng.integers(-9, 9, shape) if rng.random() < 0.5 or task == "count-optima" else rng.normal(size=shape)
        is_zero = rng.random(shape) < 0.2
        if sense == "probability":
            factors.append((scope, np.where(is_zero, 0.0, np.exp(costs))))
        else:
            factors.append((scope, np.where(is_zero, forbidden_value(sense, costs.dtype), costs)))
    evidence = {v: int(rng.integers(sizes[v])) for v in range(5) if rng.random() < 0.2}
    return Model.from_arrays(sizes, factors, sense=sense), evidence, (0, 3)


def answer_of(task: str, model: Model, evidence: dict[int, int], query: tuple[int, ...]) -> float | None:
    """Return the answer by enumeration; None: no assignment is allowed."""
    if task == "count":
        return brute.count(model, evidence)
    if task == "bottleneck":
        return brute.bottleneck(model, evidence)
    if task == "pr":
        return brute.partition(model, evidence)
    if task == "mmap":
        states = itertools.product(*([evidence[v]] if v in evidence else range(model.sizes[v]) for v in query))
        best = max(brute.partition(model, {**evidence, **dict(zip(query, each, strict=True))}) for each in states)
        return best * math.log(10) if math.isfinite(best) else None
    return brute.optimum(model, evidence)


def check_bounds(task: str, result: elimina.Result, answer: float | None) -> None:
    """Check that bounds hold, or that they prove the answer."""
    if result.status == "infeasible":
        assert answer in (None, -math.inf)
        return
    if result.status in ("exact", "optimal"):
        assert result.ended_by is None
        assert (result.log10_z if task == "pr" else result.value) == pytest.approx(answer)
        return
    assert result.status in ("bounded", "estimated")
    assert result.ended_by == "time-limit"
    if answer is not None:
        slack = 1e-9 * (1 + abs(answer)) if math.isfinite(answer) else 0.0
        assert result.lower_bound is None or result.lower_bound <= answer + slack
        assert result.upper_bound is None or answer <= result.upper_bound + slack


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("task", TASKS)
def test_work_that_never_begins(idle: None, task: str, seed: int) -> None:
    model, evidence, query = random_case(task, seed)
    asked = {"query": query} if task == "mmap" else {}
    result = calls.solve(model, task, evidence=evidence, time_limit=1e-9, device="cpu", **asked)
    assert result.task == task
    assert result.status != "estimated"
    check_bounds(task, result, answer_of(task, model, evidence, query))
    if result.assignment is not None and task != "mmap":
        assert set(result.assignment) == {variable.name for variable in model.variables}
        assert all(model.variables[v].find(result.assignment[f"x{v}"]) == value for v, value in evidence.items())


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("task", TASKS)
def test_short_limits(task: str, limit: float) -> None:
    """Whatever the work has done by then."""
    for seed in range(10):
        model, evidence, query = random_case(task, seed)
        asked = {"query": query} if task == "mmap" else {}
        result = calls.solve(model, task, evidence=evidence, time_limit=limit, device="cpu", **asked)
        answer = answer_of(task, model, evidence, query)
        if result.status == "exact" and task == "count-optima":
            assert result.value == (0 if answer is None else answer)
        else:
            check_bounds(task, result, answer)


def test_likelihoods(idle: None) -> None:
    model = Model.from_arrays([2, 3], [((0, 1), [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])], sense="probability")
    likelihoods = {0: [0.25, 0.75], 1: [1.0, 0.0, 2.0]}
    products = np.array([[0.1, 0.3], [0.4, 0.6]]) * np.array([[0.25], [0.75]]) * np.array([1.0, 2.0])
    result = calls.solve(model, "pr", evidence=likelihoods, time_limit=1e-9, device="cpu")
    assert result.lower_bound <= math.log10(products.sum()) <= result.upper_bound
    result = calls.solve(model, "mpe", evidence=likelihoods, time_limit=1e-9, device="cpu")
    assert result.lower_bound <= math.log(products.max()) <= result.upper_bound
    assert set(result.assignment) == {"x0", "x1"}


def test_questions_that_make_no_sense(idle: None) -> None:
    costs = Model.from_arrays([2, 2], [((0, 1), [[1, 2], [3, 4]])])
    for task in ("pr", "mmap"):
        with pytest.raises(InputError, match=f"task {task} sums probabilities"):
            calls.solve(costs, task, time_limit=1e-9, **({"query": ["x0"]} if task == "mmap" else {}))
    with pytest.raises(InputError, match="no variable 'y'"):
        calls.solve(costs, evidence={"y": 0}, time_limit=1e-9)
    with pytest.raises(InputError, match="leave it out for mpe"):
        calls.solve(costs, query=["x0"], time_limit=1e-9)
    with pytest.raises(UnsupportedError, match="upper bound 3 is for costs"):
        calls.solve(Model.from_arrays([2], [((0,), [0.5, 0.5])], sense="probability"), upper_bound=3, time_limit=1e-9)


def test_what_has_no_bounds(idle: None) -> None:
    costs = Model.from_arrays([2, 2], [((0, 1), [[1, 2], [3, 4]])])
    with pytest.raises(TimeLimitError, match="the time limit passed before anything was known"):
        calls.solve(costs, exact=True, time_limit=1e-9)
    coin = Model.from_arrays([2], [((0,), [0.5, 0.5])], sense="probability")
    with pytest.raises(TimeLimitError, match="passed before anything was known"):
        calls.solve(coin, "mar", exact=True, time_limit=1e-9)


def test_posteriors_of_a_model_that_is_read(idle: None) -> None:
    factors = [((0,), [1.0, 3.0]), ((0, 1), np.ones((2, 3))), ((2,), [1.0, 1.0])]
    model = Model.from_arrays([2, 3, 2], factors, sense="probability")
    result = calls.solve(model, "mar", evidence={2: 1}, time_limit=1e-9)
    assert (result.status, result.ended_by) == ("estimated", "time-limit")
    assert result.stats["method"] == "independent marginals"
    assert result.marginals["x0"] == {0: 0.25, 1: 0.75}
    assert result.marginals["x2"] == {0: 0.0, 1: 1.0}
    assert result.error == 0.5
    assert list(calls.solve(model, "mar", query=["x1"], time_limit=1e-9).marginals) == ["x1"]
    with pytest.raises(TimeLimitError, match="passed before anything was known"):
        calls.solve(model, "mar", method="eliminate", time_limit=1e-9)


def test_bounds_that_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that ends while its first bounds are being made does not wait for them."""
    monkeypatch.setattr(call, "FIRST_BOUNDS_AGE_SECONDS", 0.0)
    made = elimina.Result("bounded", "mpe", 7, 3, 7, {"x": 0})
    seconds: list[float] = []

    def fallback(limit: float) -> elimina.Result:
        seconds.append(limit)
        while len(seconds) == 1 and not stopped():
            pass
        return made

    def work() -> None:
        while not stopped():
            pass

    run = call.Call("mpe", 0.3)
    run.fallback, run.fallback_after = fallback, 0.0
    assert run.answer(work).lower_bound == 3
    assert len(seconds) == 2
