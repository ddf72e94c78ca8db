"""Costs moved between clusters: every total stays, and no pass lowers the bound."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import FORBIDDEN_COST
from elimina.backends.registry import get_backend
from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.generate import grid_model, random_model
from elimina.methods import gpu_bounds, join_graph
from elimina.methods.cost_shifting import shift_all, shift_tables
from elimina.methods.gpu_bounds import bounds_on_gpu
from elimina.methods.join_graph import JoinGraph
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from elimina.running.budget import Budget
from elimina.running.encoding import distances
from tests import calls
from tests.random_models import KINDS, models
from tests.reference import brute
from tests.simulated import SimulatedCuda


@st.composite
def graphs(draw):
    """Random tables, some of their costs infinite."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    scopes = draw(
        st.lists(st.lists(st.sampled_from(range(len(sizes))), min_size=1, max_size=3, unique=True), min_size=1)
    )
    costs = np.random.default_rng(draw(st.integers(0, 999)))
    tables = []
    for scope in scopes:
        table = costs.integers(-20, 200, [sizes[v] for v in scope]).astype(float)
        tables.append(np.where(costs.random(table.shape) < 0.1, math.inf, table))
    order = draw(st.permutations(range(len(sizes))))
    return sizes, scopes, tables, order, draw(st.integers(1, len(sizes)))


def total(scopes, tables, chosen):
    return sum(float(table[tuple(chosen[v] for v in scope)]) for scope, table in zip(scopes, tables, strict=True))


@given(drawn=graphs(), seconds=st.sampled_from([0.0, 1.0]))
@settings(max_examples=150, deadline=None)
def test_totals_stay_and_bounds_rise(drawn, seconds):
    sizes, scopes, tables, order, ibound = drawn
    graph = JoinGraph(sizes, scopes, order, ibound)
    joined = [graph.join(cluster, list(zip(scopes, tables, strict=True))) for cluster in graph.clusters]
    assert graph.cells == sum(table.size for table in joined)
    constants = []
    for least_gain in (math.inf, 0.5):
        moved = [table.copy() for table in joined]
        constants.append(graph.shift(moved, seconds, least_gain))
        totals = []
        for chosen in itertools.product(*map(range, sizes)):
            before = total(scopes, tables, chosen)
            if math.isfinite(constants[-1]):
                after = constants[-1] + total([cluster.scope for cluster in graph.clusters], moved, chosen)
                assert after == before
            totals.append(before)
        assert constants[-1] <= min(totals)
        if math.isfinite(constants[-1]):
            assert min(table.min() for table in moved) >= 0
    assert constants[0] <= constants[1]
    if ibound >= len(sizes) - 1:
        assert constants[0] == min(totals)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_every_model_keeps_its_totals(kind, data):
    model = data.draw(models(kind))
    problem = prepare(model, "mpe", {})
    original, _ = shift_all(problem, CheckedOptions(ibound=data.draw(st.integers(1, 4))), 1.0)
    if original.shifted is None:
        return
    other = original.moved.model
    for assignment in brute.assignments(model):
        score, moved = model.score(assignment), other.score(assignment)
        if math.isinf(score):
            assert math.isinf(moved)
        elif model.is_integer:
            assert (moved, type(moved)) == (original.moved_total(score), int)
        else:
            assert original.total(moved) == pytest.approx(score, rel=1e-9, abs=1e-9)


def told(model, gpu, memory=None, seconds=0.2):
    """Return the bounds that passes over clusters tell, and the last result."""
    problem = prepare(model, "mpe", {})
    original = shift_tables(problem, CheckedOptions(), 1.0)
    bounds = []
    budget = Budget(time.monotonic() + seconds, None, lambda found: bounds.append(found))
    order = sorted(problem.free)
    return bounds, bounds_on_gpu(original, order, CheckedOptions(memory=memory), gpu, budget)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_bounds_on_a_gpu_hold(kind, data):
    model = data.draw(models(kind))
    try:
        bounds, last = told(model, SimulatedCuda())
    except UnsupportedError:
        assert kind == "big-integer" or brute.optimum(model) is None
        return
    optimum = brute.optimum(model)
    if last.status == "infeasible":
        assert optimum is None
        return
    least = model.sense == "min-cost"
    ends = [found.lower_bound if least else found.upper_bound for found in bounds]
    assert ends == sorted(ends, reverse=not least)
    if optimum is not None:
        slack = 0 if model.is_integer else 1e-9 * max(1.0, abs(optimum))
        assert all(end <= optimum + slack if least else end >= optimum - slack for end in ends)
        # All variables fit into one cluster.
        assert ends[-1] == pytest.approx(optimum, rel=1e-9, abs=1e-9)
        assert last.stats == {"method": "search", "device": "cuda (simulated)"}


