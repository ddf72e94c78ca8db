"""Arrays over parts of an arena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def view_of(arena: Array, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """Return a table of an arena as an array, from its offset, sizes and strides, in elements."""
    item = arena.itemsize
    return np.ndarray(sizes, arena.dtype, arena, offset * item, [stride * item for stride in strides])
