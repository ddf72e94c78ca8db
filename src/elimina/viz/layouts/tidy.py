"""Tidy layout of trees (Reingold, Tilford, 1981): equal subtrees look equal, parents stand over their children."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.viz.diagram import Points


def tidy_layout(parents: Sequence[int], widths: Sequence[float]) -> tuple[Points, list[int]]:
    """Return abscissas (float array of shape ``(nodes,)``) and the level of each node, the roots' being 0.

    Args:
        parents: Each node's parent; -1 for a root. Several roots stand side by side.
        widths: Width of each node, the gap to the next one included.
    """
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for node, parent in enumerate(parents):
        (children[parent] if parent >= 0 else roots).append(node)
    levels = [0] * len(parents)
    order = list(roots)
    for node in order:
        for child in children[node]:
            levels[child] = levels[node] + 1
            order.append(child)
    shift = np.zeros(len(parents))
    outlines: dict[int, tuple[list[float], list[float]]] = {}
    for node in reversed(order):
        below = _pack([outlines.pop(child) for child in children[node]], children[node], shift)
        middle = float(shift[children[node][0]] + shift[children[node][-1]]) / 2 if children[node] else 0.0
        shift[children[node]] -= middle
        half = widths[node] / 2
        outlines[node] = ([-half, *(x - middle for x in below[0])], [half, *(x - middle for x in below[1])])
    _pack([outlines[root] for root in roots], roots, shift)
    for node in order:
        if parents[node] >= 0:
            shift[node] += shift[parents[node]]
    return shift, levels


def _pack(
    outlines: Sequence[tuple[list[float], list[float]]], nodes: Sequence[int], shift: Points
) -> tuple[list[float], list[float]]:
    """Push subtrees together from the left, and return their common left and right outlines, level by level.

    The offset of each subtree becomes the ``shift`` of its root.
    """
    left: list[float] = []
    right: list[float] = []
    for (left_outline, right_outline), node in zip(outlines, nodes, strict=True):
        offset = max((r - outline for r, outline in zip(right, left_outline, strict=False)), default=0.0)
        shift[node] = offset
        left += [x + offset for x in left_outline[len(left) :]]
        right = [x + offset for x in right_outline] + right[len(right_outline) :]
    return left, right
