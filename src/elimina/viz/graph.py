"""The network as a picture, and as files for other programs: DOT (Graphviz) and GraphML (Gephi, yEd, networkx)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import cut
from elimina.errors import InputError, UnsupportedError
from elimina.io.files import save
from elimina.io.sources import ModelLike, as_model
from elimina.io.xml_documents import checked_xml
from elimina.model.model import Model
from elimina.result import Result
from elimina.viz.canvas import FILL, MOST_LARGE, MOST_SMALL, Canvas, Points, Style
from elimina.viz.layouts import is_acyclic, layered_layout, stress_layout

Edge = tuple[int, int]


_LARGE, _SMALL, _DOTS = Style(9, 28, 0.8, 0.22), Style(6, 18, 0.55, 0.12), Style(0, 0, 0, 0.09)
_DOT = 0.055
_EDGE, _EDGE_OF_DOTS = 0.75, 0.4
_PUSHES = 400
_MOST_PUSHED = 1500
"""Most nodes that are pushed apart, of which a round looks at all pairs that are near along one axis."""

_ROW_SHARE = 1.8
_LONGEST = 5.0
"""Longer side by shorter one from which on the layers of a network with small names cannot be read on a page."""

_MOST_HUBS, _HUB_POINTS = 15, 7.0
_PATCH = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}

OBSERVED = "#f2a36b"
_STATES = ("#9ecae9", "#f6cf71", "#9fd8b8", "#e3b4d3", "#f2b8a0", "#c9bfe6", "#d6d68a", "#b3d1d6")
_OTHERS = "#d5dbe1"


MAX_EDGES = 4_000_000
"""Most edges of a model's graph that are listed, which takes a second or two."""


def edges_of(model: Model) -> list[Edge]:
    """Return the distinct edges: (parent, child) in a Bayesian network, else pairs that share a factor."""
    if model.children is not None:
        pairs = zip(model.factors, model.children, strict=True)
        return sorted({(parent, child) for factor, child in pairs for parent in factor.scope if parent != child})
    count = sum(math.comb(len(factor.scope), 2) for factor in model.factors)
    if count > MAX_EDGES:
        widest = max(model.factors, key=lambda factor: len(factor.scope))
        raise UnsupportedError(
            f"the graph has up to {count:,} edges, too many to list: a factor over {len(widest.scope):,} variables "
            "joins each pair of them"
        )
    return sorted({pair for factor in model.factors for pair in combinations(sorted(factor.scope), 2)})


def draw_graph(model: Model, title: str, result: Result | None = None, observed: Sequence[int] = ()) -> Canvas:
    """Draw the network under a title; names shrink from 61 variables on, and from 251 on only hubs have names.

    Args:
        model: A model with variables.
        title: Title above the picture, before its figures.
        result: Answer whose posteriors or states become colours, if there is one.
        observed: Variables with evidence, which have a colour of their own.
    """
    canvas = Canvas()
    fills = FILL if result is None and not observed else colours(model, result, observed)
    count, edges = len(model.variables), edges_of(model)
    style = _LARGE if count <= MOST_LARGE else _SMALL if count <= MOST_SMALL else _DOTS
    labels = [cut(v.name, style.letters) for v in model.variables] if style.font else []
    height = style.font / 72 * 2.0 if labels else 2 * _DOT
    widths = np.array([canvas.text_width(label, style.font) + style.font / 72 for label in labels])
    if not labels:
        widths = np.full(count, 2 * _DOT)
    directed = model.children is not None
    # Beyond some hundreds of variables the layers of a DAG are wide and its long edges cover everything.
    layers = _layered(count, edges, widths, height, style) if directed and labels and is_acyclic(edges) else None
    sides = np.zeros(2) if layers is None else np.ptp(layers[0], axis=0)
    if layers is not None and (count <= MOST_LARGE or sides.max() < _LONGEST * sides.min()):
        places, runs = layers
    else:
        places = stress_layout(count, edges) * (_EDGE if labels else _EDGE_OF_DOTS)
        if count <= _MOST_PUSHED:
            places = apart(places, widths + style.gap / 2, height + style.gap / 2)
        runs = [_between(places[a], places[b], widths[b], height, directed) for a, b in edges]
    _draw_edges(canvas, runs, directed, 0.09 if labels else 0.06)
    if labels:
        canvas.boxes(places, widths, height, "nodes", fills)
        for (x, y), label in zip(places, labels, strict=True):
            canvas.text(x, y, label, style.font, gid="label", zorder=4)
    else:
        canvas.circles(places, widths / 2, "nodes", fills)
        _name_hubs(canvas, model, edges, places)
    canvas.title(title, f"{count} variables, {len(edges)} {'arrows' if directed else 'edges'}")
    return canvas


