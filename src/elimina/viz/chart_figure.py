"""Figures of charts, drawn by matplotlib."""

from __future__ import annotations

import numpy as np

from elimina.display import cut
from elimina.model.named_table import NamedTable
from elimina.viz.canvas import Picture, need
from elimina.viz.charts import RangeChart, StepChart
from elimina.viz.colours import DARK_SCALE, FAINT, FILL, INK, LIGHT_SCALE, OBSERVED, OUTLINE, ink_on
from elimina.viz.short_labels import short_labels

_INCHES = (6.4, 3.6)
_STYLES = ("--", "-")

_RANGE_INCHES, _NAME_LETTERS = 0.3, 70
"""Height of a range in inches, and largest number of letters of its name."""

_LETTER_INCHES = 0.1
"""Width of a letter of a label, in inches."""

_CELL_INCHES, _MIN_SIDE_INCHES, _MAX_SIDE_INCHES = 0.55, 2.0, 9.0
_MAX_WRITTEN_CELLS, _MAX_WRITTEN_SIDE, _MAX_TICK_LABELS, _STATE_LETTERS = 400, 16, 60, 20
"""Limits of a heat map: number of cells in all and along a side up to which cells show their numbers, number of labels
of an axis, and number of letters of a label."""


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


def draw_ranges(chart: RangeChart) -> Picture:
    """Draw ranges around a value as bars that grow to both sides.

    Raises:
        InputError: matplotlib is not installed.
    """
    count = len(chart.names)
    size = (_INCHES[0] + 2, 1.4 + _RANGE_INCHES * max(count, 1))
    figure = need("matplotlib.figure").Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    rows = np.arange(count)[::-1]
    ends = np.array(chart.ranges).reshape(-1, 2)
    for column, (name, colour) in enumerate(zip(chart.ends, (OBSERVED, OUTLINE), strict=True)):
        lengths = ends[:, column] - chart.centre
        axes.barh(rows, lengths, left=chart.centre, color=colour, height=0.7, label=name, gid=f"end-{column}")
    axes.axvline(chart.centre, color=INK, linewidth=0.8, gid="centre")
    axes.set_yticks(rows, [cut(name, _NAME_LETTERS) for name in chart.names], parse_math=False)
    axes.set_xlabel(chart.unit)
    axes.set_title(chart.title, parse_math=False)
    axes.grid(axis="x", color=FAINT, alpha=0.2)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK)
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    return Picture(figure)


def draw_heat_map(table: NamedTable) -> Picture:
    """Draw a table of two variables, the first one from top to bottom: a cell is darker the larger its number.

    Args:
        table: Table of two variables.

    Raises:
        InputError: matplotlib is not installed.
    """
    array = np.asarray(table.array, dtype=float)
    sides = [float(np.clip(_CELL_INCHES * size, _MIN_SIDE_INCHES, _MAX_SIDE_INCHES)) for size in array.shape]
    figure = need("matplotlib.figure").Figure(figsize=(sides[1] + 2.6, sides[0] + 1.4), layout="constrained")
    axes = figure.add_subplot()
    colours = need("matplotlib.colors").LinearSegmentedColormap.from_list("elimina", [LIGHT_SCALE[0], DARK_SCALE[1]])
    finite = array[np.isfinite(array)]
    low, high = min(0.0, float(finite.min(initial=0.0))), float(finite.max(initial=0.0)) or 1.0
    image = axes.imshow(array, cmap=colours, vmin=low, vmax=high, aspect="auto", gid="cells")
    for axis, name, states, size in zip(
        (axes.yaxis, axes.xaxis), table.names, table.states.values(), array.shape, strict=True
    ):
        ticks = range(0, size, -(-size // _MAX_TICK_LABELS))
        axis.set_ticks(ticks, short_labels([str(states[at]) for at in ticks], _STATE_LETTERS), parse_math=False)
        axis.set_label_text(cut(name, _NAME_LETTERS), parse_math=False)
    if array.size <= _MAX_WRITTEN_CELLS and max(array.shape) <= _MAX_WRITTEN_SIDE:
        for (row, column), number in np.ndenumerate(array):
            ink = ink_on((number - low) / (high - low)) if np.isfinite(number) else INK
            axes.text(column, row, f"{number:.3g}", color=ink, ha="center", va="center", fontsize=8, gid="number")
    axes.tick_params(colors=INK)
    label = max(len(text.get_text()) for text in axes.get_xticklabels())
    is_narrow = label * _LETTER_INCHES > sides[1] / min(array.shape[1], _MAX_TICK_LABELS)
    axes.tick_params(axis="x", rotation=90 if is_narrow else 0)
    figure.colorbar(image, ax=axes, label=table.quantity)
    return Picture(figure)
