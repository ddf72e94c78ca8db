"""Pictures of travelling salesman problems: the cities, and a tour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.viz.canvas import FILL, OUTLINE, Canvas, Points

_LONGER_SIDE = 8.0
_TITLE_POINTS, _NUMBER_POINTS = 11, 6
_MOST_NUMBERS = 60


def draw_tour(points: Points, tour: Sequence[int] | None, title: str) -> Canvas:
    """Draw cities, with their numbers where they are few, and a tour.

    Args:
        points: (n, 2) places of the cities.
        tour: The cities in turn, from 0 on; None for the cities alone.
        title: Title above the picture.

    Raises:
        InputError: matplotlib is not installed.
    """
    canvas = Canvas()
    low = points.min(axis=0)
    side = float((points.max(axis=0) - low).max()) or 1.0
    places = (points - low) * (_LONGER_SIDE / side)
    if tour is not None:
        canvas.lines([places[[*tour, tour[0]]]], "tour", 1.0)
    radius = min(0.08, max(0.012, 0.5 / len(points) ** 0.5))
    canvas.circles(places, np.full(len(places), radius), "cities", OUTLINE if tour is not None else FILL)
    if len(points) <= _MOST_NUMBERS:
        for city, (x, y) in enumerate(places):
            canvas.text(
                x + 2 * radius, y + radius, str(city + 1), _NUMBER_POINTS, gid=f"city-{city + 1}", centred=False
            )
    top = float(canvas.bounds[1][1])
    canvas.text(float(places[:, 0].max()) / 2, top + 0.3, title, _TITLE_POINTS, gid="title")
    return canvas
