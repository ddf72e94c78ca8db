"""Plans on rows: which steps, what is expected of them, what happens where expectations fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.backends.sparse.session import SparseSession
from elimina.errors import InputError, MemoryLimitError, UnsupportedError
from elimina.generate import grid_model, random_model
from elimina.model import table as table_module
from elimina.model.table import FORBIDDEN
from elimina.planning import sparse
from elimina.planning.machine import cpu_machine, speeds
from elimina.planning.order import find_order
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.sparse import Density, make_sparse_plan, predicted_shares
from elimina.problem.preparation import prepare
from elimina.running import sparse_plans
from tests import calls
from tests.devices import on_devices
from tests.random_models import models


def chain(share, length=12, size=30, seed=0):
    """A chain of tables that allow a share of their cells, closed to a ring so that messages have two variables."""
    rng = np.random.default_rng(seed)
    factors = []
    for i in range(length):
        values = rng.integers(0, 9, (size, size))
        values[rng.random((size, size)) >= share] = FORBIDDEN
        factors.append(((i, (i + 1) % length), values))
    return elimina.Model.from_arrays([size] * length, factors)


def sparse_plan(model, task="count", memory=1 << 30, whole=False, order=None):
    problem = prepare(model, task, {})
    machine = cpu_machine(2)
    dtype = None if task == "count" else "int32"
    dense = make_plan(Elimination(problem, problem.free if order is None else order, machine, memory, dtype))
    return dense, make_sparse_plan(dense, problem, machine, whole)


def test_a_plan_without_forbidden_cells_stays_dense():
    assert sparse_plan(chain(1.0))[1] is None


@pytest.mark.parametrize(("size", "cannot_pay"), [(3, True), (9, True), (60, False)])
def test_rows_of_small_tables_are_not_forecast(monkeypatch, size, cannot_pay):
    """The bound on the longest step agrees with the forecast that it saves."""
    model = chain(0.1, length=6, size=size)
    dense, plan = sparse_plan(model)
    assert sparse.tuples_cannot_pay(dense, prepare(model, "count", {}), cpu_machine(2)) == cannot_pay
    assert plan is None or not cannot_pay
    forecasts = []
    monkeypatch.setattr(sparse_plans, "MIN_SPARSE_PLAN_SECONDS", -1.0)
    monkeypatch.setattr(sparse_plans, "make_sparse_plan", lambda *parts: forecasts.append(parts))
    calls.plan(model, "count", device="cpu")
    assert bool(forecasts) != cannot_pay


def test_rows_of_a_model_without_variables_cannot_pay():
    model = elimina.Model.from_arrays({}, [])
    plan = elimina.plan(model, device="cpu")
    assert sparse.tuples_cannot_pay(plan, prepare(model, "mpe", {}), cpu_machine(2))


def test_large_sparse_tables_are_on_rows():
    # One allowed value in ten for each of 400: the message over two variables stays far from full.
    dense, plan = sparse_plan(chain(0.002, length=4, size=400))
    steps, largest, total = plan.sparse.predicted
    assert steps >= 2
    assert largest <= total < 10000
    assert plan.seconds < dense.seconds
    assert plan.peak_bytes < dense.peak_bytes
    assert f"sparse steps:         {steps} of {len(plan.steps)}; " in str(plan)


def circuit(gates, inputs, seed):
    """Gates of two inputs each, the last one of which is true."""
    rng = np.random.default_rng(seed)
    factors = [((gates - 1,), np.array([0.0, 1.0]))]
    for v in range(inputs, gates):
        x, y = rng.choice(np.arange(max(0, v - inputs), v), 2, replace=False).tolist()
        table, kind = np.zeros((2, 2, 2)), rng.integers(3)
        for a, b in np.ndindex(2, 2):
            table[(a & b, a | b, a ^ b)[kind], a, b] = 1.0
        factors.append(((v, x, y), table))
    return elimina.Model.from_arrays([2] * gates, factors, sense="probability")


def test_less_memory_has_more_steps_on_rows():
    """Quickest is a mixture, whose dense tables nine tenths of the memory have no room for."""
    model = circuit(120, 24, seed=2)
    problem, machine = prepare(model, "count", {}), cpu_machine(2)._replace(rows_step=1e-6)
    scopes = [group.scope for group in problem.groups]
    order = find_order(model.sizes, scopes, method="min-fill", iterations=1).order
    quickest = make_sparse_plan(make_plan(Elimination(problem, order, machine, 1 << 40)), problem, machine)
    smaller = make_sparse_plan(
        make_plan(Elimination(problem, order, machine, int(0.9 * quickest.peak_bytes))), problem, machine
    )
    assert 0 < quickest.sparse.predicted[0] < smaller.sparse.predicted[0]
    assert quickest.fits
    assert smaller.fits
    expected = calls.solve(model, "count", device="cpu", tables="dense").value
    assert calls.solve(model, "count", device="cpu", tables="sparse").value == expected


def test_expected_rows_of_independent_tables():
    """One step over tables that are drawn independently: the expectation is within a tenth."""
    rng = np.random.default_rng(1)
    one, two = rng.random((60, 200)) < 0.05, rng.random((60, 300)) < 0.03
    factors = [((0, 1), one.astype(float)), ((0, 2), two.astype(float))]
    model = elimina.Model.from_arrays([60, 200, 300], factors, sense="probability")
    _, plan = sparse_plan(model, whole=True, order=[0, 1, 2])
    actual = np.count_nonzero(one.T.astype(int) @ two.astype(int))
    assert plan.sparse.forms[0].rows == pytest.approx(actual, rel=0.1)


@given(st.lists(st.floats(0, 1), max_size=5), st.integers(1, 50))
def test_shares_are_shares(tables, domain):
    joint, kept = predicted_shares(domain, [Density.independent(share, domain) for share in tables])
    assert joint - 1e-9 <= kept <= 0 or joint == kept == -math.inf


def test_a_function_of_other_variables_costs_no_cell():
    """A circuit's gates, and an input that is eliminated: every output cell stays."""
    gate = np.zeros((2, 2, 2))
    for x, y in np.ndindex(2, 2):
        gate[x ^ y, x, y] = 1.0
    factors = [((i + 2, i, i + 1), gate) for i in range(30)]
    model = elimina.Model.from_arrays([2] * 32, factors, sense="probability")
    _, plan = sparse_plan(model, whole=True, order=range(31, -1, -1))
    assert [form.rows for form in plan.sparse.forms] == pytest.approx([4.0] * 30 + [2.0, 1.0])


