"""Factors of the same sizes, whose numbers lie factor by factor beside each other."""

from __future__ import annotations

from collections.abc import Sequence
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
        """Cells of the messages to their variables."""
        return sum(self.sizes) * self.factor_count


def wave_bytes(sizes: NDArray[np.int64], classes: Sequence[FactorClass]) -> int:
    """Return the bytes that a wave reads and writes, each number once: tables, messages, beliefs and lists."""
    states, edges = int(sizes.sum()), sum(factors.scopes.size for factors in classes)
    messages = sum(factors.message_cells for factors in classes)
    tables = sum(factors.tables.size for factors in classes)
    read_beliefs = messages
    beliefs_wave = 8 * (messages + 3 * states + len(sizes)) + 8 * edges + 8 * len(sizes)
    messages_wave = 8 * (tables + 2 * messages + read_beliefs) + 4 * edges
    return beliefs_wave + messages_wave
