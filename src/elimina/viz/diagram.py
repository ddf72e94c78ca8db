"""Diagrams: contents and layout of a picture of a graph, as plain data for figures and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Edge = tuple[int, int]
Points = NDArray[np.float64]


class Colouring(NamedTuple):
    """A choice of colours for the nodes.

    Attributes:
        name: Label of the choice.
        values: A number for each node: that of a class or, on a scale, one from 0 to 1; None for a node without colour.
        labels: Names of the classes, or of both ends of the scale.
        is_scale: True if the values are positions on a scale.
    """

    name: str
    values: Sequence[int | float | None]
    labels: Sequence[str]
    is_scale: bool = False


class SizeKey(NamedTuple):
    """A key to the sizes of nodes and the weights of edges.

    Attributes:
        sizes: Radii of the circles in the key; their squares are the weights of the lines in the key.
        shares: Colour of each size on the scale of the first colouring.
        labels: Text of each size.
        nodes: Meaning of the sizes of nodes.
        edges: Meaning of the weights of edges.
    """

    sizes: Sequence[float]
    shares: Sequence[float]
    labels: Sequence[str]
    nodes: str
    edges: str


@dataclass(frozen=True)
class Diagram:
    """A graph with all texts and colours of its picture; the positions of nodes are computed later.

    Attributes:
        key: Identifier of the kind of diagram.
        subject: Noun for the kind of graph, such as 'Graph'.
        figures: Description of the graph's size.
        names: Labels of the nodes.
        edges: Pairs of nodes; in a map, they form a closed walk.
        is_directed: True if edges have arrows.
        parents: Each node's parent in a tree, which comes before it, or -1; None if the graph is not drawn as a tree.
        points: Positions on a map, a float array of shape ``(nodes, 2)`` with y growing upwards; None if positions are
            to be computed.
        sizes: Radii of the nodes, relative to one another; empty if all are equal.
        weights: Widths of the edges, relative to one another; empty if all are equal.
        counts: Text inside each node instead of its name.
        captions: Lines below each node.
        bars: Rows inside each node, below its name. A row has a text, and the filled share of a bar.
        dashed: Numbers of the dashed edges.
        marked: Nodes with evidence.
        details: Lines that describe each node. A line has a text, and the filled share of a bar, or None without a bar.
        members: Texts other than its name by which a search finds each node.
        colourings: Choices of colours; the first one is shown first.
        size_key: Key to the sizes; None if they need no key.
        remarks: Remarks on omissions, or on the meaning of marks.
        noun: Word for a node.
    """

    key: str
    subject: str
    figures: str
    names: Sequence[str]
    edges: Sequence[Edge]
    is_directed: bool = False
    parents: Sequence[int] | None = None
    points: Points | None = None
    sizes: Sequence[float] = ()
    weights: Sequence[float] = ()
    counts: Sequence[str] = ()
    captions: Sequence[Sequence[str]] = ()
    bars: Sequence[Sequence[tuple[str, float]]] = ()
    dashed: frozenset[int] = frozenset()
    marked: Sequence[int] = ()
    details: Sequence[Sequence[tuple[str, float | None]]] = ()
    members: Sequence[Sequence[str]] = ()
    colourings: Sequence[Colouring] = ()
    size_key: SizeKey | None = None
    remarks: Sequence[str] = ()
    noun: str = "variable"


class Extents(NamedTuple):
    """Sizes of the nodes of a diagram, in units of its medium.

    Attributes:
        widths: Width of each node.
        above: Height of each node above its centre.
        below: Height of each node below its centre, with its caption.
        gap: Least distance between nodes of a level.
        drop: Distance between the nodes of a level and those of the next one.
        edge: Length of an edge in layouts by distances.
    """

    widths: Points
    above: Points
    below: Points
    gap: float
    drop: float
    edge: float


class GraphLayout(NamedTuple):
    """Positions of nodes and courses of edges.

    Attributes:
        positions: Float array of shape ``(nodes, 2)``; y grows upwards.
        bends: Points between the ends of each edge, from its first node on, of shape ``(bends, 2)``.
        is_downward: True if edges leave their first node at the bottom and meet the second one at the top.
    """

    positions: Points
    bends: Sequence[Points]
    is_downward: bool = False


def no_bends(count: int) -> list[Points]:
    """Return the bends of a number of straight edges."""
    return [np.zeros((0, 2))] * count
