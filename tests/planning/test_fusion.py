"""Steps that eliminate several variables: plans, answers, assignments and memory beside one variable at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from elimina.backends.cpu import CpuBackend
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cpu_machine
from elimina.planning.packed_steps import Steps
from elimina.planning.planner import make_plan
from elimina.planning.segment_form import Segments
from elimina.problem.preparation import prepare
from elimina.running.fused_steps import with_fused_steps
from elimina.running.host import elimination_on
from elimina.running.segment_plan import SegmentLimits, decoded_variables, segment_plan
from tests import calls
from tests.devices import on_devices

pytestmark = pytest.mark.usefixtures("any_time")

WIDTH = 21


@pytest.fixture
def any_time(monkeypatch):
    """Plans whose steps eliminate several variables are made for the shortest runs, too, and taken."""
    monkeypatch.setattr("elimina.running.fused_steps.MIN_FUSED_SECONDS", 0)
    monkeypatch.setattr("elimina.running.fused_steps.MAX_FUSED_TIME_SHARE", 2)


def ladder(values, columns, rows, sense, seed=0, density=1.0):
    """A grid of few rows: along the rows its messages are over a row, down the columns over a column."""
    draw = np.random.default_rng(seed)
    number = np.arange(rows * columns).reshape(rows, columns)
    factors = []
    for a, b in [
        *zip(number[:, :-1].flat, number[:, 1:].flat, strict=False),
        *zip(number[:-1].flat, number[1:].flat, strict=False),
    ]:
        cells = draw.integers(0, 50, (values, values))
        if sense == "probability":
            cells = np.where(draw.random(cells.shape) < density, draw.random(cells.shape), 0)
            if density < 1:
                cells[0, 0] = 0  # a table that allows everything is not counted
        factors.append(((int(a), int(b)), cells if density == 1 or sense == "probability" else cells / 8))
    return Model.from_arrays([values] * number.size, factors, sense=sense), number.T.flatten().tolist()


def plans(model, task, **options):
    """The plan row by row, with a step for each variable and with fewer, on one thread."""
    problem = prepare(model, task, {})
    elimination = elimination_on(CpuBackend(1), problem, range(len(model.sizes)), CheckedOptions(**options))
    single = make_plan(elimination)
    return single, with_fused_steps(elimination, single)


@on_devices
@pytest.mark.parametrize(
    ("values", "columns", "sense", "task", "density"),
    [
        (2, WIDTH, "min-cost", "mpe", 1.0),
        (2, WIDTH, "min-cost", "mpe", 0.5),
        (2, WIDTH, "max-cost", "mpe", 1.0),
        (2, WIDTH, "probability", "mpe", 0.9),
        (2, WIDTH, "probability", "pr", 1.0),
        (2, WIDTH, "probability", "pr", 0.9),
        (2, WIDTH, "probability", "count", 0.95),
        (3, 14, "min-cost", "mpe", 1.0),
        (3, 14, "probability", "pr", 1.0),
    ],
)
def test_answers(device, values, columns, sense, task, density):
    model, along_columns = ladder(values, columns, 2, sense, density=density)
    order = list(range(len(model.sizes)))
    options = {"device": device, "slices": "never", "tables": "dense", "method": "eliminate"}
    result = calls.solve(model, task, order=order, **options)
    assert "variables per step" in str(calls.plan(model, task, order=order, **options))
    expected = calls.solve(model, task, order=along_columns, **options)
    assert result.status == expected.status
    if task == "count":
        assert result.value == expected.value
    elif task == "pr":
        assert result.log10_z == pytest.approx(expected.log10_z, rel=1e-12)
    else:
        assert result.value == pytest.approx(expected.value, rel=1e-12)
        chosen = [v.index(result.assignment[v.name]) for v in model.variables]
        assert model.score(chosen) == pytest.approx(result.value, rel=1e-12)


def test_steps_of_a_plan():
    model, _ = ladder(2, WIDTH, 3, "min-cost")
    single, found = plans(model, "mpe")
    fused = [step for step in found.steps if step.others]
    assert fused
    assert not any(step.others for step in single.steps)
    eliminated = [
        v for step in found.steps if step.variable >= 0 for v in (step.variable, *(v for v, _ in step.others))
    ]
    assert sorted(eliminated) == list(range(len(model.sizes)))
    assert all(step.domain == 2 ** (1 + len(step.others)) <= 16 for step in fused)
    assert found.peak_bytes < single.peak_bytes / 2
    assert f"{max(1 + len(step.others) for step in fused)} at most, {len(fused)} steps" in str(found)
    assert Steps.packed(tuple(found.steps)) == found.steps


def test_tables_of_a_step_have_one_stride():
    """Each table has all variables of a step, with one stride through their combinations, or none."""
    model, _ = ladder(3, 14, 2, "min-cost")
    for step in plans(model, "mpe")[1].steps:
        for operand in step.operands if step.others else ():
            cells = math.prod(size for size, stride in zip(step.sizes, operand.strides, strict=True) if stride)
            assert operand.domain_stride >= cells or operand.domain_stride == 0


def test_a_narrow_type_that_is_asked_for_limits_the_tables_of_a_step():
    model, _ = ladder(2, WIDTH, 2, "min-cost")
    single, found = plans(model, "mpe", dtype="int32")
    assert found.dtype == single.dtype == "int32"
    most = max(len(step.operands) for step in found.steps)
    assert most * found.forbidden < 2**31


def test_what_is_small_keeps_a_step_for_each_variable():
    model, _ = ladder(2, 12, 3, "min-cost")
    single, found = plans(model, "mpe")
    assert found is single


def test_slices_may_have_such_steps():
    model, along_columns = ladder(2, WIDTH + 2, 2, "probability")
    own = {"order": list(range(len(model.sizes))), "device": "cpu", "tables": "dense", "method": "eliminate"}
    text = str(calls.plan(model, "pr", memory="80MiB", **own))
    assert "slices:" in text
    assert "variables per step" in text
    result = calls.solve(model, "pr", memory="80MiB", **own)
    assert result.log10_z == pytest.approx(
        calls.solve(model, "pr", order=along_columns, device="cpu").log10_z, rel=1e-12
    )


def test_plans_with_two_passes_have_none():
    cells = np.random.default_rng(0).random((2,) * WIDTH)
    model = Model.from_arrays([2] * WIDTH, [(range(WIDTH), cells)], sense="probability")
    own = {"order": list(range(WIDTH)), "device": "cpu", "tables": "dense"}
    assert "variables per step" in str(calls.plan(model, "pr", **own))
    plan = calls.plan(model, "mar", **own)
    assert plan.largest_table >= 1 << 20
    assert not any(step.others for step in plan.steps)


def test_optima_are_counted_by_buckets_of_single_variables():
    draw = np.random.default_rng(0)
    costs = draw.integers(0, 1000, (2,) * WIDTH)
    model = Model.from_arrays([2] * WIDTH, [(range(WIDTH), costs), ((0, 1), [[0, 1], [1, 0]])])
    result = calls.solve(model, "count-optima", order=list(range(WIDTH)), device="cpu")
    total = costs + np.array([[0, 1], [1, 0]]).reshape((2, 2) + (1,) * (WIDTH - 2))
    assert (result.value, result.count) == (total.min(), (total == total.min()).sum())


def test_logarithms_where_products_leave_the_range():
    model, along_columns = ladder(2, WIDTH, 2, "probability")
    draw = np.random.default_rng(1)
    factors = [(factor.scope, 10.0 ** draw.integers(-150, 1, (2, 2))) for factor in model.factors]
    model = Model.from_arrays(model.sizes, factors, sense="probability")
    own = {"device": "cpu", "tables": "dense", "method": "eliminate"}
    result = calls.solve(model, "pr", order=list(range(len(model.sizes))), **own)
    assert result.log10_z == pytest.approx(calls.solve(model, "pr", order=along_columns, **own).log10_z, rel=1e-12)
    assert result.log10_z < -300


def test_segments_with_steps_of_several_variables():
    """Each run decodes all variables of its last steps, and all runs together all variables."""
    model, _ = ladder(3, 14, 13, "min-cost")
    expected = calls.solve(model, device="cpu", method="eliminate")
    memory = calls.plan(model, "mpe", device="cpu").peak_bytes // 2
    plan = calls.plan(model, "mpe", device="cpu", memory=memory)
    assert isinstance(plan.form, Segments)
    limits = SegmentLimits(cpu_machine(2), memory, 0, None)
    first = segment_plan(limits, plan.whole, prepare(model, "mpe", {}), plan.form.orders[0])
    decoded = first.steps[first.first_decoded :]
    assert any(step.others for step in decoded)
    eliminated = {v for step in decoded for v in (step.variable, *(other for other, _ in step.others)) if v >= 0}
    variables = decoded_variables(first)
    assert len(variables) == len(eliminated) < len(model.sizes)
    assert set(variables) == eliminated
    found = calls.solve(model, device="cpu", method="eliminate", memory=memory)
    assert (found.value, found.status) == (expected.value, "optimal")
    assert found.stats["segments"] == len(plan.form.orders)