def colours(model: Model, result: Result | None, observed: Sequence[int]) -> list[str]:
    """Return a fill for each variable: the darker, the more probable its likeliest state; or one for each state.

    Args:
        model: Model of the answer.
        result: Answer, if there is one.
        observed: Variables with evidence.
    """
    known = frozenset(observed)
    found = []
    for number, variable in enumerate(model.variables):
        fill = FILL
        if number in known:
            fill = OBSERVED
        elif result is not None and variable.name in result.marginals:
            fill = _shade(max(result.marginals[variable.name].values()))
        elif result is not None and result.assignment is not None and variable.name in result.assignment:
            state = variable.index(result.assignment[variable.name])
            fill = _STATES[state] if state < len(_STATES) else _OTHERS
        found.append(fill)
    return found


def _shade(probability: float) -> str:
    """Return a blue that is light enough for a name on it."""
    ends = zip((0xF4, 0xF8, 0xFC), (0x8F, 0xB8, 0xE0), strict=True)
    return "#" + "".join(f"{round(light + (dark - light) * probability):02x}" for light, dark in ends)


def _name_hubs(canvas: Canvas, model: Model, edges: Sequence[Edge], places: Points) -> None:
    """Write the names of the variables with the most neighbours, unless they would overlap."""
    degrees = np.bincount(np.array(edges, dtype=np.int64).ravel(), minlength=len(places))
    size = max(_HUB_POINTS, 0.45 * float(np.ptp(places[:, 0])))
    height = 1.4 * size / 72
    taken: list[tuple[float, float, float]] = []
    for v in np.argsort(-degrees, kind="stable")[: 4 * _MOST_HUBS].tolist():
        name = cut(model.variables[v].name, 18)
        half, (x, y) = canvas.text_width(name, size) / 2, places[v]
        if all(abs(x - other) > half + reach or abs(y - level) > height for other, level, reach in taken):
            taken.append((x, y, half))
            canvas.text(x, y, name, size, gid="hub", zorder=6, bbox=_PATCH)
        if len(taken) == _MOST_HUBS:
            break


def _layered(
    count: int, edges: Sequence[Edge], widths: Points, height: float, style: Style
) -> tuple[Points, list[Points]]:
    most = max(4, round(_ROW_SHARE * math.sqrt(count)))
    layout = layered_layout(count, edges, (widths + style.gap).tolist(), most)
    scale = np.array([1.0, style.row])
    places = layout.places * scale
    rows = _Rows(places, widths, height, style)
    runs = []
    for (tail, head), bends in zip(edges, layout.bends, strict=True):
        stops = rows.straightened(np.concatenate([places[tail][None], bends * scale, places[head][None]]))
        start = stops[0] + [_port(stops[1][0] - stops[0][0], widths[tail]), -height / 2]
        end = stops[-1] + [_port(stops[-2][0] - stops[-1][0], widths[head]), height / 2]
        # Between two boxes of a row an edge goes straight down.
        middle = np.repeat(stops[1:-1], 2, axis=0) + np.tile([[0, height / 2], [0, -height / 2]], (len(stops) - 2, 1))
        runs.append(np.concatenate([[start], middle, [end]]))
    return places, runs


class _Rows:
    """The boxes of each layer, which edges must avoid."""

    def __init__(self, places: Points, widths: Points, height: float, style: Style) -> None:
        self._row, self._half = style.row, height / 2
        margin = style.gap / 3
        self._boxes: dict[int, tuple[Points, Points]] = {}
        levels = np.rint(-places[:, 1] / style.row).astype(int)
        for level in set(levels.tolist()):
            here = np.flatnonzero(levels == level)
            here = here[np.argsort(places[here, 0])]
            x, reach = places[here, 0], widths[here] / 2 + margin
            self._boxes[level] = (x - reach, x + reach)

    def straightened(self, stops: Points) -> Points:
        """Leave out the bends that nothing requires."""
        kept, at = [0], 0
        while at < len(stops) - 1:
            ahead = range(len(stops) - 1, at, -1)
            at = next(to for to in ahead if to == at + 1 or self._is_clear(stops[at], stops[to]))
            kept.append(at)
        return stops[kept]

    def _is_clear(self, start: Points, end: Points) -> bool:
        slope = (end[0] - start[0]) / (end[1] - start[1])
        first, last = (round(-y / self._row) for y in (start[1], end[1]))
        for level in range(first + 1, last):
            x = start[0] + slope * (-level * self._row - start[1])
            reach = abs(slope) * self._half
            left, right = self._boxes[level]
            if np.searchsorted(right, x - reach) != np.searchsorted(left, x + reach):
                return False
        return True


def _port(towards: float, width: float) -> float:
    """Return the place along a box's side where an edge meets it: nearer to its other end."""
    return float(np.clip(towards * 0.2, -0.35 * width, 0.35 * width))


def _between(a: Points, b: Points, width: float, height: float, directed: bool) -> Points:
    """Return the segment between two centres; an arrow ends at the box around the second."""
    if not directed:
        return np.stack([a, b])
    step = a - b
    with np.errstate(divide="ignore"):
        share = min(np.abs(np.array([width, height]) / 2 / step).min(), 1.0)
    return np.stack([a, b + share * step])


