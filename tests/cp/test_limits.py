"""Limits and options of a search that make no sense."""

from __future__ import annotations

import itertools
import signal
import time
from typing import Any

import numpy as np
import pytest

from elimina import cp
from elimina.errors import InputError, TimeLimitError
from tests import calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 0}, "time_limit is 0 s; it must be above 0"),
        ({"time_limit": float("nan")}, "time_limit is NaN"),
        ({"node_limit": -1}, "node_limit is -1"),
        ({"fail_limit": -2}, "fail_limit is -2"),
        ({"solution_limit": -1}, "solution_limit is -1; it must be"),
        ({"solution_limit": 1.5}, "a solution limit is a whole number"),
        ({"seed": -1}, r"the seed is -1; it must be from 0 to 2\^63 - 1"),
        ({"seed": 0.5}, "a seed is a whole number"),
        ({"seed": "x"}, "a seed is a whole number"),
        ({"restarts": "often"}, "unknown restarts 'often'; it is one of luby"),
        ({"restarts": "luby", "restart_scale": 0}, "at least 1"),
        ({"on_solution": 3}, "on_solution is a function"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    model = cp.Model()
    model.int_vars(3, 0, 5)
    with pytest.raises(InputError, match=message):
        calls.search(model, **options)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, xs: m.weighted_circuit(xs, 3), TypeError, r"edges is 3 \(int\); it takes a mapping of pairs"),
        (lambda m, xs: m.weighted_circuit(xs, {1: 2}), TypeError, r"a key of edges is 1 \(int\); it takes a pair"),
        (lambda m, xs: m.weighted_circuit(None, {(0, 1): 2}), InputError, "weighted_circuit gets a list"),
        (lambda m, xs: m.add_cost(None, [1, 2]), InputError, "add_cost gets a list of variables"),
        (lambda m, xs: m.add_cost(xs[:1], {1: 2}), InputError, "a tuple of values of 1 variable"),
        (lambda m, xs: m.add_cost(xs[:1], [[1], [1, 2]]), TypeError, r"costs is .*; it takes an array of numbers"),
        (lambda m, xs: m.add_cost_rows(xs, None, 3), InputError, "need rows of whole numbers of shape"),
        (lambda m, xs: m.add_cost_rows(xs, [[0, 0, 0]], ["a"]), InputError, "costs are numbers"),
        (lambda m, xs: m.int_var(0, 1, name=3), TypeError, r"name is 3 \(int\); it takes a string"),
        (lambda m, xs: m.int_vars(3, 0, 1, name=3), TypeError, r"name is 3 \(int\); it takes a string"),
        (lambda m, xs: m.int_vars(2**70, 0, 1), InputError, "a number of variables is from 0 to 134,217,728"),
        (lambda m, xs: m.int_var(np.array([[1, 2]])), InputError, "a value of a variable is a whole number"),
        (lambda m, xs: m.all_different(xs, np.zeros((2, 2))), InputError, "the consistency is value, bounds or domain"),
        (lambda m, xs: m.circuit(xs, np.zeros((2, 2))), InputError, "the side is auto, cpu or gpu"),
        (lambda m, xs: m.solve(time_limit="3"), TypeError, r"time_limit is '3' \(str\); it takes a number"),
        (lambda m, xs: calls.search(m, node_limit=True), TypeError, r"node_limit is True \(bool\); it takes a number"),
        (lambda m, xs: m.solve(time_limit=float("nan")), InputError, "time_limit is NaN; it takes a number of seconds"),
        (lambda m, xs: m.solve(device=np.zeros(2)), InputError, "unknown device"),
        (lambda m, xs: cp.Model.from_model(1), TypeError, r"model is 1 \(int\); it takes an elimina.Model"),
    ],
)
def test_wrong_arguments(call, error, message):
    model = cp.Model()
    xs = model.int_vars(3, 0, 2, "x")
    with pytest.raises(error, match=message):
        call(model, xs)


def test_a_huge_domain_is_not_listed():
    model = cp.Model()
    model.int_var(0, 2**31, "x")
    started = time.monotonic()
    with pytest.raises(InputError, match=r"2,147,483,649 values are left.* to variable x: give it a smaller domain"):
        model.propagated()
    assert time.monotonic() - started < 10


def test_the_time_limit_holds_while_constraints_are_posted():
    model = cp.Model()
    xs = model.int_vars(200_000, 0, 1)
    for x, y in itertools.pairwise(xs):
        model.add(x <= y)
    found = model.solve(time_limit=0.01)
    assert (found.status, found.ended_by) == ("unknown", "time-limit")
    assert found.stats["seconds"]["total"] < 3


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"node_limit": 40}, "node-limit"),
        ({"fail_limit": 9}, "failure-limit"),
        ({"solution_limit": 0}, "solution-limit"),
        ({"time_limit": 1e-9}, "time-limit"),
    ],
)
def test_what_ended_a_search(options, cause):
    model = cp.Model()
    xs = model.int_vars(12, 1, 11)
    for k, x in enumerate(xs):
        for y in xs[:k]:
            model.add(x != y)
    found = calls.search(model, **options)
    assert (found.task, found.status, found.ended_by) == ("satisfy", "unknown", cause)
    with pytest.raises(InputError, match="the status is unknown"):
        found[xs]


def test_the_time_limit_includes_what_is_done_with_solutions():
    model = cp.Model()
    model.int_vars(3, 0, 4)
    result = model.solve(all_solutions=True, time_limit=0.1, on_solution=lambda _: time.sleep(0.02))
    assert (result.status, result.ended_by) == ("feasible", "time-limit")
    assert len(result.solutions) <= 6


def test_an_array_is_no_number_of_threads():
    model = cp.Model()
    model.int_vars(2, 0, 1, "x")
    with pytest.raises(InputError, match="number of threads"):
        model.solve(threads=np.array([[1, 2]]))


def test_tables_of_creeping_bounds_keep_the_time_limit():
    model = cp.Model()
    x = model.int_var(1, 2**42)
    # Each look at the remainder, which is less than x, takes one value from x.
    model.post("int_mod", x, x, x)
    model.minimize(x)
    started = time.process_time()
    result = model.solve(threads=2, time_limit=1.0)
    assert time.process_time() - started < 20
    assert result.status in ("unknown", "infeasible")


def creeping() -> cp.Model:
    """A model without solutions whose bounds rise by one at a time, for minutes."""
    model = cp.Model()
    x, y = model.int_vars(2, 0, 2**40)
    model.add(x < y)
    model.add(y < x)
    return model


def test_propagation_keeps_the_time_limit() -> None:
    begun = time.monotonic()
    with pytest.raises(TimeLimitError, match="while the domains were propagated"):
        creeping().propagated(time_limit=0.1)
    assert time.monotonic() - begun < 2
    model = cp.Model()
    x, y = model.int_vars(2, 0, 3)
    model.add(x < y)
    assert model.propagated(time_limit=60) == [[0, 1, 2], [1, 2, 3]]
    with pytest.raises(InputError, match="time_limit is -1"):
        model.propagated(time_limit=-1)


def test_an_interrupt_ends_propagation() -> None:
    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            creeping().propagated()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert time.monotonic() - begun < 2


def test_a_time_limit_passes_between_solutions() -> None:
    """Bounds and listeners take their time from the search, which must not end later for it."""
    model = cp.Model()
    model.int_vars(10, 0, 9)
    solutions = model.solutions(time_limit=1)
    next(solutions)
    time.sleep(1.1)
    assert next(solutions, None) is None
