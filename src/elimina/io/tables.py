"""Conversion of listed tuples to tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.table import LARGEST_NUMBER, Table, cell_numbers

DENSE_CELLS = 4096
DENSE_RATIO = 4


def from_tuples(
    scope: Sequence[int], sizes: Sequence[int], default: float, rows: NDArray[np.int32], costs: NDArray[Any]
) -> Table:
    """Build a dense table, or a sparse one if it has over 4096 cells and over four times as many as tuples are listed.

    Args:
        scope: The variables.
        sizes: Their domain sizes.
        default: The cost of what is not listed.
        rows: The listed tuples, of shape (n, len(scope)), within the domains; one may be listed twice, at one cost.
        costs: Their costs, of shape (n,).

    Raises:
        TextError: A tuple is listed with two costs.
    """
    if math.prod(sizes) > max(DENSE_CELLS, DENSE_RATIO * len(rows)):
        order, is_first = _sorted_tuples(rows, sizes)
        first = order[is_first]
        if (costs[first][np.cumsum(is_first) - 1] != costs[order]).any():
            raise TextError("a tuple of this function is listed with two costs")
        return Table(scope, costs[first], sizes=sizes, rows=rows[first], default=default)
    values = np.full(tuple(sizes), default, dtype=costs.dtype)
    if len(rows):
        key = tuple(rows.T)
        values[key] = costs
        if (values[key] != costs).any():
            raise TextError("a tuple of this function is listed with two costs")
    return Table(scope, values)


def _sorted_tuples(rows: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the order of tuples, the last variable the fastest, and whether each differs from the one before it."""
    if math.prod(sizes) <= LARGEST_NUMBER:
        numbers = cell_numbers(rows, sizes, range(len(sizes)))
        order = np.argsort(numbers, kind="stable")
        differs = np.diff(numbers[order]) != 0
    else:
        order = np.lexsort(rows.T[::-1])
        differs = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    return order, np.concatenate([np.ones(min(1, len(order)), dtype=bool), differs])
