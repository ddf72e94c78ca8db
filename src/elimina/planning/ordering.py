"""Elimination orders of a problem: searched for, found quickly, or given."""

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
"""Seconds of a quick search for an order: on 50 of 60 large files of the UAI competitions, two more seconds save less
than half of the work."""

_ROUGH_SECONDS = 0.5
_ROUGH_VARIABLE_SECONDS = 2e-4
"""Time limit of a quick order in seconds: a constant, and a term for each variable. It is 50 times the usual time,
because an incomplete order is useless and the machine may be busy."""

_VARIABLE_SECONDS = 4e-5
"""Seconds for each variable in which reductions and a greedy run end even on a loaded machine. They are granted beyond
any limit, because an incomplete order is useless."""

_MIN_SEARCH_PER_QUICK_ORDER = 3
"""Least time of a search for an order, relative to that of the quick order: it begins with two orders like that."""

_MIN_PARTIAL_VARIABLES = 50_000
"""Least number of variables for which a quick order for marginals stops once elimination is hopeless: marginals are
then estimated, and the rest of the order would take most of the time."""

_MIN_RELEASED_VARIABLES = 100_000
"""Least number of variables for which the memory of a quick order is returned to the system: 10 ms for a million."""


def rough_order(problem: Problem, options: CheckedOptions) -> Order:
    """Find an order of the free variables quickly, to learn how large the problem is."""
    scopes = _scopes(problem, problem.free)
    sizes = [problem.model.sizes[v] for v in problem.free]
    seconds = max(_ROUGH_SECONDS, _ROUGH_VARIABLE_SECONDS * len(sizes))
    if problem.described.is_marginal and len(sizes) >= _MIN_PARTIAL_VARIABLES:
        result = find_partial_order(sizes, scopes, seed=options.seed)
    else:
        result = find_order(sizes, scopes, method="min-fill", seconds=seconds, iterations=1, seed=options.seed)
    if len(sizes) >= _MIN_RELEASED_VARIABLES:
        # The many small objects of the search's graph would fragment the memory of the plan.
        release_memory()
    return result._replace(order=tuple([problem.free[v] for v in result.order]))


def quick_order(problem: Problem, options: CheckedOptions, seconds: float) -> Order:
    """Search for an order of the free variables for a short time."""
    sizes = [problem.model.sizes[v] for v in problem.free]
    result = find_order(
        sizes,
        _scopes(problem, problem.free),
        seconds=max(seconds, _VARIABLE_SECONDS * len(sizes)),
        seed=options.seed,
        threads=options.host_threads,
        cells_per_second=CELLS_PER_SECOND,
    )
    return result._replace(order=tuple([problem.free[v] for v in result.order]))


def is_settled(order: Order) -> bool:
    """Return whether a search ended because the run is too short for more: a longer time limit would change nothing."""
    return order.method == "auto" and order.seconds >= SEARCH_SHARE / 2 * order.seconds_at(CELLS_PER_SECOND)


def is_rough_enough(problem: Problem, options: CheckedOptions, rough: Order, runs: int = 1) -> bool:
    """Return whether the order is ``auto``, and a search for a better one would take longer than it can save."""
    worth = max(WORTH_A_SEARCH, _MIN_SEARCH_PER_QUICK_ORDER * rough.seconds / SEARCH_SHARE)
    return options.order == "auto" and rough.total_cells < worth * _speed(problem, runs)


def _speed(problem: Problem, runs: int) -> float:
    """Return how many cells of an order are processed a second, in all passes and runs together."""
    return CELLS_PER_SECOND / (BOTH_PASSES if problem.described.is_marginal else 1) / runs


def elimination_order(
    problem: Problem, options: CheckedOptions, rough: Order | None = None, runs: int = 1
) -> tuple[int, ...]:
    """Return an order of the free variables: searched for, or the given one without the variables that are fixed.

    Args:
        problem: Problem whose variables are ordered.
        options: Planning options.
        rough: Order from ``rough_order``, if it is known. It is returned if a search could save little, or finds no
            better one.
        runs: Runs that are expected of the plan.

    Raises:
        InputError: The method is unknown; or the given order lacks a free variable, or names one twice.
    """
    if not isinstance(options.order, str):
        return _complete_order(problem, options.order)
    if problem.described.maximises_query:
        return _order_around(problem, options)
    if rough is not None and is_rough_enough(problem, options, rough, runs):
        return rough.order
    # Kept variables stay neighbours of each other throughout, so their joint table is part of the work.
    variables = (*problem.free, *problem.kept)
    sizes = problem.model.sizes
    method = cast(Method, options.order)  # find_order refuses other words
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
    """Return the order along which soft local consistency shifts costs to later variables.

    Args:
        problem: Problem of the task ``mpe``.
        options: Planning options.
        number: 0: the first one. 1: its reverse. 2: min-fill. From 3 on: a random one.
        first: The first order, if it is known; None: min-fill.
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
    """Return the groups' scopes, and one more if it is given, as positions among some variables."""
    number = np.zeros(len(problem.model.sizes), dtype=np.int64)
    number[np.array(variables, dtype=np.int64)] = np.arange(len(variables))
    starts, members = problem.groups.scopes
    if not more:
        return Scopes(starts, number[members])
    starts = np.append(starts, len(members) + len(more))
    return Scopes(starts, number[np.append(members, np.array(more, dtype=np.int64))])


_KEPT_SIZES = (2, 16, 4096)
"""Numbers of values that the order search assumes for kept variables: larger ones keep them out of more messages."""


def _order_around(problem: Problem, options: CheckedOptions) -> tuple[int, ...]:
    """Return an order of the free variables, found without links between the kept ones: the best one of a few."""
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
    """Return an order with auxiliary variables, each after the last of the given ones that shares a table with it."""
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
    # Valid indices need no further check.
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
