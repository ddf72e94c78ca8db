"""Elimination orders of a problem: from a search, from a quick heuristic, or from the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from elimina._core import SEARCH_SHARE, WORTH_A_SEARCH
from elimina.errors import InputError
from elimina.model.auxiliary_variables import is_auxiliary
from elimina.model.table import Scopes
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import BOTH_PASSES, cpu_machine
from elimina.planning.options import replace
from elimina.planning.order import CELLS_PER_SECOND, Method, Order, find_order, find_partial_order
from elimina.planning.planner import Elimination, make_plan
from elimina.problem.preparation import Problem
from elimina.system import release_memory

QUICK_SECONDS = 0.35
"""Seconds of a quick order search: on 50 of 60 large files of the UAI competitions, two more seconds save less than
half of the work."""

_ROUGH_SECONDS = 0.5
_ROUGH_VARIABLE_SECONDS = 2e-4
"""Time limit of a quick order, in seconds: a constant, and a term per variable. It is 50 times the usual time, because
an incomplete order is useless and the machine may be busy."""

_VARIABLE_SECONDS = 4e-5
"""Seconds per variable that suffice for reductions and a greedy run even on a busy machine. They are granted beyond any
limit, because an incomplete order is useless."""

_MIN_SEARCH_PER_QUICK_ORDER = 3
"""Least time of an order search, relative to that of the quick order: the search begins with two runs like it."""

_MIN_PARTIAL_VARIABLES = 50_000
"""Least number of variables for which a quick order for sums stops at a hopeless elimination: the sums are then
estimated, and completing the order would take most of the time."""

_MIN_RELEASED_VARIABLES = 100_000
"""Least number of variables for which a quick order's memory is returned to the system (10 ms for a million)."""


def rough_order(problem: Problem, options: CheckedOptions) -> Order:
    """Find a quick order of the free variables, which shows how large the problem is."""
    scopes = _scopes(problem, problem.free)
    sizes = problem.free_sizes.tolist()
    seconds = max(_ROUGH_SECONDS, _ROUGH_VARIABLE_SECONDS * len(sizes))
    if _may_be_partial(problem):
        result = find_partial_order(sizes, scopes, seed=options.seed)
    else:
        result = find_order(sizes, scopes, method="min-fill", seconds=seconds, iterations=1, seed=options.seed)
    if len(sizes) >= _MIN_RELEASED_VARIABLES:
        # The search's many small objects would otherwise fragment the memory of the plan.
        release_memory()
    return _over_free(problem, result)


def _may_be_partial(problem: Problem) -> bool:
    """Return whether a quick order may stop at a hopeless elimination.

    Sums of tables with zeros need a complete order, because their elimination may fit on sparse tables.
    """
    described = problem.described
    if len(problem.free) < _MIN_PARTIAL_VARIABLES or not described.sums_all:
        return False
    return described.is_marginal or not len(problem.tables.listed.forbidding(problem.model.sense))


def _over_free(problem: Problem, order: Order) -> Order:
    """Return an order of positions among the free variables as an order of these variables."""
    if len(problem.free) == len(problem.model.sizes):
        return order
    return order._replace(order=tuple([problem.free[v] for v in order.order]))


def quick_order(problem: Problem, options: CheckedOptions, seconds: float) -> Order:
    """Search briefly for an order of the free variables."""
    sizes = problem.free_sizes.tolist()
    result = find_order(
        sizes,
        _scopes(problem, problem.free),
        seconds=max(seconds, _VARIABLE_SECONDS * len(sizes)),
        seed=options.seed,
        threads=options.host_threads,
        cells_per_second=CELLS_PER_SECOND,
    )
    return _over_free(problem, result)


def is_settled(order: Order) -> bool:
    """Return whether a search ended before its time limit because running the order takes little time."""
    return order.method == "auto" and order.seconds >= SEARCH_SHARE / 2 * order.seconds_at(CELLS_PER_SECOND)


def is_rough_enough(problem: Problem, options: CheckedOptions, rough: Order, runs: int = 1) -> bool:
    """Return whether the order is ``auto``, and a search for a better one would take longer than it can save."""
    worth = max(WORTH_A_SEARCH, _MIN_SEARCH_PER_QUICK_ORDER * rough.seconds / SEARCH_SHARE)
    return options.order == "auto" and rough.total_cells < worth * _speed(problem, runs)


def _speed(problem: Problem, runs: int) -> float:
    """Return the cells of an order per second; the time for a cell includes all passes and runs."""
    return CELLS_PER_SECOND / (BOTH_PASSES if problem.described.is_marginal else 1) / runs


