"""The search for a solution of constraints on a page: its figures over time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from elimina.cp.model import Model
from elimina.cp.search_options import SearchOptions
from elimina.cp.solution import Solution
from elimina.number_texts import seconds_text
from elimina.reporting.html import Markup, figures, joined, paragraph
from elimina.reporting.page_charts import step_chart
from elimina.result import Result
from elimina.viz.charts import Series, StepChart

_FIGURES = {
    "nodes": "nodes",
    "failures": "failures",
    "peak_depth": "greatest depth",
    "restarts": "restarts",
    "nogoods": "nogoods",
    "propagations": "calls of propagators",
    "solutions": "solutions",
}
_MAX_POINTS = 400


class Profile:
    """Figures of a search over time, thinned out while it runs."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._pause = 0.0
        self.points: list[tuple[float, Mapping[str, Any]]] = []
        self.values: list[tuple[float, float]] = []

    def record(self, counts: Mapping[str, Any]) -> None:
        """Record the current figures if the last ones are old enough."""
        now = time.monotonic() - self._started
        if self.points and now - self.points[-1][0] < self._pause:
            return
        self.points.append((now, counts))
        if len(self.points) > _MAX_POINTS:
            self.points = self.points[::2]
            self._pause = 2 * now / _MAX_POINTS

    def record_objective(self, value: float) -> None:
        """Record the objective of a solution."""
        self.values.append((time.monotonic() - self._started, value))


def solve(model: Model, profile: Profile, time_limit: float | None, threads: int | None) -> Result:
    """Search for a solution (the best one if there is an objective), and record the search.

    Args:
        model: Constraint model.
        profile: Record of the search.
        time_limit: Time limit in seconds; None for no limit.
        threads: Number of threads; None for one.
    """
    objective = model.objective

    def record(solution: Solution) -> None:
        if objective is not None:
            profile.record_objective(float(solution[objective]))

    options = SearchOptions(free=True, progress=profile.record)
    return model.solve(time_limit=time_limit, threads=threads or 1, on_solution=record, options=options)


def search_section(result: Result, profile: Profile) -> Markup:
    """Return the search's figures, and charts of them over time; a note if the search was too short for charts."""
    stats = result.stats
    rows = [(label, f"{stats[name]:,}") for name, label in _FIGURES.items() if name in stats]
    seconds = stats["seconds"]["total"]
    if seconds > 0 and "nodes" in stats:
        rows.append(("nodes per second", f"{stats['nodes'] / seconds:,.0f}"))
    rows.append(("time", seconds_text(seconds)))
    contents: list[object] = [figures(rows)]
    if profile.values:
        series = Series("objective", profile.values)
        contents.append(
            step_chart(StepChart("Objective of the best solution over time", [series], seconds, "objective"))
        )
    points = profile.points
    if len(points) > 1:
        for name, label in (("nodes", "Nodes"), ("failures", "Failures"), ("peak_depth", "Greatest depth")):
            if name in points[-1][1]:
                line = [(at, float(counts[name])) for at, counts in points]
                if name in stats:
                    line.append((seconds, float(stats[name])))
                series, title = Series(label.lower(), line), f"{label} over time"
                contents.append(step_chart(StepChart(title, [series], seconds, label.lower())))
    elif not profile.values:
        contents.append(paragraph("The search ended too soon for a course over time."))
    return joined(contents)
