"""Distances between cities by the rules of TSPLIB."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from elimina.errors import InputError

MAX_DISTANCE = 2**31 - 1
ROWS_PER_BLOCK = 32
"""Number of rows of distances that are computed at a time: more would not fit the cache."""
_EARTH_RADIUS_KM, _PI = 6378.388, 3.141592

Reals = npt.NDArray[np.float64]
DistanceRule = Callable[[Reals, Reals], Reals]


def _differences(rows: Reals, points: Reals) -> list[Reals]:
    """Return the absolute differences in each coordinate, as separate arrays: a joint array would be slow to sum."""
    return [np.abs(here[:, None] - there[None, :]) for here, there in zip(rows.T, points.T, strict=True)]


def _total(terms: Sequence[Reals]) -> Reals:
    return functools.reduce(np.add, terms)


def _squares(rows: Reals, points: Reals) -> Reals:
    return _total([difference * difference for difference in _differences(rows, points)])


def _rounded(values: Reals) -> Reals:
    return np.floor(values + 0.5)


def _pseudo_euclidean(rows: Reals, points: Reals) -> Reals:
    exact = np.sqrt(_squares(rows, points) / 10.0)
    rounded = _rounded(exact)
    return np.where(rounded < exact, rounded + 1, rounded)


def _radians(points: Reals) -> Reals:
    # Coordinates are DDD.MM. Degrees are truncated, not rounded, as for the published optima.
    degrees = np.trunc(points)
    return _PI * (degrees + 5.0 * (points - degrees) / 3.0) / 180.0


def _geographical(rows: Reals, points: Reals) -> Reals:
    here, there = _radians(rows)[:, None, :], _radians(points)[None, :, :]
    q1 = np.cos(here[..., 1] - there[..., 1])
    q2 = np.cos(here[..., 0] - there[..., 0])
    q3 = np.cos(here[..., 0] + there[..., 0])
    cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)
    return np.floor(_EARTH_RADIUS_KM * np.arccos(np.clip(cosine, -1.0, 1.0)) + 1.0)


DISTANCE_RULES: dict[str, DistanceRule] = {
    "EUC_2D": lambda rows, points: _rounded(np.sqrt(_squares(rows, points))),
    "EUC_3D": lambda rows, points: _rounded(np.sqrt(_squares(rows, points))),
    "MAN_2D": lambda rows, points: _rounded(_total(_differences(rows, points))),
    "MAN_3D": lambda rows, points: _rounded(_total(_differences(rows, points))),
    "MAX_2D": lambda rows, points: _rounded(functools.reduce(np.maximum, _differences(rows, points))),
    "MAX_3D": lambda rows, points: _rounded(functools.reduce(np.maximum, _differences(rows, points))),
    "CEIL_2D": lambda rows, points: np.ceil(np.sqrt(_squares(rows, points))),
    "ATT": _pseudo_euclidean,
    "GEO": _geographical,
}


def distance_matrix(points: Reals, kind: str) -> npt.NDArray[np.int32]:
    """Return the distances between all points.

    Args:
        points: (n, 2) or (n, 3).
        kind: Rule for distances, one of `DISTANCE_RULES`.

    Returns:
        (n, n) int32; a city is at distance 0 from itself.

    Raises:
        InputError: A distance is beyond 2^31 - 1.
    """
    n = len(points)
    matrix = np.zeros((n, n), dtype=np.int32)
    for first in range(0, n, ROWS_PER_BLOCK):
        rows = DISTANCE_RULES[kind](points[first : first + ROWS_PER_BLOCK], points)
        if rows.max() > MAX_DISTANCE:
            raise InputError(f"a distance of {rows.max():g} is beyond 2^31: use smaller units")
        matrix[first : first + ROWS_PER_BLOCK] = rows
    np.fill_diagonal(matrix, 0)
    return matrix
