"""The pseudo-tree of a distributed problem as a picture: edges of the tree straight, back edges dotted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from elimina.tree import Tree
from elimina.viz.canvas import FAINT, Canvas, Points
from elimina.viz.tidy import tidy_layout


class _Style(NamedTuple):
    """Measures in inches, but for the font's size in points."""

    font: float
    letters: int
    row: float
    gap: float


_LARGE, _SMALL, _DOTS = _Style(9, 24, 0.55, 0.25), _Style(6, 16, 0.36, 0.14), _Style(0, 0, 0.2, 0.1)
_MOST_LARGE, _MOST_SMALL = 60, 250
_DOT = 0.05
_BULGE = 0.4
_FURTHER = (1.0, 1.3, 1.7, 2.2)
_SHARES = np.linspace(0, 1, 40)[:, None]
_CURVE = np.hstack([(1 - _SHARES) ** 2, 2 * _SHARES * (1 - _SHARES), _SHARES**2])
"""Points along a quadratic curve, by its three."""


def back_edges(tree: Tree, scopes: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the pairs that share a cost function and are not child and parent, the lower node first.

    Args:
        tree: A pseudo-tree over all variables of the scopes, one node for each.
        scopes: Scopes of the cost functions.
    """
    number = {node.variable: n for n, node in enumerate(tree.nodes)}
    pairs = {tuple(sorted((number[u], number[v]))) for scope in scopes for u, v in combinations(scope, 2)}
    return sorted((low, high) for low, high in pairs if tree.nodes[low].parent != high)


def draw_pseudotree(tree: Tree, scopes: Sequence[Sequence[int]], labels: Sequence[str], title: str) -> Canvas:
    """Draw a pseudo-tree under a title; names shrink from 61 variables on and are left out from 251 on.

    Args:
        tree: One node for each variable.
        scopes: Scopes of the cost functions; each lies on a path to a root.
        labels: Labels of the variables.
        title: Title above the picture, before its figures.
    """
    canvas = Canvas()
    count = len(tree.nodes)
    style = _LARGE if count <= _MOST_LARGE else _SMALL if count <= _MOST_SMALL else _DOTS
    names = [_shortened(labels[node.variable], style.letters) for node in tree.nodes] if style.font else []
    widths = np.array([canvas.text_width(name, style.font) + style.font / 72 for name in names])
    if not names:
        widths = np.full(count, 2 * _DOT)
    x, levels = tidy_layout([node.parent for node in tree.nodes], (widths + style.gap).tolist())
    centres = np.stack([x, -style.row * np.array(levels)], axis=1)
    back = back_edges(tree, scopes)
    edges = [(n, node.parent) for n, node in enumerate(tree.nodes) if node.parent >= 0]
    canvas.lines([centres[[child, parent]] for child, parent in edges], "tree-edges", 1.1)
    halves = np.stack([widths / 2, np.full(count, style.font / 72 or _DOT)], axis=1)
    canvas.dotted_arcs([_arc(centres, levels, halves, *edge) for edge in back], "back-edges")
    if names:
        canvas.boxes(centres, widths, style.font / 72 * 2, "variables")
        for name, (across, up) in zip(names, centres, strict=True):
            canvas.text(across, up, name, style.font, gid="name", zorder=5)
    else:
        canvas.circles(centres, np.full(count, _DOT), "variables")
    low, high = canvas.bounds
    figures = f"{count} variables, depth {max(levels) + 1}, width {tree.width}, {len(back)} back edges (dotted)"
    text = f"{title[:60]}: {figures}" if title else figures
    size = max(10.0, 0.6 * float(high[0] - low[0]))
    canvas.text(low[0], high[1] + 0.2 + size / 72, text, size, gid="title", centred=False, color=FAINT)
    return canvas


def _arc(centres: Points, levels: Sequence[int], halves: Points, low: int, high: int) -> Points:
    """Two ends and a point between that the arc is drawn to: the further, the more levels it passes.

    Of both sides and several distances, what runs over the fewest boxes of others; of equal ones the nearest.

    Args:
        centres: Centres of all boxes.
        levels: Levels of all nodes.
        halves: Half the width and the height of each box.
        low: The lower end.
        high: The upper end.
    """
    start, end = centres[low], centres[high]
    others = np.ones(len(centres), dtype=bool)
    others[[low, high]] = False
    best: tuple[int, Points] | None = None
    for far in _FURTHER:
        for side in (1, -1) if levels[low] % 2 else (-1, 1):
            reach = 2 * side * far * _BULGE * (end[1] - start[1])
            run = np.array([start, (start + end) / 2 + [reach, 0], end])
            along = _CURVE @ run
            over = (np.abs(along[:, None] - centres[others]) < halves[others]).all(axis=2).any(axis=0)
            hits = int(over.sum())
            if best is None or hits < best[0]:
                best = hits, run
    assert best is not None
    return best[1]


def _shortened(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"
