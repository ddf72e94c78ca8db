"""Layouts of diagrams. The graph decides the kind of layout; lengths are in the units of the nodes' sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina.viz.diagram import Diagram, Extents, GraphLayout, Points, no_bends
from elimina.viz.layouts.arcs import arc_bends
from elimina.viz.layouts.folded import folded_positions
from elimina.viz.layouts.layered import is_acyclic, layered_layout, straightened
from elimina.viz.layouts.radial import radial_positions
from elimina.viz.layouts.separation import separated, turned
from elimina.viz.layouts.stress import stress_layout
from elimina.viz.layouts.tidy import tidy_layout

_MAP_SIDE = 8.0
"""Longer side of a map, in inches."""

_ROW_FACTOR = 1.8
"""Number of nodes in a row, relative to the square root of all nodes."""

_MAX_LAYERED_NODES = 250
"""Largest number of nodes in layers: with more nodes, layers are too wide, and long edges cover them."""

_MAX_NODES_OF_ANY_ASPECT, _MAX_LAYERED_ASPECT = 60, 5.0
"""Up to this number of nodes, a drawing in layers may have any aspect ratio; above it, the ratio is limited."""

_MAX_SEPARATED_NODES = 2500
"""Largest number of nodes to push apart; a round visits all pairs that are near along one axis."""

_TREE_DROP_SHARE = 0.55
"""Distance of a tree's levels, relative to that of a graph's layers: layers need more room, because edges cross."""

_TALL_INCHES, _TALL_ASPECT = 12.0, 3.0
_WIDE_ASPECT, _MIN_RADIAL_NODES = 4.0, 150


def arrange(diagram: Diagram, extents: Extents) -> GraphLayout:
    """Return the positions of a diagram's nodes and the courses of its edges.

    Args:
        diagram: Diagram of at least one node.
        extents: Sizes of the nodes, in inches or in units of about an inch.
    """
    if diagram.points is not None:
        low, high = diagram.points.min(axis=0), diagram.points.max(axis=0)
        scale = _MAP_SIDE / (float((high - low).max()) or 1.0)
        return GraphLayout((diagram.points - low) * scale, no_bends(len(diagram.edges)))
    if diagram.parents is not None:
        return _tree_layout(diagram, diagram.parents, extents._replace(drop=extents.drop * _TREE_DROP_SHARE))
    return _network_layout(diagram, extents)


def _network_layout(diagram: Diagram, extents: Extents) -> GraphLayout:
    count, edges = len(diagram.names), diagram.edges
    heights = extents.above + extents.below
    if diagram.is_directed and count <= _MAX_LAYERED_NODES and is_acyclic(edges):
        row_limit = max(4, round(_ROW_FACTOR * math.sqrt(count)))
        layout = layered_layout(count, edges, (extents.widths + extents.gap).tolist(), row_limit)
        row, height = float(heights.max()) + extents.drop, float(heights.max())
        scale = np.array([1.0, row])
        layout = GraphLayout(layout.positions * scale, [bend * scale for bend in layout.bends], is_downward=True)
        width, depth = np.ptp(layout.positions, axis=0)
        if count <= _MAX_NODES_OF_ANY_ASPECT or max(width, depth) < _MAX_LAYERED_ASPECT * min(width, depth):
            return straightened(layout, edges, extents.widths + 2 * extents.gap / 3, row, height)
    positions = turned(stress_layout(count, edges)) * extents.edge
    if count <= _MAX_SEPARATED_NODES:
        positions = separated(positions, extents.widths + extents.gap / 2, heights + extents.gap / 2)
    return GraphLayout(positions, no_bends(len(edges)))


def _tree_layout(diagram: Diagram, parents: Sequence[int], extents: Extents) -> GraphLayout:
    x, levels = tidy_layout(parents, (extents.widths + extents.gap).tolist())
    positions = np.stack([x, _ordinates(levels, extents)], axis=1)
    bends = no_bends(len(diagram.edges))
    dashed = sorted(diagram.dashed)
    if dashed:
        halves = np.stack([extents.widths / 2, extents.above], axis=1) + extents.gap / 3
        edges = [diagram.edges[edge] for edge in dashed]
        for edge, bend in zip(dashed, arc_bends(edges, positions, levels, halves), strict=True):
            bends[edge] = bend
        return GraphLayout(positions, bends, is_downward=True)
    width, height = np.ptp(positions, axis=0) + 1.0
    if height > max(_TALL_INCHES, _TALL_ASPECT * width):
        positions, bend_of = folded_positions(parents, positions, levels, extents)
        bends = [bend_of.get(child, bend) for (_, child), bend in zip(diagram.edges, bends, strict=True)]
    elif len(parents) > _MIN_RADIAL_NODES and width > _WIDE_ASPECT * height:
        room = float(max(extents.widths.max(), 2 * extents.above.max())) + extents.gap
        return GraphLayout(radial_positions(parents, levels, room, room + extents.drop), bends)
    return GraphLayout(positions, bends, is_downward=True)


def _ordinates(levels: Sequence[int], extents: Extents) -> Points:
    """Return the ordinates of nodes: each level centred on a line, levels as far apart as nodes and captions need."""
    depth = max(levels) + 1
    above, below = np.zeros(depth), np.zeros(depth)
    np.maximum.at(above, levels, extents.above)
    np.maximum.at(below, levels, extents.below)
    steps = [0.0, *(-(below[:-1] + above[1:] + extents.drop)).tolist()]
    ordinates: Points = np.cumsum(steps)[list(levels)]
    return ordinates
