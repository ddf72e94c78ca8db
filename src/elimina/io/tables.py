"""From listed tuples to tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.table import Table

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
        distinct, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        if (costs[first][group.reshape(-1)] != costs).any():
            raise TextError("a tuple of this function is listed with two costs")
        return Table(scope, costs[first], sizes=sizes, rows=distinct, default=default)
    values = np.full(tuple(sizes), default, dtype=costs.dtype)
    if len(rows):
        key = tuple(rows.T)
        values[key] = costs
        if (values[key] != costs).any():
            raise TextError("a tuple of this function is listed with two costs")
    return Table(scope, values)
