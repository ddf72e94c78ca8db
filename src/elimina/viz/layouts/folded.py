"""Tall trees that are folded: bands of levels stand side by side, and edges between them run through lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina.viz.diagram import Extents, Points

_ASPECT = 1.4
"""Ratio of a folded tree's width to its height, which the number of bands aims at."""

_LANE = 0.3
"""Width of a lane between bands, in inches."""


def folded_positions(
    parents: Sequence[int], positions: Points, levels: Sequence[int], extents: Extents
) -> tuple[Points, dict[int, Points]]:
    """Return the positions of a tree in bands of levels, and, by its lower node, the bends of each edge between bands.

    Args:
        parents: Each node's parent; -1 for a root.
        positions: Positions of the tree in one band.
        levels: Level of each node.
        extents: Sizes of the nodes.
    """
    ratio = _ASPECT * (float(np.ptp(positions[:, 1])) + 1) / (float(np.ptp(positions[:, 0])) + 1)
    depth = math.ceil((max(levels) + 1) / max(round(math.sqrt(ratio)), 1))
    bands = np.array(levels) // depth
    links: list[list[int]] = [[] for _ in range(int(bands.max()) + 1)]
    for node, parent in enumerate(parents):
        if parent >= 0 and bands[parent] < bands[node]:
            links[bands[node]].append(node)
    positions = positions.copy()
    right = 0.0
    lefts = []
    for band, nodes in enumerate(links):
        members = np.flatnonzero(bands == band)
        x, half = positions[members, 0], extents.widths[members] / 2
        lefts.append(right + (_LANE * (len(nodes) + 1) if band else 0.0))
        positions[members] += [lefts[band] - float((x - half).min()), -float(positions[members, 1].max())]
        right = float((positions[members, 0] + half).max())
    bends = {}
    for band, nodes in enumerate(links):
        if not nodes:
            continue
        above = np.flatnonzero(bands == band - 1)
        bottom = float((positions[above, 1] - extents.below[above]).min())
        top = float(extents.above[nodes].max())
        for lane, node in enumerate(nodes, 1):
            dip = extents.drop * lane / (len(nodes) + 1)
            across, start = lefts[band] - _LANE * lane, positions[parents[node], 0]
            course = [
                (start, bottom - dip),
                (across, bottom - dip),
                (across, top + dip),
                (positions[node, 0], top + dip),
            ]
            bends[node] = np.array(course)
    return positions, bends
