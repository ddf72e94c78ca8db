"""Building blocks of a page: HTML in which every text is escaped, charts as SVG, and graphs for the page's script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.display import cut
from elimina.model.model import Model

MOST_LETTERS = 80
"""Letters of a name or state that a table shows."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def html(content: object) -> Markup:
    """Return HTML as it is, and anything else as escaped text."""
    return content if isinstance(content, Markup) else Markup(escape(str(content)))


def short(text: object, most: int = MOST_LETTERS) -> str:
    """Return a name or state that is no longer than a cell of a table."""
    return cut(str(text), most)


def name_of(model: Model, variable: int, most: int = MOST_LETTERS) -> str:
    """Return the name of a plan's variable, which may be one that the model does not have."""
    count = len(model.variables)
    return short(model.variables[variable].name, most) if variable < count else f"auxiliary {variable - count + 1}"


def joined(parts: Iterable[object]) -> Markup:
    """Return the concatenation of parts."""
    return Markup("\n".join(map(html, parts)))


def paragraph(text: object, kind: str = "note") -> Markup:
    """Return a paragraph of a class of the style sheet."""
    return Markup(f'<p class="{kind}">{html(text)}</p>')


def bar(share: float, text: object = "") -> Markup:
    """Return a horizontal bar that is filled up to a share, with its text beside it."""
    width = 100 * min(max(share, 0.0), 1.0)
    return Markup(
        f'<span class="bar" aria-hidden="true"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="number">{html(text)}</span>'
    )


def figures(rows: Iterable[tuple[str, object]]) -> Markup:
    """Return names and values as a list of terms."""
    items = "".join(f"<div><dt>{html(name)}</dt><dd>{html(value)}</dd></div>" for name, value in rows)
    return Markup(f'<dl class="figures">{items}</dl>')


