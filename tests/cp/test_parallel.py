"""Searches in several threads find what one finds."""

from __future__ import annotations

import itertools
import math
import os
import signal
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import _core, cp
from elimina.errors import InputError
from tests import calls
from tests.cp.brute import found
from tests.cp.flatzinc_solver import solved
from tests.cp.test_search import creeping, golomb, models, parity, queens


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("options", [{}, {"free": True}, {"restarts": "constant", "restart_scale": 3}])
def test_every_solution_once(threads: int, options: dict[str, object]) -> None:
    model, xs = queens(8)
    assert len(found(model, xs, threads=threads, **options)) == 92
    model.search(xs, "first_fail", "indomain_random")
    result = calls.search(model, all_solutions=True, threads=threads, **options)
    assert result.stats["solutions"] == len(result.solutions) == 92


@settings(max_examples=100, deadline=None)
@given(models(), st.sampled_from([2, 5]), st.booleans(), st.booleans())
def test_threads_change_no_answer(made: tuple[cp.Model, int], threads: int, free: bool, lns: bool) -> None:
    model, count = made
    xs = [cp.Expression(model, {i: 1}) for i in range(count)]
    plain = {tuple(s[xs]) for s in itertools.islice(model.solutions(), 300)}
    if len(plain) == 300:
        return
    assert found(model, xs, threads=threads, free=free) == plain
    model.maximize(sum(xs, start=0))
    best = calls.search(model, threads=threads, free=free, lns=lns)
    assert best.value == (max(map(sum, plain)) if plain else None)
    assert best.stats["complete"]


def test_solutions_get_better() -> None:
    model, _ = golomb(6)
    seen: list[int] = []
    result = model.solve(threads=4, on_solution=lambda s: seen.append(s[model.objective]))
    assert (result.status, result.value) == ("optimal", 17)
    assert seen == sorted(set(seen), reverse=True)


def test_more_solutions_than_wait() -> None:
    model = cp.Model()
    xs = model.int_vars(4, 0, 6)
    assert found(model, xs, threads=3) == set(itertools.product(range(7), repeat=4))
    # The first ones, while threads wait until there is room for more; again and again.
    for _ in range(20):
        assert len(model.solve(all_solutions=True, solution_limit=3, threads=3).solutions) == 3


@pytest.mark.parametrize("make", [creeping, parity])
def test_time_ends_threads(make: object) -> None:
    before = time.perf_counter()
    assert make().solve(time_limit=0.2, threads=3).status in ("unknown", "infeasible")
    assert time.perf_counter() - before < 3


@pytest.mark.parametrize(("limit", "name"), [("node_limit", "nodes"), ("fail_limit", "failures")])
def test_limits(limit: str, name: str) -> None:
    model, xs = queens(60)
    model.search(xs, "input_order", "indomain_min")
    result = calls.search(model, threads=2, restarts="none", **{limit: 300})
    assert (result.status, result.stats["complete"]) == ("unknown", False)
    assert 300 <= result.stats[name] <= 300 + 2 * (result.stats["peak_depth"] + 2)


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize(("limit", "name"), [("node_limit", "nodes"), ("fail_limit", "failures")])
def test_limits_hold_for_all_threads_together(limit: str, name: str, threads: int) -> None:
    for number in (0, 300):
        model, xs = queens(30)
        model.minimize(sum(x * (place % 7 - 3) for place, x in enumerate(xs)))
        result = calls.search(model, threads=threads, **{limit: number})
        assert result.ended_by == limit.replace("fail_limit", "failure-limit").replace("_", "-")
        # In a step, each thread may go back over all of its decisions.
        assert number <= result.stats[name] <= number + threads * (result.stats["peak_depth"] + 2)


def test_interruption() -> None:
    for make in (creeping, lambda: queens(60)[0]):
        model = make()
        xs = [cp.Expression(model, {i: 1}) for i in range(len(model._variables))]
        model.search(xs, "input_order", "indomain_min")
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        before = time.perf_counter()
        assert calls.search(model, threads=2, restarts="none").status == "unknown"
        assert time.perf_counter() - before < 5
        timer.join()


def test_flatzinc() -> None:
    text = (
        "array [1..6] of var 1..6: x :: output_array([1..6]); var -6..6: o :: output_var;\n"
        "constraint fzn_all_different_int(x); constraint int_lin_eq([1,-1,-1],[x[1],x[6],o],0);\n"
        "constraint int_lin_le([1,-1],[x[2],x[3]],-1); solve {};\n"
    )
    assert len(solved(text.format("satisfy"), threads=4)) == 360
    assert solved(text.format("maximize o"), threads=4)[-1]["o"] == 5


@pytest.mark.parametrize("threads", [0, -1, 10**6, "2", 1.5])
def test_refused_threads(threads: object) -> None:
    model, _ = queens(4)
    with pytest.raises(InputError, match="threads"):
        model.solve(threads=threads)


def test_the_core_refuses_what_would_crash() -> None:
    solvers = [_core.CpSolver() for _ in range(2)]
    solvers[0].new_variables(2, 0, 5)
    for given_solvers in ((), tuple(solvers)):
        with pytest.raises(ValueError, match="solver"):
            _core.CpSearch(given_solvers, [], None, None, None, False, 0, 1.0, 1e9, 1e9)
    model = _core.FlatZinc(b"var 1..3: x :: output_var; solve satisfy;", lambda: True)
    with pytest.raises(ValueError, match="thread"):
        model.search(False, 0, math.inf, 0, False, lambda: True)


@pytest.mark.parametrize("free", [False, True])
def test_limits_hold_while_threads_find_solutions_without_pause(free):
    model = cp.Model()
    x, y = model.int_vars(2, 0, 10**9, "x")
    model.add(x + y <= 10**9)
    model.maximize(x)
    # Each solution is better by 1 than the one before it.
    model.search([x], "input_order", "indomain_min")
    result = model.solve(threads=2, options=cp.SearchOptions(node_limit=20_000, free=free))
    assert (result.status, result.ended_by) == ("feasible", "node-limit")
    assert result.stats["nodes"] < 500_000
