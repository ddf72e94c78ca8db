"""Combination of two results of a question: the better bounds and assignment of both."""

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
"""Figures of a plan, where there is none."""


def combine(known: Result | None, found: Result, sign: int) -> Result:
    """Return the combination of two answers to one question; the figures are those of the second.

    Args:
        known: Known result; None: there is none.
        found: Newer answer.
        sign: 1 where values are minimised, -1 where they are maximised.
    """
    if known is not None and known.marginal_bounds and found.status == "estimated" and not found.marginal_bounds:
        found = within_marginal_bounds(found, known.marginal_bounds)
    if known is None or found.status not in OPEN_STATUSES:
        return found
    if known.status not in OPEN_STATUSES:
        return known.replace(stats=found.stats)
    if found.status == "estimated":
        return found if _error_of(found) <= _error_of(known) else known
    lower = max((end for end in (known.lower_bound, found.lower_bound) if end is not None), default=None)
    upper = min((end for end in (known.upper_bound, found.upper_bound) if end is not None), default=None)
    description = DESCRIPTIONS.get(found.task)
    if description is not None and description.is_partition and lower is not None and upper is not None:
        return sum_between(lower, upper).replace(stats=found.stats)
    best = found
    if _is_better(known, found, sign):
        best = known
    bound = lower if sign == 1 else upper
    is_beyond_optimum = description is not None and description.is_beyond_optimum
    if best.value is not None and bound is not None and bounds_meet(bound, best.value) and not is_beyond_optimum:
        return best.replace(status="optimal", lower_bound=best.value, upper_bound=best.value, stats=found.stats)
    return best.replace(status="bounded", lower_bound=lower, upper_bound=upper, stats=found.stats)


def _error_of(estimate: Result) -> float:
    return math.inf if estimate.error is None else estimate.error


def _is_better(one: Result, other: Result, sign: int) -> bool:
    """Return whether an answer has a better assignment than another one, or one whose value is known to be better."""
    if one.assignment is None or other.assignment is None:
        return other.assignment is None
    ends = [(r.upper_bound if sign == 1 else r.lower_bound) if r.value is None else r.value for r in (one, other)]
    worst = sign * math.inf
    mine, its = (worst if end is None else end for end in ends)
    return sign * mine < sign * its


def within_marginal_bounds(estimate: Result, bounds: MarginalBounds) -> Result:
    """Return an estimate of marginals with bounds on some of them, moved between these."""
    marginals = {
        name: _between(shares, bounds[name]) if name in bounds else shares
        for name, shares in estimate.marginals.items()
    }
    return estimate.replace(marginals=marginals, marginal_bounds=bounds)


def _between(shares: Mapping[Any, float], bounds: Mapping[Any, tuple[float, float]]) -> dict[Any, float]:
    """Return a distribution between bounds: what clipping adds or takes is spread over what they leave free."""
    clipped = {state: min(max(share, bounds[state][0]), bounds[state][1]) for state, share in shares.items()}
    excess = math.fsum(clipped.values()) - 1
    free = {state: share - bounds[state][0 if excess > 0 else 1] for state, share in clipped.items()}
    total = math.fsum(free.values())
    return {state: share - (excess * free[state] / total if total else 0.0) for state, share in clipped.items()}


def bounds_beyond(given: int | float, sign: int, is_integer: bool = True) -> tuple[float | None, float | None]:
    """Return the bounds of an optimum that does not reach a given total: the next total, where costs are integers.

    Args:
        given: Total that is not reached.
        sign: 1 where values are minimised, -1 where they are maximised.
        is_integer: True if costs are integers.
    """
    beyond = given + sign if is_integer else given
    return (beyond, None) if sign == 1 else (None, beyond)
