"""Filtered elimination against brute force and against plain elimination."""

from __future__ import annotations

import itertools
import math
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, MemoryLimitError, Model, UnsupportedError
from elimina._core import minimise_costs
from elimina.generate import random_model
from elimina.methods import filtering
from elimina.methods.filtering import filtered_optimum, filtered_solutions
from elimina.methods.k_best_search import ranked_solutions
from elimina.methods.search_state import SearchLimits
from elimina.problem.preparation import prepare
from tests import calls
from tests.methods.test_best_assignments import allowed
from tests.methods.test_bucket_elimination import some_evidence
from tests.random_models import models
from tests.reference import brute

ROOM = 1 << 28


def filtered(model, evidence=None, **limits):
    return filtered_optimum(prepare(model, "mpe", evidence or {}), SearchLimits(**limits), ROOM)


def check_assignment(model, result, evidence):
    chosen = [v.index(result.assignment[v.name]) for v in model.variables]
    assert all(chosen[v] == value for v, value in evidence.items())
    assert model.score(chosen) == result.value


@pytest.mark.parametrize("kind", ["integer", "max-integer"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_optimum(kind, data):
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    result = filtered(model, evidence)
    brute.check_optimum(model, result, evidence)


@pytest.mark.parametrize("kind", ["integer", "max-integer"])
@settings(max_examples=150, deadline=None)
@given(data=st.data(), off=st.integers(-3, 3))
def test_a_bound_that_is_given(kind, data, off):
    """The optimum itself, or a worse total, changes nothing; a better one than any says that nothing reaches it."""
    model = data.draw(models(kind))
    expected = brute.optimum(model)
    if expected is None:
        return
    result = filtered(model, upper_bound=expected + off)
    worse = off if model.sense == "min-cost" else -off
    if worse >= 0:
        assert (result.status, result.value) == ("optimal", expected)
        check_assignment(model, result, {})
    else:
        assert (result.status, result.value) == ("infeasible", None)
        beyond = expected + off + (1 if model.sense == "min-cost" else -1)
        assert beyond in (result.lower_bound, result.upper_bound)


def network(rng, variables, size, arity, factors, forbidden):
    tables = []
    for _ in range(factors):
        scope = rng.choice(variables, arity, replace=False).tolist()
        costs = rng.integers(0, 30, [size] * arity)
        tables.append((scope, np.where(rng.random(costs.shape) < forbidden, elimina.FORBIDDEN, costs)))
    return Model.from_arrays([size] * variables, tables)


@pytest.mark.parametrize("rows", [3, 60, 1 << 20])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_few_rows_cut_and_slice(rows, seed):
    rng = np.random.default_rng(seed)
    model = network(
        rng, 14, int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(14, 34)), rng.random() * 0.5
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filtering, "_MIN_TUPLES", rows)
        patch.setattr(filtering, "_TUPLE_BYTES", ROOM)
        result = filtered(model)
    expected = calls.solve(model, device="cpu", order_seconds=0.05)
    assert (result.status, result.value) == (expected.status, expected.value)
    if rows == 3 and result.stats["eliminations"] > 3:
        assert result.stats["largest_table"] <= 3


def check_best(model, k, evidence=None, start=None):
    """Compare the best assignments with those of brute force; return their values."""
    problem = prepare(model, "mpe", evidence or {})
    expected = allowed(model, evidence)
    if not problem.free:
        return
    solutions = filtered_solutions(problem, k, SearchLimits(), ROOM, 0, start)
    assert solutions.is_complete
    ranked, _ = ranked_solutions(problem, k, solutions.values)
    assert [value for value, _ in ranked] == list(expected.values())[:k]
    assert len({tuple(chosen) for _, chosen in ranked}) == len(ranked)
    assert all(expected[tuple(chosen)] == value for value, chosen in ranked)


@pytest.mark.parametrize("kind", ["integer", "max-integer"])
@settings(max_examples=200, deadline=None)
@given(data=st.data(), k=st.integers(2, 30), knows_one=st.booleans())
def test_best_assignments(kind, data, k, knows_one):
    """A known assignment, of any value, changes nothing."""
    model = data.draw(models(kind))
    evidence = some_evidence(data, model)
    known = list(allowed(model, evidence))
    start = list(data.draw(st.sampled_from(known))) if known and knows_one else None
    check_best(model, k, evidence, start)


@pytest.mark.parametrize("rows", [3, 40])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), k=st.integers(2, 60))
def test_best_assignments_of_slices(rows, seed, k):
    rng = np.random.default_rng(seed)
    model = network(rng, 9, 3, int(rng.integers(2, 4)), int(rng.integers(9, 20)), rng.random() * 0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filtering, "_MIN_TUPLES", rows)
        patch.setattr(filtering, "_TUPLE_BYTES", ROOM)
        check_best(model, k)


