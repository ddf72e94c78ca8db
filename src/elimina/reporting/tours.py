"""Tours on a page: the map with its tour, and the figures of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from elimina.cp.tour_problem import TourProblem
from elimina.number_texts import seconds_text
from elimina.reporting.html import Markup, figures, joined, paragraph
from elimina.reporting.page_charts import step_chart
from elimina.result import Bounds, Result
from elimina.viz.charts import bounds_chart
from elimina.viz.diagram import Diagram
from elimina.viz.tour import tour_diagram

_MAX_CITIES = 20_000
_MAX_LISTED = 1000


def shown_tour(problem: TourProblem, tour: Sequence[int] | None) -> Diagram | None:
    """Return the cities and their tour as a diagram; None if there are no coordinates, no cities or too many cities.

    Args:
        problem: Problem of the tour.
        tour: Cities in turn, from 1 on; None if no tour is known.
    """
    if problem.points is None or not 0 < problem.cities <= _MAX_CITIES:
        return None
    points = np.asarray(problem.points, dtype=np.float64)
    if tour is None:
        return tour_diagram(points, None)
    cities = [city - 1 for city in tour]
    diagram = tour_diagram(points, cities, problem.length(cities))
    lengths = [int(problem.distances[a, b]) for a, b in diagram.edges]
    longest = max(map(abs, lengths)) or 1
    details: list[list[tuple[str, float | None]]] = [[] for _ in range(problem.cities)]
    for (city, next_city), length in zip(diagram.edges, lengths, strict=True):
        details[city].append((f"to city {next_city + 1:,}: {length:,}", length / longest))
    return replace(diagram, details=details)


def tour_section(problem: TourProblem, result: Result, bounds: Sequence[Bounds]) -> Markup:
    """Return the figures of a tour, its bounds over time, and its cities in turn."""
    seconds = result.stats["seconds"]["total"]
    rows: list[tuple[str, object]] = [
        ("cities", f"{problem.cities:,}"),
        ("status", result.status),
        ("length", "unknown" if result.value is None else f"{result.value:,}"),
        ("lower bound", "unknown" if result.lower_bound is None else f"{result.lower_bound:,}"),
        ("time", seconds_text(seconds)),
    ]
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    contents: list[object] = [figures(rows)]
    chart = bounds_chart(bounds, "Length of the best tour, and its lower bound, over time", seconds, "length")
    if chart is not None:
        contents.append(step_chart(chart))
    tour = result.tour or ()
    more = f", and {len(tour) - _MAX_LISTED:,} more" if len(tour) > _MAX_LISTED else ""
    contents.append(paragraph(f"Tour: {' '.join(map(str, tour[:_MAX_LISTED]))}{more}", "tour"))
    return joined(contents)