def table(caption: object, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table whose first column names the rows.

    Args:
        caption: Text above the table.
        header: Names of the columns.
        rows: Cells, text or HTML.
    """
    head = "".join(f'<th scope="col">{html(name)}</th>' for name in header)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{html(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{html(first)}</th>{cells}</tr>')
    body = "\n".join(lines)
    return Markup(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{html(caption)}"><table>'
        f"<caption>{html(caption)}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 16, 14, 44
_TICKS = 5
_WIDE = 100
"""Ratio of the last to the first time from which on the axis of time is logarithmic."""

_LEAST_SECONDS = 1e-3

Series = tuple[str, Sequence[tuple[float, float]]]


def time_chart(title: str, series: Sequence[Series], end: float, unit: str) -> Markup:
    """Draw values over time as steps.

    Args:
        title: Description for readers of the page who do not see the chart.
        series: Names and points: seconds and a value.
        end: Seconds at which the last values still hold.
        unit: Label of the axis of values.
    """
    points = [point for _, line in series for point in line]
    times = [max(seconds, _LEAST_SECONDS) for seconds, _ in points]
    end = max(end, *times)
    is_log = end > _WIDE * min(times)
    start = min(times) if is_log else 0.0
    along = _scale(start, end, _LEFT, _WIDTH - _RIGHT, is_log)
    low, high = min(value for _, value in points), max(value for _, value in points)
    room = (high - low) * 0.05 or max(abs(low), 1.0) * 0.05
    up = _scale(low - room, high + room, _HEIGHT - _BOTTOM, _TOP, False)
    parts = _axes(along, up, _ticks_of_time(start, end, is_log), _round_ticks(low, high), ("seconds", unit))
    for number, (_, line) in enumerate(series):
        path, before = [], None
        for seconds, value in [*line, (end, line[-1][1])]:
            x, y = along(max(seconds, _LEAST_SECONDS)), up(value)
            path.append(f"M{x:.1f} {y:.1f}" if before is None else f"H{x:.1f}V{y:.1f}")
            before = y
        parts.append(f'<path class="line l{number}" d="{"".join(path)}"/>')
    return _figure(title, parts, [name for name, _ in series])


def profile_chart(title: str, values: Sequence[float], labels: tuple[str, str]) -> Markup:
    """Draw positive values as columns on a logarithmic axis, in order.

    Args:
        title: Description for readers of the page who do not see the chart.
        values: Heights of the columns.
        labels: Labels of both axes.
    """
    heights = [math.log10(max(value, 1.0)) for value in values]
    top = max(1.0, *heights)
    along = _scale(0, len(values), _LEFT, _WIDTH - _RIGHT, False)
    up = _scale(0, top, _HEIGHT - _BOTTOM, _TOP, False)
    step = max(1, math.ceil(top / _TICKS))
    powers = [(float(power), f"1e{power}" if power > 3 else str(10**power)) for power in range(0, int(top) + 1, step)]
    parts = _axes(along, up, [], powers, labels)
    floor, width = up(0), max((_WIDTH - _RIGHT - _LEFT) / len(values) - 0.5, 0.5)
    for place, height in enumerate(heights):
        y = up(height)
        rest = floor - y
        parts.append(
            f'<rect class="column" x="{along(place):.1f}" y="{y:.1f}" width="{width:.1f}" height="{rest:.1f}"/>'
        )
    return _figure(title, parts, [])


def _scale(low: float, high: float, start: float, end: float, is_log: bool) -> Callable[[float], float]:
    def turned(value: float) -> float:
        return math.log10(value) if is_log else value

    span = turned(high) - turned(low) or 1.0
    return lambda value: start + (end - start) * (turned(value) - turned(low)) / span


def _round_ticks(low: float, high: float) -> list[tuple[float, str]]:
    span = high - low
    if span <= 0 or not math.isfinite(span):
        return [(low, f"{low:.6g}")]
    step = 10.0 ** math.floor(math.log10(span / _TICKS))
    step *= next(times for times in (1, 2, 5, 10) if span / (step * times) <= _TICKS)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [(number * step, f"{number * step:.10g}") for number in range(first, last + 1)]


def _ticks_of_time(start: float, end: float, is_log: bool) -> list[tuple[float, str]]:
    if not is_log:
        return _round_ticks(start, end)
    powers = range(math.ceil(math.log10(start)), math.floor(math.log10(end)) + 1)
    return [(10.0**power, f"{10.0**power:g}") for power in powers]


def _axes(
    along: Callable[[float], float],
    up: Callable[[float], float],
    across: Sequence[tuple[float, str]],
    values: Sequence[tuple[float, str]],
    labels: tuple[str, str],
) -> list[str]:
    floor, middle = _HEIGHT - _BOTTOM, (_TOP + _HEIGHT - _BOTTOM) / 2
    parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}"/>']
    for value, text in values:
        y = up(value)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{html(text)}</text>')
    for value, text in across:
        x = along(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{floor}"/>')
        parts.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{html(text)}</text>')
    centre = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{centre}" y="{_HEIGHT - 6}" text-anchor="middle">{html(labels[0])}</text>')
    turned = f'transform="rotate(-90 14 {middle})"'
    parts.append(f'<text x="14" y="{middle}" text-anchor="middle" {turned}>{html(labels[1])}</text>')
    return parts


def _figure(title: str, parts: Sequence[str], names: Sequence[str]) -> Markup:
    legend = "".join(f'<span class="key k{number}">{html(name)}</span>' for number, name in enumerate(names))
    body = "\n".join(parts)
    return Markup(
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html(title)}">'
        f"{body}</svg><figcaption>{legend or html(title)}</figcaption></figure>"
    )


_SIDE = 10_000
"""Units of the longer side of a drawing: coordinates are integers, which keeps the page small."""

_ASPECT, _MOST_STRETCH = 1.9, 1.7


def on_page(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factors of both axes that bring places nearer to the shape of a page."""
    wide, high = np.ptp(places, axis=0)
    ratio = wide / _ASPECT / (high or 1.0)
    return np.array([min(max(1 / (ratio or 1.0), 1.0), _MOST_STRETCH), min(max(ratio, 1.0), 2 * _MOST_STRETCH)])


@dataclass
class Colouring:
    """A choice of colours for the nodes.

    Attributes:
        name: Label of the choice.
        values: A number for each node: of a class, or from 0 to 1; None where there is none.
        labels: Names of the classes; or of both ends of a scale.
        is_scale: True if the values are a scale.
    """

    name: str
    values: Sequence[int | float | None]
    labels: Sequence[str]
    is_scale: bool = False


@dataclass
class Drawing:
    """A graph with its places.

    Attributes:
        key: Identifier within the page.
        title: Description for readers who do not see the drawing.
        names: Labels of the nodes.
        places: Float array of shape ``(nodes, 2)``; y grows upwards.
        edges: Pairs of nodes.
        is_directed: True if edges have arrows.
        bends: Points between the ends of each edge; none if all edges are straight.
        sizes: Radii of the nodes, relative to one another; none if all are equal.
        marked: Nodes that are marked by a square.
        dashed: Edges, by number, that are dashed.
        details: Lines that describe each node: a text, and a share for a bar or None.
        members: Further names that a search finds each node by.
        colourings: Choices of colours; the first is the one that is shown first.
        noun: Word for a node.
    """

    key: str
    title: str
    names: Sequence[str]
    places: NDArray[np.float64]
    edges: Sequence[tuple[int, int]]
    is_directed: bool = False
    bends: Sequence[NDArray[np.float64]] = ()
    sizes: Sequence[float] = ()
    marked: Sequence[int] = ()
    dashed: Sequence[int] = ()
    details: Sequence[Sequence[tuple[str, float | None]]] = ()
    members: Sequence[Sequence[str]] = ()
    colourings: list[Colouring] = field(default_factory=list)
    noun: str = "variable"

    def data(self) -> dict[str, Any]:
        """Return the data for the script."""
        points = [self.places, *(bend for bend in self.bends if len(bend))]
        stacked = np.concatenate(points)
        low, high = stacked.min(axis=0), stacked.max(axis=0)
        scale = _SIDE / (float((high - low).max()) or 1.0)

        def placed(place: NDArray[np.float64]) -> list[int]:
            flipped = np.stack([place[:, 0] - low[0], high[1] - place[:, 1]], axis=1)
            found: list[int] = np.rint(flipped * scale).astype(int).ravel().tolist()
            return found

        return {
            "names": list(self.names),
            "places": placed(self.places),
            "edges": [end for edge in self.edges for end in edge],
            "directed": self.is_directed,
            "bends": {str(n): placed(bend) for n, bend in enumerate(self.bends) if len(bend)},
            "sizes": [round(size, 3) for size in self.sizes],
            "marked": list(self.marked),
            "dashed": list(self.dashed),
            "details": [
                [[text, None if share is None else round(share, 4)] for text, share in lines] for lines in self.details
            ],
            "members": [list(names) for names in self.members],
            "colourings": [
                {"name": one.name, "values": list(one.values), "labels": list(one.labels), "scale": one.is_scale}
                for one in self.colourings
            ],
            "noun": self.noun,
        }

    def markup(self) -> Markup:
        """Return the place of the drawing in the page, with its controls."""
        options = "".join(f"<option>{html(one.name)}</option>" for one in self.colourings)
        colours = f"<label>Colour <select>{options}</select></label>" if len(self.colourings) > 1 else ""
        keys = "Arrow keys move the drawing, plus and minus zoom, 0 shows all of it, Escape ends a selection."
        return Markup(
            f'<figure class="drawing" data-key="{self.key}"><div class="controls"><label>Find a {html(self.noun)} '
            f'<input type="search" autocomplete="off" spellcheck="false"></label>{colours}'
            '<button type="button" data-do="in" aria-label="Zoom in">+</button>'
            '<button type="button" data-do="out" aria-label="Zoom out">−</button>'
            '<button type="button" data-do="all">Show all</button>'
            '<span class="found" role="status"></span></div><div class="hits"></div>'
            f'<div class="stage"><canvas tabindex="0" role="img" aria-label="{html(self.title)}. {keys}"></canvas>'
            '<div class="tip" hidden></div></div><div class="legend"></div><div class="details" role="status"></div>'
            f"<figcaption>{html(self.title)}. Drag to move; click it and turn the wheel to zoom; click a "
            f"{html(self.noun)} for its neighbours.</figcaption></figure>"
        )
