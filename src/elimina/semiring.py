"""Semirings: the operations that join the tables of a bucket and eliminate its variable."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Dtype = Literal["int16", "int32", "int64", "float32", "float64", "uint64"]
INTEGERS: tuple[Dtype, ...] = ("int16", "int32", "int64")
FLOATS: tuple[Dtype, ...] = ("float64", "float32")
LARGEST = {name: int(np.iinfo(name).max) for name in INTEGERS}
"""The largest number of each integer type."""


class Semiring(NamedTuple):
    """A commutative semiring; its operations are in ``include/elimina/semiring.hpp``.

    Attributes:
        dtypes: Number types of the backends: exact ones from the narrowest on, then floats, the more exact one first.
        scaled: True if messages are scaled by powers of two (``scale_exponent`` there).
        levels: True if mini-buckets can be moment-matched in it (``include/elimina/level.hpp``).
    """

    dtypes: tuple[Dtype, ...]
    scaled: bool
    levels: bool = False


SEMIRINGS = {
    "min-sum": Semiring((*INTEGERS, *FLOATS), False, levels=True),
    "max-sum": Semiring(FLOATS, False, levels=True),
    "max-product": Semiring(FLOATS, True),
    "sum-product": Semiring(FLOATS, True),
    "log-sum-exp": Semiring(FLOATS, False, levels=True),
    "count": Semiring(("uint64",), False),
}
"""By name. ``count`` works modulo 2^64 or a prime (``Program.parameter``)."""


def scale_exponents(highs: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Return the powers of two that readers divide messages by, from their largest values.

    Args:
        highs: Largest value of each message.
        dtype: ``float32`` or ``float64``; ``scale_exponent`` in ``include/elimina/semiring.hpp`` has the same bounds.
    """
    limit = 126.0 if dtype == "float32" else 1022.0
    exponents: NDArray[np.float64] = np.minimum(np.maximum(np.frexp(highs)[1] - 1.0, -limit), limit)
    exponents[highs == 0] = 0
    return exponents