def test_dense_steps_that_need_no_rows_come_first():
    dense, plan = sparse_plan(grid_model(6, 8, 0.9, seed=1), "mpe")
    if plan is None:
        pytest.skip("this grid is planned dense")
    late = [form.in_rows for form in plan.sparse.forms]
    first = late.index(True)
    assert not any(late[:first])
    for number, step in enumerate(plan.steps):
        assert all(o.source < number for o in step.operands)
        assert all(number in {o.source for o in plan.steps[reader].operands} for reader in step.readers)
    assert sorted(step.variable for step in plan.steps) == sorted(step.variable for step in dense.steps)


@pytest.mark.parametrize("kind", ["integer", "probability"])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_every_step_runs_once_and_after_what_it_reads(kind, data):
    model = data.draw(models(kind))
    plan = sparse_plan(model, whole=True)[1]
    if plan is None:
        return
    assert all(form.in_rows == bool(step.operands) for form, step in zip(plan.sparse.forms, plan.steps, strict=True))
    for number, step in enumerate(plan.steps):
        assert all(o.source < number for o in step.operands)
    assert {n for n, step in enumerate(plan.steps) if not step.readers} == {output.step for output in plan.outputs}


def test_more_rows_than_expected_change_over_to_dense_tables(monkeypatch):
    """Steps that no longer fit as tuples become dense one by one."""
    model = chain(0.5, length=5, size=12)
    expected = calls.solve(model, "count", tables="dense", device="cpu").value
    ran = []
    own = SparseSession._run_dense
    monkeypatch.setattr(
        SparseSession, "_run_dense", lambda self, numbers: (ran.append(list(numbers)), own(self, numbers))
    )
    monkeypatch.setattr(SparseSession, "_is_smaller_dense", lambda *_: False)
    for most, dense in ((1 << 40, False), (0, True)):
        ran.clear()
        monkeypatch.setattr("elimina.backends.sparse.session._WORKING_COPIES", 1 if most else 1 << 40)
        assert calls.solve(model, "count", tables="sparse", device="cpu").value == expected
        assert bool(ran) == dense


def test_rows_that_do_not_fit_after_all(monkeypatch):
    """Asked for, they are an error that says so; else the dense plan runs."""
    model = chain(0.002, length=4, size=400)
    expected = calls.solve(model, "count", tables="dense", device="cpu").value
    monkeypatch.setattr(SparseSession, "_free", lambda self: 100)
    monkeypatch.setattr(SparseSession, "_is_smaller_dense", lambda *_: False)
    with pytest.raises(MemoryLimitError, match=r"more tuples than the [0-9]+ that the memory limit leaves room for"):
        calls.solve(model, "count", tables="sparse", device="cpu", exact=True)
    monkeypatch.setattr(sparse_plans, "MIN_SPARSE_PLAN_SECONDS", 0.0)
    plans = []
    assert calls.solve(model, "count", device="cpu", on_plan=plans.append).value == expected
    assert [plan.sparse is None for plan in plans] == [False, True]


def test_rows_that_do_not_fit_where_nothing_else_does(monkeypatch):
    model = chain(0.002, length=4, size=400)
    monkeypatch.setattr(SparseSession, "_free", lambda self: 100)
    monkeypatch.setattr(SparseSession, "_is_smaller_dense", lambda *_: False)
    with pytest.raises(
        MemoryLimitError, match=r"the plan needs .* Sparse tables were tried, too: a table over 2 variables has"
    ):
        calls.solve(model, "count", device="cpu", memory=11 << 20, slices="never", order="min-fill", exact=True)


