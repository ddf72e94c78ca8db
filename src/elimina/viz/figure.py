"""Figures: diagrams drawn on a page in inches by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elimina.display import cut
from elimina.viz.arrangement import arrange
from elimina.viz.canvas import POINTS_PER_INCH, Canvas
from elimina.viz.colours import (
    BACKGROUND,
    CLASSES,
    DARK_SCALE,
    FAINT,
    FILL,
    LIGHT_SCALE,
    OBSERVED,
    OTHERS,
    OUTLINE,
    blend,
    ink_on,
    node_fills,
)
from elimina.viz.diagram import Diagram, Edge, Extents, GraphLayout, Points, SizeKey
from elimina.viz.short_labels import short_labels


class Style(NamedTuple):
    """Measures of figures by their number of nodes, in inches; the font's size is in points.

    Attributes:
        max_nodes: Largest number of nodes for the style.
        font: Size of names inside boxes; 0 for dots without names.
        letters: Largest number of letters of a name.
        drop: Distance of layers.
        gap: Distance of nodes on a layer.
        edge: Length of an edge in layouts by distances.
        line: Width of an edge in points.
        arrow: Length of an arrow head.
    """

    max_nodes: float
    font: float
    letters: int
    drop: float
    gap: float
    edge: float
    line: float
    arrow: float


STYLES = (
    Style(60, 9, 28, 0.55, 0.22, 0.75, 0.8, 0.09),
    Style(250, 6, 18, 0.38, 0.12, 0.75, 0.8, 0.09),
    Style(np.inf, 0, 0, 0.3, 0.09, 0.4, 0.5, 0.06),
)
_DOT = 0.055
_LINES_PER_FONT = 2.0
"""Height of a box relative to its text."""

_BAR_LINES_PER_FONT, _BAR_FONTS, _BAR_HEIGHT = 1.3, 5.0, 0.75
"""Height of a row of bars and width of a bar relative to the font's size, and height of a bar relative to its row."""

_CIRCLE = 0.115
"""Radius of a node of size 1, in inches."""

_MAX_FULL_CIRCLES, _SHRINKING = 150, 0.75
"""Largest number of circles of full size, and the exponent by which more circles shrink."""

_CIRCLE_GAP, _CIRCLE_DROP, _CIRCLE_LINE = 0.12, 0.69, 1.3
_CAPTION_POINTS = 6.5
_CAPTION_LINE = _CAPTION_POINTS * 1.25 / POINTS_PER_INCH
_CAPTION_GAP = 0.05
_MAX_LINE_POINTS = 9.0
"""Width of the widest line, which stays below the gap between circles."""

_MIN_COUNTED_RADIUS, _MAX_COUNT_POINTS, _COUNT_POINTS_PER_INCH = 0.085, 8.0, 50.0

_MAX_HUBS, _HUB_CANDIDATES = 15, 60
_HUB_LETTERS = 18
_MIN_HUB_POINTS, _HUB_POINTS_PER_INCH = 7.0, 0.45
_PATCH = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}

_KEY_POINTS, _KEY_POINTS_PER_INCH = 8.0, 0.45

_MIN_CITY, _MAX_CITY, _MAX_NUMBERED_CITIES, _NUMBER_POINTS = 0.012, 0.08, 60, 6.0


class Marks(NamedTuple):
    """Shapes and texts of the nodes.

    Attributes:
        extents: Size of each node.
        radii: Radii of circles; None for boxes.
        labels: Texts inside boxes; empty for circles.
        style: Style for the number of nodes.
    """

    extents: Extents
    radii: Points | None
    labels: Sequence[str]
    style: Style


def draw_figure(diagram: Diagram, title: str) -> Canvas:
    """Draw a diagram under a title; names shrink from 61 nodes on, and from 251 on only hubs have names.

    Args:
        diagram: Diagram of at least one node.
        title: Title above the figure, before the diagram's own figures.
    """
    canvas = Canvas()
    marks = _marks(canvas, diagram)
    layout = arrange(diagram, marks.extents)
    _draw_edges(canvas, diagram, layout, marks)
    if marks.radii is None:
        _draw_boxes(canvas, diagram, layout.positions, marks)
    else:
        _draw_circles(canvas, diagram, layout.positions, marks.radii)
        if diagram.points is not None:
            _number_cities(canvas, diagram, layout.positions, marks.radii)
        elif not diagram.sizes:
            _name_hubs(canvas, diagram, layout.positions)
    if diagram.size_key is not None:
        _draw_size_key(canvas, diagram.size_key, _line_scale(diagram), _circle_scale(diagram))
    elif diagram.colourings or diagram.marked or diagram.bars:
        _draw_colour_key(canvas, diagram)
    canvas.title(title, diagram.figures)
    return canvas


