"""Assignments whose worst table is best: bottleneck costs (min-max), fuzzy constraints (max-min)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.errors import InputError, MemoryLimitError
from elimina.generate import grid_model
from elimina.methods.first_bounds import first_bounds
from elimina.model.model import Model, Variable
from elimina.model.table import Table
from elimina.problem.preparation import prepare
from tests.calls import solve
from tests.random_models import KINDS, models
from tests.reference import brute
from tests.simulated import simulate


def check(model, result, evidence=None):
    """The value of brute force, reached by the assignment."""
    expected = brute.bottleneck(model, evidence)
    assert result.task == "bottleneck"
    if expected is None:
        assert (result.status, result.value, result.assignment) == ("infeasible", None, None)
        return
    assert (result.status, result.value) == ("optimal", expected)
    chosen = model.indices_of(result.assignment)
    assert all(chosen[v] == value for v, value in (evidence or {}).items())
    values = [table.at(chosen) for table in model.factors]
    assert expected == (max(values) if model.sense == "min-cost" else min(values))


@pytest.mark.parametrize("tables", ["dense", "sparse"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "big-integer"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_against_brute_force(tables, kind, data):
    model = data.draw(models(kind).filter(lambda model: model.factors))
    observed = [v for v in range(len(model.variables)) if data.draw(st.integers(0, 4)) == 0]
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    dtypes = [None, "float64", *(["int32", "int64"] if "integer" in kind else [])]
    dtype = data.draw(st.sampled_from(dtypes))
    result = solve(model, "bottleneck", evidence=evidence, tables=tables, dtype=dtype, device="cpu")
    check(model, result, evidence)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_first_bounds_hold(kind, data):
    model = data.draw(models(kind).filter(lambda model: model.factors))
    observed = [v for v in range(len(model.variables)) if data.draw(st.integers(0, 4)) == 0]
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    result = first_bounds(prepare(model, "bottleneck", evidence), math.inf)
    if result is None:
        return
    expected = brute.bottleneck(model, evidence)
    if result.status == "infeasible":
        assert expected is None
        return
    if expected is not None:
        assert result.lower_bound is None or result.lower_bound <= expected
        assert result.upper_bound is None or result.upper_bound >= expected
    if result.assignment is not None:
        chosen = model.indices_of(result.assignment)
        values = [table.at(chosen) for table in model.factors]
        assert result.value == (max(values) if model.sense == "min-cost" else min(values))
    if result.status == "optimal":
        assert result.value == expected


@pytest.mark.parametrize("memory", [*range(20, 60, 3), 1000])
def test_answers_in_little_memory_of_a_gpu(monkeypatch, memory):
    """Plans in segments, which add up costs, are not for worst costs."""
    simulate(monkeypatch, 1 << 20)
    tables = [Table([0], np.array([0, 1])), Table([1], np.array([2, 1])), Table([], np.array(0))]
    model = Model([Variable("x", 2), Variable("y", 2)], tables, sense="max-cost")
    result = solve(model, "bottleneck", device="cuda", memory=f"{memory}B")
    if result.status != "bounded":
        check(model, result)


def test_bounds_where_tables_do_not_fit():
    model = grid_model(20, 3, 0.0, seed=4)
    result = elimina.solve(model, "bottleneck", device="cpu", memory="1MiB", options=elimina.Options(exact=True))
    assert (result.status, result.stats["method"]) == ("optimal", "thresholds")
    result = elimina.solve(model, "bottleneck", device="cpu", memory="256KiB")
    assert (result.status, result.stats["method"]) == ("bounded", "first bounds")
    assert result.lower_bound < result.value == result.upper_bound
    for options in (elimina.Options(method="eliminate"), elimina.Options(exact=True)):
        with pytest.raises(MemoryLimitError):
            elimina.solve(model, "bottleneck", device="cpu", memory="256KiB", options=options)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_integers_of_56_bits(data):
    model = data.draw(models("big-integer").filter(lambda model: model.factors))
    check(model, solve(model, "bottleneck", device="cpu"))


def test_costs_need_no_room_for_sums():
    tables = [((0,), [20_000 - n, n]) for n in range(9)]
    model = Model.from_arrays([2], tables)
    assert elimina.plan(model, "bottleneck").dtype == "int32"
    halves = Model.from_arrays([2], [(scope, [cost // 2 for cost in costs]) for scope, costs in tables])
    assert elimina.plan(halves, "bottleneck").dtype == "int16"
    assert elimina.plan(halves, "mpe").dtype == "int32"


def test_bottleneck_assignment():
    """Four workers, four jobs, each job once: the least time at which all may be done."""
    times = np.array([[9, 5, 7, 8], [6, 4, 3, 9], [5, 8, 1, 8], [7, 6, 9, 4]])
    different = np.where(np.eye(4, dtype=bool), elimina.FORBIDDEN, 0)
    pairs = [(pair, different) for pair in itertools.combinations(range(4), 2)]
    model = Model.from_arrays([4] * 4, [*(((v,), times[v]) for v in range(4)), *pairs])
    least = min(max(times[v, job] for v, job in enumerate(jobs)) for jobs in itertools.permutations(range(4)))
    result = elimina.solve(model, "bottleneck")
    assert (result.status, result.value) == ("optimal", least)
    assert sorted(result.assignment.values()) == [0, 1, 2, 3]


def test_degrees_of_satisfaction():
    """Fuzzy constraints: the worst degree is maximised, and 0 is not allowed."""
    dessert = np.array([[0.4, 1.0], [0.9, 0.3]])
    taste = np.array([0.8, 0.6])
    model = Model.from_arrays([2, 2], [((0, 1), dessert), ((0,), taste)], sense="probability")
    result = elimina.solve(model, "bottleneck")
    assert (result.value, result.assignment) == (0.8, {"x0": 0, "x1": 1})
    nothing = Model.from_arrays([2], [((0,), [0.0, 0.5]), ((0,), [0.7, 0.0])], sense="probability")
    assert elimina.solve(nothing, "bottleneck").status == "infeasible"


def test_the_constant_is_no_table():
    model = Model.from_arrays([2], [((0,), [-3, -5])], constant=7)
    assert elimina.solve(model, "bottleneck").value == -5


def test_a_model_without_tables():
    with pytest.raises(InputError, match="the model has no tables"):
        elimina.solve(Model.from_arrays([2], []), "bottleneck")


def test_large_listed_tables():
    """Their tuples are not replaced by auxiliary tables, whose costs of 0 would be the worst."""
    rows = np.array([[0, 0], [99_999, 1], [5, 2]])
    listed = Table([0, 1], [-4, -9, -2], sizes=[100_000, 3], rows=rows, default=elimina.FORBIDDEN)
    model = Model([Variable("x0", 100_000), Variable("x1", 3)], [listed, Table([1], [-8, -7, -6])])
    result = elimina.solve(model, "bottleneck")
    assert (result.value, result.assignment) == (-7, {"x0": 99_999, "x1": 1})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "search"}, "cannot answer the task bottleneck"),
        ({"ibound": 2}, "an i-bound is for the tasks"),
        ({"upper_bound": 3}, "an upper bound is for the task mpe"),
    ],
)
def test_what_is_refused(options, reason):
    model = Model.from_arrays([2], [((0,), [1, 2])])
    with pytest.raises(InputError, match=reason):
        solve(model, "bottleneck", **options)


def test_likelihoods_are_refused():
    model = Model.from_arrays([2], [((0,), [0.1, 0.2])], sense="probability")
    with pytest.raises(InputError, match="which the task bottleneck cannot take"):
        elimina.solve(model, "bottleneck", evidence={0: [0.5, 0.5]})


@pytest.mark.parametrize("tables", ["dense", "sparse"])
@pytest.mark.parametrize("evidence", [{}, {"a": 1}])
@pytest.mark.parametrize(
    ("sense", "value"),
    [("min-cost", 1e39), ("min-cost", -1e300), ("max-cost", 1e300), ("max-cost", -1e39), ("probability", 1e300)],
)
def test_values_beyond_a_number_type_are_refused(sense, value, evidence, tables):
    # Infinity means forbidden, so a rounded value of 1e39 would make the only assignment impossible.
    variables = [Variable("a", 2), Variable("b", 2)]
    model = Model(variables, [Table([0, 1], np.array([[1.0, value], [value, value]]))], sense=sense)
    with pytest.raises(InputError, match=r"up to 1e\+\d+, are beyond float32: use dtype float64"):
        solve(model, "bottleneck", evidence=evidence, dtype="float32", tables=tables, method="eliminate")
    check(
        model, solve(model, "bottleneck", evidence=evidence, dtype="float64", tables=tables), {0: 1} if evidence else {}
    )


def test_evidence_may_rule_out_values_beyond_a_number_type():
    model = Model([Variable("a", 2)], [Table([0], np.array([2.0, 1e300]))], sense="min-cost")
    result = solve(model, "bottleneck", evidence={"a": 0}, dtype="float32", method="eliminate")
    assert (result.status, result.value) == ("optimal", 2.0)
