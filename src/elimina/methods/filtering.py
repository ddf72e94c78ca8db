"""Optimisation by elimination, restricted to tuples that can be part of a better solution.

Function filtering (M. Sanchez, J. Larrosa, P. Meseguer, "Improving tree decomposition methods with function filtering",
IJCAI 2005; I. Brito, P. Meseguer, "Improving DPOP with function filtering", AAMAS 2010) drops each tuple of a bucket if
the sum of its cost and a lower bound on the rest of the problem exceeds an upper bound. The bounds are described in
``docs/decisions/0015-filtering.md``.

There are two implementations. The core filters on the CPU. The engine filters with sparse steps on any device: it
shifts costs, finds a first solution by greedy decoding of small mini-buckets and local search, and then runs one sparse
plan that allows only better assignments. Each step drops new tuples by the bounds of ``planning.sparse``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from elimina._core import FORBIDDEN_COST, minimise_costs, stopped
from elimina.backends.protocols import Backend
from elimina.errors import InternalError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.methods.and_or_search import MAX_COST_SUM as MAX_SEARCHED
from elimina.methods.and_or_search import searched_optimum
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.cost_shifting import ShiftedProblem, shift_tables
from elimina.methods.search_state import Listener, SearchLimits
from elimina.methods.soft_consistency import CoreUnits
from elimina.model.model import Model
from elimina.number_texts import bytes_text
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.number_type import cost_bound
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.sparse import make_sparse_plan, outside
from elimina.problem.preparation import Problem, allowed_ranges, prepare
from elimina.problem.semirings import INTEGERS
from elimina.result import Bounds, Result, optimistic_bound
from elimina.running.bounded_results import result_between
from elimina.running.combination import bounds_beyond
from elimina.running.encoding import distances
from elimina.running.execution import Execution
from elimina.running.host import backend_of, limits_of
from elimina.running.planned_problem import PlannedProblem
from elimina.running.sparse_plans import SLICE_REFINEMENT_FACTOR, sparse_plan_in_fine_slices

MAX_FILTERED_COST = 2**38
"""Limit on sums of costs at which the core's integers can also represent thousandths of a cost."""

MAX_FILTERED_CELLS = 2**26
"""Largest number of cells of all tables, with domain sizes rounded up to powers of two as in the core."""

_TUPLE_BYTES = 64
"""Bytes of a new tuple: its key, cost and bound in arrays that grow by doubling, and memory for sorting."""

_MIN_TUPLES = 1 << 12

_COPIES, _TABLE_BYTES, _CELL_BYTES = 10, 380, 8
"""Largest number of copies of the tables in memory (for slices that are open, reduced or divided), and bytes of a table
and of a cell in each copy. On 509_VAC of SPOT5 (8,630 tables of 23 cells), all copies together take 46 MiB."""

_MIN_COPY_BYTES = 1 << 23
"""Bytes that copies of the tables may use even beyond the memory limit."""


def reason_unsupported(problem: Problem) -> str | None:
    """Return the reason why a problem cannot be filtered; None if it can."""
    if not problem.described.is_optimum or not problem.model.is_integer:
        return "filtering needs the task mpe and integer costs"
    if _cells(problem) > MAX_FILTERED_CELLS:
        return f"filtering needs tables of at most {MAX_FILTERED_CELLS} cells together"
    ranges = allowed_ranges(problem.tables, problem.model.sense)
    spread = sum([ends[1] - ends[0] for ends in ranges if ends is not None])
    if spread >= MAX_FILTERED_COST:
        return f"filtering adds costs up to {MAX_FILTERED_COST}, and the tables' ranges add up to {spread}"
    return None


def reason_too_large(problem: Problem, memory: int) -> str | None:
    """Return the reason why filtering's copies of the tables exceed a memory limit in bytes, or None."""
    copies = _COPIES * (_TABLE_BYTES * len(problem.tables) + _CELL_BYTES * _cells(problem))
    if copies <= max(memory, _MIN_COPY_BYTES):
        return None
    return f"filtering needs {bytes_text(copies)} for copies of the tables and may use {bytes_text(memory)}"