def test_time_that_is_up_leaves_bounds_on_the_other_assignments():
    model = random_model(40, 10, 0.5, 0.0, seed=3)
    problem = prepare(model, "mpe", {})
    solutions = filtered_solutions(problem, 5, SearchLimits(time.monotonic() + 0.3), ROOM, 0, None)
    assert not solutions.is_complete
    ranked, _ = ranked_solutions(problem, 5, solutions.values)
    assert len(ranked) == 5
    assert solutions.bound < ranked[0][0]


def test_time_that_is_up_leaves_bounds():
    model = random_model(40, 10, 0.5, 0.0, seed=3)
    seen = []
    result = filtered_optimum(
        prepare(model, "mpe", {}), SearchLimits(time.monotonic() + 0.3), ROOM, listener=seen.append
    )
    assert result.status == "bounded"
    assert result.lower_bound < result.upper_bound == result.value
    check_assignment(model, result, {})
    pairs = itertools.pairwise(seen)
    worst = math.inf
    assert all(a.lower_bound <= b.lower_bound for a, b in pairs)
    assert all((a.value or worst) >= (b.value or worst) for a, b in itertools.pairwise(seen))
    assert all(check_assignment(model, known, {}) is None for known in seen if known.value is not None)


@pytest.mark.data
def test_it_is_asked_while_rows_are_cut(data_dir, monkeypatch):
    """The first attempt cuts millions of rows: the 60th question comes after 5 million candidates, not 9."""
    made = []

    def until_asked(*arguments):
        asked = itertools.count(1)
        found = minimise_costs(*arguments[:-1], lambda *_: next(asked) < 60)
        made.append(found["made"])
        return found

    monkeypatch.setattr(filtering, "minimise_costs", until_asked)
    model = elimina.read(data_dir / "wcsp" / "celar6" / "CELAR6-SUB4-20.wcsp")
    assert filtered_optimum(prepare(model, "mpe", {}), SearchLimits(), 1 << 31).status == "bounded"
    assert made[0] < 7_000_000


def test_interrupts_pass():
    class Stop(Exception):
        pass

    def stop(known):
        raise Stop

    with pytest.raises(Stop):
        filtered_optimum(prepare(random_model(30, 8, 0.5, 0.2), "mpe", {}), SearchLimits(), ROOM, listener=stop)


def test_ctrl_c_leaves_bounds():
    model = random_model(40, 10, 0.5, 0.0, seed=3)
    timer = threading.Timer(0.7, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    result = calls.solve(model, method="filter", device="cpu", time_limit=60)
    assert (result.status, result.ended_by) == ("bounded", "interrupt")
    assert result.lower_bound < result.upper_bound == result.value


def test_costs_as_large_as_allowed():
    most = filtering.MAX_FILTERED_COST - 2
    model = Model.from_arrays([2, 2], [((0,), [most, 0]), ((0, 1), [[0, 1], [elimina.FORBIDDEN, elimina.FORBIDDEN]])])
    assert filtered(model).value == most
    with pytest.raises(UnsupportedError, match="ranges add up to"):
        filtered(Model.from_arrays([2, 2], [((0,), [most, 0]), ((1,), [2, 0])]))


@pytest.mark.parametrize("kind", ["float", "probability"])
def test_what_is_no_integer_cost(kind):
    sense = "probability" if kind == "probability" else "min-cost"
    with pytest.raises(InputError, match="integer costs"):
        filtered(Model.from_arrays([2], [((0,), [0.5, 0.25])], sense=sense))


def test_tables_that_are_too_large():
    """3^16 cells would be 2^32 with sizes rounded up."""
    table = elimina.Table(range(16), [5], sizes=[3] * 16, rows=[[0] * 16], default=0)
    model = Model([elimina.Variable(f"v{i}", 3) for i in range(16)], [table])
    with pytest.raises(UnsupportedError, match="tables of at most"):
        filtered(model)


def test_copies_of_tables_keep_the_memory_limit():
    """Nine tables of 10^6 cells; what is forbidden leaves nothing to do once they are there."""
    rng = np.random.default_rng(0)
    factors = [((v, v + 1), rng.integers(0, 9, (1000, 1000))) for v in range(9)]
    model = Model.from_arrays([1000] * 10, factors)
    filtering_first = elimina.Options(method="filter")
    with pytest.raises(MemoryLimitError, match=r"copies of the tables and may use 64\.0 MiB.*\(memory\)"):
        elimina.solve(model, options=filtering_first, device="cpu", memory="64MiB")
    assert elimina.solve(model, device="cpu", memory="64MiB").status == "optimal"
    assert elimina.solve(model, options=filtering_first, device="cpu", memory="2GiB").status == "optimal"
