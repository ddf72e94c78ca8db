"""Filtered elimination by the engine's steps on rows, on any device: the plan's own version of ``inference.filtering``.

Costs are shifted, a first solution is found by greedy decoding of small mini-buckets and local search, and then one
plan on rows looks for a better one: whatever costs as much is forbidden, and rows are dropped as they are made by the
bounds of ``planning.sparse``.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from elimina.backends import Backend
from elimina.errors import MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.inference.bucket import eliminate
from elimina.inference.choose import FINER, Planned, asked_backend, limits_of, rows_in_fine_slices
from elimina.inference.execution import Execution
from elimina.inference.filtering import Listener
from elimina.inference.knowledge import Limits
from elimina.inference.known import ends_beyond
from elimina.inference.options import Options
from elimina.inference.ordering import elimination_order
from elimina.inference.search import MOST_COST, searched_optimum
from elimina.inference.shifting import Original, shift_tables
from elimina.model import Model
from elimina.planning.planner import cost_bound, make_plan
from elimina.planning.prepare import Problem, prepare
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.sparse import in_rows, outside
from elimina.result import Bounds, Result
from elimina.semiring import INTEGERS

_SHIFT_SECONDS, _ORDER_SECONDS = 1.0, 0.5
"""Limit after which no further pass begins, and the order search ends."""


class Known(NamedTuple):
    """Knowledge before tuples are made.

    Attributes:
        result: Bounds, and the best solution so far.
        upper_bound: A total that is known to be reached; None if none is.
        original: The problem, and the one with its costs shifted.
        order: Elimination order.
    """

    result: Result
    upper_bound: int | None
    original: Original
    order: tuple[int, ...]

    @property
    def sign(self) -> int:
        """1 where costs are minimised, else -1."""
        return self.original.problem.model.sign

    @property
    def worst(self) -> int | None:
        """The worst total that is worth looking for; None if every one is."""
        wanted = [] if self.upper_bound is None else [self.sign * self.upper_bound]
        if self.result.value is not None:
            wanted.append(self.sign * int(self.result.value) - 1)
        return self.sign * min(wanted) if wanted else None

    @property
    def rungs(self) -> list[int | None]:
        """Limits on the total: first the lower bound, often the optimum, which leaves few tuples; then any better."""
        bound = self.result.bound(self.sign)
        if bound is None or (self.worst is not None and self.sign * bound >= self.sign * self.worst):
            return [self.worst]
        return [int(bound), self.worst]

    def limited(self, worst: int | None) -> Problem:
        """Return the shifted problem, in which assignments worse than a total are forbidden."""
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

    def answer(self, found: Result) -> Result:
        """Return the answer, given that of the limited problem."""
        model = self.original.problem.model
        if found.assignment is not None:
            score = model.score(model.indices_of(found.assignment))
            return Result("optimal", "mpe", score, score, score, found.assignment)
        value, given = self.result.value, self.upper_bound
        if value is not None and (given is None or self.sign * value <= self.sign * given):
            return self.result.replace(status="optimal", lower_bound=value, upper_bound=value)
        return Result("infeasible", "mpe", None, *((None, None) if given is None else ends_beyond(given, self.sign)))


def optimum_on_rows(
    problem: Problem,
    options: Options,
    deadline: float | None = None,
    upper_bound: int | None = None,
    gap: float = 0.0,
    listener: Listener | None = None,
) -> Result:
    """Find the optimum and an assignment, or bounds on it where time ends before.

    Args:
        problem: Problem of the task ``mpe``.
        options: Planning options; the device makes the tuples (``auto``: the CPU).
        deadline: Deadline by ``time.monotonic``.
        upper_bound: A total that is known to be reached: what is worse is not looked for. None if none is known.
        gap: The gap of the bounds that is close enough.
        listener: Called now and then with what is known.

    Returns:
        ``optimal``; ``infeasible`` (with a bound beyond the one that was given, if one was); or ``bounded``.

    Raises:
        UnsupportedError: The problem has other than integer costs, or too large ones.
        DeviceError: The device is missing or cannot be used.
        MemoryLimitError: There are more rows than the memory holds.
        TimeLimitError: The deadline passed before anything was known.
    """
    if not problem.described.is_optimum or not problem.model.is_integer:
        raise UnsupportedError("filtering needs the task mpe and integer costs; use --method eliminate")
    if options.dtype is not None and options.dtype not in INTEGERS:
        raise UnsupportedError(
            f"filtering adds integers exactly, and dtype is {options.dtype}; leave it out, or use --method eliminate"
        )
    if cost_bound(problem) > MOST_COST:
        raise UnsupportedError(
            f"filtering adds costs up to {MOST_COST}, and the tables' ranges add up to more; use --method eliminate"
        )
    backend = asked_backend(options)
    started = time.perf_counter()
    known = _first_bounds(problem, options, Limits(deadline, gap, upper_bound, nodes=0, rounds=1), listener)
    clock = {"bounds": time.perf_counter() - started}
    result = known.result
    ends = Bounds(0.0, result.lower_bound, result.upper_bound)
    if result.status == "bounded" and ends.gap > gap:
        try:
            found = _better(known, backend, options, deadline, clock)
        except TimeLimitError:
            return _with_figures(result)
        result = known.answer(found).replace(stats=found.stats)
    return _with_figures(result)


def _better(
    known: Known, backend: Backend, options: Options, deadline: float | None, clock: dict[str, float]
) -> Result:
    """Look for a better solution; in slices, ever finer ones, if the tuples exceed the memory."""
    while True:
        planned = filtered_plan(known, backend, options)
        try:
            return _climb(known, planned, deadline, {**clock, **planned.seconds})
        except MemoryLimitError:
            is_finest = options.refined > 0 and planned.plan.slicing is None
            if is_finest or options.slices == "never" or not planned.plan.fits:
                raise
        options = options._replace(refined=options.refined + 1)


def _climb(known: Known, planned: Planned, deadline: float | None, clock: dict[str, float]) -> Result:
    """Run one plan with one limit after another, until it finds a solution."""
    made = filtered = 0
    for worst in known.rungs:
        problem = known.limited(worst)
        plan = planned.plan._replace(forbidden=cost_bound(problem))
        found = eliminate(Execution(problem, plan, planned.backend, None, deadline), clock)
        made, filtered = made + found.stats.get("rows_made", 0), filtered + found.stats.get("rows_filtered", 0)
        clock = found.stats["seconds"]
        if found.assignment is not None:
            break
    return found.replace(stats={**found.stats, "rows_made": made, "rows_filtered": filtered})


def _with_figures(result: Result) -> Result:
    return result.replace(stats={"rows_made": 0, "rows_filtered": 0, **result.stats, "method": "filter"})


def _first_bounds(problem: Problem, options: Options, limits: Limits, listener: Listener | None) -> Known:
    """Shift costs, and follow small mini-buckets to a solution."""
    on_host = options._replace(device="cpu", ibound=None)
    if options.needs_gpu:
        on_host = on_host._replace(memory=None)
    seconds = min(_SHIFT_SECONDS, limits.seconds / 10)
    original = shift_tables(problem, on_host, seconds)
    order = elimination_order(
        original.moved, on_host._replace(order_seconds=min(options.order_seconds, _ORDER_SECONDS, limits.seconds / 10))
    )
    ordered = on_host._replace(order=order)
    result = searched_optimum(problem, ordered, limits, listener=listener, original=original)
    bound = limits.upper_bound
    return Known(result, None if bound is None else int(bound), original, order)


def filtered_plan(known: Known, backend: Backend, options: Options) -> Planned:
    """Return a plan on rows that looks for a better solution than is known.

    Raises:
        InputError: The dtype that is asked for does not hold the costs.
    """
    started = time.perf_counter()
    problem = known.limited(known.worst)
    machine, memory = limits_of(backend, options)
    wide = MAX_OPERANDS * cost_bound(problem) > np.iinfo(np.int32).max
    dense = make_plan(problem, known.order, machine, memory, options.dtype or ("int64" if wide else "int32"))
    # Bounds are made of the factors' cells.
    plan = in_rows(dense, problem, machine, whole=True, listed=False)
    if plan is not None and options.refined:
        # What independent tables would make says nothing of what bounds leave, but much of how slices divide it.
        room = plan.peak_bytes // FINER**options.refined
        plan = rows_in_fine_slices(machine, problem, options, plan, room)
    if plan is None or plan.sparse is None:
        return Planned(problem, dense, backend, {"plan": time.perf_counter() - started})
    bounds = outside(plan, problem.model.sizes)
    factor_bytes = plan.factor_cells * plan.itemsize
    # How many rows bounds leave is only known afterwards.
    size = factor_bytes + bounds.arena_cells * plan.itemsize
    sparse = plan.sparse._replace(outside=bounds)
    slicing = plan.slicing
    if slicing is not None:
        # What other tables cost in a slice decides which rows a step keeps: the next slice needs them all again.
        slicing = slicing._replace(levels=(len(slicing.variables),) * len(plan.steps))
    plan = plan._replace(sparse=sparse, slicing=slicing, bytes=machine.tiers(size, factor_bytes))
    return Planned(problem, plan, backend, {"plan": time.perf_counter() - started})