def _cells(problem: Problem) -> int:
    """Return the number of cells of all tables, with domain sizes rounded up to powers of two."""
    padded = [1 << (size - 1).bit_length() for size in problem.model.sizes]
    return sum([math.prod([padded[v] for v in table.scope]) for table in problem.tables])


def filtered_optimum(
    problem: Problem, limits: SearchLimits, memory: int, seed: int = 0, listener: Listener | None = None
) -> Result:
    """Find an optimal assignment, or bounds on the optimum if the time ends first.

    Args:
        problem: Problem of the task ``mpe``.
        limits: Limits of time, gap and total.
        memory: Memory limit of tuples, in bytes.
        seed: Random seed of the search for a first solution, and of orders.
        listener: Called repeatedly with the result so far.

    Returns:
        ``optimal``; ``infeasible`` (with a bound beyond ``limits.upper_bound``, if there is one); or ``bounded`` if the
        time ended or the gap is small enough.

    Raises:
        UnsupportedError: Costs are not integers or too large, or there are too many cells.
        MemoryLimitError: Copies of the tables do not fit.
        InternalError: The model gives the assignment another value than the elimination.
    """
    _check(problem, limits, memory)
    started = time.perf_counter()
    model, cost_distances = problem.model, distances(problem, FORBIDDEN_COST)
    units = CoreUnits(model.sign, cost_distances.offset, 1)
    upper = _upper(problem, units, limits.upper_bound)

    chosen: list[int] | None = None
    score: int | float | None = None

    def keep_solution(value: Sequence[int], cost: int) -> None:
        nonlocal chosen, score
        chosen = problem.complete(problem.free, value)
        score = model.score(chosen)
        if score != units.total(cost):
            raise InternalError(
                f"filtering found the cost {units.total(cost)}, its assignment is worth {score!r} on the model; "
                "please report this"
            )

    def result_at(bound: int) -> Result:
        return result_between(model, units.total(bound), chosen, score=score).replace(stats=_statistics({}, {}))

    def poll(lower: int, cost: int, value: list[int] | None) -> bool:
        if value is not None:
            keep_solution(value, cost)
        so_far = result_at(min(lower, upper))  # the search proves nothing about totals beyond those it accepts
        if listener is not None:
            listener(so_far)
        return Bounds(0.0, so_far.lower_bound, so_far.upper_bound).gap > limits.gap

    clock = {"encode": time.perf_counter() - started}
    if upper <= 0 or not cost_distances.possible:
        figures: dict[str, Any] = {"solutions": [], "bound": FORBIDDEN_COST}
    elif not problem.free:
        figures = {"solutions": [(0, [])], "bound": 0}
    else:
        rows = max(_MIN_TUPLES, memory // _TUPLE_BYTES)
        figures = minimise_costs(*problem.network, cost_distances.costs, upper, limits.seconds, rows, seed, poll)
    clock.update(figures.get("seconds", {}))
    if figures.get("interrupted"):
        raise KeyboardInterrupt
    if figures["solutions"]:
        cost, values = figures["solutions"][0]
        keep_solution(values, cost)
        result = result_at(min(figures["bound"], cost))
    elif figures["bound"] < upper:
        result = result_at(figures["bound"])
    else:
        reached = limits.upper_bound
        ends = (None, None) if reached is None else bounds_beyond(reached, model.sign)
        result = Result("infeasible", "mpe", None, *ends)
    return result.replace(stats=_statistics(figures, clock))


class FilteredSolutions(NamedTuple):
    """The best assignments of the free variables.

    Attributes:
        values: Values of the free variables in each assignment.
        bound: Bound on the values of all other assignments, in the model's units.
        is_complete: True if no other assignment is better than the worst of these.
        statistics: Statistics of filtering, as in ``Result.stats``.
    """

    values: list[list[int]]
    bound: int | float
    is_complete: bool
    statistics: dict[str, Any]


def filtered_solutions(
    problem: Problem, k: int, limits: SearchLimits, memory: int, seed: int, start: Sequence[int] | None
) -> FilteredSolutions:
    """Find the best assignments by eliminations; these keep only tuples that may be part of a best assignment.

    Args:
        problem: Problem of the task ``mpe`` with free variables, and with all values of all variables.
        k: Number of assignments.
        limits: Limit of time.
        memory: Memory limit of tuples, in bytes.
        seed: Random seed of the search for a first solution, and of orders.
        start: Value of each variable of the model in a known assignment; None: a search finds one.

    Raises:
        UnsupportedError: Costs are not integers or too large, or there are too many cells.
        MemoryLimitError: Copies of the tables do not fit.
    """
    _check(problem, limits, memory)
    started = time.perf_counter()
    cost_distances = distances(problem, FORBIDDEN_COST)
    units = CoreUnits(problem.model.sign, cost_distances.offset, 1)
    upper = _upper(problem, units, limits.upper_bound)
    clock = {"encode": time.perf_counter() - started}
    if upper <= 0 or not cost_distances.possible:
        return FilteredSolutions([], units.total(max(0, upper)), True, _statistics({}, clock))
    known = [] if start is None else [start[v] for v in problem.free]
    rows = max(_MIN_TUPLES, memory // _TUPLE_BYTES)
    figures = minimise_costs(
        *problem.network,
        cost_distances.costs,
        upper,
        limits.seconds,
        rows,
        seed,
        lambda *_: not stopped(),
        k,
        known,
    )
    solutions, bound = figures["solutions"], figures["bound"]
    clock.update(figures["seconds"])
    last = solutions[-1][0] if len(solutions) == k else upper
    return FilteredSolutions(
        [values for _, values in solutions], units.total(bound), bound >= last, _statistics(figures, clock)
    )


def _check(problem: Problem, limits: SearchLimits, memory: int) -> None:
    """Raise an error if the problem cannot be filtered, or the copies of its tables do not fit."""
    reason = reason_unsupported(problem)
    if reason is not None:
        way = f"use {option('method', 'eliminate')}"
        if limits.upper_bound is not None:
            way = f"use {option('method', 'search')}, or give no upper bound"
        raise UnsupportedError(f"{reason}; {way}")
    large = reason_too_large(problem, memory)
    if large is not None:
        raise MemoryLimitError(f"{large}; give more memory ({option('memory')}), or use {option('method', 'search')}")


def _upper(problem: Problem, units: CoreUnits, total: int | float | None) -> int:
    """Return the least cost (as a distance) to reject, from the model's upper bound, the core's limit and ``total``."""
    limits = [MAX_FILTERED_COST + 1]
    if problem.model.upper_bound is not None:
        limits.append(math.ceil(units.sign * problem.model.upper_bound - units.offset))
    if total is not None:
        limits.append(int(units.sign * int(total) - units.offset) + 1)
    return min(limits)


def _statistics(figures: dict[str, Any], clock: dict[str, float]) -> dict[str, Any]:
    tuples_made, tuples_kept = figures.get("made", 0), figures.get("kept", 0)
    return {
        "method": "filter",
        "induced_width": None,
        "largest_table": figures.get("largest", 0),
        "total_cells": tuples_made,
        "rows_made": tuples_made,
        "rows_filtered": tuples_made - tuples_kept,
        "slices": figures.get("slices", 0),
        "eliminations": figures.get("eliminations", 0),
        "peak_bytes": figures.get("bytes", 0),
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": "cpu",
        "dtype": "int32",
    }


_SHIFT_SECONDS, _ORDER_SECONDS = 1.0, 0.5
"""Seconds after which no further pass of cost shifting begins, and seconds of the order search."""


class FilterBounds(NamedTuple):
    """Bounds and the best assignment before the filtered run.

    Attributes:
        result: Bounds, and the best solution so far.
        upper_bound: Total of a known solution; None: no solution is known.
        original: The problem, and the problem with its costs shifted.
        order: Elimination order.
    """

    result: Result
    upper_bound: int | None
    original: ShiftedProblem
    order: tuple[int, ...]

    @property
    def sign(self) -> int:
        """1 if costs are minimised, otherwise -1."""
        return self.original.problem.model.sign

    @property
    def worst(self) -> int | None:
        """The worst acceptable total; None if every total is acceptable."""
        wanted = [] if self.upper_bound is None else [self.sign * self.upper_bound]
        if self.result.value is not None:
            wanted.append(self.sign * int(self.result.value) - 1)
        return self.sign * min(wanted) if wanted else None

    @property
    def rungs(self) -> list[int | None]:
        """Limits on the total, tried in turn: first the bound, which is often the optimum, then ``worst``."""
        bound = optimistic_bound(self.result, self.sign)
        if bound is None or (self.worst is not None and self.sign * bound >= self.sign * self.worst):
            return [self.worst]
        return [int(bound), self.worst]

    def limited(self, worst: int | None) -> Problem:
        """Return the shifted problem with assignments worse than a total forbidden; unchanged if the total is None."""
        problem = self.original.moved
        if worst is None:
            return problem
        model = problem.model
        sign = model.sign
        beyond = self.original.moved_total(worst) + sign
        bounds = [beyond] if model.upper_bound is None else [beyond, model.upper_bound]
        bound = sign * min(sign * bound for bound in bounds)
        limited = Model(model.variables, model.factors, sense=model.sense, constant=model.constant, upper_bound=bound)
        return prepare(limited, "mpe", problem.fixed)

    def answer(self, limited: Result) -> Result:
        """Return the answer to the problem from the answer to the limited problem."""
        model = self.original.problem.model
        if limited.assignment is not None:
            score = model.score(model.indices_of(limited.assignment))
            return Result("optimal", "mpe", score, score, score, limited.assignment)
        value, limit = self.result.value, self.upper_bound
        if value is not None and (limit is None or self.sign * value <= self.sign * limit):
            return self.result.replace(status="optimal", lower_bound=value, upper_bound=value)
        return Result("infeasible", "mpe", None, *((None, None) if limit is None else bounds_beyond(limit, self.sign)))


def optimum_on_rows(
    problem: Problem, options: CheckedOptions, limits: SearchLimits, listener: Listener | None = None
) -> Result:
    """Find the optimum as ``filtered_optimum`` does, with the engine's sparse steps on any device.

    Args:
        problem: Problem of the task ``mpe``.
        options: Planning options; the device computes the tuples (``auto``: the CPU).
        limits: Limits of time, gap and total.
        listener: Called repeatedly with the result so far.

    Returns:
        ``optimal``; ``infeasible`` (with a bound beyond ``limits.upper_bound``, if there is one); or ``bounded``.

    Raises:
        UnsupportedError: Costs are not integers, or too large.
        DeviceError: The device is missing or cannot be used.
        MemoryLimitError: The tuples exceed the memory.
        TimeLimitError: The deadline passed before the first result.
    """
    if not problem.described.is_optimum or not problem.model.is_integer:
        raise UnsupportedError(f"filtering needs the task mpe and integer costs; use {option('method', 'eliminate')}")
    if options.dtype is not None and options.dtype not in INTEGERS:
        raise UnsupportedError(
            f"filtering adds integers exactly, and dtype is {options.dtype}; leave it out, or use "
            f"{option('method', 'eliminate')}"
        )
    if cost_bound(problem) > MAX_SEARCHED:
        raise UnsupportedError(
            f"filtering adds costs up to {MAX_SEARCHED}, and the tables' ranges add up to more; use "
            f"{option('method', 'eliminate')}"
        )
    backend = backend_of(options)
    started = time.perf_counter()
    bounds = _first_bounds(problem, options, limits._replace(nodes=0, rounds=1), listener)
    clock = {"bounds": time.perf_counter() - started}
    result = bounds.result
    ends = Bounds(0.0, result.lower_bound, result.upper_bound)
    if result.status == "bounded" and ends.gap > limits.gap:
        try:
            improved = _improve(bounds, backend, options, limits.deadline, clock)
        except TimeLimitError:
            return _with_figures(result)
        result = bounds.answer(improved).replace(stats=improved.stats)
    return _with_figures(result)


def _improve(
    bounds: FilterBounds, backend: Backend, options: CheckedOptions, deadline: float | None, clock: dict[str, float]
) -> Result:
    """Search for a better solution; if the tuples exceed the memory, repeat the search in smaller slices."""
    refinements = 0
    while True:
        planned = filtered_plan(bounds, backend, options, refinements)
        try:
            return _raise_limits(bounds, planned, deadline, {**clock, **planned.seconds})
        except MemoryLimitError:
            is_finest = refinements > 0 and not planned.plan.form.variables
            if is_finest or options.slices == "never" or not planned.plan.fits:
                raise
        refinements += 1


def _raise_limits(
    bounds: FilterBounds, planned: PlannedProblem, deadline: float | None, clock: dict[str, float]
) -> Result:
    """Run one plan with weaker and weaker limits on the total until it finds a solution."""
    tuples_made = tuples_filtered = 0
    for worst in bounds.rungs:
        problem = bounds.limited(worst)
        plan = planned.plan._replace(forbidden=cost_bound(problem))
        result = eliminate(Execution(problem, plan, planned.backend, None, deadline), clock)
        tuples_made, tuples_filtered = (
            tuples_made + result.stats.get("rows_made", 0),
            tuples_filtered + result.stats.get("rows_filtered", 0),
        )
        clock = result.stats["seconds"]
        if result.assignment is not None:
            break
    return result.replace(stats={**result.stats, "rows_made": tuples_made, "rows_filtered": tuples_filtered})


def _with_figures(result: Result) -> Result:
    return result.replace(stats={"rows_made": 0, "rows_filtered": 0, **result.stats, "method": "filter"})


def _first_bounds(
    problem: Problem, options: CheckedOptions, limits: SearchLimits, listener: Listener | None
) -> FilterBounds:
    """Shift costs, and decode a first solution from small mini-buckets."""
    on_host = replace(options, device="cpu", ibound=None)
    if options.needs_gpu:
        on_host = replace(on_host, memory=None)
    seconds = min(_SHIFT_SECONDS, limits.seconds / 10)
    original = shift_tables(problem, on_host, seconds)
    order = elimination_order(
        original.moved, replace(on_host, order_seconds=min(options.order_seconds, _ORDER_SECONDS, limits.seconds / 10))
    )
    ordered = replace(on_host, order=order)
    result = searched_optimum(problem, ordered, limits, listener=listener, original=original)
    bound = limits.upper_bound
    return FilterBounds(result, None if bound is None else int(bound), original, order)


def filtered_plan(
    filter_bounds: FilterBounds, backend: Backend, options: CheckedOptions, refinements: int = 0
) -> PlannedProblem:
    """Return a plan that only finds solutions better than the incumbent, on sparse tables if possible.

    Raises:
        InputError: The requested dtype cannot represent the costs.
    """
    started = time.perf_counter()
    problem = filter_bounds.limited(filter_bounds.worst)
    machine, memory = limits_of(backend, options)
    wide = MAX_OPERANDS * cost_bound(problem) > np.iinfo(np.int32).max
    dense = make_plan(
        Elimination(problem, filter_bounds.order, machine, memory, options.dtype or ("int64" if wide else "int32"))
    )
    # Factors are not turned into lists of tuples, because bounds are computed from their cells.
    plan = make_sparse_plan(dense, problem, machine, whole=True, listed=False)
    if plan is not None and refinements:
        # The predicted sizes are too large, because filtering is ignored, but they show how far slices reduce the
        # tables.
        room = plan.peak_bytes // SLICE_REFINEMENT_FACTOR**refinements
        plan = sparse_plan_in_fine_slices(machine, problem, options, plan, room)
    if plan is None or plan.sparse is None:
        return PlannedProblem(problem, dense, backend, {"plan": time.perf_counter() - started})
    bounds = outside(plan, problem.model.sizes)
    factor_bytes = plan.factor_cells * plan.itemsize
    # The number of tuples that pass the bounds is unknown before the run, so the plan reserves no memory for them.
    size = factor_bytes + bounds.arena_cells * plan.itemsize
    sparse = plan.sparse._replace(outside=bounds)
    # The bounds depend on all tables of a slice, so every step drops different tuples in each slice and has to run
    # again.
    form = plan.form.with_levels([len(plan.form.variables)] * len(plan.steps))
    plan = plan._replace(sparse=sparse, form=form, bytes=machine.tiers(size, factor_bytes, plan.planning_bytes))
    return PlannedProblem(problem, plan, backend, {"plan": time.perf_counter() - started})