def _marks(canvas: Canvas, diagram: Diagram) -> Marks:
    count = len(diagram.names)
    style = next(style for style in STYLES if count <= style.max_nodes)
    if diagram.sizes:
        scale = _circle_scale(diagram)
        radii = scale * _CIRCLE * np.array(diagram.sizes)
        captions = diagram.captions or [()] * count
        texts = [max((canvas.text_width(line, _CAPTION_POINTS) for line in lines), default=0.0) for lines in captions]
        below = radii + np.array([len(lines) * _CAPTION_LINE + (_CAPTION_GAP if lines else 0) for lines in captions])
        extents = Extents(
            np.maximum(2 * radii, texts), radii, below, scale * _CIRCLE_GAP, scale * _CIRCLE_DROP, style.edge
        )
        return Marks(extents, radii, [], style)
    if diagram.points is not None:
        radii = np.full(count, min(_MAX_CITY, max(_MIN_CITY, 0.5 / count**0.5)))
    elif not style.font:
        radii = np.full(count, _DOT)
    else:
        labels = short_labels(diagram.names, style.letters)
        font = style.font / POINTS_PER_INCH
        widths = np.array([canvas.text_width(label, style.font) + font for label in labels])
        half = np.full(count, font * _LINES_PER_FONT / 2)
        if diagram.bars:
            half += [(len(rows) * _BAR_LINES_PER_FONT + 0.5) * font / 2 for rows in diagram.bars]
            widths = np.maximum(widths, [sum(_bar_columns(canvas, rows, style.font)) for rows in diagram.bars])
        return Marks(Extents(widths, half, half, style.gap, style.drop, style.edge), None, labels, style)
    return Marks(Extents(2 * radii, radii, radii, style.gap, style.drop, style.edge), radii, [], style)


def _draw_boxes(canvas: Canvas, diagram: Diagram, positions: Points, marks: Marks) -> None:
    halves, font = marks.extents.above, marks.style.font / POINTS_PER_INCH
    canvas.boxes(positions, marks.extents.widths, 2 * halves, "nodes", node_fills(diagram))
    for (x, y), half, label in zip(positions, halves, marks.labels, strict=True):
        canvas.text(x, y + half - font * _LINES_PER_FONT / 2, label, marks.style.font, gid="label", zorder=5)
    if diagram.bars:
        _draw_bars(canvas, diagram, positions, marks)


def _bar_columns(canvas: Canvas, rows: Sequence[tuple[str, float]], points: float) -> tuple[float, float, float]:
    """Return the widths of the texts, bars and percentages inside a node, with their margins."""
    font = points / POINTS_PER_INCH
    texts = max(canvas.text_width(text, points) for text, _ in rows)
    percentages = max(canvas.text_width(percentage(share), points) for _, share in rows)
    return texts + font, _BAR_FONTS * font, percentages + font


def _draw_bars(canvas: Canvas, diagram: Diagram, positions: Points, marks: Marks) -> None:
    """Draw a row for each state of each node: its text, its bar and its percentage."""
    points = marks.style.font
    font = points / POINTS_PER_INCH
    line, bar = font * _BAR_LINES_PER_FONT, font * _BAR_LINES_PER_FONT * _BAR_HEIGHT
    corners, lengths = [], []
    for (x, y), half, width, rows in zip(
        positions, marks.extents.above, marks.extents.widths, diagram.bars, strict=True
    ):
        texts, bars, percentages = _bar_columns(canvas, rows, points)
        left = x - width / 2 + font / 2
        # If the name is wider than the columns, bars take the rest of the width.
        bars += width - texts - bars - percentages
        for number, (text, share) in enumerate(rows):
            height = y + half - font * _LINES_PER_FONT - (number + 0.5) * line
            canvas.text(left, height, text, points, gid="state", centred=False, zorder=5)
            at = left + texts - font / 2
            corners.append((at, height - bar / 2))
            lengths.append((bars, share))
            canvas.text(at + bars + font / 2, height, percentage(share), points, gid="share", centred=False, zorder=5)
    full_lengths = np.array([(length, bar) for length, _ in lengths])
    filled = np.array([(length * share, bar) for length, share in lengths])
    canvas.rectangles(np.array(corners), full_lengths, "tracks", BACKGROUND)
    canvas.rectangles(np.array(corners), filled, "bars", OUTLINE)


