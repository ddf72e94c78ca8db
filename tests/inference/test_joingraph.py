"""Costs moved between clusters: every total stays, and no pass lowers the bound."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.generate import grid_model, random_model
from elimina.inference.options import Options
from elimina.inference.shifting import JoinGraph, shift_all
from elimina.planning.prepare import prepare
from tests import calls
from tests.reference import brute
from tests.strategies import KINDS, models


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
    original, _ = shift_all(problem, Options(ibound=data.draw(st.integers(1, 4))), 1.0)
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
        {len(group.scope) for group in shift_all(problem, Options(ibound=3, memory=memory), 5.0)[0].moved.groups}
        for memory in (1 << 30, 1 << 17)
    ]
    assert max(scopes[0]) == 4
    assert max(scopes[1]) == 2
