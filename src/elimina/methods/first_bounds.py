"""First bounds on an optimum in very little time, from the best value of each table and a greedy assignment."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.model.table import Ends, forbidden_value
from elimina.planning.machine import BOUNDED_TABLE_SECONDS
from elimina.problem.evidence import indices_asked, known_total, with_evidence
from elimina.problem.preparation import Problem, check_sense
from elimina.problem.semirings import SEMIRINGS
from elimina.problem.table_groups import TableGroups
from elimina.problem.tasks import Task, described
from elimina.result import Result, in_terms_of
from elimina.running.bounded_results import bounds_meet, result_between, sum_between
from elimina.running.combination import NO_PLAN, bounds_beyond

_MAX_CELLS = 1 << 20
"""Largest number of cells of a table that is used to improve the first assignment."""

_MAX_LISTED_CELLS = 1 << 16
"""The same limit for tables stored as lists of tuples. It is smaller than ``_MAX_CELLS``, because all cells of these
tables have to be written out."""

_COPY_BYTES = 8
"""Bytes of a copied cell."""

_MAX_DESCENT_CELLS = 30_000_000
"""Largest number of cells visited by the local search for the first assignment: about 0.1 s."""

ROUNDING_SLACK = 1e-12
"""Largest rounding error of a sum of floats, relative to the sum of their absolute values."""


def first_bounds(
    problem: Problem, seconds: float, total: float | None = None, memory: float = math.inf
) -> Result | None:
    """Bound an answer by the best value of each table, and by an assignment that is built from these values.

    The result is None for a ``bottleneck`` without tables.

    Args:
        problem: A problem of the task ``mpe``, ``pr``, ``mmap``, ``count`` or ``bottleneck``.
        seconds: Time limit for the assignment. If building it would take longer, each variable gets its first state.
        total: Worst acceptable total of the task ``mpe``; if a bound excludes it, the result is ``infeasible``. None:
            every total is acceptable.
        memory: Memory limit of copies of tables, in bytes; only copied tables are used to improve the assignment.
    """
    result = _first_bounds(problem, seconds, memory)
    if total is None or result is None:
        return result
    sign = 1 if problem.model.sense == "min-cost" else -1
    bound = result.lower_bound if sign == 1 else result.upper_bound
    if bound is None or sign * bound <= sign * total or bounds_meet(total, bound):
        return result
    ends = bounds_beyond(total, sign, problem.model.is_integer)
    return Result("infeasible", "mpe", None, *ends, stats=result.stats)


def bounds_before_preparation(
    model: Model,
    task: Task,
    evidence: Evidence,
    query: Sequence[str | int] | None = None,
    upper_bound: float | None = None,
) -> Result | None:
    """Bound an answer by the best value of each table of the unprepared model; return None if there are no bounds.

    This answers a call whose time ends before the model is prepared.

    Tables are not restricted to the evidence, which would take longer; their best values are valid bounds nevertheless.

    Args:
        model: Any model.
        task: A task that has first bounds.
        evidence: See ``elimina.solve``.
        query: See ``elimina.solve``.
        upper_bound: Cost of a known solution, as in ``elimina.Options``.

    Raises:
        InputError: The question does not fit the model.
    """
    asked = indices_asked(model, task, query) or ()
    observed = with_evidence(model, task, evidence)
    check_sense(observed.model, task)
    fixed = observed.values
    problem = Problem(
        observed.model,
        described(task).problem or task,
        fixed,
        tuple(v for v in range(len(observed.model.variables)) if v not in fixed and v not in asked),
        tuple(v for v in asked if v not in fixed),
        observed.model.tables,
        TableGroups.of(()),
        (),
        tuple(v for v in asked if v in fixed),
    )
    result = first_bounds(problem, 0, known_total(model, upper_bound))
    return None if result is None else in_terms_of(bounds_of_task(task, result), model)


def bounds_of_task(task: Task, result: Result) -> Result:
    """Turn bounds on an optimum into a result of ``task``; return a result of ``task`` itself unchanged."""
    if result.task == task:
        return result
    if result.status == "infeasible" and described(task).counts_optima:
        return result.replace(task=task, count=0)
    # A proven optimum is not the complete answer of another task about optima.
    return result.replace(task=task, status="bounded" if result.status == "optimal" else result.status)


def _first_bounds(problem: Problem, seconds: float, memory: float) -> Result | None:
    model, tables = problem.model, problem.tables.listed
    sign = 1 if model.sense == "min-cost" else -1
    ends = Ends.of(tables, model.sense)
    best: float = math.inf
    slack: float = 0  # an integer, because a float would round totals beyond 2^53
    if ends.are_allowed and not SEMIRINGS[problem.described.semiring].is_additive:
        worst = [sign * value for value in ends.numbers(highest=sign == -1)]
        if not worst:
            return None
        best = max(worst)
    elif ends.are_allowed and model.is_integer:
        best = sign * (int(model.constant) + ends.total(highest=sign == -1))
    elif ends.are_allowed:
        values = np.array(ends.numbers(highest=sign == -1), dtype=np.float64)
        costs = -np.log(values) if model.sense == "probability" else sign * values
        best = math.fsum([sign * model.constant, *costs.tolist()])
        slack = ROUNDING_SLACK * (abs(model.constant) + float(np.abs(costs).sum()))
    chosen = [0] * len(model.variables)
    for v, value in problem.fixed.items():
        chosen[v] = value
    if BOUNDED_TABLE_SECONDS * len(problem.tables) < seconds:
        cells = int(min(memory, sys.maxsize)) // _COPY_BYTES
        incumbent = tables.incumbent(model.sense, _MAX_DESCENT_CELLS, 0, _MAX_CELLS, _MAX_LISTED_CELLS, cells)
        for v, value in incumbent.values:
            chosen[v] = value
    return result_of_assignment(problem, best - slack, chosen)


def _number_of_assignments(problem: Problem) -> int:
    """Return the number of assignments of the free variables."""
    # Powers of equal sizes are computed first, because a product of a million factors would take half a minute.
    return math.prod(size**times for size, times in Counter(map(problem.model.sizes.__getitem__, problem.free)).items())


def result_of_assignment(problem: Problem, least: float, chosen: Sequence[int]) -> Result:
    """Return the answer that follows from a lower bound on all costs, and from an assignment.

    Args:
        problem: A problem of the task ``mpe``, ``pr``, ``mmap``, ``count`` or ``bottleneck``.
        least: Lower bound on the cost of an assignment (``bottleneck``: on its worst cost); costs are negated totals if
            totals are maximised.
        chosen: A value for each variable.
    """
    model = problem.model
    stats = {**NO_PLAN, "method": "first bounds", "seconds": {}}
    if problem.described.is_count:
        if math.isinf(least):
            return Result("exact", "count", 0, stats=stats)
        forbidden = {forbidden_value(model.sense, dtype) for dtype in (np.int64, np.float64)}
        is_allowed = forbidden.isdisjoint(problem.tables.listed.values(chosen))
        return Result("bounded", "count", None, int(is_allowed), _number_of_assignments(problem), stats=stats)
    ring = SEMIRINGS[problem.described.semiring]
    if not ring.is_additive:
        if math.isinf(least):
            return Result("infeasible", "bottleneck", stats=stats)
        sign = model.sign
        terms = problem.model.terms(chosen, ring.is_logarithmic)
        score = 0 + sign * ring.total([sign * term for term in terms])
        return result_between(model, 0 + sign * least, chosen, 0.0, score).replace(task="bottleneck", stats=stats)
    if problem.described.is_optimum:
        if math.isinf(least):
            return Result("infeasible", "mpe", stats=stats)
        total: float = least if model.sense == "min-cost" else 0 - least
        if model.is_integer:
            total = math.ceil(total) if model.sense == "min-cost" else math.floor(total)
        return result_between(model, total, chosen, score=problem.model.score(chosen)).replace(stats=stats)
    reached = problem.tables.listed.values(chosen)
    upper = math.log(_number_of_assignments(problem)) - least
    lower = (
        -math.inf
        if 0 in reached
        else math.fsum([model.constant, *map(math.log, reached)]) - ROUNDING_SLACK * abs(least)
    )
    if problem.described.is_partition:
        return sum_between(min(lower, upper) / math.log(10), upper / math.log(10)).replace(stats=stats)
    if upper == -math.inf:
        return Result("infeasible", "mmap", stats=stats)
    if lower == -math.inf:
        return Result("bounded", "mmap", None, None, upper, stats=stats)
    asked = (*problem.kept, *problem.wanted)
    assignment = {model.variables[v].name: model.variables[v].state(chosen[v]) for v in asked}
    return Result("bounded", "mmap", None, min(lower, upper), upper, assignment, stats=stats)