def elimination_order(
    problem: Problem, options: CheckedOptions, rough: Order | None = None, runs: int = 1
) -> tuple[int, ...]:
    """Return an order of the free variables: from a search, or the given one without fixed variables.

    Args:
        problem: Problem with the variables.
        options: Planning options.
        rough: Order from ``rough_order``; None: not computed. It is returned if a search could save little, or does not
            improve it.
        runs: Expected number of runs of the plan.

    Raises:
        InputError: The method is unknown; or the given order lacks a free variable, or contains one twice.
    """
    if not isinstance(options.order, str):
        return _complete_order(problem, options.order)
    if problem.described.maximises_query:
        return _order_around(problem, options)
    if rough is not None and is_rough_enough(problem, options, rough, runs):
        return rough.order
    # Kept variables are always neighbours of each other, so their joint table is part of the work.
    variables = (*problem.free, *problem.kept)
    sizes = problem.model.sizes
    method = cast(Method, options.order)  # find_order rejects other words
    result = find_order(
        [sizes[v] for v in variables],
        _scopes(problem, variables, problem.kept),
        method=method,
        seconds=max(options.order_seconds, _VARIABLE_SECONDS * len(variables)),
        seed=options.seed,
        threads=options.host_threads,
        cells_per_second=_speed(problem, runs),
    )
    if rough is not None and rough.is_complete and not problem.kept and rough.total_cells <= result.total_cells:
        return rough.order
    return tuple([variables[i] for i in result.order if i < len(problem.free)])


def consistency_order(
    problem: Problem, options: CheckedOptions, number: int, first: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return the order in which soft local consistency shifts costs to later variables.

    Args:
        problem: Problem of the task ``mpe``.
        options: Planning options.
        number: 0: the first order; 1: its reverse; 2: min-fill; from 3 on: random orders.
        first: The first order; None: min-fill.
    """
    if not isinstance(options.order, str):
        return _complete_order(problem, options.order)
    if number > 2:
        import random

        return tuple(random.Random(options.seed + number).sample(problem.free, len(problem.free)))
    previous = first if number < 2 else None
    order = previous or elimination_order(problem, replace(options, order="min-fill", order_seconds=0.0))
    return tuple(reversed(order) if number == 1 else order)


def _scopes(problem: Problem, variables: Sequence[int], more: Sequence[int] = ()) -> Scopes:
    """Return the scopes of groups, and ``more`` as another scope unless it is empty, as positions in ``variables``."""
    number = np.zeros(len(problem.model.sizes), dtype=np.int64)
    number[np.array(variables, dtype=np.int64)] = np.arange(len(variables))
    starts, members = problem.groups.scopes
    if not more:
        return Scopes(starts, number[members])
    starts = np.append(starts, len(members) + len(more))
    return Scopes(starts, number[np.append(members, np.array(more, dtype=np.int64))])


_KEPT_SIZES = (2, 16, 4096)
"""Domain sizes that the order search assumes for kept variables: with larger ones, fewer messages contain them."""


def _order_around(problem: Problem, options: CheckedOptions) -> tuple[int, ...]:
    """Return the best of a few orders of the free variables that are found without edges between kept variables."""
    number = {v: i for i, v in enumerate((*problem.free, *problem.kept))}
    scopes = [[number[v] for v in group.scope] for group in problem.groups]
    sizes = [problem.model.sizes[v] for v in problem.free]
    machine = cpu_machine(1)
    orders = []
    for size in _KEPT_SIZES:
        order = find_order(
            [*sizes, *(max(size, problem.model.sizes[v]) for v in problem.kept)],
            scopes,
            method=cast(Method, options.order),
            seconds=options.order_seconds / len(_KEPT_SIZES),
            seed=options.seed,
            threads=options.host_threads,
        ).order
        orders.append(tuple(problem.free[i] for i in order if i < len(problem.free)))
    return min(orders, key=lambda order: make_plan(Elimination(problem, order, machine, 0)).seconds)


def _with_auxiliary(problem: Problem, order: Sequence[int], missing: Sequence[int]) -> list[int]:
    """Insert auxiliary variables into an order, each after the last variable that shares a table with it."""
    position = {v: number for number, v in enumerate(order)}
    after = dict.fromkeys(missing, -1)
    for table in problem.tables:
        last = max((position[v] for v in table.scope if v in position), default=-1)
        for v in after.keys() & set(table.scope):
            after[v] = max(after[v], last)
    return sorted([*order, *missing], key=lambda v: (after.get(v, position.get(v, -1)), v in after))


def _complete_order(problem: Problem, order: Sequence[int | str]) -> tuple[int, ...]:
    model = problem.model
    count = len(model.variables)
    variables = cast(list[int], list(order))
    # An order of valid indices needs no lookup of names.
    if set(map(type, variables)) != {int} or min(variables) < 0 or max(variables) >= count:
        variables = [model.index(name) for name in order]
    seen = set(variables)
    if len(seen) < len(variables):
        twice = next(v for position, v in enumerate(variables) if v in variables[:position])
        raise InputError(f"the order names variable {model.variables[twice].name!r} twice")
    free = set(problem.free)
    if not free <= seen:
        missing = [v for v in problem.free if v not in seen]
        if all(is_auxiliary(model.variables[v].name) for v in missing):
            return _complete_order(problem, _with_auxiliary(problem, variables, missing))
        raise InputError(
            f"the order lacks {len(missing)} of the {len(problem.free)} variables to eliminate, "
            f"{model.variables[missing[0]].name!r} among them"
        )
    return tuple(variables) if len(variables) == len(free) else tuple([v for v in variables if v in free])
