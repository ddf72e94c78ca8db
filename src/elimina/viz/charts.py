"""Charts as plain data: values over time as series of steps, ranges of values, and the labels of their axes."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from elimina.methods.parameter_sensitivity import Sensitivities, Sensitivity
from elimina.result import Bounds

MIN_SECONDS = 1e-3
"""Least time on a logarithmic axis."""

_DECADE, _MAX_FINE_DECADES = 10, 3
"""Largest ratio of the last to the first time for a linear axis: a logarithmic axis would have few round numbers within
this ratio. Largest number of decades for a logarithmic axis with labels at 2 and 5."""

_MAX_TICKS = 5
_UNKNOWN_END = 1.1
"""Drawn end of a run of unknown duration, relative to the time of its last bounds."""

Tick = tuple[float, str]


class Series(NamedTuple):
    """Values over time, drawn as one line.

    Attributes:
        name: Label of the series.
        points: Pairs of seconds and a value, which holds until the next one.
    """

    name: str
    points: Sequence[tuple[float, float]]


class StepChart(NamedTuple):
    """A chart of values over time, drawn as steps.

    Attributes:
        title: Description of the chart.
        series: Lines of the chart, at least one.
        end: Time in seconds up to which the last values are drawn.
        unit: Label of the axis of values.
        is_band: True if the area between the first two series is filled.
    """

    title: str
    series: Sequence[Series]
    end: float
    unit: str
    is_band: bool = False

    @property
    def start(self) -> float:
        """First time on the axis, in seconds."""
        return max(min(self._times), MIN_SECONDS) if self.is_log else 0.0

    @property
    def stop(self) -> float:
        """Last time on the axis, in seconds."""
        return max(self.end, *self._times)

    @property
    def is_log(self) -> bool:
        """True if the axis of time is logarithmic, because the times span more than a decade."""
        return self.stop > _DECADE * max(min(self._times), MIN_SECONDS)

    @property
    def _times(self) -> list[float]:
        return [seconds for series in self.series for seconds, _ in series.points]

    def steps(self, series: Series) -> list[tuple[float, float]]:
        """Return the points of a series on the axis, with its last value at the end."""
        points = [(max(seconds, self.start), value) for seconds, value in series.points]
        return [*points, (self.stop, points[-1][1])]

    def time_ticks(self) -> list[Tick]:
        """Return the labels of the axis of time."""
        if not self.is_log:
            return round_ticks(self.start, self.stop)
        first, last = math.floor(math.log10(self.start)), math.floor(math.log10(self.stop))
        factors = (1, 2, 5) if self.stop < self.start * 10**_MAX_FINE_DECADES else (1,)
        times = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        return [(seconds, f"{seconds:g}") for seconds in times if self.start <= seconds <= self.stop]


def bounds_chart(
    bounds: Sequence[Bounds], title: str, seconds: float | None = None, unit: str = "value"
) -> StepChart | None:
    """Return the chart of the bounds of a run over its time; None if there are no finite bounds.

    Args:
        bounds: Bounds over time.
        title: Description of the chart.
        seconds: Time of the run; None if it is unknown, and the last bounds are drawn a little further.
        unit: Label of the axis of values.
    """
    series = []
    for name in ("lower", "upper"):
        values = [(moment.seconds, getattr(moment, name)) for moment in bounds]
        points = [(at, float(value)) for at, value in values if value is not None and abs(value) <= sys.float_info.max]
        if points:
            series.append(Series(f"{name} bound", points))
    if not series:
        return None
    if seconds is None:
        seconds = _UNKNOWN_END * max(at for line in series for at, _ in line.points)
    return StepChart(title, series, seconds, unit, len(series) == 2)


def round_ticks(low: float, high: float) -> list[Tick]:
    """Return a few round numbers between two values, with labels; only ``low`` if they are equal or too far apart."""
    span = high - low
    if not sys.float_info.min < span < math.inf:
        return [(low, f"{low:.6g}")]
    step = 10.0 ** math.floor(math.log10(span / _MAX_TICKS))
    step *= next(times for times in (1, 2, 5, 10) if span / (step * times) <= _MAX_TICKS)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [(number * step, f"{number * step:.10g}") for number in range(first, last + 1)]


class RangeChart(NamedTuple):
    """Ranges around one value, the widest at the top (a tornado diagram).

    Attributes:
        title: Description of the chart.
        centre: Value that all ranges contain.
        names: Name of each range.
        ranges: Both ends of each range: the first at the smaller parameter, the second at the larger one.
        unit: Label of the axis of values.
        ends: Meanings of both ends.
    """

    title: str
    centre: float
    names: Sequence[str]
    ranges: Sequence[tuple[float, float]]
    unit: str
    ends: tuple[str, str]


def sensitivity_chart(sensitivities: Sensitivities, change: float, count: int) -> RangeChart:
    """Return the ranges of a posterior over changes of single parameters, the widest ones.

    Of a row of a table, only the parameter with the widest range is shown: the others change with it. Ranges that are
    empty or not finite are left out.

    Args:
        sensitivities: Sensitivities of the posterior.
        change: Share of its value by which each parameter decreases and increases.
        count: Largest number of parameters to show.
    """
    widest: dict[tuple[Any, ...], tuple[float, Sensitivity, tuple[float, float]]] = {}
    for row in sensitivities:
        ends = row.ends(change)
        width = abs(ends[1] - ends[0])
        key = (row.variable, *row.parents.items())
        if math.isfinite(width) and width > 0 and (key not in widest or width > widest[key][0]):
            widest[key] = (width, row, ends)
    shown = sorted(widest.values(), key=lambda entry: -entry[0])[:count]
    percent = f"{100 * change:.3g} %"
    return RangeChart(
        f"{sensitivities.event} = {sensitivities.posterior:.4g}",
        sensitivities.posterior,
        [row.name for _, row, _ in shown],
        [ends for _, _, ends in shown],
        "posterior probability",
        (f"parameter less {percent}", f"parameter plus {percent}"),
    )
