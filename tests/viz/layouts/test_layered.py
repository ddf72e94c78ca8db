"""Layers go down, are not too wide, and nothing overlaps."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.viz.layouts.layered import assign_layers, is_acyclic, isotonic, layered_layout, straightened


@st.composite
def dags(draw):
    count = draw(st.integers(1, 14))
    order = draw(st.permutations(range(count)))
    pairs = list(combinations(order, 2))
    return count, sorted(draw(st.sets(st.sampled_from(pairs), max_size=25))) if pairs else []


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 6))
def test_layers(dag, row_limit):
    count, edges = dag
    layers = assign_layers(count, edges, row_limit)
    assert all(layers[tail] < layers[head] for tail, head in edges)
    assert max(np.bincount(layers)) <= row_limit
    assert sorted(set(layers)) == list(range(max(layers) + 1))


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 6), st.data())
def test_layered_layouts(dag, row_limit, data):
    count, edges = dag
    widths = data.draw(st.lists(st.floats(0.2, 3), min_size=count, max_size=count))
    layout = layered_layout(count, edges, widths, row_limit)
    for a, b in combinations(range(count), 2):
        if layout.positions[a, 1] == layout.positions[b, 1]:
            assert abs(layout.positions[a, 0] - layout.positions[b, 0]) >= (widths[a] + widths[b]) / 2 - 1e-9
    for (tail, head), bends in zip(edges, layout.bends, strict=True):
        levels = [layout.positions[tail, 1], *bends[:, 1], layout.positions[head, 1]]
        np.testing.assert_array_equal(np.diff(levels), -1)


def test_a_path_is_straight_and_a_diamond_has_no_crossing():
    path = layered_layout(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4, 9)
    assert np.ptp(path.positions[:, 0]) < 0.5
    cross = layered_layout(4, [(0, 3), (1, 2)], [1.0] * 4, 9).positions
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


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 6))
def test_straight_edges_pass_no_box(dag, row_limit):
    count, edges = dag
    widths, height, row = np.full(count, 0.8), 0.3, 1.0
    layout = layered_layout(count, edges, [1.0] * count, row_limit)
    straight = straightened(layout, edges, widths, row, height)
    for (tail, head), before, bends in zip(edges, layout.bends, straight.bends, strict=True):
        assert len(bends) <= len(before)
        stops = np.concatenate([layout.positions[tail][None], bends, layout.positions[head][None]])
        assert {tuple(stop) for stop in bends} <= {tuple(stop) for stop in before}
        for start, end in pairwise(stops):
            for box in set(range(count)) - {tail, head}:
                x, y = layout.positions[box]
                if start[1] > y + height > y - height > end[1]:
                    across = [start[0] + (end[0] - start[0]) * (start[1] - at) / (start[1] - end[1]) for at in (y, y)]
                    assert all(abs(at - x) > 0.4 - 1e-9 for at in across)