def _draw_edges(canvas: Canvas, runs: Sequence[Points], directed: bool, length: float) -> None:
    if not directed:
        canvas.lines(runs, "edges", 0.8 if length > 0.08 else 0.5)
        return
    tips = np.array([run[-1] for run in runs]).reshape(-1, 2)
    steps = np.array([run[-1] - run[-2] for run in runs]).reshape(-1, 2)
    norms = np.linalg.norm(steps, axis=1, keepdims=True)
    directions = steps / np.where(norms > 0, norms, 1)
    stops = tips - directions * length / 2
    shortened = [np.concatenate([run[:-1], [stop]]) for run, stop in zip(runs, stops, strict=True)]
    canvas.curves(shortened, "edges", 0.8 if length > 0.08 else 0.5)
    canvas.arrow_heads(tips, directions, length, "arrows")


def apart(places: Points, widths: Points, height: float) -> Points:
    """Push boxes that overlap away from one another, along the axis that takes less."""
    places, count = places.copy(), len(places)
    for _ in range(_PUSHES):
        a, b = _near(places[:, 0], float(widths.max(initial=0.0)))
        dx, dy = (places[a] - places[b]).T
        over_x, over_y = (widths[a] + widths[b]) / 2 - np.abs(dx), height - np.abs(dy)
        clash = (over_x > 1e-6) & (over_y > 1e-6)
        if not clash.any():
            break
        a, b, dx, dy, over_x, over_y = (found[clash] for found in (a, b, dx, dy, over_x, over_y))
        sideways, rank = over_x < over_y, np.sign(a - b)
        push_x = np.where(sideways, over_x * np.where(dx, np.sign(dx), rank), 0)
        push_y = np.where(sideways, 0, over_y * np.where(dy, np.sign(dy), rank))
        pushes = [np.bincount(a, push, count) - np.bincount(b, push, count) for push in (push_x, push_y)]
        places += np.stack(pushes, axis=1) * 0.35
    return places


def _near(x: Points, reach: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of places that are nearer than a distance along one axis."""
    order = np.argsort(x)
    here = np.arange(len(x))
    after = np.searchsorted(x[order], x[order] + reach) - here - 1
    first = np.repeat(here, np.maximum(after, 0))
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(after) - after, np.maximum(after, 0))
    return order[first], order[second]


SUFFIXES = (".dot", ".graphml")


def write_graph(
    model: ModelLike,
    path: str | os.PathLike[str],
    result: Result | None = None,
    observed: Sequence[str | int] = (),
) -> None:
    """Write a model's graph: arrows where it is a Bayesian network, else an edge where two variables share a factor.

    Args:
        model: Any model, or the path of a file that ``elimina.read`` takes.
        path: A .dot or .graphml file.
        result: Answer whose posteriors or states become colours, if there is one.
        observed: Observed variables (names or indices), which have a colour of their own.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: The suffix is another one, the model has no such variable, or the file cannot hold a name or be
            written.
    """
    if result is not None and not isinstance(result, Result):
        raise arguments.wrong_type("result", result, "an elimina.Result, or None")
    path, model = arguments.file("path", path), as_model(model)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: graphs are written to {' and '.join(SUFFIXES)} files")
    seen = [model.index(v) for v in observed]
    fills = colours(model, result, seen) if result is not None or seen else [FILL] * len(model.variables)
    save(path, (_dot if suffix == ".dot" else _graphml)(model, fills))


def _dot(model: Model, fills: Sequence[str]) -> Iterator[str]:
    kind, link = ("graph", "--") if model.children is None else ("digraph", "->")
    yield f"{kind} {_quoted(model.name or 'model')} {{\n"
    yield '  node [shape=box, style="rounded,filled"];\n'
    for number, (variable, fill) in enumerate(zip(model.variables, fills, strict=True)):
        yield f'  n{number} [label={_quoted(variable.name)}, fillcolor="{fill}"];\n'
    for a, b in edges_of(model):
        yield f"  n{a} {link} n{b};\n"
    yield "}\n"


def _quoted(text: str) -> str:
    """Return a text of DOT: a backslash begins an escape in labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _graphml(model: Model, fills: Sequence[str]) -> Iterator[str]:
    kind = "undirected" if model.children is None else "directed"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for key, type_ in (("label", "string"), ("states", "int"), ("color", "string")):
        yield f'  <key id="{key}" for="node" attr.name="{key}" attr.type="{type_}"/>\n'
    from xml.sax.saxutils import escape  # it loads what opens URLs

    yield f'  <graph edgedefault="{kind}">\n'
    for number, (variable, fill) in enumerate(zip(model.variables, fills, strict=True)):
        data = f'<data key="label">{escape(checked_xml(variable.name))}</data><data key="states">{variable.size}</data>'
        yield f'    <node id="n{number}">{data}<data key="color">{fill}</data></node>\n'
    for number, (a, b) in enumerate(edges_of(model)):
        yield f'    <edge id="e{number}" source="n{a}" target="n{b}"/>\n'
    yield "  </graph>\n</graphml>\n"
