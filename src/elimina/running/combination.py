"""Combination of two results for the same question: the better bounds, and the better assignment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from elimina.problem.tasks import DESCRIPTIONS
from elimina.result import OPEN_STATUSES, MarginalBounds, Result
from elimina.running.bounded_results import bounds_meet, sum_between

NO_PLAN: dict[str, Any] = {
    "induced_width": None,
    "largest_table": 0,
    "total_cells": 0,
    "peak_bytes": 0,
    "device": "cpu",
    "dtype": None,
}
"""Statistics of a result without a plan."""


def combine(previous: Result | None, newer: Result, sign: int) -> Result:
    """Return the combination of two answers to the same question.

    Statistics are those of the newer answer.

    Args:
        previous: Result so far; None: no result.
        newer: Newer answer.
        sign: 1 if values are minimised, -1 if they are maximised.
    """
    if previous is not None and previous.marginal_bounds and newer.status == "estimated" and not newer.marginal_bounds:
        newer = within_marginal_bounds(newer, previous.marginal_bounds)
    if previous is None or newer.status not in OPEN_STATUSES:
        return newer
    if previous.status not in OPEN_STATUSES:
        return previous.replace(stats=newer.stats)
    lower = max((end for end in (previous.lower_bound, newer.lower_bound) if end is not None), default=None)
    upper = min((end for end in (previous.upper_bound, newer.upper_bound) if end is not None), default=None)
    if "estimated" in (previous.status, newer.status):
        return _with_estimate(previous, newer, lower, upper)
    description = DESCRIPTIONS.get(newer.task)
    if description is not None and description.is_partition and lower is not None and upper is not None:
        return sum_between(lower, upper).replace(stats=newer.stats)
    best = newer
    if _is_better(previous, newer, sign):
        best = previous
    bound = lower if sign == 1 else upper
    is_beyond_optimum = description is not None and description.is_beyond_optimum
    if best.value is not None and bound is not None and bounds_meet(bound, best.value) and not is_beyond_optimum:
        return best.replace(status="optimal", lower_bound=best.value, upper_bound=best.value, stats=newer.stats)
    return best.replace(status="bounded", lower_bound=lower, upper_bound=upper, stats=newer.stats)


def _with_estimate(previous: Result, newer: Result, lower: float | None, upper: float | None) -> Result:
    """Return the newer estimate, clipped to the bounds; if the bounds are equal, return the proved result.

    The newer estimate is used even if its error is larger, because it takes the older one into account.
    """
    estimates = [result for result in (newer, previous) if result.status == "estimated"]
    best = estimates[0]
    if lower is not None and upper is not None:
        is_count = DESCRIPTIONS[best.task].is_count
        if is_count and lower == upper:
            return Result("exact", best.task, lower, lower, upper, stats=newer.stats)
        if not is_count and (proven := sum_between(lower, upper)).status != "bounded":
            return proven.replace(stats=newer.stats)
    stats = best.stats if len(estimates) == 2 else {**best.stats, **newer.stats, "method": best.stats.get("method")}
    return within_bounds(best.replace(lower_bound=lower, upper_bound=upper, stats=stats))


def within_bounds(estimate: Result) -> Result:
    """Return an estimate of a sum with its value and interval clipped to its bounds, and its error adapted."""
    if estimate.log10_z is None or (estimate.lower_bound, estimate.upper_bound) == (None, None):
        return estimate
    low = _log10_end(estimate, estimate.lower_bound, -math.inf)
    high = _log10_end(estimate, estimate.upper_bound, math.inf)
    log10_z = min(max(estimate.log10_z, low), high)
    error = min(_error_of(estimate) + abs(log10_z - estimate.log10_z), max(log10_z - low, high - log10_z))
    interval = estimate.interval
    if interval is not None:
        interval = interval._replace(low=min(max(interval.low, low), high), high=max(min(interval.high, high), low))
    return estimate.replace(log10_z=log10_z, error=None if error == math.inf else error, interval=interval)


def _log10_end(estimate: Result, bound: int | float | None, unknown: float) -> float:
    """Return a bound on the base-10 logarithm of an estimated sum; ``unknown`` if the bound is None.

    The bounds of a count are on the count itself, so their logarithms are taken.
    """
    if bound is None or not DESCRIPTIONS[estimate.task].is_count:
        return unknown if bound is None else bound
    return math.log10(bound) if bound else -math.inf


def _error_of(estimate: Result) -> float:
    return math.inf if estimate.error is None else estimate.error


def _is_better(first: Result, second: Result, sign: int) -> bool:
    """Return whether the first answer has the better assignment; True if the second answer has none.

    If the value of an assignment is unknown, its worst possible value by the bounds is compared.
    """
    if first.assignment is None or second.assignment is None:
        return second.assignment is None
    ends = [(r.upper_bound if sign == 1 else r.lower_bound) if r.value is None else r.value for r in (first, second)]
    worst = sign * math.inf
    first_end, second_end = (worst if end is None else end for end in ends)
    return sign * first_end < sign * second_end


def within_marginal_bounds(estimate: Result, bounds: MarginalBounds) -> Result:
    """Return an estimate of marginals; those with bounds are clipped to them."""
    marginals = {
        name: _between(shares, bounds[name]) if name in bounds else shares
        for name, shares in estimate.marginals.items()
    }
    return estimate.replace(marginals=marginals, marginal_bounds=bounds)


def _between(shares: Mapping[Any, float], bounds: Mapping[Any, tuple[float, float]]) -> dict[Any, float]:
    """Return a distribution within bounds, near the given one.

    Probabilities are clipped to their bounds. To restore the sum 1, they are then moved towards their upper or lower
    bounds, each in proportion to its distance from the bound.
    """
    clipped = {state: min(max(share, bounds[state][0]), bounds[state][1]) for state, share in shares.items()}
    excess = math.fsum(clipped.values()) - 1
    free = {state: share - bounds[state][0 if excess > 0 else 1] for state, share in clipped.items()}
    total = math.fsum(free.values())
    return {state: share - (excess * free[state] / total if total else 0.0) for state, share in clipped.items()}


def bounds_beyond(total: int | float, sign: int, is_integer: bool = True) -> tuple[float | None, float | None]:
    """Return the bounds (lower, upper) on an optimum that does not improve on a total.

    Args:
        total: Total on which no assignment improves; if costs are integers, no assignment reaches it either.
        sign: 1 if values are minimised, -1 if they are maximised.
        is_integer: True if costs are integers.
    """
    beyond = total + sign if is_integer else total
    return (beyond, None) if sign == 1 else (None, beyond)
