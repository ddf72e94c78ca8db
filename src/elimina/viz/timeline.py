"""Pictures of runs: agents along time, tours of cities, and the bounds of searches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from elimina import arguments
from elimina.display import bytes_text, seconds_text
from elimina.errors import InputError
from elimina.io.files import save
from elimina.result import Bounds, Delivery
from elimina.viz.canvas import FAINT, FILL, INK, OUTLINE, Canvas, Picture, Points, need

SUFFIXES = (".svg", ".html")
MOST_AGENTS, MOST_MESSAGES = 200, 10_000
"""Limit of a picture that can be read."""

_WIDTH, _LANE, _TOP, _BOTTOM, _RIGHT = 1200, 24, 64, 40, 24
_LETTER = 7.0
_BAR = 9
_TICKS = 8
_COLOURS = {"util": "#c05621", "value": "#2f7d4f"}
_OTHER = "#9aa7b4"
_LEGEND = (("util", "#c05621"), ("value", "#2f7d4f"), ("election and traversal", _OTHER), ("at work", "#2b5c8a"))


def check_timeline(path: str | os.PathLike[str]) -> None:
    """Check a picture's name.

    Raises:
        InputError: It has none of ``SUFFIXES``.
    """
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: timelines are written to {' and '.join(SUFFIXES)} files")


def draw_timeline(
    deliveries: Sequence[Delivery], agents: Sequence[str], path: str | os.PathLike[str], title: str
) -> None:
    """Draw a run over simulated time; marks name their message when pointed at.

    Args:
        deliveries: All of the run.
        agents: Their names, from top to bottom.
        path: The picture: .svg, or .html around the same drawing.
        title: Title above the picture.

    Raises:
        InputError: There is too much to be drawn, the suffix is unknown, or the file cannot be written.
    """
    check_timeline(path)
    if len(agents) > MOST_AGENTS or len(deliveries) > MOST_MESSAGES:
        raise InputError(
            f"{len(agents)} agents and {len(deliveries)} messages are too many for a timeline, which shows "
            f"{MOST_AGENTS} and {MOST_MESSAGES}; take a smaller problem"
        )
    drawing = _drawing(deliveries, agents, title)
    if Path(path).suffix.lower() == ".html":
        head = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        drawing = f'{head}\n<body style="margin: 1em">\n{drawing}</body></html>\n'
    save(arguments.file("path", path), [drawing])


def _drawing(deliveries: Sequence[Delivery], agents: Sequence[str], title: str) -> str:
    left = 24 + _LETTER * max((len(name) for name in agents), default=0)
    end = max((one.ended for one in deliveries), default=0.0) or 1.0
    height = _TOP + _LANE * len(agents) + _BOTTOM
    lanes = {name: _TOP + _LANE * (number + 0.5) for number, name in enumerate(agents)}

    def at(time: float) -> float:
        return left + (_WIDTH - left - _RIGHT) * time / end

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="16" y="22" font-size="14" fill="#1b1f24">{escape(title)}</text>',
    ]
    across = 16.0
    for text, colour in _LEGEND:
        parts.append(f'<rect x="{across:.0f}" y="36" width="14" height="8" fill="{colour}"/>')
        parts.append(f'<text x="{across + 20:.0f}" y="44" fill="#56616c">{text}</text>')
        across += 44 + _LETTER * len(text)
    parts.append('<g id="ticks" stroke="#e5eaef">')
    bottom = _TOP + _LANE * len(agents)
    for tick in range(_TICKS + 1):
        x = at(end * tick / _TICKS)
        label = seconds_text(end * tick / _TICKS) if tick else "0"
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{bottom + 4}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 22}" text-anchor="middle" stroke="none" fill="#56616c">{label}</text>'
        )
    parts.append('</g>\n<g id="agents">')
    for name, y in lanes.items():
        parts.append(f'<line x1="{left:.1f}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}" stroke="#c9d2db"/>')
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4}" text-anchor="end" fill="#1b1f24">{escape(name)}</text>')
    parts.append('</g>\n<g id="messages" stroke-width="1.2">')
    # What there is less of lies on top.
    for one in sorted((one for one in deliveries if one.kind), key=lambda one: one.kind in _COLOURS):
        colour = _COLOURS.get(one.kind, _OTHER)
        ends = f'x1="{at(one.sent):.2f}" y1="{lanes[one.sender]}" x2="{at(one.begun):.2f}" y2="{lanes[one.receiver]}"'
        what = f"{one.kind} from {one.sender} to {one.receiver}, {bytes_text(one.size)}, sent at "
        text = escape(f"{what}{seconds_text(one.sent)}")
        parts.append(f'<line {ends} stroke="{colour}" class="{one.kind}"><title>{text}</title></line>')
    parts.append('</g>\n<g id="work" fill="#2b5c8a">')
    for one in deliveries:
        width = max(at(one.ended) - at(one.begun), 0.6)
        place = f'x="{at(one.begun):.2f}" y="{lanes[one.receiver] - _BAR / 2}" width="{width:.2f}" height="{_BAR}"'
        text = escape(f"{one.receiver}: {one.kind or 'start'}, {seconds_text(one.ended - one.begun)}")
        parts.append(f"<rect {place}><title>{text}</title></rect>")
    parts.append("</g>\n</svg>\n")
    return "\n".join(parts)


_LONGER_SIDE = 8.0
_TITLE_POINTS, _NUMBER_POINTS = 11, 6
_MOST_NUMBERS = 60


def draw_tour(points: Points, tour: Sequence[int] | None, title: str) -> Canvas:
    """Draw cities, with their numbers where they are few, and a tour.

    Args:
        points: (n, 2) places of the cities.
        tour: The cities in turn, from 0 on; None for the cities alone.
        title: Title above the picture.

    Raises:
        InputError: matplotlib is not installed.
    """
    canvas = Canvas()
    low = points.min(axis=0)
    side = float((points.max(axis=0) - low).max()) or 1.0
    places = (points - low) * (_LONGER_SIDE / side)
    if tour is not None:
        canvas.lines([places[[*tour, tour[0]]]], "tour", 1.0)
    radius = min(0.08, max(0.012, 0.5 / len(points) ** 0.5))
    canvas.circles(places, np.full(len(places), radius), "cities", OUTLINE if tour is not None else FILL)
    if len(points) <= _MOST_NUMBERS:
        for city, (x, y) in enumerate(places):
            canvas.text(
                x + 2 * radius, y + radius, str(city + 1), _NUMBER_POINTS, gid=f"city-{city + 1}", centred=False
            )
    top = float(canvas.bounds[1][1])
    canvas.text(float(places[:, 0].max()) / 2, top + 0.3, title, _TITLE_POINTS, gid="title")
    return canvas


_SIZE = (6.4, 3.6)

_LEAST_SECONDS = 1e-3

_DECADE = 10
"""Ratio of the last to the first time up to which the axis of time is linear: few round numbers lie within it."""


def draw_trace(known: Sequence[Bounds], title: str) -> Picture:
    """Draw the bounds of a run over its time, which is on a logarithmic axis if it spans a decade.

    Args:
        known: Bounds over time.
        title: Title above the picture.

    Raises:
        InputError: There are no bounds, or matplotlib is not installed.
    """
    if not known:
        raise InputError("the trace has no bounds, so there is nothing to draw")
    ticker = need("matplotlib.ticker")
    figure = need("matplotlib.figure").Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    end = max(max(one.seconds for one in known), _LEAST_SECONDS) * 1.1
    for name, style in (("lower", "--"), ("upper", "-")):
        points = [
            (max(one.seconds, _LEAST_SECONDS), value) for one in known if (value := getattr(one, name)) is not None
        ]
        if points:
            times, values = zip(*[*points, (end, points[-1][1])], strict=True)
            axes.step(times, values, style, where="post", color=OUTLINE, label=f"{name} bound", gid=f"{name}-bound")
    both = [one for one in known if one.lower is not None and one.upper is not None]
    if both:
        last = both[-1]._replace(seconds=end)
        moments = [max(one.seconds, _LEAST_SECONDS) for one in (*both, last)]
        lowers, uppers = ([getattr(one, name) for one in (*both, last)] for name in ("lower", "upper"))
        axes.fill_between(moments, lowers, uppers, step="post", color=FILL, gid="gap")
    axes.set(xlabel="seconds", title=title)
    start = max(min(one.seconds for one in known), _LEAST_SECONDS)
    if end > _DECADE * start:
        axes.set(xscale="log")
        # Powers of ten alone would leave a short run without labels; more labels would overlap.
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0) if end < 1000 * start else (1.0,)))
        axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axes.set_ylabel("optimum")
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    axes.grid(color=FAINT, alpha=0.2)
    axes.tick_params(colors=INK)
    return Picture(figure)
