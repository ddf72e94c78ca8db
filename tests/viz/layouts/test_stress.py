"""Distances on the page match those in the graph."""

from __future__ import annotations

from itertools import combinations

import networkx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.viz.layouts.separation import separated
from elimina.viz.layouts.stress import stress_layout


def test_stress_keeps_distances():
    graph = networkx.grid_2d_graph(6, 6)
    edges = [(6 * a + b, 6 * c + d) for (a, b), (c, d) in graph.edges]
    positions = stress_layout(36, edges)
    lengths = np.array([np.linalg.norm(positions[a] - positions[b]) for a, b in edges])
    assert lengths.min() > 0.5
    assert lengths.max() < 1.6
    np.testing.assert_array_equal(positions, stress_layout(36, edges))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.data())
def test_stress_of_any_graph(count, data):
    pairs = list(combinations(range(count), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), max_size=20, unique=True)) if pairs else []
    positions = stress_layout(count, edges)
    assert positions.shape == (count, 2)
    assert np.isfinite(positions).all()
    boxes = separated(positions, np.full(count, 1.5), np.full(count, 0.3))
    for a, b in pairs:
        assert abs(boxes[a, 0] - boxes[b, 0]) > 1.49 or abs(boxes[a, 1] - boxes[b, 1]) > 0.29


def test_large_graphs_are_laid_out_by_pivots():
    count = 1600
    positions = stress_layout(count, [(i, i + 1) for i in range(count - 1)])
    assert np.linalg.norm(positions[0] - positions[-1]) > count / 2
