"""Folded and radial trees: nothing overlaps, and edges reach their nodes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.viz.diagram import Extents
from elimina.viz.layouts.arcs import arc_bends
from elimina.viz.layouts.folded import folded_positions
from elimina.viz.layouts.radial import radial_positions
from elimina.viz.layouts.tidy import tidy_layout


def levels_of(parents):
    levels = []
    for parent in parents:
        levels.append(levels[parent] + 1 if parent >= 0 else 0)
    return levels


def crosses(a, b, c, d):
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < -1e-9 and side(c, d, a) * side(c, d, b) < -1e-9


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40), st.floats(0.1, 2), st.floats(0.1, 2))
def test_radial_trees(seeds, room, drop):
    parents = [seed % (i + 1) - 1 for i, seed in enumerate(seeds)]
    positions = radial_positions(parents, levels_of(parents), room, max(room, drop))
    for a, b in combinations(range(len(parents)), 2):
        assert np.hypot(*(positions[a] - positions[b])) > room * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_circles_of_a_radial_tree_are_not_all_outside(seed):
    """Few nodes near the root need a short circle, whatever is below them."""
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(0, max(1, i // 3 + 1))) for i in range(1, 300))]
    levels = np.array(levels_of(parents))
    radii = np.hypot(*radial_positions(parents, levels.tolist(), 0.3, 0.6).T)
    first = radii[levels == 1]
    assert np.ptp(first) < 1e-9
    assert first[0] < 0.6 * radii.max()


@settings(max_examples=60, deadline=None)
@given(st.integers(20, 120), st.integers(0, 10**6))
def test_folded_trees(count, seed):
    rng = np.random.default_rng(seed)
    parents = [-1, *(int(rng.integers(max(0, i - 2), i)) for i in range(1, count))]
    widths, half = rng.uniform(0.2, 0.6, count), np.full(count, 0.1)
    extents = Extents(widths, half, half, 0.1, 0.4, 1.0)
    x, levels = tidy_layout(parents, (widths + 0.1).tolist())
    positions, bends = folded_positions(parents, np.stack([x, -0.6 * np.array(levels)], axis=1), levels, extents)
    assert np.ptp(positions[:, 1]) < np.ptp(0.6 * np.array(levels)) or not bends
    for a, b in combinations(range(count), 2):
        distance = np.abs(positions[a] - positions[b])
        assert distance[0] > (widths[a] + widths[b]) / 2 - 1e-9 or distance[1] > 0.2 - 1e-9
    for node, course in bends.items():
        assert course[0, 0] == positions[parents[node], 0]
        assert course[0, 1] < positions[parents[node], 1] - 0.1
        assert course[-1, 0] == positions[node, 0]
        assert course[-1, 1] > positions[node, 1] + 0.1
        # No box stands in the lane.
        for box, (across, up) in enumerate(positions):
            if course[1, 1] < up < course[2, 1]:
                assert abs(course[1, 0] - across) > widths[box] / 2


def test_arcs_avoid_boxes_on_one_side():
    positions = np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -2.0], [-0.4, -1.0]])
    halves = np.full((4, 2), 0.15)
    (bend,) = arc_bends([(2, 0)], positions, [0, 1, 2, 1], halves)
    shares = np.linspace(0, 1, 200)[:, None]
    curve = (1 - shares) ** 2 * positions[2] + 2 * shares * (1 - shares) * bend + shares**2 * positions[0]
    for box in (1, 3):
        assert not (np.abs(curve - positions[box]) < halves[box]).all(axis=1).any()
