"""Bounds on the number of allowed assignments, as a sum of products of zeros and ones."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from elimina.methods.bound_optimisation import improve_bounds
from elimina.methods.search_state import Listener
from elimina.model.model import Model
from elimina.model.table import Table, forbidden_value
from elimina.planning.options import Options
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result
from elimina.running.host import host_memory

_DIGITS = 15
"""Significant digits of a bound: more than its logarithm has."""

_EXP_DIGITS = 40
"""Digits of the exponential, so many more that its own rounding does not matter."""


def bounded_count(problem: Problem, options: Options, deadline: float, learn: Listener) -> Result:
    """Bound the number of allowed assignments.

    Args:
        problem: Problem of the task ``count``.
        options: Options with the memory that may be used, the seed of orders, and an order that is asked for.
        deadline: Deadline by ``time.monotonic``.
        learn: Called with each improvement.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    result = Result("unknown", "count")
    for bounds in improve_bounds(sum_of(problem), options, host_memory(options), deadline):
        lower, upper = integers_between(bounds.lower, bounds.upper)
        if lower == upper:
            result = Result("exact", "count", lower, lower, lower, stats=bounds.tree.statistics)
        else:
            result = Result("bounded", "count", None, lower, upper, stats=bounds.tree.statistics)
        learn(result)
    return result


def sum_of(problem: Problem) -> Problem:
    """Return a count as a sum: each table is 1 where it allows a tuple, else 0."""
    model = problem.model
    tables = [_support(table, model.sense) for table in problem.tables]
    return prepare(Model(model.variables, tables, sense="probability"), "pr", problem.fixed)


def _support(table: Table, sense: str) -> Table:
    forbidden = forbidden_value(sense, table.values.dtype)
    values = (table.values != forbidden).astype(float)
    if table.rows is None:
        return Table(table.scope, values)
    return Table(table.scope, values, sizes=table.sizes, rows=table.rows, default=float(table.default != forbidden))


def integers_between(lower: float, upper: float) -> tuple[int, int]:
    """Return bounds on an integer, rounded outwards, from bounds on its natural logarithm.

    Examples:
        >>> integers_between(math.log(2.5), math.log(7.5))
        (3, 7)
    """
    return (
        0 if lower == -math.inf else _integer(lower, ROUND_FLOOR),
        0 if upper == -math.inf else _integer(upper, ROUND_CEILING),
    )


def _integer(logarithm: float, rounding: str) -> int:
    """Return the integer that a bound on its logarithm leaves; of a large one, the first digits."""
    outwards = Context(prec=_EXP_DIGITS, rounding=rounding, Emax=MAX_EMAX)
    number = outwards.exp(Decimal(logarithm))
    # An exponential is correctly rounded to the nearest: one unit more makes it a bound.
    number = outwards.next_minus(number) if rounding == ROUND_FLOOR else outwards.next_plus(number)
    if number.adjusted() < _DIGITS:
        return int(number.to_integral_value(ROUND_CEILING if rounding == ROUND_FLOOR else ROUND_FLOOR))
    return int(Context(prec=_DIGITS, rounding=rounding, Emax=MAX_EMAX).plus(number))
