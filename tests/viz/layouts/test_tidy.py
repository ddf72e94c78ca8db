"""Equal subtrees look equal, and nothing overlaps."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.viz.layouts.tidy import tidy_layout


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
