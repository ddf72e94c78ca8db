"""The task kbest: the best assignments in order, on the command line and in Python, and what ends it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, Model, Options, Table, Variable
from elimina.methods import best_assignments
from elimina.strategies import conditions, k_best
from tests.methods.test_best_assignments import allowed, random_model


@given(seed=st.integers(0, 10**6), sense=st.sampled_from(["min-cost", "max-cost", "probability"]), k=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_the_best_assignments(seed, sense, k):
    model = random_model(seed, sense)
    evidence = {f"x{seed % 6}": 0} if seed % 3 else {}
    expected = allowed(model, {seed % 6: 0} if evidence else {})
    result = elimina.solve(model, "kbest", evidence=evidence, k=k)
    assert [value for value, _ in result.ranked] == pytest.approx(list(expected.values())[:k], abs=1e-8)
    if not expected:
        assert (result.status, result.assignment, result.value) == ("infeasible", None, None)
        return
    assert len({tuple(model.indices_of(assignment)) for _, assignment in result.ranked}) == len(result.ranked)
    assert result.status == "optimal"
    assert (result.value, result.assignment) == tuple(result.ranked[0])
    assert result.lower_bound == result.upper_bound == result.value


@pytest.mark.parametrize("left_out", [(), ("filter",), ("optimum first", "filter"), ("branch and bound at once",)])
@given(seed=st.integers(0, 10**6), sense=st.sampled_from(["min-cost", "max-cost", "probability"]), k=st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_the_methods_before_an_elimination_that_is_long(left_out, seed, sense, k):
    model = random_model(seed, sense)
    expected = list(allowed(model).values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "SHORT_ELIMINATION_SECONDS", 0.0)
        patch.setattr(k_best, "ROWS", tuple(row for row in k_best.ROWS if row.name not in left_out))
        result = elimina.solve(model, "kbest", k=k)
    assert [value for value, _ in result.ranked] == pytest.approx(expected[:k], abs=1e-8)
    assert result.status == ("optimal" if expected else "infeasible")


def test_a_model_whose_messages_do_not_fit():
    """A grid of 30 x 30 variables of 4 states, whose states cost 0, 1, 3 and 9: one variable after another moves."""
    tables = [((v,), [0, 1, 3, 9]) for v in range(900)]
    edges = [(v, v + 1) for v in range(900) if v % 30 < 29] + [(v, v + 30) for v in range(870)]
    tables += [(edge, np.diag([0, 1, 1, 1])) for edge in edges]
    result = elimina.solve(Model.from_arrays([4] * 900, tables), "kbest", k=10, memory="64MiB")
    assert result.status == "optimal"
    assert result.stats["method"] == "filter"
    assert [value for value, _ in result.ranked] == [0, *[1] * 9]
    assert len({tuple(assignment.values()) for _, assignment in result.ranked}) == 10


def test_an_end_of_branch_and_bound_leaves_the_best_assignment():
    rng = np.random.default_rng(1)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 200, (800, 2)) if a != b]
    model = Model.from_arrays([4] * 200, [(edge, rng.integers(0, 100, (4, 4))) for edge in edges])
    result = elimina.solve(model, "kbest", k=10, time_limit=1.0)
    assert (result.status, result.ended_by) == ("bounded", "time-limit")
    assert result.lower_bound < result.upper_bound == model.score(model.indices_of(result.assignment))
    assert result.ranked == ()


def test_an_end_after_the_optimum_leaves_it_as_the_first_assignment(monkeypatch):
    monkeypatch.setattr(conditions, "SHORT_ELIMINATION_SECONDS", 0.0)
    rows = [row._replace(method=None) if row.name != "optimum first" else row for row in k_best.ROWS]
    monkeypatch.setattr(k_best, "ROWS", tuple(rows))
    model = Model.from_arrays([3, 3], [((0, 1), [[2, 1, 3], [4, 5, 6], [7, 8, 9]])])
    result = elimina.solve(model, "kbest", k=3)
    assert (result.status, result.lower_bound, result.upper_bound) == ("bounded", 1, 1)
    assert [value for value, _ in result.ranked] == [1]


def test_values_that_no_table_tells_apart_are_all_listed():
    """Other tasks take equal states for one: see the tests of large domains."""
    rows = np.array([[0, 0], [1, 1]])
    factor = Table([0, 1], np.array([1, 2]), sizes=(5000, 5000), rows=rows, default=9)
    model = Model([Variable("a", 5000), Variable("b", 5000)], [factor])
    result = elimina.solve(model, "kbest", k=6)
    assert [value for value, _ in result.ranked] == [1, 2, 9, 9, 9, 9]
    assert len({tuple(assignment.items()) for _, assignment in result.ranked}) == 6


def test_a_limit_leaves_the_best_ones():
    model = Model.from_arrays([4] * 60, [((v, v + 1), np.eye(4, dtype=int)) for v in range(59)])
    result = elimina.solve(model, "kbest", time_limit=1.0, k=10**9)
    assert (result.status, result.ended_by) == ("bounded", "time-limit")
    values = [value for value, _ in result.ranked]
    assert values == sorted(values)
    assert result.value == values[0] == 0


def test_memory_leaves_the_best_ones(monkeypatch):
    monkeypatch.setattr(best_assignments, "host_memory", lambda options: 40_000)
    model = Model.from_arrays([4] * 30, [((v, v + 1), np.eye(4, dtype=int)) for v in range(29)])
    result = elimina.solve(model, "kbest", k=10**6)
    assert (result.status, result.ended_by) == ("bounded", "memory-limit")
    assert len(result.ranked) > 1
    assert {value for value, _ in result.ranked} == {0}


def test_the_number_is_an_argument_or_an_option():
    model = Model.from_arrays([6, 6], [((0, 1), np.arange(36).reshape(6, 6))])
    for expected, arguments in ((3, {"k": 3}), (3, {"options": Options(k=3)}), (4, {"k": 4, "options": Options(k=3)})):
        result = elimina.solve(model, "kbest", **arguments)
        assert [value for value, _ in result.ranked] == list(range(expected))
    assert len(elimina.solve(model, "kbest").ranked) == 10


def test_frames_have_a_row_for_each():
    pytest.importorskip("pandas")
    model = Model.from_arrays({"a": ["x", "y"], "b": 2}, [(("a", "b"), [[3, 1], [0, 2]])])
    result = elimina.solve(model, "kbest", k=3)
    frame = result.to_frame()
    assert frame.to_dict("list") == {"a": ["y", "x", "y"], "b": [0, 1, 1], "value": [0, 1, 2]}
    assert str(result).splitlines()[-1].split() == ["3:", "2", "a=y", "b=1"]


@pytest.mark.parametrize("k", [3, 10])
def test_other_tasks_take_no_number_of_assignments(k):
    model = Model.from_arrays([2], [((0,), [1, 2])])
    with pytest.raises(InputError, match="a number of assignments is for the task kbest: leave it out for mpe"):
        elimina.solve(model, k=k)
    with pytest.raises(InputError, match="a number of assignments is for the task kbest"):
        elimina.solve(model, options=Options(k=k))
    with pytest.raises(InputError, match="k is 0"):
        elimina.solve(model, "kbest", k=0)
