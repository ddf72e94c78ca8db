"""Choice of the variables that slices fix, and its text in the plan."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.generate import grid_model, random_model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cpu_machine
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import RESIDENT
from elimina.planning.planner import Conditioning, Elimination, make_plan
from elimina.planning.slice_dependence import dependence, order_slices
from elimina.planning.slicing import Slicer
from elimina.problem.preparation import prepare
from tests import calls


def test_dependence():
    reads = [[(-1, 0)], [(-1, 1), (0, -1)], [(-1, 2)], []]
    assert dependence(reads, [1, 2, 4]) == [1, 3, 4, 0]


def test_the_variable_that_changes_fastest_is_the_one_that_least_depends_on():
    assert order_slices([0b01, 0b11, 0b10], [1000.0, 10.0, 1.0], [2, 2], (0, 1)) == (0, 1)
    assert order_slices([0b01, 0b11, 0b10], [1.0, 10.0, 1000.0], [2, 2], (0, 1)) == (1, 0)


@pytest.mark.parametrize("task", ["mpe", "count"])
@pytest.mark.parametrize(
    "model", [grid_model(7, 3, 0.1), random_model(20, 4, 0.2, 0.1, seed=1)], ids=["grid", "random"]
)
def test_estimates_are_those_of_the_plan(task, model):
    problem = prepare(model, task, {})
    order = elimination_order(problem, CheckedOptions(order="min-fill"))
    machine = cpu_machine(1)
    whole = make_plan(Elimination(problem, order, machine, 2**40, "int64" if task == "mpe" else None))
    slicer = Slicer(problem, order, machine, whole)
    for _ in range(4):
        slicer.reduce(slicer.cut.bytes * 0.99)
        fixed = slicer.cut.fixed
        left = [v for v in order if v not in fixed]
        plan = make_plan(Elimination(problem, left, machine, 2**40, whole.dtype), Conditioning(fixed, whole))
        joins = sum(step.work for step in plan.steps if step.variable < 0)
        assert joins == 0
        assert plan.work == pytest.approx(slicer.cut.work, rel=1e-9)
        assert plan.peak_bytes == pytest.approx(slicer.cut.bytes, rel=0.3)


@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_a_slice_keeps_what_later_slices_read(data):
    """Nothing that a step of a higher level reads shares memory with anything but factors written before it."""
    model = random_model(data.draw(st.integers(6, 14)), 3, 0.4, 0.1, seed=data.draw(st.integers(0, 50)))
    whole = calls.plan(model, "count", device="cpu", order="min-fill")
    share = data.draw(st.sampled_from([0.4, 0.6, 0.8]))
    memory = int(whole.peak_bytes * share)
    plan = calls.plan(model, "count", device="cpu", order="min-fill", memory=memory, slices=2**40)
    if not plan.form.variables:
        return
    levels = plan.form.levels
    assert list(levels) == sorted(levels)
    assert plan.form.shared == levels.count(0)
    for number, step in enumerate(plan.steps):
        if not step.readers or levels[step.readers[-1]] > levels[number]:
            span = range(step.out_offset, step.out_offset + step.out_span)
            for other, later in enumerate(plan.steps):
                if levels[other] > levels[number]:
                    assert later.out_offset >= span.stop or later.out_offset + later.out_span <= span.start


def test_limits():
    model = grid_model(10, 5, 0.2)
    # An order that is searched for is another one when the machine is busy.
    order = calls.plan(model, device="cpu", order="min-fill").order
    options = {"device": "cpu", "memory": 20 << 20, "order": order}
    plan = calls.plan(model, **options)
    slicing = plan.form
    assert plan.fits
    assert 1 < slicing.slices == 5 ** len(slicing.variables)
    assert [model.variables[v].name for v in slicing.variables] == list(slicing.names)
    assert not slicing.unsliced.fits
    assert not calls.plan(model, **options, slices=slicing.slices - 1).fits
    assert calls.plan(model, **options, slices=slicing.slices).fits
    assert calls.plan(model, **options, slices="never") == slicing.unsliced
    text = str(plan)
    assert f"conditioned on:       {len(slicing.names)}: {slicing.names[0]} (5)" in text
    assert f"{plan.work / slicing.unsliced.work:.2f}"[:3] in text.rpartition("cost of slicing:")[2]


def test_too_many_slices_are_named_in_the_error():
    model = grid_model(14, 4, 0.2)
    order = elimination_order(prepare(model, "mpe", {}), CheckedOptions(order="min-fill", order_seconds=0.1))
    with pytest.raises(elimina.EliminaError, match=r"fixing \d+ variables \(x.*, \.\.\.\) would do it in .* slices of"):
        calls.solve(model, device="cpu", memory=8 << 20, order=order, slices=4, method="eliminate")


def test_where_slices_are_of_no_use_none_are_looked_for():
    model = random_model(400, 10, 0.05, 0.1, seed=1)
    order = elimination_order(prepare(model, "mpe", {}), CheckedOptions(order="min-fill", order_seconds=0.1))
    options = {"device": "cpu", "order": order, "memory": 2**30}
    started = time.process_time()
    assert calls.plan(model, **options, slices="never").form == RESIDENT
    without = time.process_time() - started
    assert calls.plan(model, **options).form == RESIDENT
    assert time.process_time() - started < 3 * without + 0.5


@pytest.mark.parametrize("slices", [0, -3, "some"])
def test_slices_that_make_no_sense(slices):
    with pytest.raises(elimina.EliminaError, match=r"^slices is (0|-3|'some'); it "):
        calls.plan(grid_model(3, 2, 0.1), slices=slices)
