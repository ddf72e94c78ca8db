"""Bounds on the number of allowed assignments, as a sum of products of zeros and ones."""

from __future__ import annotations

import math
import time
from decimal import MAX_EMAX, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

import numpy as np

from elimina.methods.bound_optimisation import SumBounds, improve_bounds
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Sense, Table, forbidden_value
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result
from elimina.running.host import host_memory

_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Rates at which an assignment's term decays with its cost. Both extremes loosen the bound: with a small rate,
assignments worse than the total contribute much to it; with a large rate, each of the best assignments counts far more
than once."""

_LEAST_EXPONENT = -600.0
"""Least exponent of a table's values, which keeps them normal floats."""

_ROUNDING = 1e-12
"""Upper bound on rounding errors: on the relative error of a product with a rate and of a bound, and on the error that
each table's exponentials add to a logarithm."""

_DIGITS = 15
"""Number of significant digits of a bound: more than its logarithm determines."""

_EXP_DIGITS = 40
"""Number of digits of the exponential: sufficient to make its rounding irrelevant."""


def count_result(bounds: SumBounds) -> Result:
    """Return the count if bounds on its logarithm determine one integer, otherwise bounds on the count."""
    lower, upper = integers_between(bounds.lower, bounds.upper)
    if lower == upper:
        return Result("exact", "count", lower, lower, lower, stats=bounds.tree.statistics)
    return Result("bounded", "count", None, lower, upper, stats=bounds.tree.statistics)


def optima_at_most(problem: Problem, total: float, options: CheckedOptions, seconds: float) -> int:
    """Return an upper bound on the number of assignments that are no worse than a total.

    For every rate, each such assignment contributes at least 1 to the sum over all assignments of exp(rate x (total -
    cost)).

    Args:
        problem: Problem of the task ``mpe`` with integer costs.
        total: Total in the model's units.
        options: Options with the memory limit, the seed of orders, and a requested order.
        seconds: Time limit in seconds.
    """
    sizes = [size for v, size in enumerate(problem.model.sizes) if v not in problem.fixed]
    best = math.fsum(map(math.log, sizes))
    started = time.monotonic()
    for number, rate in enumerate(_RATES, 1):
        deadline = started + seconds * number / len(_RATES)
        tilted, constant = _tilted(problem, total, rate)
        for bounds in improve_bounds(tilted, options, host_memory(options), deadline):
            best = min(best, bounds.upper + constant)
            if time.monotonic() >= deadline:
                break
    return min(math.prod(sizes), integers_between(-math.inf, best + _ROUNDING * abs(best))[1])


def _tilted(problem: Problem, total: float, rate: float) -> tuple[Problem, float]:
    """Return a problem whose sum of products is the sum described in ``optima_at_most``, divided by a constant.

    Its tables are exponentials of the distances from each table's best cost. The second result is the logarithm of the
    constant.
    """
    model = problem.model
    sign = model.sign
    costs = [sign * table.dense().astype(np.int64) for table in problem.tables]
    # A table without allowed tuples makes the count 0, regardless of its least cost.
    least = [int(cells[cells < FORBIDDEN].min(initial=FORBIDDEN)) for cells in costs]
    surplus = sign * (int(total) - int(model.constant)) - sum(least)
    tables = []
    for table, cells, best in zip(problem.tables, costs, least, strict=True):
        is_allowed = cells < FORBIDDEN
        distances = np.where(is_allowed, np.where(is_allowed, cells, best) - best, math.inf)
        # In an assignment that is no worse than the total, no table's distance from its best cost exceeds the surplus.
        # Exponents are raised to ``_LEAST_EXPONENT``, because terms that underflow to 0 would make the bound too low.
        exponents = np.where(distances > float(surplus), -math.inf, np.maximum(-rate * distances, _LEAST_EXPONENT))
        tables.append(Table(table.scope, np.exp(exponents)))
    tilted = prepare(Model(model.variables, tables, sense="probability"), "pr", problem.fixed)
    return tilted, rate * surplus + _ROUNDING * (abs(rate * surplus) + len(tables))


def sum_of(problem: Problem) -> Problem:
    """Return a count as a sum over tables with 1 for allowed tuples and 0 for others."""
    model = problem.model
    tables = [_support(table, model.sense) for table in problem.tables]
    return prepare(Model(model.variables, tables, sense="probability"), "pr", problem.fixed)


def _support(table: Table, sense: Sense) -> Table:
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
    """Return a bound on an integer from a bound on its logarithm, with at most 15 significant digits."""
    outwards = Context(prec=_EXP_DIGITS, rounding=rounding, Emax=MAX_EMAX)
    number = outwards.exp(Decimal(logarithm))
    # ``exp`` rounds to the nearest number, so only the next number outwards is a bound.
    number = outwards.next_minus(number) if rounding == ROUND_FLOOR else outwards.next_plus(number)
    if number.adjusted() < _DIGITS:
        return int(number.to_integral_value(ROUND_CEILING if rounding == ROUND_FLOOR else ROUND_FLOOR))
    return int(Context(prec=_DIGITS, rounding=rounding, Emax=MAX_EMAX).plus(number))
