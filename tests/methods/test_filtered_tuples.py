"""Rows filtered by bounds against brute force: the bounds are lower bounds, and nothing that matters is dropped."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elimina import FORBIDDEN, MemoryLimitError, Model, TimeLimitError, UnsupportedError
from elimina.backends.cpu import CpuBackend
from elimina.backends.registry import get_backend
from elimina.backends.sparse import bounds as row_bounds
from elimina.backends.sparse.bounds import TupleBounds
from elimina.backends.sparse.cpu import CpuSparseDevice
from elimina.generate import random_model
from elimina.methods import filtering
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.cost_shifting import ShiftedProblem, shift_tables
from elimina.methods.filtering import FilterBounds, filtered_plan
from elimina.planning import sparse
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.number_type import cost_bound
from elimina.planning.ordering import elimination_order
from elimina.problem.preparation import prepare
from elimina.result import Result
from elimina.running.encoding import encode
from elimina.running.execution import Execution
from tests import calls
from tests.devices import on_devices
from tests.random_models import models
from tests.reference import brute

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=[4, 1 << 12], autouse=True)
def cells(request, monkeypatch):
    """Small mini-buckets are divided even in small models."""
    monkeypatch.setattr(sparse, "CELLS", request.param)
    monkeypatch.setattr(row_bounds, "CELLS", request.param)


def known_of(model, shifted, upper=None, result=None):
    problem, options = prepare(model, "mpe", {}), CheckedOptions(device="cpu")
    original = shift_tables(problem, options, 1.0) if shifted else ShiftedProblem(problem, None)
    order = elimination_order(original.moved, options)
    return FilterBounds(result or Result("bounded", "mpe"), upper, original, order)


def filtered(known, device="cpu"):
    found = filtering._improve(known, get_backend(device), CheckedOptions(device=device), None, {})
    return known.answer(found)


@on_devices
@pytest.mark.parametrize("kind", ["integer", "max-integer"])
@FEW
@given(data=st.data(), shifted=st.booleans())
def test_optimum(device, kind, data, shifted):
    model = data.draw(models(kind))
    brute.check_optimum(model, filtered(known_of(model, shifted), device))


@on_devices
@pytest.mark.parametrize("kind", ["integer", "max-integer"])
@FEW
@given(data=st.data(), shifted=st.booleans(), off=st.integers(-3, 3))
def test_a_bound_that_is_given(device, kind, data, shifted, off):
    """The optimum itself, or a worse total, changes nothing; a better one than any says that nothing reaches it."""
    model = data.draw(models(kind))
    expected = brute.optimum(model)
    if expected is None:
        return
    result = filtered(known_of(model, shifted, expected + off), device)
    sign = 1 if model.sense == "min-cost" else -1
    if sign * off >= 0:
        brute.check_optimum(model, result)
    else:
        assert (result.status, result.value) == ("infeasible", None)
        assert expected + off + sign in (result.lower_bound, result.upper_bound)


@on_devices
@pytest.mark.parametrize("kind", ["integer", "max-integer"])
@FEW
@given(data=st.data(), shifted=st.booleans(), below=st.sampled_from([None, 0, 1, 5]))
def test_a_solution_that_is_known(device, kind, data, shifted, below):
    """The best one stays where there is no better one; any other one is improved. So with a bound on the other side."""
    model = data.draw(models(kind))
    pairs = [(chosen, model.score(chosen)) for chosen in brute.assignments(model)]
    allowed = [(c, s) for c, s in pairs if np.isfinite(float(s)) and not model.is_beyond_bound(s)]
    if not allowed:
        return
    chosen, score = data.draw(st.sampled_from(allowed))
    assignment = {v.name: v.state(x) for v, x in zip(model.variables, chosen, strict=True)}
    sign = 1 if model.sense == "min-cost" else -1
    bound = None if below is None else brute.optimum(model) - sign * below
    ends = (bound, score) if sign == 1 else (score, bound)
    result = Result("bounded", "mpe", score, *ends, assignment)
    brute.check_optimum(model, filtered(known_of(model, shifted, None, result), device))


@FEW
@given(data=st.data())
def test_bounds_are_lower_bounds(data):
    """Return a bound on the output and one on the rest, for each step and assignment, from the tables themselves."""
    model = data.draw(models("integer", max_variables=5))
    known = known_of(model, shifted=False)
    planned = filtered_plan(known, CpuBackend(), CheckedOptions(device="cpu"))
    plan, problem = planned.plan, planned.problem
    encoded = encode(problem, plan)
    if plan.sparse is None or encoded.impossible:
        return
    program = Execution(problem, plan, planned.backend).program()
    device = CpuSparseDevice(program.semiring, program.dtype, program.parameter)
    bounds = TupleBounds(CpuBackend(), device, program, plan.sparse.outside, encoded.arena)
    least = {number: {} for number in range(len(plan.steps))}
    for values in itertools.product(*(range(v.size) for v in model.variables)):
        if any(values[v] != x for v, x in problem.fixed.items()):
            continue
        score = model.score(values)
        if score >= FORBIDDEN or model.is_beyond_bound(score):
            continue
        distance = int(score) - int(encoded.offset)
        assert bounds.total <= distance
        for number, step in enumerate(plan.steps):
            key = tuple(values[v] for v in (*step.axes, *((step.variable,) if step.variable >= 0 else ())))
            least[number][key] = min(least[number].get(key, distance), distance)
    for number, step in enumerate(plan.steps):
        scope = (*step.axes, *((step.variable,) if step.variable >= 0 else ()))
        for key, distance in least[number].items():
            at = dict(zip(scope, key, strict=True))
            tables = bounds._tables(plan.sparse.outside.others[number])
            rest = sum(int(table.cells[tuple(at[v] for v in table.scope)]) for table in tables)
            assert rest <= distance


@on_devices
def test_bounds_drop_rows(device):
    model = random_model(16, 4, 0.35, 0.1, seed=5)
    expected = calls.solve(model, device="cpu", method="eliminate", tables="dense")
    loose = filtered(known_of(model, True), device)
    close = filtered(known_of(model, True, expected.value), device)
    assert loose.value == close.value == expected.value
    assert close.stats == {}
    made = [
        eliminate(Execution(p.problem, p.plan, p.backend), {}).stats["rows_made"]
        for p in (
            filtered_plan(known_of(model, True, bound), get_backend(device), CheckedOptions(device=device))
            for bound in (None, expected.value)
        )
    ]
    assert made[1] < made[0] / 2


@on_devices
@pytest.mark.parametrize("off", [None, 0, 1, -1])
def test_whole_calls(device, off):
    """The method, from the first bounds on; tuples are made where these do not meet (with many threads they do)."""
    model = random_model(24, 5, 0.3, 0.2, seed=8)
    expected = calls.solve(model, device="cpu", method="eliminate", tables="dense").value
    upper = None if off is None else expected + off
    result = calls.solve(model, device=device, method="filter", tables="sparse", upper_bound=upper, threads=1)
    assert result.stats["method"] == "filter"
    assert result.stats["rows_made"] > 0
    if off == -1:
        assert (result.status, result.value, result.lower_bound) == ("infeasible", None, expected)
    else:
        assert (result.status, result.value) == ("optimal", expected)
        assert model.score([v.index(result.assignment[v.name]) for v in model.variables]) == expected


def test_what_is_infeasible():
    forbidden = np.where(np.eye(3, dtype=bool), FORBIDDEN, 0)
    model = Model.from_arrays([3, 3, 3, 3], [(pair, forbidden) for pair in itertools.combinations(range(4), 2)])
    assert calls.solve(model, method="filter", tables="sparse", device="cpu").status == "infeasible"


def test_what_is_not_integers():
    with pytest.raises(UnsupportedError, match="integer costs"):
        calls.solve(
            Model.from_arrays([2], [([0], np.array([0.5, 1.5]))]), method="filter", tables="sparse", device="cpu"
        )


@on_devices
def test_more_rows_than_fit(device):
    """They are made in slices, as many as it takes."""
    model = random_model(14, 6, 0.5, 0.1, seed=3)
    known = known_of(model, shifted=False)
    options = CheckedOptions(device=device, memory=500 << 10)
    backend = get_backend(device)
    expected = calls.solve(model, device="cpu", method="eliminate", tables="dense")
    with pytest.raises(MemoryLimitError, match="memory"):
        filtering._improve(known, backend, replace(options, slices="never"), None, {})
    found = filtering._improve(known, backend, options, None, {})
    assert (found.value, found.stats["slices"] > 1) == (expected.value, True)


@on_devices
@pytest.mark.parametrize("seed", [2, 3, 6, 9, 10, 12, 15, 33])
def test_slices_share_no_filtered_rows(device, seed):
    """A step that does not depend on a conditioned variable is filtered by tables that do."""
    model = random_model(12, 4, 0.5, 0.1, seed=seed)
    order = tuple(np.random.default_rng(seed).permutation(12).tolist())
    known = FilterBounds(Result("bounded", "mpe"), None, ShiftedProblem(prepare(model, "mpe", {}), None), order)
    backend, problem = get_backend(device), known.limited(None)
    plan = filtered_plan(known, backend, CheckedOptions(device=device, memory=200 << 10), refinements=1).plan
    assert plan.form.variables
    found = eliminate(Execution(problem, plan._replace(forbidden=cost_bound(problem)), backend), {})
    assert found.value == calls.solve(model, device="cpu", method="eliminate", tables="dense").value


def test_time_that_is_up_leaves_bounds(monkeypatch):
    def late(*_):
        raise TimeLimitError("the time limit passed")

    monkeypatch.setattr(filtering, "eliminate", late)
    result = calls.solve(random_model(24, 5, 0.3, 0.2, seed=8), method="filter", tables="sparse", device="cpu")
    assert result.status == "bounded"
    assert result.lower_bound < result.upper_bound == result.value


def test_float_tables_are_refused():
    model = Model.from_arrays([2, 2], [((0, 1), [[0, -5], [0, 1]]), ((1,), [4, 0])])
    with pytest.raises(UnsupportedError, match="dtype is float64; leave it out"):
        calls.solve(model, method="filter", tables="sparse", dtype="float64", device="cpu")