def test_a_model_that_no_dense_table_holds():
    """40 variables that must all differ by one from the next, pairwise connected: few rows, 3^39 cells."""
    size, factors = 40, []
    for i in range(size):
        for j in range(i):
            factors.append(((j, i), np.where((np.arange(3)[None, :] - np.arange(3)[:, None] - (i - j)) % 3, 0.0, 1.0)))
    model = elimina.Model.from_arrays([3] * size, factors, sense="probability")
    result = elimina.solve(model, "count", device="cpu", memory=1 << 26)
    assert result.value == 3


@pytest.mark.parametrize(
    ("options", "error", "culprit"),
    [
        ({"tables": "thin"}, InputError, "unknown tables 'thin'; it is one of auto, dense, sparse"),
        (
            {"tables": "sparse", "dtype": "int16"},
            UnsupportedError,
            'rows are of int32, .* not of int16; use tables="dense"',
        ),
    ],
)
def test_errors(options, error, culprit):
    with pytest.raises(error, match=culprit):
        calls.solve(random_model(6, 3, 0.5, 0.2, seed=1), method="eliminate", device="cpu", **options)


def test_marginals_that_no_dense_table_holds():
    """40 variables, each the one before plus one, and pairwise connected: three assignments in all."""
    size, step = 40, np.eye(3)[[1, 2, 0]]
    factors = [((i, i + 1), step) for i in range(size - 1)] + [((0,), [0.5, 0.25, 0.25])]
    whole = [np.linalg.matrix_power(step, n) for n in range(3)]
    factors += [((j, i), whole[(i - j) % 3]) for i in range(size) for j in range(i - 1)]
    model = elimina.Model.from_arrays([3] * size, factors, sense="probability")
    result = calls.solve(model, "mar", device="cpu", memory=1 << 26, order="min-fill")
    for n, table in enumerate(result.marginals.values()):
        np.testing.assert_allclose(list(table.values()), np.roll([0.5, 0.25, 0.25], n))


def test_slices_of_lists_include_the_time_of_encoding(monkeypatch):
    """Each slice reads all tuples: on a machine that encodes slowly, this is what takes the time."""
    slow = speeds()._replace(encoded=1e4)
    monkeypatch.setattr(sparse, "speeds", lambda: slow)
    rng = np.random.default_rng(3)
    tuples = np.unique(rng.integers(0, 8, (100_000, 8)), axis=0)
    costs = np.zeros(len(tuples), dtype=np.int64)
    relation = elimina.Table(range(8), costs, sizes=[8] * 8, rows=tuples, default=FORBIDDEN)
    model = elimina.Model([elimina.Variable(f"v{v}", 8) for v in range(8)], [relation])
    options = {"device": "cpu", "threads": 1, "tables": "sparse"}
    whole = calls.plan(model, "count", **options)
    sliced = calls.plan(model, "count", **options, memory=whole.peak_bytes // 2, slices=10**6)
    slices = sliced.form.slices
    assert slices > 1
    assert sliced.fits
    assert sliced.seconds > slices * len(tuples) / slow.encoded


@on_devices
@pytest.mark.parametrize("task", ["mpe", "count"])
def test_more_rows_than_expected_are_made_in_slices(device, task, monkeypatch):
    model = grid_model(6, 4, 0.3, seed=1)
    expected = calls.solve(model, task, device="cpu", tables="dense").value
    monkeypatch.setattr(sparse, "predicted_shares", lambda domain, tables: (-8.0, -8.0))
    options = {"device": device, "tables": "sparse", "memory": 48 << 10}
    options |= {"method": "eliminate"} if task == "mpe" else {}
    with pytest.raises(MemoryLimitError, match="memory"):
        calls.solve(model, task, **options, slices="never", exact=True)
    result = calls.solve(model, task, **options)
    assert (result.value, result.stats["slices"] > 1) == (expected, True)


@given(st.lists(st.integers(1, 9), max_size=4), st.integers(1, 40))
def test_blocks_make_up_a_table(sizes, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_CELLS", most)
        boxes = list(sparse.blocks(sizes))
    numbers = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
    assert all(numbers[box].size <= most for box in boxes)
    assert [n for box in boxes for n in numbers[box].flat] == list(range(numbers.size))


def test_new_memory_of_dense_steps_is_part_of_the_time():
    """Each dense step of a plan on tuples writes its table to memory that the system has to provide."""
    model = chain(0.5, length=6)
    dense, _ = sparse_plan(model)
    shares = sparse.densities(prepare(model, "count", {}), dense.factors)
    seconds = []
    for fresh in (1e6, 1e12):
        machine = cpu_machine(2)._replace(fresh=fresh, rows=1e-3)
        chooser = sparse._Chooser(dense, machine, sparse._FactorDensities(shares, [None] * len(shares)), 1.0)
        forms = [chooser.choose(step, False, 1) for step in dense.steps]
        assert not any(form.in_rows for form in forms)
        seconds.append(chooser.seconds)
    written = sum(step.out_cells for step in dense.steps) * dense.itemsize
    assert seconds[0] - seconds[1] >= 0.99 * written * (1e-6 - 1e-12)
