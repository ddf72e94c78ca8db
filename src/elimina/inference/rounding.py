"""Bounds on what rounding may have changed of an optimum whose costs, or logarithms, are floats.

Tables are added less the best value that each of them has (``inference.encode``), so all that is added is of one sign:
each addition then changes a sum by a small part of itself. What tables cancel of each other is in the constants, which
are added exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from elimina.planning.factors import Factors
from elimina.planning.plan import Plan

_MORE = 8
"""Roundings of a sum besides its additions: of the tables' own differences, of constants, and of the total."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
"""Gap between the bounds of an optimum, relative to its value (or to 1), from which on it is not called optimal."""


def epsilon(dtype: str) -> float:
    """Return the relative distance of neighbouring floats."""
    return float(np.finfo(dtype).eps)


def additions(plan: Plan) -> int:
    """Return the most additions that any cell takes part in on its way to the roots of a plan."""
    depths: list[int] = []
    for step in plan.steps:
        below = max((depths[operand.source] for operand in step.operands if operand.source >= 0), default=0)
        depths.append(below + len(step.operands))
    return max(depths, default=0) + Factors.packed(plan.factors).joined + _MORE


def rounding(plan: Plan, cost: float, constants: Iterable[float], more: int = 0) -> float:
    """Return how far from its true value a plan's optimum may be.

    Args:
        plan: It adds floats.
        cost: The sum of the plan's roots.
        constants: Constants taken out of its tables.
        more: Additions besides those of the plan.
    """
    slack = (additions(plan) + more) * epsilon(plan.dtype) * abs(cost)
    # Logarithms are rounded themselves.
    return slack + _MORE * epsilon("float64") * math.fsum(map(abs, constants)) * (plan.semiring == "max-sum")


def widened(bound: float, *parts: float) -> float:
    """Return a lower bound that is the sum of some floats, less what adding them may have changed."""
    return bound - _MORE * epsilon("float64") * (abs(bound) + math.fsum(map(abs, parts)))
