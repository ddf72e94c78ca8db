"""Tables of listed tuples, dense or sparse, from files."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.model.table import LARGEST_NUMBER, Table, cell_numbers

MAX_DENSE_CELLS = 4096
DENSE_CELLS_PER_TUPLE = 4
_MAX_AXES = 32
"""Largest number of axes of an array in NumPy 1."""


def table_of_tuples(
    scope: Sequence[int], sizes: Sequence[int], default: float, rows: NDArray[np.int32], costs: NDArray[Any]
) -> Table:
    """Build a table: sparse if it has over 32 axes, or over 4096 cells and over four cells for each tuple; else dense.

    Args:
        scope: Variables of the table.
        sizes: Domain sizes of these variables.
        default: The cost of unlisted tuples.
        rows: The listed tuples, of shape (n, len(scope)), within the domains; repeated ones need equal costs.
        costs: Their costs, of shape (n,).

    Raises:
        TextError: A tuple is listed with two costs.
    """
    if len(sizes) > _MAX_AXES or math.prod(sizes) > max(MAX_DENSE_CELLS, DENSE_CELLS_PER_TUPLE * len(rows)):
        order, is_first = _sorted_tuples(rows, sizes)
        first = order[is_first]
        if (costs[first][np.cumsum(is_first) - 1] != costs[order]).any():
            raise TextError("a tuple of this function is listed with two costs")
        return Table(scope, costs[first], sizes=sizes, rows=rows[first], default=default)
    values = np.empty(math.prod(sizes), dtype=costs.dtype)
    values.fill(default)
    if len(rows):
        # Most files have many small tables of the same sizes, so their strides are kept.
        cells = rows.dot(_strides(tuple(sizes)))
        values[cells] = costs
        if (values[cells] != costs).any():
            raise TextError("a tuple of this function is listed with two costs")
    return Table(scope, values.reshape(sizes))


@functools.lru_cache(maxsize=1024)
def _strides(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the stride of each variable in cells."""
    return np.cumprod([1, *sizes[:0:-1]])[: len(sizes)][::-1].astype(np.int64)


def _sorted_tuples(rows: NDArray[np.int32], sizes: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the sorted order of tuples (last variable fastest), and whether each differs from its predecessor."""
    if math.prod(sizes) <= LARGEST_NUMBER:
        numbers = cell_numbers(rows, sizes, range(len(sizes)))
        order = np.argsort(numbers, kind="stable")
        differs = np.diff(numbers[order]) != 0
    else:
        order = np.lexsort(rows.T[::-1])
        differs = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    return order, np.concatenate([np.ones(min(1, len(order)), dtype=bool), differs])
