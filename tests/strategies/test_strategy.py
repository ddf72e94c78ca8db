from __future__ import annotations

import time

import pytest

from elimina._core import Stopped
from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.result import Result
from elimina.running import plan_choice
from elimina.strategies import call_plan
from elimina.strategies import portfolio as portfolio_module
from elimina.strategies.call import Call
from elimina.strategies.strategy import Attempt, Strategy, pursue
from tests import calls
from tests.behaviour.test_fallbacks import clique
from tests.rows import change_row
from tests.simulated import simulate


def bounded(lower, upper):
    return Result("bounded", "count", None, lower, upper)


def failing(error):
    def work(_):
        raise error

    return work


def test_a_portfolio_is_told_what_failed_and_goes_on():
    run, told = Call("count"), []

    def portfolio():
        told.append((yield Strategy(run, "one", failing(MemoryLimitError("too large")))))
        told.append((yield Strategy(run, "two", failing(TimeLimitError("its own time is up")), seconds=0.0)))
        return (yield Strategy(run, "three", lambda _: Result("exact", "count", 3)))

    assert run.answer(lambda: pursue(run, portfolio())).value == 3
    assert [str(attempt.failure) for attempt in told] == ["too large", "its own time is up"]


def test_a_time_limit_inside_a_method_does_not_end_the_call():
    run = Call("count")

    def portfolio():
        outcome = yield Strategy(run, "one", failing(Stopped()))
        assert "a time limit of its own" in str(outcome.failure)
        return (yield Strategy(run, "two", lambda _: Result("exact", "count", 3)))

    assert run.answer(lambda: pursue(run, portfolio())).value == 3


def test_the_last_failure_ends_the_call():
    run = Call("count")

    def portfolio():
        yield Strategy(run, "one", lambda _: bounded(1, 9))
        return (yield Strategy(run, "two", failing(MemoryLimitError("too large"))))

    result = run.answer(lambda: pursue(run, portfolio()))
    assert (result.status, result.ended_by, result.upper_bound) == ("bounded", "memory-limit", 9)


def test_nothing_else_is_tried_once_the_gap_is_reached():
    run = Call("count", gap=0.5)

    def portfolio():
        yield Strategy(run, "one", lambda _: bounded(10, 14))
        raise AssertionError
        return Attempt()

    assert run.answer(lambda: pursue(run, portfolio())).ended_by == "gap"


def test_a_budget_ends_with_the_strategy_or_the_call():
    run = Call("count", time_limit=50.0)
    assert run.budget().deadline == run.deadline
    assert run.budget(5.0).deadline < time.monotonic() + 6


@pytest.mark.parametrize(("task", "kind", "query"), [("mpe", "float", None), ("mmap", "probability", ["x0"])])
def test_nothing_is_prepared_or_ordered_twice(monkeypatch, task, kind, query):
    made = []

    def counted(module, name):
        original = getattr(module, name)

        def count(*arguments, **named):
            if name != "elimination_order" or len(arguments[0].free) > 10:
                made.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(module, name, count)

    for module in (portfolio_module, call_plan):
        counted(module, "observe")
        counted(module, "prepare")
    counted(plan_choice, "elimination_order")
    # The optimum is planned without slices, searched for, and planned with them.
    simulate(monkeypatch, 8000, *([8000] if task == "mpe" else []))
    change_row(monkeypatch, "search before slices", seconds=0.0)
    plans = []
    result = calls.solve(clique(12, kind), task, query=query, device="cpu", slices="auto", on_plan=plans.append)
    assert result.status == "optimal"
    assert (not plans[0].form.variables) == (task == "mmap")
    # What is left to be maximised is a problem of its own.
    problems = 2 if task == "mmap" else 1
    assert sorted(made) == ["elimination_order"] + ["observe"] * problems + ["prepare"] * problems
