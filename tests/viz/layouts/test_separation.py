"""Turns of layouts, and pairs that may overlap."""

from __future__ import annotations

from itertools import combinations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.viz.layouts.separation import near_pairs, turned
from elimina.viz.layouts.stress import stress_layout


@given(st.lists(st.integers(-20, 20), max_size=12), st.integers(1, 9))
def test_pairs_that_arenear_pairs(x, reach):
    found = set(map(frozenset, zip(*(part.tolist() for part in near_pairs(np.array(x, float), reach)), strict=True)))
    assert found == {frozenset(pair) for pair in combinations(range(len(x)), 2) if abs(x[pair[0]] - x[pair[1]]) < reach}


@pytest.mark.parametrize("angle", [0.0, 20.0, 61.0, 90.0, 135.0])
def test_turned_layouts_lie_on_their_longer_side(angle):
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    positions = np.random.default_rng(1).random((200, 2)) * [9, 3] @ np.array([[c, -s], [s, c]])
    across, up = np.ptp(turned(positions), axis=0)
    assert up == pytest.approx(3, abs=0.4)
    assert across == pytest.approx(9, abs=0.4)


def test_rows_of_components_do_not_run_askew():
    """A square above a row of nodes: its principal axes are those of neither."""
    row = [[x, 0.0] for x in range(20)]
    tall = [[x, 1.0 + y] for x in range(3) for y in range(12)]
    positions = turned(np.array(row + tall, float))
    assert np.ptp(positions[: len(row), 1]) < 0.2 * np.ptp(positions[:, 1])


def test_a_grid_stands_upright():
    graph = networkx.grid_2d_graph(8, 8)
    edges = [(8 * a + b, 8 * c + d) for (a, b), (c, d) in graph.edges]
    positions = turned(stress_layout(64, edges))
    steps = np.array([np.abs(positions[a] - positions[b]) for a, b in edges])
    assert (steps.min(axis=1) < 0.25 * steps.max(axis=1)).all()
