"""Distances between points, rounded as the TSPLIB documentation says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from elimina.errors import InputError

MOST = 2**31 - 1
_ROWS = 256
_EARTH, _PI = 6378.388, 3.141592

Reals = npt.NDArray[np.float64]
Rule = Callable[[Reals, Reals], Reals]


def _differences(rows: Reals, points: Reals) -> Reals:
    difference: Reals = rows[:, None, :] - points[None, :, :]
    return difference


def _squares(rows: Reals, points: Reals) -> Reals:
    squares: Reals = (_differences(rows, points) ** 2).sum(axis=2)
    return squares


def _nearest(values: Reals) -> Reals:
    return np.floor(values + 0.5)


def _euclidean(rows: Reals, points: Reals) -> Reals:
    return _nearest(np.sqrt(_squares(rows, points)))


def _manhattan(rows: Reals, points: Reals) -> Reals:
    return _nearest(np.abs(_differences(rows, points)).sum(axis=2))


def _maximum(rows: Reals, points: Reals) -> Reals:
    largest: Reals = _nearest(np.abs(_differences(rows, points))).max(axis=2)
    return largest


def _ceiling(rows: Reals, points: Reals) -> Reals:
    return np.ceil(np.sqrt(_squares(rows, points)))


def _pseudo_euclidean(rows: Reals, points: Reals) -> Reals:
    exact = np.sqrt(_squares(rows, points) / 10.0)
    near = _nearest(exact)
    return np.where(near < exact, near + 1, near)


def _radians(points: Reals) -> Reals:
    # Coordinates are DDD.MM; the published optima belong to degrees that are cut off, not rounded.
    degrees = np.trunc(points)
    return _PI * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0


def _geographical(rows: Reals, points: Reals) -> Reals:
    here, there = _radians(rows)[:, None, :], _radians(points)[None, :, :]
    q1 = np.cos(here[..., 1] - there[..., 1])
    q2 = np.cos(here[..., 0] - there[..., 0])
    q3 = np.cos(here[..., 0] + there[..., 0])
    cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
    return np.floor(_EARTH * np.arccos(np.clip(cosine, -1.0, 1.0)) + 1.0)


RULES: dict[str, Rule] = {
    "EUC_2D": _euclidean,
    "EUC_3D": _euclidean,
    "MAN_2D": _manhattan,
    "MAN_3D": _manhattan,
    "MAX_2D": _maximum,
    "MAX_3D": _maximum,
    "CEIL_2D": _ceiling,
    "ATT": _pseudo_euclidean,
    "GEO": _geographical,
}


def distance_matrix(points: Reals, kind: str) -> npt.NDArray[np.int32]:
    """Return the distances between all points.

    Args:
        points: (n, 2) or (n, 3).
        kind: One of `RULES`.

    Returns:
        (n, n) int32; a city is at distance 0 from itself.

    Raises:
        InputError: A distance is beyond 2^31.
    """
    n = len(points)
    matrix = np.zeros((n, n), dtype=np.int32)
    for first in range(0, n, _ROWS):
        rows = RULES[kind](points[first : first + _ROWS], points)
        if rows.max() > MOST:
            raise InputError(f"a distance of {rows.max():g} is beyond 2^31: use smaller units")
        matrix[first : first + _ROWS] = rows
    np.fill_diagonal(matrix, 0)
    return matrix
