"""Trees of mini-buckets, and plans with them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elimina
from elimina import InputError, Model, Table, Variable
from elimina.generate import grid_model, random_model
from elimina.planning import mini_buckets
from elimina.planning.step import MATCHING
from elimina.planning.tree import bucket_tree
from tests import calls

GRID = grid_model(5, 3, 0.3, seed=2)


@st.composite
def hypergraphs(draw):
    """Scopes over a few variables, and an order of them."""
    count = draw(st.integers(1, 9))
    scopes = draw(st.lists(st.sets(st.integers(0, count - 1), min_size=1, max_size=4), min_size=1, max_size=14))
    return [sorted(scope) for scope in scopes], draw(st.permutations(range(count)))


@given(hypergraphs(), st.integers(1, 9))
def test_mini_buckets_divide_buckets(problem, ibound):
    scopes, order = problem
    tree = bucket_tree(scopes, order, ibound=ibound)
    assert sorted(f for node in tree.nodes for f in node.factors) == list(range(len(scopes)))
    position = {v: i for i, v in enumerate(order)}
    assert [position[node.variable] for node in tree.nodes] == sorted(position[node.variable] for node in tree.nodes)
    for number, node in enumerate(tree.nodes):
        tables = [set(scopes[f]) for f in node.factors] + [set(tree.nodes[c].separator) for c in node.children]
        assert all(node.variable in table for table in tables)
        assert set(node.separator) == set().union(*tables) - {node.variable}
        # A message is larger than allowed only where one table alone makes it so.
        assert len(node.separator) <= max([ibound, *(len(table) - 1 for table in tables)])
        assert all(tree.nodes[c].parent == number for c in node.children)
        assert (node.parent >= 0) == bool(node.separator)
        if node.separator:
            assert tree.nodes[node.parent].variable == min(node.separator, key=position.__getitem__)
            assert number in tree.nodes[node.parent].children


@given(hypergraphs())
def test_a_large_ibound_divides_nothing(problem):
    scopes, order = problem
    whole = bucket_tree(scopes, order)
    assert bucket_tree(scopes, order, ibound=max(whole.width, 1)) == whole


def test_a_plan_says_what_is_divided():
    plan = calls.plan(GRID, ibound=2, shift="none", device="cpu")
    assert plan.width == 2
    assert plan.minibuckets is not None
    assert not plan.minibuckets.matched
    assert f"i-bound 2: {plan.minibuckets.divided} of 25 buckets partitioned" in str(plan)
    assert calls.plan(GRID, ibound=9, device="cpu").minibuckets is None


def test_matched_mini_buckets_have_steps_for_it():
    plain, matched = (calls.plan(GRID, ibound=2, shift=shift, device="cpu") for shift in ("none", "buckets"))
    assert sum(step.variable == MATCHING for step in matched.steps) == matched.minibuckets.nodes - sum(
        1 for v in matched.order if sum(step.variable == v for step in plain.steps) == 1
    )
    assert not any(step.variable == MATCHING for step in plain.steps)
    assert "moment matching" in str(matched)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_auto_takes_the_largest_that_fits(share):
    model = random_model(14, 4, 0.5, 0.1, seed=3)
    order = elimina.plan(model, device="cpu").order
    options = {"device": "cpu", "order": order, "shift": "none"}
    memory = int(calls.plan(model, **options).peak_bytes * share)
    plan = calls.plan(model, ibound="auto", memory=memory, **options)
    assert plan.fits
    larger = calls.plan(model, ibound=plan.minibuckets.ibound + 1, memory=memory, **options)
    assert not larger.fits


def test_auto_divides_nothing_where_everything_fits():
    assert calls.plan(GRID, ibound="auto", device="cpu").minibuckets is None


@pytest.mark.parametrize("ibound", [0, -3, "most"])
def test_bad_ibounds(ibound):
    with pytest.raises(InputError, match="ibound is"):
        calls.plan(GRID, ibound=ibound, device="cpu")


def test_ibounds_of_other_tasks_and_methods():
    with pytest.raises(InputError, match="is for the tasks mpe, pr and mmap"):
        calls.plan(GRID, "count", ibound=2, device="cpu")
    with pytest.raises(InputError, match="an i-bound is for the methods mbe and search"):
        calls.solve(GRID, ibound=2, method="eliminate")
    with pytest.raises(InputError, match="unknown shift 'some'"):
        calls.plan(GRID, ibound=2, shift="some")


def test_plans_of_mmap_do_not_advise_a_method():
    """Plans take no method, so an error must not name one to choose."""
    network = Model([Variable("x", 2)], [Table([0], np.array([0.5, 0.5]))], sense="probability")
    with pytest.raises(InputError, match="a plan of mmap is exact: leave the i-bound out"):
        calls.plan(network, "mmap", query=["x"], ibound=2)
    with pytest.raises(InputError, match="an i-bound is for the methods mbe and search"):
        calls.solve(network, "mmap", query=["x"], ibound=2)


def test_records_count_beside_messages():
    """Four times their bytes are taken for them where they are more than a process takes as it starts."""

    def rough(ibound):
        return mini_buckets._Rough(bytes=1 << 20, records=ibound << 18, seconds=0.0, width=100, is_divided=True)

    assert mini_buckets._largest_within(rough, 21 << 20, 1.0) == 20
    assert mini_buckets._largest_within(rough, 2 << 20, 1.0) == 4
