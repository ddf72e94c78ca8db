"""The junction tree as a picture: circles whose areas are the cliques' sizes, edges as wide as the separators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model import Model
from elimina.order import find_order
from elimina.tree import bucket_tree
from elimina.viz.canvas import FAINT, Canvas, need
from elimina.viz.cliques import CliqueTree, cliques, rooted_at_centres
from elimina.viz.tidy import tidy_layout

Points = NDArray[np.float64]

_MOST_NAMED = 40
_MOST_NAMES = 12
_FONT = 6.5
_LINE = _FONT * 1.25 / 72
_RADIUS_OF_ONE_DIGIT = 0.115
_SMALLEST = 0.3
_POINTS_OF_ONE_DIGIT = 1.3
_GAP = 0.12
_DROP = 0.38


def junction_tree(model: Model, seed: int = 0) -> CliqueTree:
    """Triangulate with the order that ``find_order`` finds, contract, and root where there are the fewest levels."""
    scopes = [f.scope for f in model.factors if f.scope]
    tree = bucket_tree(scopes, find_order(model.sizes, scopes, seed=seed).order)
    buckets = [frozenset((node.variable, *node.separator)) for node in tree.nodes]
    return rooted_at_centres(cliques(buckets, [node.parent for node in tree.nodes]))


def draw_tree(model: Model, title: str) -> Canvas:
    """Draw the junction tree under a title; up to 40 cliques list their variables, larger trees only their number.

    Raises:
        InputError: The model has no variables.
    """
    if not model.variables:
        raise InputError("the model has no variables, so it has no junction tree to draw")
    tree = junction_tree(model)
    digits = np.array([_digits(scope, model) for scope in tree.scopes])
    radii = _radii(digits)
    canvas = Canvas()
    named = len(tree.scopes) <= _MOST_NAMED
    names = [_names(scope, model) if named else [] for scope in tree.scopes]
    widths = [max([2 * r, *(canvas.text_width(n, _FONT) for n in lines)]) for r, lines in zip(radii, names, strict=True)]
    x, levels = tidy_layout(tree.parents, [w + _GAP for w in widths])
    centres = np.stack([x, _ordinates(levels, radii, [len(lines) * _LINE for lines in names])], axis=1)
    _draw_links(canvas, tree, model, centres, radii, [len(lines) * _LINE for lines in names])
    canvas.circles(centres, radii, "cliques", _fills(digits))
    for centre, radius, scope, lines, size in zip(centres, radii, tree.scopes, names, digits, strict=True):
        if radius >= 0.09:
            ink = "white" if _shade(size, digits) > 0.62 else "#1b1f24"
            canvas.text(centre[0], centre[1], str(len(scope)), min(8.0, radius * 50), gid="count", color=ink, zorder=5)
        if lines:
            top = centre[1] - radius - _LINE * 0.6
            for i, line in enumerate(lines):
                canvas.text(centre[0], top - i * _LINE, line, _FONT, gid="name", zorder=5)
    _draw_legend(canvas, digits)
    _draw_title(canvas, tree, model, title)
    return canvas


def _digits(scope: frozenset[int], model: Model) -> float:
    """Decimal logarithm of the cells of a table over the variables."""
    return math.fsum(math.log10(model.variables[v].size) for v in scope)


def _radii(digits: Points) -> Points:
    return _RADIUS_OF_ONE_DIGIT * np.sqrt(np.maximum(digits, _SMALLEST))


def _shade(size: float, digits: Points) -> float:
    return 0.12 + 0.78 * size / max(float(digits.max()), 1.0)


def _fills(digits: Points, among: Points | None = None) -> list[object]:
    ramp = need("matplotlib").colormaps["Blues"]
    return [ramp(_shade(size, digits if among is None else among)) for size in digits]


def _names(scope: frozenset[int], model: Model) -> list[str]:
    names = [model.variables[v].name for v in sorted(scope)]
    names = [name if len(name) <= 22 else name[:21] + "…" for name in names]
    if len(names) > _MOST_NAMES:
        return [*names[: _MOST_NAMES - 1], f"and {len(names) - _MOST_NAMES + 1} more"]
    return names


def _ordinates(levels: Sequence[int], radii: Points, below: Sequence[float]) -> Points:
    """Each level's circles are centred on a line; the levels are as far apart as circles and names need."""
    depth = max(levels) + 1
    up, down = np.zeros(depth), np.zeros(depth)
    for level, radius, text in zip(levels, radii, below, strict=True):
        up[level] = max(up[level], radius)
        down[level] = max(down[level], radius + text)
    steps = [0.0, *(-(down[i] + up[i + 1] + _DROP) for i in range(depth - 1))]
    return np.cumsum(steps)[list(levels)]


