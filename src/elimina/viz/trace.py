"""Pictures of searches: both bounds over time."""

from __future__ import annotations

from collections.abc import Sequence

from elimina.errors import InputError
from elimina.result import Bounds
from elimina.viz.canvas import FAINT, FILL, INK, OUTLINE, Picture, need

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
