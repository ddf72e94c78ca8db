"""Charts as SVG: values over time as steps, and a profile as columns; colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from elimina.reporting.markup import Markup, html

_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 16, 14, 44
_TICKS = 5
_WIDE = 100
"""Ratio of the last to the first time from which on the axis of time is logarithmic."""

_LEAST_SECONDS = 1e-3

Series = tuple[str, Sequence[tuple[float, float]]]


def time_chart(title: str, series: Sequence[Series], end: float, unit: str) -> Markup:
    """Draw values that hold from one time to the next.

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
    """Draw positive values in turn as columns, on a logarithmic axis.

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
