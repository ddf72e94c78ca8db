"""Diagram of a tour: a map of its cities."""

from __future__ import annotations

from collections.abc import Sequence

from elimina.viz.diagram import Diagram, Points


def tour_diagram(points: Points, tour: Sequence[int] | None, length: int | None = None) -> Diagram:
    """Return the map of cities, and their tour.

    Args:
        points: Float array of shape ``(cities, 2)``.
        tour: Cities in turn, from 0 on; None for the cities alone.
        length: Length of the tour.
    """
    figures = f"{len(points):,} cities"
    if length is not None:
        figures += f", a tour of length {length:,}"
    edges = [] if tour is None else [(a, tour[(position + 1) % len(tour)]) for position, a in enumerate(tour)]
    names = [f"{city + 1}" for city in range(len(points))]
    return Diagram("tour", "Tour", figures, names, edges, points=points, noun="city")
