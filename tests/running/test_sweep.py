"""Sliced runs against unsliced ones and against brute force."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda import session
from elimina.backends.cuda.events import has_passed
from elimina.generate import grid_model
from elimina.methods import slice_bounds
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.slice_bounds import bound_slices
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.planner import Conditioning, Elimination, make_plan
from elimina.problem.preparation import prepare
from elimina.running.execution import Execution
from elimina.running.plan_choice import plan_problem
from tests import calls
from tests.devices import on_devices
from tests.random_models import KINDS, models
from tests.reference import brute


def sliced_solve(data, model, task, device, **options):
    """Solve in less memory than the unsliced plan needs; None if not even slices of one value each fit."""
    needed = calls.plan(model, task, device=device, **options).peak_bytes
    share = data.draw(st.sampled_from([0.3, 0.5, 0.7, 0.9]))
    memory = max(int(needed * share), 1)
    plan = calls.plan(model, task, device=device, memory=memory, slices=10**6, **options)
    if not plan.fits or not plan.form.variables:
        return None
    result = calls.solve(model, task, device=device, memory=memory, slices=10**6, **options)
    assert result.stats["slices"] == math.prod(model.variables[model.index(v)].size for v in result.stats["sliced"])
    assert result.stats["slices"] > 1
    assert result.stats["peak_bytes"] <= memory
    return result


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_optimum(device, kind, data):
    model = data.draw(models(kind))
    result = sliced_solve(data, model, "mpe", device)
    if result is not None:
        brute.check_optimum(model, result)


@on_devices
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_partition(device, dtype, data):
    model = data.draw(models("probability"))
    result = sliced_solve(data, model, "pr", device, dtype=dtype)
    if result is None:
        return
    expected = brute.partition(model)
    if expected == -math.inf:
        assert (result.status, result.log10_z) == ("infeasible", -math.inf)
    else:
        assert result.log10_z == pytest.approx(
            expected, rel=1e-11 if dtype == "float64" else 1e-5, abs=1e-9 if dtype == "float64" else 1e-5
        )


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_count(device, kind, data):
    model = data.draw(models(kind))
    result = sliced_solve(data, model, "count", device)
    assert result is None or result.value == brute.count(model)


@pytest.fixture
def always_bounded(monkeypatch):
    monkeypatch.setattr(slice_bounds, "MIN_BOUNDED_PLAN_SECONDS", 0.0)


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_optimum_of_promising_slices(device, kind, data, always_bounded):
    model = data.draw(models(kind))
    result = sliced_solve(data, model, "mpe", device)
    if result is not None:
        brute.check_optimum(model, result)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bounds_of_slices(kind, data, always_bounded):
    """Each one is no better than the best assignment of its slice; the sequence has each slice once, in blocks."""
    model = data.draw(models(kind))
    needed = elimina.plan(model, device="cpu").peak_bytes
    options = CheckedOptions("cpu", max(1, needed // 2), slices=10**6)
    planned = plan_problem(prepare(model, "mpe", {}), options)
    if not planned.plan.form.variables or not planned.plan.fits:
        return
    found = bound_slices(Execution(planned.problem, planned.plan, planned.backend))
    if found is None:
        return
    bounds, chosen = found
    slicing = planned.plan.form
    sign = 1 if model.sense == "min-cost" else -1
    best = [math.inf] * slicing.slices
    for values in brute.assignments(model):
        number = 0
        for v, size in zip(slicing.variables, slicing.sizes, strict=True):
            number = number * size + values[v]
        score = model.score(values)
        if not model.is_beyond_bound(score):
            best[number] = min(best[number], sign * score)
    for number, cost in enumerate(best):
        assert not bounds.is_hopeless(number, math.nextafter(cost, math.inf)) or math.isinf(cost)
    assert chosen is None or sign * model.score(chosen) >= min(best)
    sequence = bounds.sequence(slicing.sizes)
    assert sorted(sequence) == list(range(slicing.slices))
    block = slicing.slices // slicing.sizes[0]
    firsts = [number // block for number in sequence]
    assert [value for value, _ in itertools.groupby(firsts)] == list(dict.fromkeys(firsts))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_steps_that_are_laid_out_while_the_gpu_is_busy(kind, data, always_bounded, monkeypatch):
    looks = itertools.count()
    monkeypatch.setattr(session, "MIN_SAVED_WORK", 0)
    monkeypatch.setattr(session, "has_passed", lambda *gpu: next(looks) % 4 == 3 and has_passed(*gpu))
    model = data.draw(models(kind))
    result = sliced_solve(data, model, "mpe", "cuda")
    if result is not None:
        brute.check_optimum(model, result)


def test_memory_is_reserved_before_slices_are_bounded(monkeypatch):
    seen = []
    monkeypatch.setattr(CpuBackend, "reserve", lambda backend, program: seen.append(program.semiring), raising=False)
    plain = slice_bounds.bound_slices
    monkeypatch.setattr(slice_bounds, "bound_slices", lambda execution: seen.append("bounds") or plain(execution))
    model = grid_model(6, 3, 0.0, seed=2)
    memory = elimina.plan(model, device="cpu").peak_bytes // 4
    calls.solve(model, device="cpu", method="eliminate", memory=memory, slices=10**6)
    assert seen == ["min-sum", "bounds"]


def test_slices_that_need_not_run(always_bounded):
    model = grid_model(8, 4, 0.0, seed=2)
    plain = calls.solve(model, device="cpu", method="eliminate")
    plan = elimina.plan(model, device="cpu")
    result = calls.solve(model, device="cpu", method="eliminate", memory=plan.peak_bytes // 8, slices=10**6)
    assert result.value == pytest.approx(plain.value)
    assert result.stats["slices_skipped"] > result.stats["slices"] / 2


def merging_calls(model, task, fixed, learned) -> int:
    """Condition on some variables, and return the number of calls of functions that run and merge the slices."""
    problem = prepare(model, task, {})
    backend = CpuBackend(threads=1)
    variables = range(len(model.variables))
    whole = make_plan(Elimination(problem, variables, backend.machine, 1 << 30))
    order = [v for v in variables if v not in fixed]
    plan = make_plan(Elimination(problem, order, backend.machine, 1 << 30, None), Conditioning(fixed, whole))
    execution = Execution(problem, plan, backend, report_bounds=learned.append if task == "pr" else None)
    count = 0

    def note(frame, event, _):
        nonlocal count
        count += event == "call" and "elimina" in frame.f_code.co_filename

    sys.setprofile(note)
    try:
        eliminate(execution, {})
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("task", ["pr", "count", "mpe"])
def test_a_slice_takes_no_longer_after_many_others(task):
    rng = np.random.default_rng(0)
    pairs = itertools.combinations(range(11), 2)
    factors = [(pair, rng.random((2, 2)) + 0.5) for pair in pairs]
    model = elimina.Model.from_arrays([2] * 11, factors, sense="probability")
    learned = []
    few, many = (merging_calls(model, task, tuple(range(11 - count, 11)), learned) for count in (4, 9))
    assert many / 2**9 < 1.5 * few / 2**4
    bounds = [result.lower_bound for result in learned[-(2**9) :]]
    assert bounds == sorted(bounds)
