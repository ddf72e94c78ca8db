"""Semirings: what joins the tables of a bucket, and what eliminates its variable."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

Dtype = Literal["int16", "int32", "int64", "float32", "float64", "uint64"]
INTEGERS: tuple[Dtype, ...] = ("int16", "int32", "int64")
FLOATS: tuple[Dtype, ...] = ("float64", "float32")


class Semiring(NamedTuple):
    """A commutative semiring.

    Attributes:
        combine: Joins two tables; its identity is ``one``.
        marginalise: Eliminates a variable; its identity is ``zero``, which also absorbs in ``combine``.
        one: See ``combine``.
        zero: See ``marginalise``. Integers have a number of the plan's for it (``Plan.forbidden``).
        dtypes: What backends compute it in: exact ones from the narrowest on, then floats, the more exact one first.
        decodes: Whether ``marginalise`` picks one of its arguments, so that a best assignment can be read off.
        scaled: Whether messages are scaled by powers of two (``scale_exponent`` in ``include/elimina/semiring.hpp``).
    """

    combine: np.ufunc
    marginalise: np.ufunc
    one: float
    zero: float
    dtypes: tuple[Dtype, ...]
    decodes: bool
    scaled: bool


SEMIRINGS = {
    "min-sum": Semiring(np.add, np.minimum, 0.0, math.inf, (*INTEGERS, *FLOATS), True, False),
    "max-sum": Semiring(np.add, np.maximum, 0.0, -math.inf, FLOATS, True, False),
    "max-product": Semiring(np.multiply, np.maximum, 1.0, 0.0, FLOATS, True, True),
    "sum-product": Semiring(np.multiply, np.add, 1.0, 0.0, FLOATS, False, True),
    "log-sum-exp": Semiring(np.add, np.logaddexp, 0.0, -math.inf, FLOATS, False, False),
    "count": Semiring(np.multiply, np.add, 1.0, 0.0, ("uint64",), False, False),
}
"""By name. ``count`` works modulo 2^64 or a prime (``Program.parameter``)."""
