"""Beam search in tables of clusters: bounds hold, and a beam that leaves nothing out is exact."""

from __future__ import annotations

import itertools
import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.methods import beam_search as beam_search_module
from elimina.methods.beam_search import beam_search, beam_searches
from elimina.methods.join_graph import JoinGraph
from tests.devices import on_devices
from tests.methods.test_join_graph import graphs, total

EVER = time.monotonic() + 1e6


def joined(drawn, arrays=np):
    """Return clusters, their tables after some passes, and the constant of these."""
    sizes, scopes, tables, order, ibound = drawn
    graph = JoinGraph(sizes, scopes, order, ibound)
    given = [(scope, arrays.asarray(table)) for scope, table in zip(scopes, tables, strict=True)]
    shifted = [graph.join(cluster, given, arrays) for cluster in graph.clusters]
    return graph, shifted, graph.shift(shifted, 30.0, 0.5)


@given(drawn=graphs(), width=st.sampled_from([1, 2, 5, 1000]))
@settings(max_examples=200, deadline=None)
def test_bounds_and_assignments(drawn, width):
    sizes, scopes, tables, order, _ = drawn
    graph, shifted, constant = joined(drawn)
    least = min(total(scopes, tables, chosen) for chosen in itertools.product(*map(range, sizes)))
    end = None if math.isinf(constant) else beam_search(graph, shifted, width, EVER)
    if end is None:
        assert math.isinf(least) or width < 1000
        return
    assert sorted(end.values) == sorted(order)
    assert total(scopes, tables, [end.values[v] for v in range(len(sizes))]) == constant + end.cost
    assert constant + end.bound <= least <= constant + end.cost
    if width == 1000:
        assert end.bound == end.cost


def dense(arrays=np, count=16):
    """Return the clusters of a dense problem that are far from exact."""
    rng = np.random.default_rng(3)
    scopes = [pair for pair in itertools.combinations(range(count), 2) if rng.random() < 0.4]
    tables = [rng.integers(0, 100, (3, 3)).astype(float) for _ in scopes]
    return joined(([3] * count, scopes, tables, list(range(count)), 2), arrays)


@on_devices
def test_wider_searches_bound_better(device):
    arrays = np if device == "cpu" else pytest.importorskip("cupy")
    graph, shifted, _ = dense(arrays)
    ends = [beam_search(graph, shifted, width, EVER, arrays) for width in (1, 30, 3000)]
    assert [end.bound for end in ends] == sorted(end.bound for end in ends)
    assert ends[0].bound < ends[2].bound <= ends[2].cost < ends[0].cost
    expected, tables, _ = dense()
    assert ends == [beam_search(expected, tables, width, EVER) for width in (1, 30, 3000)]


def test_searches_end_where_one_is_exact_or_time_is_up():
    graph, shifted, _ = dense(count=8)
    *_, last = beam_searches(graph, shifted, EVER)
    assert last.bound == last.cost
    assert not list(beam_searches(graph, shifted, time.monotonic() - 1.0))


def test_searches_keep_within_memory():
    graph, shifted, _ = dense()
    one = beam_search_module._bytes_of_one(graph, shifted)
    assert not list(beam_searches(graph, shifted, EVER, room=1000 * one))
    assert len(list(beam_searches(graph, shifted, EVER, room=1024 * one))) == 1
    tracemalloc.start()
    beam_search(graph, shifted, 1 << 14, EVER)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < (1 << 14) * one