def _draw_links(
    canvas: Canvas, tree: CliqueTree, model: Model, centres: Points, radii: Points, below: Sequence[float]
) -> None:
    lower = [v for v, parent in enumerate(tree.parents) if parent >= 0]
    upper = [tree.parents[v] for v in lower]
    foot = radii + np.array(below) + np.where(np.array(below) > 0, 0.05, 0)
    starts = centres[upper] - np.stack([np.zeros(len(upper)), foot[upper]], axis=1)
    ends = centres[lower] + np.stack([np.zeros(len(lower)), radii[lower]], axis=1)
    shared = [_digits(tree.scopes[v] & tree.scopes[p], model) for v, p in zip(lower, upper, strict=True)]
    canvas.links(starts, ends, "separators", [_points(size) for size in shared])


def _points(digits: float) -> float:
    return _POINTS_OF_ONE_DIGIT * max(digits, _SMALLEST)


def _draw_legend(canvas: Canvas, digits: Points) -> None:
    """Circles and lines of a few round sizes below the tree."""
    low, _ = canvas.bounds
    largest = max(1, math.ceil(float(digits.max())))
    sizes = np.array([math.log10(2), 1.0] if largest == 1 else sorted({1, math.ceil(largest / 2), largest}))
    radii = _radii(sizes)
    x, y = float(low[0]), float(low[1]) - 0.45 - float(radii.max())
    for number, (size, radius) in enumerate(zip(sizes, radii, strict=True)):
        centre = np.array([[x + radius, y]])
        canvas.circles(centre, np.array([radius]), f"legend-circle-{number}", _fills(np.array([size]), digits))
        x += 2 * radius + 0.06
        canvas.text(x, y, _power(size), 8, gid="legend", across="left", color=FAINT)
        x += canvas.text_width(_power(size), 8) + 0.16
    canvas.text(x, y, "cells in a clique (area)", 8, gid="legend", across="left", color=FAINT)
    x, y = float(low[0]), y - float(radii.max()) - 0.2
    for number, size in enumerate(sizes):
        canvas.curves([np.array([[x, y], [x + 0.3, y]])], f"legend-line-{number}", _points(size))
        canvas.text(x + 0.38, y, _power(size), 8, gid="legend", across="left", color=FAINT)
        x += 0.38 + canvas.text_width(_power(size), 8) + 0.16
    canvas.text(x, y, "cells in a separator (width)", 8, gid="legend", across="left", color=FAINT)


def _power(digits: float) -> str:
    return f"1e{digits:.0f}" if digits > 3 else str(round(10**digits))


def _draw_title(canvas: Canvas, tree: CliqueTree, model: Model, title: str) -> None:
    low, high = canvas.bounds
    cells = [math.prod(model.variables[v].size for v in scope) for scope in tree.scopes]
    figures = f"{len(cells)} cliques, {_cells(sum(cells))} cells, {_cells(max(cells))} in the largest"
    text = f"{title[:60]}: {figures}" if title else figures
    canvas.text(low[0], high[1] + 0.3, text, 10, gid="title", across="left", color=FAINT)


def _cells(count: int) -> str:
    return str(count) if count < 10**6 else "{:.2f}e{:.0f}".format(10 ** (math.log10(count) % 1), math.log10(count) // 1)