def test_larger_clusters_come_after_smaller_ones(monkeypatch):
    monkeypatch.setattr(join_graph, "_MIN_CLUSTER_CELLS", 500)
    bounds, last = told(random_model(20, 4, 0.4, 0.0, seed=8), SimulatedCuda(), seconds=3.0)
    assert len(bounds) > 3
    assert bounds[0].lower_bound < last.lower_bound


def test_a_graph_that_takes_twice_its_time_is_the_last(monkeypatch):
    begun = []

    def slow(graph, units, gpu, until, learnt, room):
        begun.append(graph.cells)
        learnt.add_bound(float(len(begun)))
        time.sleep(max(0.0, until - time.monotonic()) + 1.0)

    monkeypatch.setattr(join_graph, "_MIN_CLUSTER_CELLS", 500)
    monkeypatch.setattr(gpu_bounds, "_shift_and_search", slow)
    told(random_model(20, 4, 0.4, 0.0, seed=8), SimulatedCuda(), seconds=1.0)
    assert len(begun) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(3))
def test_a_gpu_finds_the_bounds_of_the_host(monkeypatch, seed):
    monkeypatch.setattr(join_graph, "_MIN_CLUSTER_CELLS", 500)
    model = random_model(20, 4, 0.4, 0.1 * seed, seed=seed)
    problem = prepare(model, "mpe", {})
    original, order = shift_tables(problem, CheckedOptions(), 1.0), sorted(problem.free)
    units = join_graph.in_units(original.moved, distances(original.moved, FORBIDDEN_COST))
    graph = JoinGraph(original.moved.model.sizes, [scope for scope, _ in units.tables], order, 5)
    constants = {}
    for gpu in (SimulatedCuda(), get_backend("cuda")):
        with gpu.arrays() as arrays:
            uploaded = [(scope, arrays.asarray(table)) for scope, table in units.tables]
            tables = [graph.join(cluster, uploaded, arrays) for cluster in graph.clusters]
            constants[gpu] = []
            graph.shift(tables, 8.0, 1.0, gpu, constants[gpu].append)
    one, other = constants.values()
    passes = min(len(one), len(other))
    assert passes > 3
    assert one[:passes] == other[:passes]


@pytest.mark.gpu
def test_mini_buckets_on_a_gpu_are_bounded_as_on_the_host():
    model = grid_model(10, 3, 0.0, seed=5)
    options = {"method": "mbe", "ibound": 4, "seed": 1}
    bounds = [calls.solve(model, device=device, **options).lower_bound for device in ("cpu", "cuda")]
    assert bounds[1] == pytest.approx(bounds[0], rel=0.02)


@pytest.mark.gpu
@pytest.mark.fills_gpu
def test_auto_bounds_with_clusters_on_a_gpu(caplog):
    """A plan of 5^25 cells does not fit the memory, and search does not end in ten minutes."""
    caplog.set_level("INFO", "elimina")
    result = calls.solve(grid_model(25, 5, 0.0, seed=1), device="cuda", time_limit=20)
    assert result.lower_bound <= result.value
    assert any(record.message.startswith("clusters: ended") for record in caplog.records)


def test_clusters_on_a_gpu_need_memory():
    with pytest.raises(MemoryLimitError, match="do not fit"):
        told(grid_model(4, 3, 0.3, seed=5), SimulatedCuda(), memory=100)


def test_clusters_help():
    gains = []
    for model in (random_model(20, 4, 0.4, 0.0, seed=8), grid_model(10, 3, 0.3, seed=5)):
        options = {"method": "mbe", "ibound": 3, "device": "cpu", "seed": 1}
        bounds = [calls.solve(model, shift=costs, **options).lower_bound for costs in ("tables", "clusters")]
        gains.append(bounds[1] - bounds[0])
    assert min(gains) > 0


def test_memory_decides_whether_tables_are_joined():
    problem = prepare(grid_model(8, 4, 0.3, seed=1), "mpe", {})
    scopes = [
        {len(group.scope) for group in shift_all(problem, CheckedOptions(ibound=3, memory=memory), 5.0)[0].moved.groups}
        for memory in (1 << 30, 1 << 17)
    ]
    assert max(scopes[0]) == 4
    assert max(scopes[1]) == 2
