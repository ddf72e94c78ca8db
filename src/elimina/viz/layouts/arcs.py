"""Arcs beside a tree, which run over as few boxes as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.viz.diagram import Edge, Points

_BULGE = 0.4
"""Distance of an arc's bend from its chord, as a share of the chord's height."""

_STRETCHES = (1.0, 1.3, 1.7, 2.2)
_SHARES = np.linspace(0, 1, 40)[:, None]
_CURVE = np.hstack([(1 - _SHARES) ** 2, 2 * _SHARES * (1 - _SHARES), _SHARES**2])
"""Weights of the three control points of a quadratic curve, for points along the curve."""

_MAX_CHECKS = 300_000
"""Largest number of pairs of an arc and a box for which arcs avoid boxes: that takes about a second."""


def arc_bends(edges: Sequence[Edge], positions: Points, levels: Sequence[int], halves: Points) -> list[Points]:
    """Return the bend of each edge, which is further from the edge the more levels the arc passes.

    An arc takes the side and the distance with the fewest boxes in its way, and of equally good ones the nearest. With
    more than `_MAX_CHECKS` pairs of an arc and a box, all arcs take the nearest side and distance.

    Args:
        edges: Pairs of nodes, the lower one first.
        positions: Centres of all boxes.
        levels: Levels of all nodes.
        halves: Half the width and the height of each box.
    """
    stretches = _STRETCHES if len(edges) * len(positions) <= _MAX_CHECKS else _STRETCHES[:1]
    bends = []
    for low, high in edges:
        start, end = positions[low], positions[high]
        sides = (1, -1) if levels[low] % 2 else (-1, 1)
        reach = 2 * _BULGE * (end[1] - start[1])
        choices = [(start + end) / 2 + [side * stretch * reach, 0] for stretch in stretches for side in sides]
        if len(stretches) == 1:
            bends.append(choices[0][None])
            continue
        others = np.ones(len(positions), dtype=bool)
        others[[low, high]] = False
        centres, sizes = positions[others], halves[others]
        hits = []
        for bend in choices:
            curve = _CURVE @ np.array([start, bend, end])
            hits.append(int((np.abs(curve[:, None] - centres) < sizes).all(axis=2).any(axis=0).sum()))
            if not hits[-1]:
                break
        bends.append(choices[int(np.argmin(hits))][None])
    return bends
