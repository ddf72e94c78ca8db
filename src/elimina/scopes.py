"""Scopes of tables, one after another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Scopes(NamedTuple):
    """Scopes one after another: scope i is ``members[starts[i] : starts[i + 1]]``."""

    starts: NDArray[np.int64]
    members: NDArray[np.int64]

    @staticmethod
    def of(scopes: Collection[Sequence[int]]) -> Scopes:
        """Put scopes one after another.

        Raises:
            OverflowError: A variable exceeds 64 bits.
        """
        starts = np.zeros(len(scopes) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, scopes), np.int64, len(scopes)), out=starts[1:])
        return Scopes(starts, np.fromiter(chain.from_iterable(scopes), np.int64, int(starts[-1])))
