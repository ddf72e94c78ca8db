"""Junction trees and pseudo-trees as pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from elimina.display import cut
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.planning.order import find_order
from elimina.planning.tree import Clique, Tree, junction_tree, plan_tree
from elimina.viz.canvas import FAINT, MOST_LARGE, MOST_SMALL, Canvas, Points, Style, need
from elimina.viz.layouts import tidy_layout

_MOST_NAMED = 40
_MOST_NAMES = 12
_FONT = 6.5
_LINE = _FONT * 1.25 / 72
_RADIUS_OF_ONE_DIGIT = 0.115
_SMALLEST = 0.3
_LEAST_WITH_COUNT = 0.085
_POINTS_OF_ONE_DIGIT, _MOST_POINTS = 1.3, 9.0
_GAP = 0.12
_DROP = 0.38
_PAGE, _TALL, _ASPECT, _LANE = 12.0, 3.0, 1.4, 0.3


def central_cliques(model: Model) -> tuple[Clique, ...]:
    """Return the cliques of a triangulation by ``find_order``, rooted so that there are the fewest levels."""
    scopes = [f.scope for f in model.factors if f.scope]
    found = plan_tree(scopes, model.sizes, find_order(model.sizes, scopes).order)
    return junction_tree(
        plan_tree([clique.scope for clique in junction_tree(found)], model.sizes, found.central_order())
    )


def draw_tree(model: Model, title: str) -> Canvas:
    """Draw the junction tree under a title; up to 40 cliques list their variables, larger trees only their number.

    Raises:
        InputError: The model has no variables.
    """
    if not model.variables:
        raise InputError("the model has no variables, so it has no junction tree to draw")
    cliques = central_cliques(model)
    digits = np.array([_digits(clique.scope, model) for clique in cliques])
    radii = _radii(digits)
    canvas = Canvas()
    named = len(cliques) <= _MOST_NAMED
    names = [_names(clique.scope, model) if named else [] for clique in cliques]
    texts = [max((canvas.text_width(name, _FONT) for name in lines), default=0.0) for lines in names]
    below = [len(lines) * _LINE for lines in names]
    centres, bands = _places(cliques, np.maximum(2 * radii, texts), radii, below)
    _draw_links(canvas, cliques, model, digits, centres, bands, below)
    canvas.circles(centres, radii, "cliques", _fills(digits))
    for centre, radius, clique, lines, size in zip(centres, radii, cliques, names, digits, strict=True):
        if radius >= _LEAST_WITH_COUNT:
            ink = "white" if _shade(size, digits) > 0.62 else "#1b1f24"
            canvas.text(
                centre[0], centre[1], str(len(clique.scope)), min(8.0, radius * 50), gid="count", color=ink, zorder=5
            )
        if lines:
            top = centre[1] - radius - _LINE * 0.6
            for i, line in enumerate(lines):
                canvas.text(centre[0], top - i * _LINE, line, _FONT, gid="name", zorder=5)
    _draw_legend(canvas, digits)
    cells = [math.prod(model.variables[v].size for v in clique.scope) for clique in cliques]
    canvas.title(title, f"{len(cells)} cliques, {_cells(sum(cells))} cells, {_cells(max(cells))} in the largest")
    return canvas


def _digits(scope: Sequence[int], model: Model) -> float:
    """Decimal logarithm of the cells of a table over the variables."""
    return math.fsum(math.log10(model.variables[v].size) for v in scope)


def _radii(digits: Points) -> Points:
    return _RADIUS_OF_ONE_DIGIT * np.sqrt(np.maximum(digits, _SMALLEST))


def _shade(size: float, digits: Points) -> float:
    return 0.12 + 0.78 * size / max(float(digits.max()), 1.0)


def _fills(digits: Points, among: Points | None = None) -> list[object]:
    ramp = need("matplotlib").colormaps["Blues"]
    return [ramp(_shade(size, digits if among is None else among)) for size in digits]


def _names(scope: Sequence[int], model: Model) -> list[str]:
    names = [model.variables[v].name for v in sorted(scope)]
    names = [name if len(name) <= 22 else name[:21] + "…" for name in names]
    if len(names) > _MOST_NAMES:
        return [*names[: _MOST_NAMES - 1], f"and {len(names) - _MOST_NAMES + 1} more"]
    return names


def _ordinates(levels: Sequence[int], radii: Points, below: Sequence[float]) -> Points:
    """Return the places of the circles: each level centred on a line, levels as far apart as circles and names need."""
    depth = max(levels) + 1
    up, down = np.zeros(depth), np.zeros(depth)
    for level, radius, text in zip(levels, radii, below, strict=True):
        up[level] = max(up[level], radius)
        down[level] = max(down[level], radius + text)
    steps = [0.0, *(-(down[i] + up[i + 1] + _DROP) for i in range(depth - 1))]
    return np.cumsum(steps)[list(levels)]


def _places(
    cliques: Sequence[Clique], widths: Points, radii: Points, below: Sequence[float]
) -> tuple[Points, list[int]]:
    """Return the centres of the circles and their bands: a tall tree is cut into bands of levels, side by side."""
    x, levels = tidy_layout([clique.parent for clique in cliques], [w + _GAP for w in widths])
    y = _ordinates(levels, radii, below)
    width, height = float(np.ptp(x)) + 1.0, float(np.ptp(y)) + 1.0
    count = round(math.sqrt(_ASPECT * height / width)) if height > max(_PAGE, _TALL * width) else 1
    depth = math.ceil((max(levels) + 1) / max(count, 1))
    bands = [level // depth for level in levels]
    crossing = [_links_into(band, cliques, bands) for band in sorted(set(bands))]
    right = 0.0
    for band, lanes in enumerate(crossing):
        members = np.flatnonzero(np.array(bands) == band)
        left = right + (_LANE * (lanes + 1) if band else 0.0)
        x[members] += left - float((x[members] - widths[members] / 2).min())
        y[members] -= y[members].max()
        right = float((x[members] + widths[members] / 2).max())
    return np.stack([x, y], axis=1), bands


def _links_into(band: int, cliques: Sequence[Clique], bands: Sequence[int]) -> int:
    return sum(c.parent >= 0 and bands[c.parent] < bands[v] == band for v, c in enumerate(cliques))


def _draw_links(
    canvas: Canvas,
    cliques: Sequence[Clique],
    model: Model,
    digits: Points,
    centres: Points,
    bands: Sequence[int],
    below: Sequence[float],
) -> None:
    radii = _radii(digits)
    foot = radii + np.array(below) + np.where(np.array(below) > 0, 0.05, 0)
    starts, ends, widths = [], [], []
    detours: dict[int, list[tuple[Points, Points, float]]] = {}
    for v, (_, separator, parent) in enumerate(cliques):
        if parent < 0:
            continue
        start, end = centres[parent] - [0, foot[parent]], centres[v] + [0, radii[v]]
        width = _points(_digits(separator, model), digits)
        if bands[v] == bands[parent]:
            starts.append(start)
            ends.append(end)
            widths.append(width)
        else:
            detours.setdefault(bands[v], []).append((start, end, width))
    if starts:
        canvas.links(np.array(starts), np.array(ends), "separators", widths)
    for band, links in detours.items():
        left = min(centres[v][0] - radii[v] for v in range(len(bands)) if bands[v] == band)
        runs = [_detour(start, end, left, lane, len(links)) for lane, (start, end, _) in enumerate(links, 1)]
        canvas.lines(runs, f"separators-to-band-{band}", [width for _, _, width in links])


def _detour(start: Points, end: Points, left: float, lane: int, lanes: int) -> Points:
    """Return a line from the foot of one band to the head of the next one, through a lane of the gap between them."""
    share = lane / (lanes + 1)
    middle = left - _LANE * lane
    dip, rise = start[1] - _DROP * share, end[1] + _DROP * share
    return np.array([start, (start[0], dip), (middle, dip), (middle, rise), (end[0], rise), end])


def _points(size: float, digits: Points) -> float:
    """Width of a line; the widest one of a tree stays below the gap between circles."""
    return min(_POINTS_OF_ONE_DIGIT, _MOST_POINTS / float(digits.max() or 1.0)) * max(size, _SMALLEST)


def _draw_legend(canvas: Canvas, digits: Points) -> None:
    """Draw circles and lines of a few round sizes below the tree."""
    low, high = canvas.bounds
    font = max(8.0, 0.45 * float(high[0] - low[0]))
    # The circles and lines have the sizes of the tree; the text is as large as the picture needs.
    wide = font / 8
    largest = max(1, math.ceil(float(digits.max())))
    sizes = np.array([math.log10(2), 1.0] if largest == 1 else sorted({1, math.ceil(largest / 2), largest}))
    radii = _radii(sizes)
    line = max(float(radii.max()), 0.6 * font / 72)
    x, y = float(low[0]), float(low[1]) - 0.45 - line
    for number, (size, radius) in enumerate(zip(sizes, radii, strict=True)):
        centre = np.array([[x + radius, y]])
        canvas.circles(centre, np.array([radius]), f"legend-circle-{number}", _fills(np.array([size]), digits))
        x += 2 * radius + 0.06 * wide
        canvas.text(x, y, _power(size), font, gid="legend", centred=False, color=FAINT)
        x += canvas.text_width(_power(size), font) + 0.16 * wide
    canvas.text(x, y, "cells in a clique (area)", font, gid="legend", centred=False, color=FAINT)
    x, y = float(low[0]), y - line - max(0.2, 0.6 * font / 72)
    for number, size in enumerate(sizes):
        canvas.lines([np.array([[x, y], [x + 0.3 * wide, y]])], f"legend-line-{number}", _points(size, digits))
        canvas.text(x + 0.38 * wide, y, _power(size), font, gid="legend", centred=False, color=FAINT)
        x += 0.38 * wide + canvas.text_width(_power(size), font) + 0.16 * wide
    canvas.text(x, y, "cells in a separator (width)", font, gid="legend", centred=False, color=FAINT)


def _power(digits: float) -> str:
    return f"1e{digits:.0f}" if digits > 3 else str(round(10**digits))


def _cells(count: int) -> str:
    return str(count) if count < 10**6 else f"{10 ** (math.log10(count) % 1):.2f}e{math.log10(count) // 1:.0f}"


_LARGE, _SMALL, _DOTS = Style(9, 24, 0.55, 0.25), Style(6, 16, 0.36, 0.14), Style(0, 0, 0.2, 0.1)
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
    style = _LARGE if count <= MOST_LARGE else _SMALL if count <= MOST_SMALL else _DOTS
    names = [cut(labels[node.variable], style.letters) for node in tree.nodes] if style.font else []
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
    figures = f"{count} variables, depth {max(levels) + 1}, width {tree.width}, {len(back)} back edges (dotted)"
    canvas.title(title, figures, 0.2)
    return canvas


def _arc(centres: Points, levels: Sequence[int], halves: Points, low: int, high: int) -> Points:
    """Return the ends of an arc, and a point between them that is further away the more levels the arc passes.

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
