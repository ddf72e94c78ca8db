"""Tall trees that are folded: bands of levels stand side by side, and edges between them run through lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina.viz.diagram import Extents, Points

_ASPECT = 1.4
"""Width of a folded tree by its height."""

_LANE = 0.3
"""Width of a lane between bands, in inches."""


def folded_places(
    parents: Sequence[int], places: Points, levels: Sequence[int], extents: Extents
) -> tuple[Points, dict[int, Points]]:
    """Return the places of a tree in bands of levels, and the bends of edges between bands by their lower node.

    Args:
        parents: Each node's parent; -1 for a root.
        places: Places of the tree in one band.
        levels: Level of each node.
        extents: Room of the nodes.
    """
    ratio = _ASPECT * (float(np.ptp(places[:, 1])) + 1) / (float(np.ptp(places[:, 0])) + 1)
    depth = math.ceil((max(levels) + 1) / max(round(math.sqrt(ratio)), 1))
    bands = np.array(levels) // depth
    links: list[list[int]] = [[] for _ in range(int(bands.max()) + 1)]
    for node, parent in enumerate(parents):
        if parent >= 0 and bands[parent] < bands[node]:
            links[bands[node]].append(node)
    places = places.copy()
    right = 0.0
    lefts = []
    for band, nodes in enumerate(links):
        members = np.flatnonzero(bands == band)
        x, half = places[members, 0], extents.widths[members] / 2
        lefts.append(right + (_LANE * (len(nodes) + 1) if band else 0.0))
        places[members] += [lefts[band] - float((x - half).min()), -float(places[members, 1].max())]
        right = float((places[members, 0] + half).max())
    bends = {}
    for band, nodes in enumerate(links):
        if not nodes:
            continue
        above = np.flatnonzero(bands == band - 1)
        bottom = float((places[above, 1] - extents.below[above]).min())
        top = float(extents.above[nodes].max())
        for lane, node in enumerate(nodes, 1):
            dip = extents.drop * lane / (len(nodes) + 1)
            across, start = lefts[band] - _LANE * lane, places[parents[node], 0]
            course = [(start, bottom - dip), (across, bottom - dip), (across, top + dip), (places[node, 0], top + dip)]
            bends[node] = np.array(course)
    return places, bends
