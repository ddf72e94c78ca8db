"""Tours: the cities and the best tour as a drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.cp.tsplib import Problem
from elimina.planning.plan import seconds_text
from elimina.reporting.charts import time_chart
from elimina.reporting.drawing import Drawing
from elimina.reporting.markup import Markup, figures, joined, paragraph
from elimina.result import Bounds, Result

_MOST_CITIES = 20_000
_MOST_LISTED = 1000


def draw_tour(problem: Problem, tour: Sequence[int]) -> Drawing | None:
    """Return the tour (cities from 1 on) as a drawing; None if the problem has no coordinates or too many cities."""
    if problem.points is None or problem.cities > _MOST_CITIES:
        return None
    places = np.asarray(problem.points, dtype=np.float64)
    cities = [city - 1 for city in tour]
    edges = [(a, cities[(place + 1) % len(cities)]) for place, a in enumerate(cities)]
    lengths = [int(problem.distances[a, b]) for a, b in edges]
    after = {a: (b, length) for (a, b), length in zip(edges, lengths, strict=True)}
    details: list[list[tuple[str, float | None]]] = []
    for city in range(problem.cities):
        to, length = after[city]
        details.append([(f"to city {to + 1:,}: {length:,}", length / (max(lengths) or 1))])
    names = [f"{city + 1}" for city in range(problem.cities)]
    title = f"Tour of {problem.cities:,} cities, of length {problem.length(cities):,}"
    return Drawing("tour", title, names, places, edges, details=details, noun="city")


def tour_section(problem: Problem, result: Result, known: Sequence[Bounds]) -> Markup:
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
    parts: list[object] = [figures(rows)]
    lines = [
        (name, [(one.seconds, float(value)) for one in known if (value := getattr(one, bound)) is not None])
        for name, bound in (("lower bound", "lower"), ("length of the best tour", "upper"))
    ]
    lines = [(name, points) for name, points in lines if points]
    if lines:
        parts.append(time_chart("Length and bound over time", lines, seconds, "length"))
    tour = result.tour or ()
    more = f", and {len(tour) - _MOST_LISTED:,} more" if len(tour) > _MOST_LISTED else ""
    parts.append(paragraph(f"Tour: {' '.join(map(str, tour[:_MOST_LISTED]))}{more}", "tour"))
    return joined(parts)
