"""The table of forms: of the plans that fit, the one of least estimated time is taken, and a new row takes part."""

from __future__ import annotations

import numpy as np
import pytest

from elimina import Model
from elimina.backends.cpu import CpuBackend
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.planning.plan import RESIDENT, Form, Plan
from elimina.planning.segment_form import Segments
from elimina.planning.slice_form import Slicing
from elimina.planning.stream import Streamed
from elimina.problem.preparation import prepare
from elimina.running import plan_forms
from elimina.running.form_search import FormRow
from elimina.running.host import elimination_on
from elimina.running.plan_forms import FORMS, fitting_plan


def planned(shape: tuple[int, int], task: str = "mpe", **options) -> Plan:
    """Plan for a grid of integer costs, in the order of its columns."""
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    pairs = [
        *zip(number[:, :-1].flat, number[:, 1:].flat, strict=True),
        *zip(number[:-1].flat, number[1:].flat, strict=True),
    ]
    draws = np.random.default_rng(3)
    tables = [((int(a), int(b)), draws.integers(0, 9, (2, 2))) for a, b in pairs]
    problem = prepare(Model.from_arrays([2] * number.size, tables), task, {})
    checked = check_options(Options(device="cpu", threads=1, **options), task)
    order = [v for v in number.T.flatten().tolist() if v in problem.free]
    backend = CpuBackend(1)
    return fitting_plan(backend, elimination_on(backend, problem, order, checked), checked)


@pytest.mark.parametrize(
    ("shape", "task", "options", "form"),
    [
        ((8, 8), "mpe", {}, type(RESIDENT)),
        ((8, 60), "mpe", {"memory": "160kB"}, Segments),
        ((14, 14), "mpe", {"memory": 1 << 20, "slices": 10**6}, Slicing),
        ((14, 14), "bottleneck", {"memory": "160kB", "scratch": "."}, Streamed),
        ((14, 14), "mpe", {"tables": "sparse"}, type(RESIDENT)),
    ],
)
def test_each_form_stays_within_its_memory(shape, task, options, form):
    plan = planned(shape, task, **options)
    assert type(plan.form) is form
    assert plan.fits
    assert plan.peak_bytes <= plan.memory_limit
    assert (plan.sparse is not None) == ("tables" in options)
    whole = planned(shape, task, slices="never", tables=options.get("tables", "auto"))
    assert len(plan.whole.order) == len(whole.order)
    assert {*plan.order, *plan.form.variables} == {*whole.order}


class Halved(Form):
    """A form that no executor has."""

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        return [("halved", f"{plan.width} times")]


@pytest.mark.parametrize(("seconds", "size", "is_taken"), [(0.0, 1, True), (1e9, 1, False), (0.0, 1 << 40, False)])
def test_a_new_row_is_compared_with_the_others(monkeypatch, seconds, size, is_taken):
    row = FormRow(
        "halved",
        lambda search: search.lacks_dense,
        lambda search: search.whole._replace(form=Halved(), seconds=seconds, bytes={"host": size}),
    )
    monkeypatch.setattr(plan_forms, "FORMS", (row, *FORMS))
    roomy, narrow = planned((8, 60), "mpe"), planned((8, 60), "mpe", memory="160kB")
    assert roomy.form == RESIDENT
    assert (narrow.form == Halved()) == is_taken
    assert (f"halved:               {narrow.width} times" in str(narrow)) == is_taken
    assert narrow.fits


def test_slices_explain_what_no_form_makes_fit():
    plan = planned((14, 14), "mpe", memory=1 << 20, slices=2)
    assert not plan.fits
    assert isinstance(plan.form, Slicing)
    assert "which slices=" in plan.form.advice(plan)
    assert not planned((14, 14), "mpe", memory=1 << 20, slices="never").form.variables
