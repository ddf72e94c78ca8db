"""Layouts: layers go down, nothing overlaps, equal subtrees look equal, distances match."""

from __future__ import annotations

from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.viz.graph import _near, apart
from elimina.viz.layouts import assign_layers, is_acyclic, isotonic, layered_layout, stress_layout, tidy_layout


@st.composite
def dags(draw):
    count = draw(st.integers(1, 14))
    order = draw(st.permutations(range(count)))
    pairs = list(combinations(order, 2))
    return count, sorted(draw(st.sets(st.sampled_from(pairs), max_size=25))) if pairs else []


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 6))
def test_layers(dag, most):
    count, edges = dag
    layers = assign_layers(count, edges, most)
    assert all(layers[tail] < layers[head] for tail, head in edges)
    assert max(np.bincount(layers)) <= most
    assert sorted(set(layers)) == list(range(max(layers) + 1))


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 6), st.data())
def test_layered_layouts(dag, most, data):
    count, edges = dag
    widths = data.draw(st.lists(st.floats(0.2, 3), min_size=count, max_size=count))
    layout = layered_layout(count, edges, widths, most)
    for a, b in combinations(range(count), 2):
        if layout.places[a, 1] == layout.places[b, 1]:
            assert abs(layout.places[a, 0] - layout.places[b, 0]) >= (widths[a] + widths[b]) / 2 - 1e-9
    for (tail, head), bends in zip(edges, layout.bends, strict=True):
        levels = [layout.places[tail, 1], *bends[:, 1], layout.places[head, 1]]
        np.testing.assert_array_equal(np.diff(levels), -1)


def test_a_path_is_straight_and_a_diamond_has_no_crossing():
    path = layered_layout(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4, 9)
    assert np.ptp(path.places[:, 0]) < 0.5
    cross = layered_layout(4, [(0, 3), (1, 2)], [1.0] * 4, 9).places
    assert (cross[0, 0] < cross[1, 0]) == (cross[3, 0] < cross[2, 0])


def test_cycles():
    assert is_acyclic([(0, 1), (1, 2), (0, 2)])
    assert not is_acyclic([(0, 1), (1, 2), (2, 0)])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.1, 4)), min_size=1, max_size=7))
def test_isotonic_is_the_projection(pairs):
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    fitted = isotonic(values, weights)
    assert (np.diff(fitted) >= -1e-12).all()
    cost = (weights * (fitted - values) ** 2).sum()
    rng = np.random.default_rng(1)
    for _ in range(30):
        other = np.sort(fitted + rng.normal(scale=0.3, size=len(fitted)))
        assert (weights * (other - values) ** 2).sum() >= cost - 1e-9


def test_stress_keeps_distances():
    graph = networkx.grid_2d_graph(6, 6)
    edges = [(6 * a + b, 6 * c + d) for (a, b), (c, d) in graph.edges]
    places = stress_layout(36, edges)
    lengths = np.array([np.linalg.norm(places[a] - places[b]) for a, b in edges])
    assert lengths.min() > 0.5
    assert lengths.max() < 1.6
    np.testing.assert_array_equal(places, stress_layout(36, edges))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.data())
def test_stress_of_any_graph(count, data):
    pairs = list(combinations(range(count), 2))
    edges = data.draw(st.lists(st.sampled_from(pairs), max_size=20, unique=True)) if pairs else []
    places = stress_layout(count, edges)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    boxes = apart(places, np.full(count, 1.5), 0.3)
    for a, b in pairs:
        assert abs(boxes[a, 0] - boxes[b, 0]) > 1.49 or abs(boxes[a, 1] - boxes[b, 1]) > 0.29


def test_large_graphs_are_laid_out_by_pivots():
    count = 1600
    places = stress_layout(count, [(i, i + 1) for i in range(count - 1)])
    assert np.linalg.norm(places[0] - places[-1]) > count / 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=14), st.data())
def test_tidy_trees(seeds, data):
    parents = [seed % (i + 1) - 1 for i, seed in enumerate(seeds)]
    widths = data.draw(st.lists(st.floats(0.1, 3), min_size=len(parents), max_size=len(parents)))
    x, levels = tidy_layout(parents, widths)
    for a, b in combinations(range(len(parents)), 2):
        if levels[a] == levels[b]:
            assert abs(x[a] - x[b]) >= (widths[a] + widths[b]) / 2 - 1e-9
    for node in range(len(parents)):
        assert levels[node] == (levels[parents[node]] + 1 if parents[node] >= 0 else 0)
        children = [c for c, p in enumerate(parents) if p == node]
        if children:
            assert x[node] == pytest.approx((x[children[0]] + x[children[-1]]) / 2)


def test_equal_subtrees_look_equal():
    x, _ = tidy_layout([-1, 0, 0, 1, 1, 2, 2], [1.0] * 7)
    assert x[4] - x[3] == x[6] - x[5]
    assert x[1] - x[3] == x[2] - x[5]


@given(st.lists(st.integers(-20, 20), max_size=12), st.integers(1, 9))
def test_pairs_that_are_near(x, reach):
    found = set(map(frozenset, zip(*(part.tolist() for part in _near(np.array(x, float), reach)), strict=True)))
    assert found == {frozenset(pair) for pair in combinations(range(len(x)), 2) if abs(x[pair[0]] - x[pair[1]]) < reach}
