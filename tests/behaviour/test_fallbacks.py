"""Each step from what does not fit to what is tried next, on machines with little memory, against brute force."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import JunctionTree, MemoryLimitError, Model, Table, TimeLimitError
from elimina.methods.batch import Batch
from elimina.planning import checked_options
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import Options
from elimina.running import sparse_plans
from elimina.strategies import conditions
from tests import calls
from tests.random_models import with_constraints
from tests.reference import broadcast
from tests.rows import change_row
from tests.simulated import simulate

LARGE = 1 << 30


def clique(variables: int = 12, kind: str = "probability", zeros: float = 0.0, size: int = 2) -> Model:
    """A model that joins every two variables: no order has small tables."""
    rng = np.random.default_rng(variables)
    factors = []
    for pair in ((i, j) for j in range(variables) for i in range(j)):
        impossible = rng.random((size, size)) < zeros
        values = rng.random((size, size)) + 0.1
        if kind == "integer":
            factors.append((pair, np.where(impossible, elimina.FORBIDDEN, (values * 100).astype(int))))
        elif kind == "float":
            factors.append((pair, np.where(impossible, np.inf, values)))
        else:
            factors.append((pair, np.where(impossible, 0.0, values)))
    return Model.from_arrays([size] * variables, factors, sense="probability" if kind == "probability" else "min-cost")


def constrained(task: str) -> Model:
    """A clique for a task; counts leave out tables that forbid nothing."""
    return with_constraints(clique()) if task == "count" else clique()


def truth(model: Model, task: str, query=()) -> float:
    """The answer to a task; minus infinity for a sum of 0, None for no solution."""
    if model.sense != "probability":
        costs = broadcast.costs(model)
        allowed = costs[costs != elimina.FORBIDDEN] if model.is_integer else costs[np.isfinite(costs)]
        return allowed.size if task == "count" else min(allowed.tolist(), default=None)
    products = broadcast.products(model)
    if task == "count":
        return int(np.count_nonzero(products))
    if task == "mpe":
        return math.log(products.max()) if products.max() > 0 else None
    if task == "mmap":
        sums = products.sum(axis=tuple(v for v in range(len(model.sizes)) if v not in query))
        return math.log(sums.max()) if sums.max() > 0 else None
    return math.log10(products.sum()) if products.sum() > 0 else -math.inf


def check(model: Model, task: str, result, query=(), tolerance=1e-8) -> None:
    """Check an answer, or bounds on it."""
    if task == "mar":
        products = broadcast.products(model)
        if result.status == "estimated":
            assert all(sum(table.values()) == pytest.approx(1) for table in result.marginals.values())
            return
        assert (result.status == "infeasible") == (products.sum() == 0)
        for name, table in (result.marginals or {}).items():
            v = model.index(name)
            expected = products.sum(axis=tuple(u for u in range(len(model.sizes)) if u != v)) / products.sum()
            assert list(table.values()) == pytest.approx(expected, abs=tolerance)
        return
    expected = truth(model, task, query)
    if result.status in ("bounded", "estimated"):
        lower, upper = (end for end in (result.lower_bound, result.upper_bound))
        best = expected if expected is not None else math.inf if model.sense == "min-cost" else -math.inf
        assert lower is None or lower <= best + tolerance * max(1, abs(best)) or lower == -math.inf
        assert upper is None or upper >= best - tolerance * max(1, abs(best))
        assert (result.log10_z is None) == (result.status == "bounded")
    elif expected is None or expected == -math.inf:
        assert result.status == "infeasible"
    else:
        assert result.status in ("optimal", "exact")
        found = result.log10_z if task == "pr" else result.value
        assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)


def solved(model, task, **options):
    """Solve and check."""
    result = calls.solve(model, task, **options)
    check(model, task, result, [model.index(v) for v in options.get("query", ())])
    return result


def plan_of(model, task, **options):
    """The plan that ran."""
    plans = []
    solved(model, task, on_plan=plans.append, **options)
    return plans[-1]


@pytest.mark.parametrize("task", ["pr", "mpe", "count", "mar"])
def test_tables_that_do_not_fit_a_device_pass_through_it(monkeypatch, task):
    simulate(monkeypatch, 4000, LARGE)
    plan = plan_of(constrained(task), task, device="cuda", method="eliminate")
    assert not plan.form.is_resident
    assert "host" in dict(plan.form.limits)


@pytest.mark.parametrize("task", ["pr", "mpe", "count"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_slices_where_the_host_does_not_hold_the_tables(monkeypatch, task, device):
    simulate(monkeypatch, 4000, 4000)
    assert plan_of(constrained(task), task, device=device, method="eliminate").form.variables


@pytest.mark.parametrize("task", ["pr", "mpe", "count"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_files_where_slices_are_not_wanted(monkeypatch, tmp_path, task, device):
    simulate(monkeypatch, 8000, 20_000)
    plan = plan_of(constrained(task), task, device=device, method="eliminate", slices="never", scratch=str(tmp_path))
    assert plan.form.scratch == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", ["pr", "mpe", "count"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_rows_where_most_is_forbidden(monkeypatch, task, device):
    simulate(monkeypatch, 30_000, 30_000)
    model = clique(7, zeros=0.75, size=5)
    assert plan_of(model, task, device=device, method="eliminate", slices="never").sparse is not None


@pytest.mark.parametrize("task", ["pr", "mpe", "count"])
def test_more_rows_than_expected_are_made_in_finer_slices(monkeypatch, task):
    """Rows that all share one state of each variable are more than those of independent tables would be."""
    simulate(monkeypatch, LARGE)
    values = np.zeros((3, 3))
    values[:2, :2] = 1.0
    pairs = [((i, j), values + 0.0) for j in range(10) for i in range(j)]
    model = Model.from_arrays([3] * 10, pairs, sense="probability")
    plans = []
    options = {"tables": "sparse", "method": "eliminate", "memory": 8_000, "device": "cpu"}
    result = calls.solve(model, task, on_plan=plans.append, **options)
    check(model, task, result)
    assert len(plans) > 1
    assert plans[-1].form.variables


@pytest.mark.parametrize("task", ["pr", "mpe", "count"])
def test_more_rows_than_fit_become_dense_tables(monkeypatch, task):
    monkeypatch.setattr(sparse_plans, "MIN_SPARSE_PLAN_SECONDS", -1)
    values = np.zeros((3, 3))
    values[:2, :2] = 1.0
    pairs = [((i, j), values + 0.0) for j in range(9) for i in range(j)]
    model = Model.from_arrays([3] * 9, pairs, sense="probability")
    plans = []
    result = calls.solve(model, task, on_plan=plans.append, method="eliminate", memory=8_000, device="cpu")
    check(model, task, result)
    assert [plan.sparse is not None for plan in plans] == [True, False]
    assert plans[-1].form.variables


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "options",
    [{}, {"slices": 1}, {"tables": "sparse"}, {"tables": "dense"}, {"dtype": "float32"}, {"slices": "never"}],
)
def test_sums_are_bounded_where_too_many_slices_are_needed(monkeypatch, device, options):
    simulate(monkeypatch, 12_000, 12_000)
    monkeypatch.setattr(checked_options, "MAX_SLICES", 1)
    result = solved(clique(), "pr", device=device, **options)
    # Estimates do not work on slices or tuples that are asked for.
    is_estimated = options not in ({"slices": 1}, {"tables": "sparse"})
    assert result.status == ("estimated" if is_estimated else "bounded")
    assert result.lower_bound < result.upper_bound


def test_sums_are_bounded_where_files_are_too_small(monkeypatch, tmp_path):
    simulate(monkeypatch, 12_000, 12_000)
    monkeypatch.setattr(checked_options, "MAX_SLICES", 1)
    monkeypatch.setattr("elimina.planning.tiers._free", lambda folder: 1000)
    result = solved(clique(), "pr", device="cpu", scratch=str(tmp_path))
    assert result.lower_bound < result.upper_bound


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_marginal_map_is_bounded_where_the_summation_does_not_fit(monkeypatch, device, dtype):
    simulate(monkeypatch, 12_000, 12_000)
    result = solved(clique(), "mmap", query=["x0", "x5"], device=device, dtype=dtype)
    assert result.stats["method"] == "mbe"


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", ["integer", "float", "probability"])
def test_optima_are_searched_for_where_nothing_fits(monkeypatch, device, kind):
    bytes = 6_000 if kind == "integer" else 20_000
    simulate(monkeypatch, bytes, bytes)
    monkeypatch.setattr(checked_options, "MAX_SLICES", 1)
    result = solved(clique(kind=kind), "mpe", device=device, memory=bytes)
    assert (result.status, result.stats["method"]) == ("optimal", "search")


def test_filtering_and_search_by_turns_where_nothing_fits(monkeypatch):
    simulate(monkeypatch, 5000)
    monkeypatch.setattr(checked_options, "MAX_SLICES", 1)
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", 1)
    change_row(monkeypatch, "filter for bounds", seconds=0.0)
    assert solved(clique(14, "integer"), "mpe", device="cpu", memory=5000).status == "optimal"


def test_costs_too_large_for_a_search_say_what_is_needed(monkeypatch):
    simulate(monkeypatch, 1 << 20)
    model = Model.from_arrays([2], [([0], [0, 3 * 10**18])])
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        calls.solve(model, device="cuda", memory=3, slices=1)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("task", ["mar", "count"])
def test_tasks_without_bounds_say_what_is_needed(monkeypatch, device, task):
    simulate(monkeypatch, 5000, 5000)
    monkeypatch.setattr(checked_options, "MAX_SLICES", 1)
    with pytest.raises(MemoryLimitError, match=r"the plan needs .* on ") as error:
        elimina.solve(constrained(task), task, device=device, options=Options(exact=True))
    assert 'method="mbe"' not in str(error.value)


def test_a_checkpoint_takes_slices_where_tables_would_pass_through_the_device(monkeypatch, tmp_path):
    simulate(monkeypatch, 4000, LARGE)
    plan = plan_of(clique(), "pr", device="cuda", checkpoint=tmp_path)
    assert plan.form.is_resident
    assert plan.form.variables


def test_the_gpu_where_the_host_is_too_small(monkeypatch):
    simulate(monkeypatch, LARGE, 5000)
    result = solved(clique(), "pr", method="eliminate", slices="never")
    assert result.stats["device"].startswith("cuda")


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_tree_that_cannot_keep_its_messages(monkeypatch, device):
    """Posteriors are there, samples need all messages; in less memory there is no tree."""
    simulate(monkeypatch, LARGE, LARGE)
    model = clique()
    whole = JunctionTree(model, device=device).plan
    tree = JunctionTree(model, device=device, memory=f"{whole.peak_bytes - 1}B")
    assert not tree.plan.keep
    products = broadcast.products(model)
    expected = products.sum(axis=tuple(range(1, 12))) / products.sum()
    assert tree.marginals()["x0"] == pytest.approx(expected)
    assert tree.log10_evidence == pytest.approx(math.log10(products.sum()))
    with pytest.raises(MemoryLimitError, match="give more memory"):
        tree.sample(1)
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        JunctionTree(model, device=device, memory="1000B", options=Options(exact=True))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_chunks_of_fewer_cases(monkeypatch, device):
    simulate(monkeypatch, LARGE, LARGE)
    model = clique(8)
    cases = np.tile(np.array([[0, 1], [1, -1]], dtype=np.int32), (20, 1))
    products = broadcast.products(model)
    sums = [products[0, 1].sum(), products[1].sum()] * 20
    sizes = []
    for memory in (None, 200_000, 50_000):
        batch = Batch(model, [0, 1], None, CheckedOptions(device, memory, threads=1), len(cases))
        sizes.append(batch.cases)
        assert batch.run(cases).log10_evidence == pytest.approx(np.log10(sums))
    assert sizes[2] < sizes[0]
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        Batch(model, [0, 1], None, CheckedOptions(device, 1000, threads=1), len(cases))


BYTES = st.sampled_from([200, 500, 1000, 3000, 10_000, 50_000])


@st.composite
def small_models(draw) -> Model:
    """Models of up to 4,000 assignments, many of them dense."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["probability", "probability", "integer", "float"]))
    zeros = draw(st.sampled_from([0.0, 0.0, 0.1, 0.4]))
    sizes: list[int] = []
    for size in draw(st.lists(st.integers(1, 3), min_size=1, max_size=10)):
        sizes += [size] if math.prod(sizes) * size <= 4000 else []
    factors = []
    for _ in range(draw(st.integers(1, 3 * len(sizes)))):
        scope = rng.permutation(len(sizes))[: rng.integers(1, 4)].tolist()
        shape = [sizes[v] for v in scope]
        values, impossible = rng.random(shape) + 0.01, rng.random(shape) < zeros
        worst = {"integer": elimina.FORBIDDEN, "float": np.inf, "probability": 0.0}[kind]
        factors.append((scope, np.where(impossible, worst, (values * 50).astype(int) if kind == "integer" else values)))
    return Model.from_arrays(sizes, factors, sense="probability" if kind == "probability" else "min-cost")


