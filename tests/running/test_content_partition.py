"""Mini-buckets by the tables' values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, Model
from elimina._core import FORBIDDEN_COST
from elimina.generate import grid_model, random_model
from elimina.planning.machine import cpu_machine
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.order import find_order
from elimina.planning.planner import Elimination
from elimina.problem.preparation import prepare
from elimina.running.content_partition import partition_by_content
from elimina.running.encoding import distances, tables_of
from tests import calls
from tests.random_models import KINDS, models
from tests.reference.content import Division
from tests.reference.tree import bucket_tree


def divided(problem, order, ibound, memory=1 << 30, seconds=math.inf, threads=1):
    return partition_by_content(problem, order, ibound, memory, seconds, threads)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_partitions_are_those_of_the_reference(data):
    """Sums of whole numbers are exact, so that both find the same gains."""
    problem = prepare(data.draw(models("cost")), "mpe", {})
    ibound, order = data.draw(st.integers(1, 4)), data.draw(st.permutations(problem.free))
    known = distances(problem, FORBIDDEN_COST)
    partition = divided(problem, order, ibound)
    if partition is None:
        assert not known.possible
        return
    scopes, tables = sorted_by(order, [group.scope for group in problem.groups], tables_of(problem, known.costs))
    assert partition == [[list(part) for part in parts] for parts in Division(scopes, tables, order, ibound).divide()]


def sorted_by(order, scopes, tables):
    """Scopes and tables of floats in the order of elimination."""
    position = {v: place for place, v in enumerate(order)}
    sequences = [sorted(range(len(scope)), key=lambda axis, scope=scope: position[scope[axis]]) for scope in scopes]
    costs = [np.where(table < FORBIDDEN_COST, table, math.inf).astype(float) for table in tables]
    return (
        [tuple(scope[axis] for axis in axes) for scope, axes in zip(scopes, sequences, strict=True)],
        [table.transpose(axes) for table, axes in zip(costs, sequences, strict=True)],
    )


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_partitions_are_trees_of_mini_buckets(kind, data):
    problem = prepare(data.draw(models(kind)), "mpe", {})
    ibound = data.draw(st.integers(1, 4))
    order = data.draw(st.permutations(problem.free))
    partition = divided(problem, order, ibound)
    if partition is None:
        return
    assert partition == divided(problem, order, ibound, threads=3)
    scopes = [group.scope for group in problem.groups]
    items = []

    def divide(place, found):
        items.append(len(found))
        return partition[place]

    tree = bucket_tree(scopes, order, ibound=ibound, divide=divide)
    assert [sorted(itertools.chain(*parts)) for parts in partition] == [list(range(number)) for number in items]
    for node in tree.nodes:
        tables = [scopes[f] for f in node.factors] + [tree.nodes[c].separator for c in node.children]
        assert len(node.separator) <= max([ibound, *(len(table) - 1 for table in tables)])


def colouring(edges, colours):
    count = 1 + max(max(edge) for edge in edges)
    return Model.from_arrays([colours] * count, [(edge, np.eye(colours, dtype=np.int64)) for edge in edges])


@pytest.mark.parametrize("kind", ["cost", "log"])
def test_triangles_stay_together(kind):
    # Two triangles with a corner in common: each costs 1 in two colours. By scopes the first two edges go together.
    model = colouring([(0, 1), (0, 3), (0, 2), (0, 4), (1, 2), (3, 4)], 2)
    if kind == "log":
        model = Model(
            model.variables,
            [elimina.Table(f.scope, np.exp(-f.dense().astype(float))) for f in model.factors],
            sense="probability",
        )
    bounds = {}
    for partition in ("scope", "content"):
        found = calls.solve(
            model, method="mbe", ibound=2, shift="none", order=range(5), partition=partition, device="cpu"
        )
        bounds[partition] = found.lower_bound if kind == "cost" else -found.upper_bound
        assert found.stats["partition"] == partition
    assert bounds == {"scope": 0, "content": pytest.approx(2)}


def test_costs_decide_what_goes_together():
    # The two tables that disagree on x are the first and the last one; by scopes the first goes with the second.
    sizes = [2, 2, 2, 2]
    opposed = [[0, 0], [9, 10]], [[9, 10], [0, 0]]
    tables = [((0, 1), opposed[0]), ((0, 2), np.zeros((2, 2), dtype=int)), ((0, 3), opposed[1])]
    model = Model.from_arrays(sizes, [(scope, np.array(table)) for scope, table in tables])
    options = {"method": "mbe", "ibound": 2, "shift": "none", "order": range(4), "device": "cpu"}
    assert calls.solve(model, partition="scope", **options).lower_bound == 0
    assert calls.solve(model, partition="content", **options).lower_bound == 9


def test_large_tables_are_compared_at_samples():
    model = random_model(6, 50, 1.0, 0.0, seed=3)
    best = calls.solve(model, device="cpu", method="search", time_limit=20)
    options = {"method": "mbe", "ibound": 2, "shift": "none", "order": range(6), "device": "cpu"}
    scope, content = (calls.solve(model, partition=kind, **options).lower_bound for kind in ("scope", "content"))
    assert scope <= best.upper_bound
    assert content <= best.upper_bound


def test_buckets_of_very_many_tables():
    # 400 tables have more pairs than are compared.
    rng = np.random.default_rng(0)
    # Each depends on both variables.
    tables = [((0, v), rng.integers(0, 4, (2, 2)) + np.diag((5, 9))) for v in range(1, 401)]
    problem = prepare(Model.from_arrays([2] * 401, tables), "mpe", {})
    partition = divided(problem, range(401), 4)
    assert sorted(itertools.chain(*partition[0])) == list(range(400))
    assert max(map(len, partition[0])) == 4


def test_by_scope_where_it_takes_too_much():
    model = random_model(12, 4, 0.8, 0.0, seed=3)
    problem = prepare(model, "mpe", {})
    assert divided(problem, range(12), 3, seconds=5.0) is not None
    large = prepare(random_model(12, 20, 1.0, 0.0, seed=3), "mpe", {})
    assert divided(large, range(12), 4, 1 << 40, 0.0) is None
    assert divided(large, range(12), 4, 1 << 40, 60.0) is not None
    assert divided(problem, range(12), 3, 10_000, 5.0) is None
    found = calls.solve(model, method="mbe", ibound=3, shift="none", memory=100_000, device="cpu")
    assert found.stats["partition"] == "scope"


def test_nothing_allowed():
    model = Model.from_arrays([2, 2], [((0, 1), np.full((2, 2), np.inf))])
    assert divided(prepare(model, "mpe", {}), range(2), 1) is None


def test_refused():
    model = Model.from_arrays([2], [((0,), [0.5, 0.5])], sense="probability")
    with pytest.raises(InputError, match="unknown partition 'some'"):
        calls.plan(model, ibound=2, partition="some")
    with pytest.raises(InputError, match="partition content is for the task mpe"):
        calls.solve(model, "pr", method="mbe", partition="content")


@pytest.mark.parametrize(("lost", "is_by_content"), [(0, True), (1, True), (2, False)])
def test_contents_count_for_more_than_a_variable(lost, is_by_content):
    problem = prepare(grid_model(12, 3, 0.0, seed=3), "mpe", {})
    order = find_order(problem.model.sizes, [group.scope for group in problem.groups], method="min-fill").order
    limits = Elimination(problem, order, cpu_machine(1), 1 << 30), "auto", False, 1e-3
    by_scope = make_bounded_plan(*limits).minibuckets
    assert by_scope is not None

    def divide(ibound):
        if ibound > by_scope.ibound - lost:
            return None
        return divided(problem, order, ibound)

    found = make_bounded_plan(*limits, None, divide).minibuckets
    assert found is not None
    assert found.by_content == is_by_content
    assert found.ibound == by_scope.ibound - (lost if is_by_content else 0)


def test_whole_buckets_are_not_divided_by_content():
    problem = prepare(grid_model(4, 3, 0.0, seed=3), "mpe", {})
    asked = []
    plan = make_bounded_plan(
        Elimination(problem, range(16), cpu_machine(1), 1 << 30, None), "auto", False, 1.0, None, asked.append
    )
    assert plan.minibuckets is None
    assert len(asked) == 1


def test_threads_share_large_tables():
    """Tables of 5^7 cells and more have the sums of one thread, and the same partition."""
    problem = prepare(grid_model(9, 5, 0.3, seed=1), "mpe", {})
    order = find_order([5] * 81, [group.scope for group in problem.groups], method="min-fill").order
    alone = divided(problem, order, 7)
    assert any(len(parts) > 1 for parts in alone)
    assert divided(problem, order, 7, threads=3) == alone
