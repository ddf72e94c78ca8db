"""Constraint models: the search's profile."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from elimina.cp.model import Model, SearchOptions
from elimina.cp.result import Solution
from elimina.planning.plan import seconds_text
from elimina.reporting.charts import time_chart
from elimina.reporting.markup import Markup, figures, joined, paragraph
from elimina.result import Result

_FIGURES = {
    "nodes": "nodes",
    "failures": "failures",
    "peak_depth": "greatest depth",
    "restarts": "restarts",
    "nogoods": "nogoods",
    "propagations": "calls of propagators",
    "solutions": "solutions",
}
_MOST_POINTS = 400


class Profile:
    """Figures of a search over time, thinned out while it runs."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._pause = 0.0
        self.points: list[tuple[float, Mapping[str, Any]]] = []
        self.values: list[tuple[float, float]] = []

    def note(self, known: Mapping[str, Any]) -> None:
        """Take the figures of now, where the last ones are old enough."""
        now = time.monotonic() - self._started
        if self.points and now - self.points[-1][0] < self._pause:
            return
        self.points.append((now, known))
        if len(self.points) > _MOST_POINTS:
            self.points = self.points[::2]
            self._pause = 2 * now / _MOST_POINTS

    def found(self, value: float) -> None:
        """Take the objective of a solution."""
        self.values.append((time.monotonic() - self._started, value))


def solve(model: Model, profile: Profile, time_limit: float | None, threads: int | None) -> Result:
    """Search for a solution, the best one with an objective, and watch the search.

    Args:
        model: Constraint model.
        profile: Record of the search.
        time_limit: Seconds.
        threads: Number of threads; None for one.
    """
    aim = model.objective

    def found(solution: Solution) -> None:
        if aim is not None:
            profile.found(float(solution[aim]))

    options = SearchOptions(free=True, progress=profile.note)
    return model.solve(time_limit=time_limit, threads=threads or 1, on_solution=found, options=options)


def search_section(result: Result, profile: Profile) -> Markup:
    """Return the search's figures, and their course."""
    stats = result.stats
    rows = [(label, f"{stats[name]:,}") for name, label in _FIGURES.items() if name in stats]
    seconds = stats["seconds"]["total"]
    if seconds > 0 and "nodes" in stats:
        rows.append(("nodes per second", f"{stats['nodes'] / seconds:,.0f}"))
    rows.append(("time", seconds_text(seconds)))
    parts: list[object] = [figures(rows)]
    if profile.values:
        parts.append(
            time_chart(
                "Objective of the best solution over time", [("objective", profile.values)], seconds, "objective"
            )
        )
    points = profile.points
    if len(points) > 1:
        for name, label in (("nodes", "Nodes"), ("failures", "Failures"), ("peak_depth", "Greatest depth")):
            if name in points[-1][1]:
                line = [(at, float(known[name])) for at, known in points]
                if name in stats:
                    line.append((seconds, float(stats[name])))
                parts.append(time_chart(f"{label} over time", [(label.lower(), line)], seconds, label.lower()))
    elif not profile.values:
        parts.append(paragraph("The search ended too soon for a course over time."))
    return joined(parts)
