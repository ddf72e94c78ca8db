"""Answers before they are exact: their combination, and first bounds that take very little time."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from elimina.inference.minibucket import meet, result_between, sum_between
from elimina.planning.prepare import Problem
from elimina.result import Result
from elimina.table import Sense, forbidden_value

_MOST_CELLS = 1 << 20
"""Most cells of a table that the first assignment is improved on."""

_MOST_LISTED_CELLS = 1 << 16
"""Likewise, of a table that lists its tuples: writing it out takes more than reading it."""

_COPY_BYTES = 8
"""Bytes of a copied cell."""

_DESCENT_CELLS = 30_000_000
"""Cells that the local search for the first assignment visits: about 0.1 s."""

SLACK = 1e-12
"""Rounding of sums of floats, relative to the sum of their sizes."""

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
    if known is None or found.status not in ("bounded", "feasible"):
        return found
    if known.status not in ("bounded", "feasible"):
        return known.replace(stats=found.stats)
    lower = max((end for end in (known.lower_bound, found.lower_bound) if end is not None), default=None)
    upper = min((end for end in (known.upper_bound, found.upper_bound) if end is not None), default=None)
    if found.task == "pr" and lower is not None and upper is not None:
        return sum_between(lower, upper).replace(stats=found.stats)
    best = found
    if _is_better(known, found, sign):
        best = known
    bound = lower if sign == 1 else upper
    if best.value is not None and bound is not None and meet(bound, best.value):
        return best.replace(status="optimal", lower_bound=best.value, upper_bound=best.value, stats=found.stats)
    return best.replace(status="bounded", lower_bound=lower, upper_bound=upper, stats=found.stats)


def _is_better(one: Result, other: Result, sign: int) -> bool:
    """Return whether an answer has a better assignment than another one, or one whose value is known to be better."""
    if one.assignment is None or other.assignment is None:
        return other.assignment is None
    ends = [(r.upper_bound if sign == 1 else r.lower_bound) if r.value is None else r.value for r in (one, other)]
    worst = sign * math.inf
    mine, its = (worst if end is None else end for end in ends)
    return sign * mine < sign * its


def ends_beyond(given: int | float, sign: int, is_integer: bool = True) -> tuple[float | None, float | None]:
    """Return the bounds of an optimum that does not reach a given total: the next total, where costs are integers.

    Args:
        given: Total that is not reached.
        sign: 1 where values are minimised, -1 where they are maximised.
        is_integer: True if costs are integers.
    """
    beyond = given + sign if is_integer else given
    return (beyond, None) if sign == 1 else (None, beyond)


def first_bounds(problem: Problem, seconds: float, given: int | None = None, memory: float = math.inf) -> Result | None:
    """Bound an answer by the best value of each table, and by an assignment that is built from these values.

    Args:
        problem: A problem of the task ``mpe``, ``pr``, ``mmap`` or ``count``.
        seconds: Limit after which it is given up: then the answer is None.
        given: A total that the answer of ``mpe`` has to reach; None: any will do.
        memory: Bytes that copies of tables may take; the assignment is improved on those alone.
    """
    found = _first_bounds(problem, seconds, memory)
    if given is None or found is None:
        return found
    sign = 1 if problem.model.sense == "min-cost" else -1
    bound = found.lower_bound if sign == 1 else found.upper_bound
    if bound is None or sign * bound <= sign * given or meet(given, bound):
        return found
    ends = ends_beyond(given, sign, problem.model.is_integer)
    return Result("infeasible", "mpe", None, *ends, stats=found.stats)


def _first_bounds(problem: Problem, seconds: float, memory: float) -> Result | None:
    if seconds <= 0:
        return None
    model, tables = problem.model, problem.tables.listed
    sign = 1 if model.sense == "min-cost" else -1
    best: float = sign * model.constant
    size = abs(best)
    for ends in tables.ends(model.sense):
        least = math.inf if ends is None else _cost(ends[0] if sign == 1 else ends[1], model.sense)
        best, size = best + least, size + abs(least)
    slack = 0 if model.is_integer or math.isinf(size) else SLACK * size
    chosen = [0] * len(model.variables)
    for v, value in problem.fixed.items():
        chosen[v] = value
    cells = int(min(memory, sys.maxsize)) // _COPY_BYTES
    for v, value in tables.incumbent(model.sense, _DESCENT_CELLS, 0, _MOST_CELLS, _MOST_LISTED_CELLS, cells)[0]:
        chosen[v] = value
    return between(problem, best - slack, chosen)


def _cost(value: float, sense: Sense) -> float:
    if sense == "probability":
        return -math.log(value)
    return value if sense == "min-cost" else -value


def between(problem: Problem, least: float, chosen: Sequence[int]) -> Result:
    """Return the answer that the least cost of all tables and an assignment prove.

    Args:
        problem: A problem of the task ``mpe``, ``pr``, ``mmap`` or ``count``.
        least: Lower bound on the cost of an assignment, negated where totals are maximised.
        chosen: A value for each variable.
    """
    model = problem.model
    # A product of a million factors one by one takes half a minute.
    number = math.prod(size**times for size, times in Counter(model.sizes[v] for v in problem.free).items())
    stats = {**NO_PLAN, "method": "first bounds", "seconds": {}}
    if problem.task == "count":
        if math.isinf(least):
            return Result("exact", "count", 0, stats=stats)
        is_allowed = all(
            table.at(chosen) != forbidden_value(model.sense, table.values.dtype) for table in problem.tables
        )
        return Result("bounded", "count", None, int(is_allowed), number, stats=stats)
    if problem.described.is_optimum:
        if math.isinf(least):
            return Result("infeasible", "mpe", stats=stats)
        total: float = least if model.sense == "min-cost" else 0 - least
        if model.is_integer:
            total = math.ceil(total) if model.sense == "min-cost" else math.floor(total)
        return result_between(model, total, chosen).replace(stats=stats)
    reached = [table.at(chosen) for table in problem.tables]
    upper = math.log(number) - least
    lower = -math.inf if 0 in reached else math.fsum([model.constant, *map(math.log, reached)]) - SLACK * abs(least)
    if problem.task == "pr":
        return sum_between(min(lower, upper) / math.log(10), upper / math.log(10)).replace(stats=stats)
    if lower == -math.inf:
        return Result("bounded", "mmap", None, None, upper, stats=stats)
    asked = (*problem.kept, *problem.wanted)
    assignment = {model.variables[v].name: model.variables[v].state(chosen[v]) for v in asked}
    return Result("bounded", "mmap", None, min(lower, upper), upper, assignment, stats=stats)
