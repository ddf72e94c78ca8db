"""Symmetric travelling salesman problems: cities, distances, and fixed edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from elimina import arguments
from elimina.cp.tour_distances import MAX_DISTANCE, ROWS_PER_BLOCK
from elimina.errors import InputError
from elimina.model.table import unmasked

Points = npt.NDArray[np.float64]
Distances = npt.NDArray[np.int32]


@arguments.with_checked_methods
@dataclass(frozen=True)
class TourProblem:
    """A symmetric travelling salesman problem.

    Attributes:
        name: Name in the file.
        distances: (n, n) int32, symmetric; as an argument, any array of integers below 2^31 in absolute value.
        points: (n, 2) coordinates of the cities in a picture; None if the file has none.
        fixed: Edges that each tour has to have; cities count from 0.

    Raises:
        TypeError: The distances are not an array of integers.
        InputError: The distances are not a symmetric matrix, or reach 2^31 in absolute value, or a fixed edge is not a
            pair of different cities.

    Examples:
        >>> import numpy as np
        >>> from elimina import cp
        >>> square = cp.TourProblem("square", np.array([[0, 2, 3, 2], [2, 0, 2, 3], [3, 2, 0, 2], [2, 3, 2, 0]]))
        >>> square.length([0, 2, 1, 3])
        10
    """

    name: str
    distances: Distances
    points: Points | None = None
    fixed: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "distances", _checked_distances(self.distances))
        n = self.cities
        for edge in self.fixed:
            if len(edge) != 2 or not all(0 <= city < n for city in edge):
                raise InputError(f"the fixed edge {edge} is not a pair of different cities from 0 to {n - 1}")

    @property
    def cities(self) -> int:
        """Number of cities."""
        return len(self.distances)

    def length(self, tour: Sequence[int]) -> int:
        """Return the length of a closed tour of all cities, which count from 0."""
        order = np.asarray(tour, dtype=np.int64)
        return int(self.distances[order, np.roll(order, -1)].sum(dtype=np.int64))


def _checked_distances(distances: npt.ArrayLike) -> Distances:
    """Return distances as int32, after checking that they are a symmetric matrix of integers below 2^31."""
    array = unmasked("distances", distances)
    if array.dtype.kind not in "iu":
        raise TypeError(f"distances is an array of {array.dtype}; it takes integers, a row and a column for each city")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise InputError(f"distances of shape {array.shape} are not a matrix with a row and a column for each city")
    if array.size and (array.max() > MAX_DISTANCE or array.min() < -MAX_DISTANCE):
        raise InputError("a distance is beyond 2^31: use smaller units")
    matrix: Distances = array.astype(np.int32, copy=False)
    for first in range(0, len(matrix), ROWS_PER_BLOCK):
        rows = slice(first, first + ROWS_PER_BLOCK)
        unequal = np.argwhere(matrix[rows, first:] != matrix[first:, rows].T)
        if len(unequal):
            i, j = (unequal[0] + first).tolist()
            raise InputError(
                f"the distance from city {i} to {j} is {matrix[i, j]}, back it is {matrix[j, i]}: a TSP is symmetric "
                "(elimina.cp.Model has circuit and element for others)"
            )
    return matrix
