"""Charts of a page, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from elimina.reporting.html import Markup, html
from elimina.viz.charts import StepChart, Tick, round_ticks

_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 16, 14, 44
_MAX_TICKS = 5
_MARGIN_SHARE = 0.05
"""Space above and below the values, relative to their range."""


def step_chart(chart: StepChart) -> Markup:
    """Draw values over time as steps."""
    values = [value for series in chart.series for _, value in series.points]
    low, high = min(values), max(values)
    room = (high - low) * _MARGIN_SHARE or max(abs(low), 1.0) * _MARGIN_SHARE
    along = _scale(chart.start, chart.stop, _LEFT, _WIDTH - _RIGHT, chart.is_log)
    up = _scale(low - room, high + room, _HEIGHT - _BOTTOM, _TOP, False)
    marks = _axes(along, up, chart.time_ticks(), round_ticks(low, high), ("seconds", chart.unit))
    for number, series in enumerate(chart.series):
        (start, first), *steps = chart.steps(series)
        path = [f"M{along(start):.1f} {up(first):.1f}"]
        path += [f"H{along(seconds):.1f}V{up(value):.1f}" for seconds, value in steps]
        marks.append(f'<path class="line l{number}" d="{"".join(path)}"/>')
    return _figure(chart.title, marks, [series.name for series in chart.series])


def profile_chart(title: str, values: Sequence[float], labels: tuple[str, str]) -> Markup:
    """Draw positive values as columns on a logarithmic axis, in order.

    Args:
        title: Description for readers who cannot see the chart.
        values: Heights of the columns.
        labels: Labels of both axes.
    """
    heights = [math.log10(max(value, 1.0)) for value in values]
    top = max(1.0, *heights)
    along = _scale(0, len(values), _LEFT, _WIDTH - _RIGHT, False)
    up = _scale(0, top, _HEIGHT - _BOTTOM, _TOP, False)
    step = max(1, math.ceil(top / _MAX_TICKS))
    powers = [(float(power), f"1e{power}" if power > 3 else str(10**power)) for power in range(0, int(top) + 1, step)]
    marks = _axes(along, up, [], powers, labels)
    floor, width = up(0), max((_WIDTH - _RIGHT - _LEFT) / len(values) - 0.5, 0.5)
    for position, height in enumerate(heights):
        y = up(height)
        rest = floor - y
        marks.append(
            f'<rect class="column" x="{along(position):.1f}" y="{y:.1f}" width="{width:.1f}" height="{rest:.1f}"/>'
        )
    return _figure(title, marks, [])


def _scale(low: float, high: float, start: float, end: float, is_log: bool) -> Callable[[float], float]:
    def turned(value: float) -> float:
        return math.log10(value) if is_log else value

    span = turned(high) - turned(low) or 1.0
    return lambda value: start + (end - start) * (turned(value) - turned(low)) / span


def _axes(
    along: Callable[[float], float],
    up: Callable[[float], float],
    across: Sequence[Tick],
    values: Sequence[Tick],
    labels: tuple[str, str],
) -> list[str]:
    floor, middle = _HEIGHT - _BOTTOM, (_TOP + _HEIGHT - _BOTTOM) / 2
    marks = [f'<path class="axis" d="M{_LEFT} {_TOP}V{floor}H{_WIDTH - _RIGHT}"/>']
    for value, text in values:
        y = up(value)
        marks.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        marks.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{html(text)}</text>')
    for value, text in across:
        x = along(value)
        marks.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{floor}"/>')
        marks.append(f'<text x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{html(text)}</text>')
    centre = (_LEFT + _WIDTH - _RIGHT) / 2
    marks.append(f'<text x="{centre}" y="{_HEIGHT - 6}" text-anchor="middle">{html(labels[0])}</text>')
    turned = f'transform="rotate(-90 14 {middle})"'
    marks.append(f'<text x="14" y="{middle}" text-anchor="middle" {turned}>{html(labels[1])}</text>')
    return marks


def _figure(title: str, marks: Sequence[str], names: Sequence[str]) -> Markup:
    legend = "".join(f'<span class="key k{number}">{html(name)}</span>' for number, name in enumerate(names))
    body = "\n".join(marks)
    return Markup(
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html(title)}">'
        f"{body}</svg><figcaption>{legend or html(title)}</figcaption></figure>"
    )
