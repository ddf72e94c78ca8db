"""Factors of the same sizes, stored cell by cell: the values of all factors for one cell are next to each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class FactorClass(NamedTuple):
    """Factors of the same sizes.

    Attributes:
        sizes: Sizes of their axes.
        scopes: Variable of each axis, int64 of shape ``(len(sizes), count)``.
        tables: Values, float64 of shape ``(cells, count)``, at most 1.
    """

    sizes: tuple[int, ...]
    scopes: NDArray[np.int64]
    tables: Floats

    @property
    def factor_count(self) -> int:
        """Number of factors."""
        return int(self.tables.shape[1])

    @property
    def message_cells(self) -> int:
        """Number of cells of the factors' messages to their variables."""
        return sum(self.sizes) * self.factor_count
