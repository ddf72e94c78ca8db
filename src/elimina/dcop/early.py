"""Answers of runs that were ended early: bounds, and an assignment that each variable chooses given its neighbours."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from elimina.dcop.agent import Finished
from elimina.dcop.problem import Problem
from elimina.inference.minibucket import result_between
from elimina.inference.scales import epsilon
from elimina.model import Model
from elimina.planning.prepare import allowed_ranges
from elimina.result import Result

SECONDS = 0.1
"""Time for the assignment, after the run was ended."""

_LARGEST_TABLE = 1 << 22
"""Cells of a table beyond which there is no search for an assignment."""

_MORE = 8
"""Roundings of a sum besides its additions."""


def early_answer(problem: Problem, agents: Iterable[Finished] = ()) -> Result:
    """Return bounds on the optimum before the agents have finished.

    The bound is that of the pseudo-trees' roots where all of them know one, else the sum of what each cost function is
    at best. The assignment is the agents' own where it is complete, or a local optimum, whichever is better.

    Args:
        problem: Problem of the agents.
        agents: The agents as they were when the run ended; none of a run that did not begin.
    """
    model, agents = problem.model, list(agents)
    bound = _bound_of_roots(model, agents)
    if bound is None:
        bound = _bound_of_functions(model)
    if bound is None:
        return Result("infeasible", "dcop")
    values = {v: value for agent in agents for v, value in agent.values.items()}
    found = [[values.get(v) for v in range(len(model.variables))], local_optimum(model, SECONDS)]
    known = [[x for x in chosen if x is not None] for chosen in found if chosen is not None and None not in chosen]
    results = [result_between(model, bound, chosen) for chosen in known] or [result_between(model, bound, None)]
    sign = 1 if model.sense == "min-cost" else -1
    best = min(results, key=lambda result: math.inf if result.value is None else sign * result.value)
    return best.replace(task="dcop")


def _bound_of_roots(model: Model, agents: Sequence[Finished]) -> int | float | None:
    """Return the total of the roots' values; None before all roots have values."""
    places = {v: place for agent in agents for v, place in agent.places.items()}
    roots = {v: bound for agent in agents for v, bound in agent.bounds.items()}
    if len(places) < len(model.variables) or not all(place.is_done for place in places.values()):
        return None
    if any(place.parent < 0 and v not in roots for v, place in places.items()) or any(map(math.isinf, roots.values())):
        return None
    sign = 1 if model.sense == "min-cost" else -1
    constants = Model([], [table for table in model.factors if not table.scope], sense=model.sense).terms([])
    return bound_of(model, [model.constant, *constants, *(sign * bound for bound in roots.values())])


def _bound_of_functions(model: Model) -> int | float | None:
    """Return the sum of the best costs of the functions; None if one of them allows nothing."""
    ranges = allowed_ranges(model.factors, model.sense)
    if None in ranges:
        return None
    side = 0 if model.sense == "min-cost" else 1
    return bound_of(model, [model.constant, *(known[side] for known in ranges if known is not None)])


def bound_of(model: Model, terms: Iterable[int | float]) -> int | float:
    """Return a bound that is the sum of the agents' bounds, less the possible rounding of floats."""
    if model.is_integer:
        return sum(terms)
    slack = rounding_of(model)
    return math.fsum(terms) - (slack if model.sense == "min-cost" else -slack)


def rounding_of(model: Model) -> float:
    """Return how far from its true value an optimum of float costs may be.

    Agents add distances from the least cost of each function, so that an addition is off by a part in 2^53 of the
    largest costs; no cell takes part in more additions than there are functions and variables.
    """
    additions = len(model.factors) + len(model.variables) + _MORE
    ranges = allowed_ranges(model.factors, model.sense)
    largest = math.fsum(max(map(abs, known)) for known in ranges if known is not None)
    return additions * epsilon("float64") * (largest + abs(model.constant))


def local_optimum(model: Model, seconds: float) -> list[int] | None:
    """Return an assignment in which no variable has a better value, or as good a one as the time allows.

    Args:
        model: The variables and their cost functions.
        seconds: Time for it; None is returned if not every variable has a value by then.
    """
    ends = time.monotonic() + seconds
    if any(table.cells > _LARGEST_TABLE for table in model.factors):
        return None
    sign = 1 if model.sense == "min-cost" else -1
    touching: list[list[tuple[tuple[int, ...], Any]]] = [[] for _ in model.variables]
    for table in model.factors:
        if time.monotonic() > ends:
            return None
        # Floats are enough to compare with: the assignment's value is computed again.
        cells = sign * np.clip(table.dense().astype(np.float64), -1e18, 1e18)
        for v in table.scope:
            touching[v].append((table.scope, cells))
    chosen: dict[int, int] = {}
    for is_first in (True, False, False):
        for v in sorted(range(len(model.variables)), key=lambda v: -len(touching[v])):
            if time.monotonic() > ends:
                return [chosen[u] for u in range(len(chosen))] if len(chosen) == len(model.variables) else None
            costs = np.zeros(model.variables[v].size)
            for scope, cells in touching[v]:
                part = cells[tuple(slice(None) if u == v else chosen.get(u, slice(None)) for u in scope)]
                if part.ndim > 1:
                    axis = sum(u not in chosen for u in scope[: scope.index(v)])
                    part = part.min(axis=tuple(a for a in range(part.ndim) if a != axis))
                costs += part
            best = int(costs.argmin())
            if is_first or costs[best] < costs[chosen[v]]:
                chosen[v] = best
    return [chosen[v] for v in range(len(model.variables))]