@settings(max_examples=100, deadline=None)
@given(small_models(), st.data())
def test_whatever_does_not_fit(model, data):
    """An answer, bounds, or an error that says what is missing; nothing else."""
    is_sum = model.sense == "probability"
    task = data.draw(st.sampled_from(["mpe", "count", *(["pr", "pr", "mar", "mmap"] if is_sum else [])]))
    options = {
        "device": data.draw(st.sampled_from(["auto", "cpu", "cuda", "cuda"])),
        "slices": data.draw(st.sampled_from(["auto", "auto", "never", 2])),
        "tables": data.draw(st.sampled_from(["auto", "auto", "dense", *(["sparse"] if task != "mmap" else [])])),
        "time_limit": 5.0,
    }
    if data.draw(st.booleans()):
        options["memory"] = data.draw(BYTES)
    if task == "mmap":
        query = st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True)
        options["query"] = data.draw(query)
    with pytest.MonkeyPatch.context() as patch:
        simulate(patch, data.draw(BYTES), data.draw(BYTES))
        patch.setattr(checked_options, "MAX_SLICES", data.draw(st.sampled_from([1, 4, 1 << 16])))
        if data.draw(st.booleans()):
            patch.setattr(conditions, "LONG_ELIMINATION_CELLS", 5)
        if data.draw(st.booleans()):
            patch.setattr(sparse_plans, "MIN_SPARSE_PLAN_SECONDS", -1)
        with contextlib.suppress(MemoryLimitError, TimeLimitError):
            solved(model, task, **options)


@pytest.mark.parametrize("task", ["mpe", "pr"])
def test_more_cells_than_floats_count(task):
    """An elimination of width 1,100 has more cells than the largest float."""
    rng = np.random.default_rng(0)
    scopes = [rng.choice(1200, 3, replace=False) for _ in range(12_000)]
    model = Model.from_arrays([2] * 1200, [(scope, rng.integers(0, 9, (2, 2, 2))) for scope in scopes])
    if task == "pr":
        model = Model(model.variables, [Table(f.scope, f.values + 1.0) for f in model.factors], sense="probability")
    result = elimina.solve(model, task, memory="64MiB", time_limit=4)
    assert result.status in ("bounded", "estimated")
    assert result.lower_bound < result.upper_bound
