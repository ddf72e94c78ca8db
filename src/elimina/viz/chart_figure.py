"""Figures of charts, drawn by matplotlib."""

from __future__ import annotations

import numpy as np

from elimina.viz.canvas import Picture, need
from elimina.viz.charts import StepChart
from elimina.viz.colours import FAINT, FILL, INK, OUTLINE

_INCHES = (6.4, 3.6)
_STYLES = ("--", "-")


def draw_chart(chart: StepChart) -> Picture:
    """Draw a chart under its title.

    Raises:
        InputError: matplotlib is not installed.
    """
    figure = need("matplotlib.figure").Figure(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    lines = []
    for number, series in enumerate(chart.series):
        times, values = np.array(chart.steps(series)).T
        style = _STYLES[number % len(_STYLES)] if len(chart.series) > 1 else "-"
        axes.step(
            times, values, style, where="post", color=OUTLINE, label=series.name, gid=series.name.replace(" ", "-")
        )
        lines.append((times, values))
    if chart.is_band:
        (low_times, lows), (high_times, highs) = lines
        moments = np.union1d(low_times, high_times)
        moments = moments[moments >= max(low_times[0], high_times[0])]
        ends = [
            values[np.searchsorted(times, moments, side="right") - 1]
            for times, values in ((low_times, lows), (high_times, highs))
        ]
        axes.fill_between(moments, *ends, step="post", color=FILL, gid="gap")
    axes.set(xlabel="seconds", ylabel=chart.unit, title=chart.title)
    if chart.is_log:
        axes.set(xscale="log")
    ticks = chart.time_ticks()
    axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
    axes.xaxis.set_minor_locator(need("matplotlib.ticker").NullLocator())
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    axes.grid(color=FAINT, alpha=0.2)
    axes.tick_params(colors=INK)
    return Picture(figure)
