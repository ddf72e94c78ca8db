"""Bounds on the rounding error of an optimum of floats, and checks against them.

The best value of each table is subtracted before tables are added (``running.encoding``), so all terms have the same
sign, and each addition has a small relative error. Only the constants may cancel each other, so they are added exactly.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from elimina._core import TableList
from elimina.errors import InputError, InternalError
from elimina.model.model import Model
from elimina.model.table import Sense, Table
from elimina.planning.packed_steps import Factors, Steps
from elimina.planning.plan import Plan
from elimina.problem.preparation import Problem, allowed_ranges


def check_value(
    dtype: str, value: int | float, score: int | float, terms: Sequence[int | float], slack: float = 0.0
) -> None:
    """Check that the assignment's value in the original model equals the value found by elimination.

    Args:
        dtype: Number type of the elimination.
        value: Value found by elimination.
        score: Value of the assignment.
        terms: Terms of the score, which determine the tolerance for floats.
        slack: Largest additional rounding error.

    Raises:
        InternalError: The values differ by more than rounding.
    """
    tolerance = slack
    if not dtype.startswith("int"):
        tolerance += (64 + len(terms)) * float(np.finfo(dtype).eps) * max(math.fsum(map(abs, terms)), 1.0)
    if not abs(value - score) <= tolerance:
        raise InternalError(
            f"elimination found the optimum {value!r}, its assignment is worth {score!r} on the model; "
            "please report this"
        )


def check_sum(model: Model, tables: Sequence[Table] | TableList, dtype: str) -> None:
    """Reject finite costs with a possibly infinite sum, because infinity means forbidden; probabilities are accepted.

    Args:
        model: Model with the costs.
        tables: Tables that are added to the model's constant.
        dtype: Number type of the sum.

    Raises:
        InputError: The sum may exceed the range of this type.
    """
    if model.sense == "probability":
        return
    ends = [(float(low), float(high)) for low, high in filter(None, allowed_ranges(tables, model.sense))]
    total = sum((max(-low, high, high - low) for low, high in ends), abs(float(model.constant)))
    if total > float(np.finfo(dtype).max):
        way = "use dtype float64" if dtype == "float32" else "scale them down"
        largest = max((max(-low, high) for low, high in ends), default=0.0)
        shown = f"{total:.3g}" if math.isfinite(total) else f"more than {sys.float_info.max:.3g}"
        raise InputError(
            f"the costs, up to {largest:.3g} in a table, may add up to {shown}, which {dtype} cannot hold; {way}, and "
            "write forbidden ones as infinity"
        )


def check_values(tables: Sequence[Table] | TableList, sense: Sense, dtype: str) -> None:
    """Reject finite values that would become infinite in a number type, because infinity means forbidden.

    Args:
        tables: Tables whose values are only compared, so they are encoded without scales or logarithms.
        sense: Sense of the tables.
        dtype: Number type of the encoded values.

    Raises:
        InputError: A value exceeds the range of this type.
    """
    ranges = filter(None, allowed_ranges(tables, sense))
    largest = max((max(-low, high) for low, high in ranges), default=0)
    if largest > float(np.finfo(dtype).max):
        raise InputError(
            f"the tables' values, up to {largest:.3g}, are beyond {dtype}: use dtype float64, and write forbidden ones "
            "as infinity"
        )


_SAFETY_FACTOR = 8
"""Number of roundings of a sum in addition to its additions: differences in tables, constants, and the total."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
"""Largest gap between the bounds of an optimum for the status ``optimal``, relative to the optimum (or to 1)."""


@functools.cache
def epsilon(dtype: str) -> float:
    """Return the relative distance between neighbouring floats of a number type."""
    return float(np.finfo(dtype).eps)


def additions(plan: Plan) -> int:
    """Return the largest number of additions on a path from a cell to the roots of a plan, with a margin."""
    return Steps.packed(plan.steps).additions + Factors.packed(plan.factors).joined + _SAFETY_FACTOR


def rounding(problem: Problem, plan: Plan, cost: float, constants: Iterable[float], more: int = 0) -> float:
    """Return the largest rounding error of a plan's optimum.

    Args:
        problem: Problem of the plan.
        plan: Plan on floats.
        cost: Sum of the values at the plan's roots.
        constants: Constants that were subtracted from its tables.
        more: Number of additions other than the plan's.
    """
    slack = (additions(plan) + more) * epsilon(plan.dtype) * abs(cost)
    # Constants are added exactly, but those of probabilities are rounded logarithms.
    return slack + _SAFETY_FACTOR * epsilon("float64") * math.fsum(map(abs, constants)) * (
        problem.model.sense == "probability"
    )


def widened(bound: float, *terms: float) -> float:
    """Return a lower bound minus the possible rounding error of the sum of ``terms`` from which it was computed."""
    return bound - _SAFETY_FACTOR * epsilon("float64") * sum(map(abs, terms), abs(bound))
