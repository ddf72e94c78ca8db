"""Results from bounds, and comparison of bounds up to rounding errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from elimina.model.model import Model
from elimina.result import Result, Status
from elimina.running.rounding import TOLERANCES
from elimina.running.scaled import ScaledNumber, partition_result

_SUM_TOLERANCE = 1e-12
"""Largest gap between the bounds of a sum's logarithm that is due to rounding, relative to the logarithm (or to 1)."""


def bounds_meet(bound: int | float, score: int | float, tolerance: float = TOLERANCES["float64"]) -> bool:
    """Return whether a bound equals an assignment's total: exactly for integers, otherwise up to rounding errors."""
    return bound == score or (not isinstance(score, int) and abs(bound - score) <= tolerance * max(1.0, abs(score)))


def sum_between(lower: float, upper: float) -> Result:
    """Return the result proved by bounds on the base-10 logarithm of a sum: exact (or infeasible) if they are equal."""
    if upper == -math.inf or bounds_meet(lower, upper, _SUM_TOLERANCE):
        return partition_result(ScaledNumber.from_log2(upper / math.log10(2)))
    return Result("bounded", "pr", None, lower, upper)


def result_between(
    model: Model,
    bound: int | float | None,
    chosen: Sequence[int] | None,
    tolerance: float = TOLERANCES["float64"],
    score: int | float | None = None,
) -> Result:
    """Return the result proved by a bound and an assignment.

    Args:
        model: Model of the optimum.
        bound: Bound on the optimum, in the model's units; None: no assignment is allowed.
        chosen: A value for each variable of the model; None: no assignment is known. An assignment is left out if it is
            forbidden, or not better than the model's upper bound.
        tolerance: Largest gap that is due to rounding, relative to the assignment's value (or to 1).
        score: Value of the assignment, if it is known.
    """
    if bound is None:
        return Result("infeasible", "mpe")
    if score is None and chosen is not None:
        score = model.score(chosen)
    if chosen is None or score is None or math.isinf(score) or model.is_beyond_bound(score):
        return Result("bounded", "mpe", None, *model.ends(bound, None))
    is_same = bounds_meet(bound, score, tolerance)
    if is_same:
        bound = score
    status: Status = "optimal" if is_same else "bounded"
    return Result(status, "mpe", score, *model.ends(bound, score), model.states_at(chosen))