def percentage(share: float) -> str:
    """Return the text of a probability, which is 0 % or 100 % only for exactly 0 or 1."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    text = f"{100 * share:.1f} %"
    return {"0.0 %": "<0.1 %", "100.0 %": ">99.9 %"}.get(text, text)


def _draw_circles(canvas: Canvas, diagram: Diagram, positions: Points, radii: Points) -> None:
    is_plain = diagram.points is not None and not diagram.edges
    fills = [FILL if is_plain else OUTLINE] * len(radii) if diagram.points is not None else []
    canvas.circles(positions, radii, "nodes", fills or node_fills(diagram, DARK_SCALE))
    shares = diagram.colourings[0].values if diagram.colourings else [0.0] * len(radii)
    for (x, y), radius, count, share in zip(positions, radii, diagram.counts, shares, strict=False):
        if radius >= _MIN_COUNTED_RADIUS:
            size = min(_MAX_COUNT_POINTS, radius * _COUNT_POINTS_PER_INCH)
            canvas.text(x, y, count, size, gid="count", color=ink_on(float(share or 0)), zorder=5)
    for (x, y), radius, lines in zip(positions, radii, diagram.captions, strict=False):
        for number, line in enumerate(lines):
            y_line = y - radius - _CAPTION_LINE * (0.6 + number)
            canvas.text(x, y_line, line, _CAPTION_POINTS, gid="caption", zorder=5)


def _number_cities(canvas: Canvas, diagram: Diagram, positions: Points, radii: Points) -> None:
    """Write the number of each city on the side away from the tour, unless there are too many cities."""
    if len(positions) > _MAX_NUMBERED_CITIES:
        return
    sides = np.full(positions.shape, 1e-6)
    for a, b in diagram.edges:
        step = positions[b] - positions[a]
        step = step / (np.hypot(*step) or 1.0)
        sides[a] -= step
        sides[b] += step
    sides *= (2 * radii + _NUMBER_POINTS / POINTS_PER_INCH / 2)[:, None] / np.hypot(*sides.T)[:, None]
    for city, (x, y) in enumerate(positions + sides, 1):
        canvas.text(x, y, str(city), _NUMBER_POINTS, gid=f"city-{city}", zorder=5)


def _name_hubs(canvas: Canvas, diagram: Diagram, positions: Points) -> None:
    """Write the names of the nodes with the most neighbours, unless they would overlap."""
    degrees = np.bincount(np.array(diagram.edges, dtype=np.int64).ravel(), minlength=len(positions))
    size = max(_MIN_HUB_POINTS, _HUB_POINTS_PER_INCH * float(np.ptp(positions[:, 0])))
    height = 1.4 * size / POINTS_PER_INCH
    labels: list[tuple[float, float, float]] = []
    for node in np.argsort(-degrees, kind="stable")[:_HUB_CANDIDATES].tolist():
        name = cut(diagram.names[node], _HUB_LETTERS)
        half, (x, y) = canvas.text_width(name, size) / 2, positions[node]
        if all(
            abs(x - label_x) > half + label_half or abs(y - label_y) > height for label_x, label_y, label_half in labels
        ):
            labels.append((x, y, half))
            canvas.text(x, y, name, size, gid="hub", zorder=6, bbox=_PATCH)
        if len(labels) == _MAX_HUBS:
            break


def _draw_edges(canvas: Canvas, diagram: Diagram, layout: GraphLayout, marks: Marks) -> None:
    if diagram.points is not None:
        if diagram.edges:
            walk = [a for a, _ in diagram.edges]
            canvas.lines([layout.positions[[*walk, walk[0]]]], "edges", 1.0)
        return
    dashed = sorted(diagram.dashed)
    solid = [number for number in range(len(diagram.edges)) if number not in diagram.dashed]
    edges, bends = [diagram.edges[number] for number in solid], [layout.bends[number] for number in solid]
    if diagram.is_directed:
        _draw_arrows(canvas, edges, bends, layout, marks)
    elif layout.is_downward:
        _draw_links(canvas, diagram, edges, bends, layout.positions, marks)
    else:
        canvas.lines([layout.positions[[a, b]] for a, b in edges], "edges", _line_widths(diagram, marks.style))
    courses = []
    for number in dashed:
        a, b = diagram.edges[number]
        courses.append(np.concatenate([layout.positions[a][None], layout.bends[number], layout.positions[b][None]]))
    if courses:
        canvas.dotted_arcs(courses, "dashed-edges")


def _draw_arrows(
    canvas: Canvas, edges: Sequence[Edge], bends: Sequence[Points], layout: GraphLayout, marks: Marks
) -> None:
    extents, length = marks.extents, marks.style.arrow
    positions, halves, half = layout.positions, extents.above, float(extents.above.max())
    courses = []
    for (tail, head), bend in zip(edges, bends, strict=True):
        if not layout.is_downward:
            courses.append(_course_to_box(positions[tail], positions[head], extents.widths[head], 2 * halves[head]))
            continue
        stops = np.concatenate([positions[tail][None], bend, positions[head][None]])
        start = stops[0] + [_port(stops[1][0] - stops[0][0], extents.widths[tail]), -halves[tail]]
        end = stops[-1] + [_port(stops[-2][0] - stops[-1][0], extents.widths[head]), halves[head]]
        # An edge that passes a row goes straight down between two boxes.
        middle = np.repeat(stops[1:-1], 2, axis=0) + np.tile([[0, half], [0, -half]], (len(stops) - 2, 1))
        courses.append(np.concatenate([[start], middle, [end]]))
    tips = np.array([course[-1] for course in courses]).reshape(-1, 2)
    steps = np.array([course[-1] - course[-2] for course in courses]).reshape(-1, 2)
    norms = np.linalg.norm(steps, axis=1, keepdims=True)
    directions = steps / np.where(norms > 0, norms, 1)
    stops = tips - directions * length / 2
    shortened = [np.concatenate([course[:-1], [stop]]) for course, stop in zip(courses, stops, strict=True)]
    canvas.curves(shortened, "edges", marks.style.line)
    canvas.arrow_heads(tips, directions, length, "arrows")


def _port(towards: float, width: float) -> float:
    """Return the distance from the middle of a box's side to the point of the side where an edge meets the box.

    Args:
        towards: Distance from the box to the edge's other end, along the side.
        width: Width of the box.
    """
    return float(np.clip(towards * 0.2, -0.35 * width, 0.35 * width))


def _course_to_box(start: Points, end: Points, width: float, height: float) -> Points:
    """Return the segment between two centres that ends at the box around the second one."""
    step = start - end
    with np.errstate(divide="ignore"):
        share = min(np.abs(np.array([width, height]) / 2 / step).min(), 1.0)
    return np.stack([start, end + share * step])


def _draw_links(
    canvas: Canvas, diagram: Diagram, edges: Sequence[Edge], bends: Sequence[Points], positions: Points, marks: Marks
) -> None:
    """Draw the edges of a tree from the foot of each parent to the head of its child."""
    extents, widths = marks.extents, _line_widths(diagram, marks.style)
    starts = [positions[a] - [0, extents.below[a]] for a, _ in edges]
    ends = [positions[b] + [0, extents.above[b]] for _, b in edges]
    straight = [number for number, bend in enumerate(bends) if not len(bend)]
    bent = [number for number, bend in enumerate(bends) if len(bend)]
    if straight:
        tops, bottoms = (np.array([points[number] for number in straight]) for points in (starts, ends))
        canvas.links(tops, bottoms, "edges", [widths[number] for number in straight])
    if bent:
        courses = [np.concatenate([[starts[number]], bends[number], [ends[number]]]) for number in bent]
        canvas.lines(courses, "edges-between-bands", [widths[number] for number in bent])


def _line_widths(diagram: Diagram, style: Style) -> list[float]:
    if not diagram.weights:
        return [style.line] * len(diagram.edges)
    scale = _line_scale(diagram)
    return [scale * weight for weight in diagram.weights]


def _line_scale(diagram: Diagram) -> float:
    """Return the width of a line of weight 1 in points."""
    return _circle_scale(diagram) * min(_CIRCLE_LINE, _MAX_LINE_POINTS / max(size**2 for size in diagram.sizes))


def _circle_scale(diagram: Diagram) -> float:
    """Return the size of circles relative to those of small diagrams, so that many circles fit on a page."""
    return min(1.0, math.pow(_MAX_FULL_CIRCLES / len(diagram.sizes), _SHRINKING))


def _draw_size_key(canvas: Canvas, key: SizeKey, line_scale: float, circle_scale: float) -> None:
    """Draw circles and lines of a few round sizes below the figure."""
    low, high = canvas.bounds
    font = max(_KEY_POINTS, _KEY_POINTS_PER_INCH * float(high[0] - low[0]))
    # The circles and lines have the sizes of the figure; the text is as large as the figure needs.
    wide = font / _KEY_POINTS
    radii = circle_scale * _CIRCLE * np.array(key.sizes)
    row = max(float(radii.max()), 0.6 * font / POINTS_PER_INCH)
    x, y = float(low[0]), float(low[1]) - 0.45 - row
    for number, (radius, share, label) in enumerate(zip(radii, key.shares, key.labels, strict=True)):
        fill = blend(share, DARK_SCALE)
        canvas.circles(np.array([[x + radius, y]]), np.array([radius]), f"legend-circle-{number}", [fill])
        x += 2 * radius + 0.06 * wide
        x = _write(canvas, x, y, label, font) + 0.16 * wide
    _write(canvas, x, y, key.nodes, font)
    x, y = float(low[0]), y - row - max(0.2, 0.6 * font / POINTS_PER_INCH)
    for number, (size, label) in enumerate(zip(key.sizes, key.labels, strict=True)):
        canvas.lines([np.array([[x, y], [x + 0.3 * wide, y]])], f"legend-line-{number}", line_scale * size**2)
        x = _write(canvas, x + 0.38 * wide, y, label, font) + 0.16 * wide
    _write(canvas, x, y, key.edges, font)


def _draw_colour_key(canvas: Canvas, diagram: Diagram) -> None:
    """Draw the colours of the nodes and their meanings below the figure, in lines of its width."""
    low, high = canvas.bounds
    width = float(high[0] - low[0])
    font = max(_KEY_POINTS, _KEY_POINTS_PER_INCH * width)
    height = 1.2 * font / POINTS_PER_INCH
    entries: list[tuple[str, str]] = []
    if diagram.colourings:
        name, _, labels, is_scale = diagram.colourings[0]
        fills = LIGHT_SCALE if is_scale else [*CLASSES, OTHERS]
        entries = [(f"{name}:", ""), *zip(labels, fills, strict=False)]
    if diagram.bars:
        entries.append(("posterior probability", OUTLINE))
    if diagram.marked:
        entries.append(("observed", OBSERVED))
    x, y = float(low[0]), float(low[1]) - 2 * height
    widths = [canvas.text_width(text, font) + (1.2 * height if fill else 0) for text, fill in entries]
    is_one_line = sum(widths) + height * (len(entries) - 1) <= width
    for number, ((text, fill), entry_width) in enumerate(zip(entries, widths, strict=True)):
        # The heading gets a separate line if the entries need several.
        if number and (x + entry_width > high[0] or (number == 1 and not entries[0][1] and not is_one_line)):
            x, y = float(low[0]), y - 1.5 * height
        if fill:
            canvas.circles(np.array([[x + height / 2, y]]), np.array([height / 2.5]), f"legend-colour-{number}", [fill])
            x += 1.2 * height
        x = _write(canvas, x, y, text, font) + height


def _write(canvas: Canvas, x: float, y: float, text: str, font: float) -> float:
    """Write a text of the key that begins at ``x``; return the abscissa of its end."""
    canvas.text(x, y, text, font, gid="legend", centred=False, color=FAINT)
    return x + canvas.text_width(text, font)
