"""Separation of overlapping nodes, and rotation of a layout to fit a page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elimina.viz.diagram import Points

_ANGLES = 45
"""Number of rotations by less than a right angle that are tried."""

_MAX_PUSHES = 2000
_PUSHES_BEFORE_GROWTH, _GROWTH = 100, 1.05
"""Rounds before a picture with overlapping nodes grows, and the factor of its growth."""

_PUSH_SHARE = 0.35
"""Share of an overlap that each of both boxes moves in a round."""


def turned(positions: Points) -> Points:
    """Return positions rotated into the smallest frame, with its longer side horizontal, for a page."""
    centred: Points = positions - positions.mean(axis=0)
    angles = np.linspace(0, np.pi / 2, _ANGLES, endpoint=False)
    rotations = [centred @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    smallest = min(rotations, key=lambda frame: float(np.ptp(frame, axis=0).prod()))
    across, up = np.ptp(smallest, axis=0)
    upright: Points = smallest[:, ::-1] if up > across else smallest
    return upright.copy()


def separated(positions: Points, widths: Points, heights: Points) -> Points:
    """Return the positions of boxes after pushing them apart, each pair along the axis with the smaller overlap.

    After ``_MAX_PUSHES`` rounds, some boxes may still overlap.
    """
    positions, count = positions.copy(), len(positions)
    for number in range(1, _MAX_PUSHES + 1):
        a, b = near_pairs(positions[:, 0], float(widths.max(initial=0.0)))
        dx, dy = (positions[a] - positions[b]).T
        over_x, over_y = (widths[a] + widths[b]) / 2 - np.abs(dx), (heights[a] + heights[b]) / 2 - np.abs(dy)
        clash = (over_x > 1e-6) & (over_y > 1e-6)
        if not clash.any():
            break
        a, b, dx, dy, over_x, over_y = (column[clash] for column in (a, b, dx, dy, over_x, over_y))
        sideways, rank = over_x < over_y, np.sign(a - b)
        push_x = np.where(sideways, over_x * np.where(dx, np.sign(dx), rank), 0)
        push_y = np.where(sideways, 0, over_y * np.where(dy, np.sign(dy), rank))
        pushes = [np.bincount(a, push, count) - np.bincount(b, push, count) for push in (push_x, push_y)]
        positions += np.stack(pushes, axis=1) * _PUSH_SHARE
        if number % _PUSHES_BEFORE_GROWTH == 0:
            positions *= _GROWTH
    return positions


def near_pairs(x: Points, reach: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the second indices of all pairs of positions nearer than a distance along one axis."""
    order = np.argsort(x)
    here = np.arange(len(x))
    after = np.searchsorted(x[order], x[order] + reach) - here - 1
    first = np.repeat(here, np.maximum(after, 0))
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(after) - after, np.maximum(after, 0))
    return order[first], order[second]
