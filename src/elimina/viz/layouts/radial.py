"""Wide trees around their root: each level is a circle, on which a subtree's angle is the sum of its leaves'."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.viz.diagram import Points


def radial_positions(parents: Sequence[int], levels: Sequence[int], room: float, drop: float) -> Points:
    """Return positions of a tree's nodes, which do not overlap.

    Args:
        parents: Each node's parent, which comes before it; -1 for a root. Several roots stand around the centre.
        levels: Level of each node, the roots' being 0.
        room: Diameter of the largest node, with its gap.
        drop: Least distance between levels.
    """
    count = len(parents)
    has_centre = sum(parent < 0 for parent in parents) == 1
    # A node near the centre needs a wider angle than one on an outer circle.
    shares = 1 / (np.array(levels) + (0 if has_centre else 1)).clip(1)
    spans = np.zeros(count)
    for node in reversed(range(count)):
        spans[node] = max(spans[node], shares[node])
        if parents[node] >= 0:
            spans[parents[node]] += spans[node]
    starts, ends = np.zeros(count), np.zeros(count)
    total = 0.0
    for node, parent in enumerate(parents):
        if parent < 0:
            starts[node], total = total, total + spans[node]
        else:
            starts[node] = ends[parent]
            ends[parent] += spans[node]
        ends[node] = starts[node]
    angles = (starts + spans / 2) * (2 * np.pi / total)
    level_of = np.asarray(levels)
    radii, radius = np.zeros(count), 0.0
    for level in range(0 if not has_centre else 1, int(level_of.max()) + 1):
        members = np.flatnonzero(level_of == level)
        sorted_angles = np.sort(angles[members])
        steps = np.diff(sorted_angles, append=sorted_angles[0] + 2 * np.pi)
        # The chord between the nearest neighbours on a circle has to be at least as long as `room`.
        nearest = np.sin(min(float(steps.min()), np.pi) / 2)
        radius = max(radius + drop, room / (2 * nearest) if len(members) > 1 else 0.0)
        radii[members] = radius
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)
