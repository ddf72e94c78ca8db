"""Weighted mini-buckets (Liu and Ihler 2011): bounds on sums, and on the largest of many sums (marginal MAP)."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from elimina.backends.device_group import devices_of
from elimina.backends.protocols import Backend
from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.marginal_map_bounds import improve_marginal_map
from elimina.methods.mini_buckets import add_seconds, mini_bucket_statistics, run_mini_buckets
from elimina.methods.search_state import Listener
from elimina.methods.summation import summation_does_not_fit, with_observed
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_values import IBound
from elimina.planning.options import replace
from elimina.planning.order import Method, find_order
from elimina.planning.ordering import elimination_order
from elimina.planning.tree import Bound, bucket_tree
from elimina.problem.cases import condition_on_each
from elimina.problem.preparation import Problem, restrict
from elimina.result import Result
from elimina.running.bounded_results import bounds_meet, sum_between
from elimina.running.combination import combine
from elimina.running.execution import Execution, Progress, statistics
from elimina.running.host import elimination_on, host_memory
from elimina.running.mini_bucket_plans import bounding_plan, plan_within
from elimina.running.plan_choice import plan_on, plan_problem
from elimina.running.planned_problem import PlannedProblem
from elimina.running.pool import spread

MAX_RUNG_SECONDS = 20.0
"""Default limit on the estimated seconds of a run of mini-buckets. Up to three more runs follow, without cost shifting
or with another partition; together they take twice as long."""

ORDERS: tuple[tuple[Method, int], ...] = (("min-degree", 0), ("min-fill", 0), ("min-fill", 1), ("min-fill", 2))
"""Heuristics for elimination orders with offsets of their seeds, the fastest one first. The best order depends on the
model: on a 40 x 40 grid in 64 MB, the gaps of the bounds in log10 are 6.2, 3.9, 4.6 and 2.8."""

_ORDER_SECONDS = 0.2
"""Time limit of the search for one of ``ORDERS``, in seconds."""

_QUICK_SECONDS = 0.05
"""Estimated time of the first bounds of a long call."""

_RUNG_GROWTH = 8.0
"""Factor by which the estimated time grows from one i-bound to the next."""

_MAX_PLANNED_SECONDS = 1e4
"""Largest estimated seconds of a run that is planned."""

_DEADLINE_SHARE = 0.125
"""Largest share of the time until the deadline for a single run. Both sides and several orders together take several
times as long."""

OPTIMISED_SECONDS, _OPTIMISED_SHARE = 8.0, 0.75
"""Time for optimised bounds on marginal MAP: in seconds if there is no time limit, otherwise as a share of the
remaining time."""

_SIDES: tuple[Bound, ...] = ("upper", "lower")
"""Bounds of a sum, in the order in which they are computed."""

_MIN_CONCURRENT_RUN_SECONDS = 1.0
"""Estimated seconds above which runs are distributed over several devices; for shorter runs, the Python interpreter
takes longer than the devices."""

_SLICES = 16
"""Number of assignments of the variables of partitioned buckets for which the sum is computed exactly."""

_ROUNDING_TOLERANCE = 1e-12
"""Upper bound on the relative error of a logarithm and of a sum of logarithms."""


class _Bound(NamedTuple):
    """A bound on the natural logarithm of a sum, and assignments decoded from the messages (none if the sum is 0)."""

    log: float
    chosen: Sequence[Sequence[int]]


_Timed = tuple[_Bound, dict[str, float]]
"""A bound, and the seconds by phase for computing it."""


def bounded_sum(
    execution: Execution, options: CheckedOptions, seconds: Mapping[str, float], learn: Listener | None = None
) -> Result:
    """Bound a sum from both sides.

    The better of two lower bounds is returned: one from Hölder's inequality with negative weights, and the sum over
    some assignments of the variables of partitioned buckets, for which the other variables are eliminated exactly.

    Args:
        execution: Execution of the task ``pr``, with mini-buckets that bound it from above.
        options: Options of the plan.
        seconds: Time spent so far by phase.
        learn: Called with each new bound.

    Returns:
        Bounds on the base-10 logarithm; the lower one is minus infinity if the time ended before it.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed before the first bound.
    """
    clock = dict(seconds)
    upper, lower = _Bound(-math.inf, ()), -math.inf
    # Each bound may use the whole memory limit: its tables are freed before those of the next bound are allocated.
    options = replace(options, memory=execution.plan.memory_limit)

    def bounds_so_far() -> Result:
        result = sum_between(lower / math.log(10), upper.log / math.log(10))
        return result.replace(
            stats={**statistics(execution, clock), "method": "mbe", **mini_bucket_statistics(execution.plan)}
        )

    with contextlib.closing(_both_sides(execution, options)) as bounds:
        upper = _timed_bound(next(bounds), clock)
        if upper.chosen:
            lower = _product(execution.problem.model, upper.chosen[0])
            with contextlib.suppress(TimeLimitError):
                if learn is not None:
                    learn(bounds_so_far())
                lower = max(lower, _timed_bound(next(bounds), clock).log)
                if learn is not None:
                    learn(bounds_so_far())
                lower = max(lower, _conditioned(execution, options, clock, upper.chosen))
    return bounds_so_far()


def _product(model: Model, chosen: Sequence[int]) -> float:
    """Return the logarithm of one term of a sum, minus its possible rounding error: a lower bound on the sum."""
    terms = model.terms(chosen)
    score = model.total(terms)
    return score - _ROUNDING_TOLERANCE * math.fsum(map(abs, terms)) if score > -math.inf else -math.inf


def _timed_bound(timed: _Timed | None, clock: dict[str, float]) -> _Bound:
    """Return a bound, and add its seconds to a clock."""
    assert timed is not None
    for phase, seconds in timed[1].items():
        add_seconds(clock, phase, seconds)
    return timed[0]


def ladder(
    problem: Problem, options: Callable[[], CheckedOptions], remaining: Callable[[], float], longest: float
) -> Iterator[PlannedProblem]:
    """Yield plans with increasing i-bounds up to the requested one.

    For a sum, plans in other orders follow, each with the largest i-bound that the limits allow.

    Args:
        problem: A problem of the task ``mpe`` or ``pr``.
        options: Function that returns planning options with the remaining memory of the call.
        remaining: Function that returns the seconds until the deadline.
        longest: Limit on the estimated seconds of a run.
    """
    asked = options()
    largest_ibound = math.inf if asked.ibound in (None, "auto") else int(asked.ibound)

    def plan(order: Sequence[int], seconds: float) -> PlannedProblem:
        free = replace(options(), ibound=None, partition="scope")
        planned = plan_within(problem, order, free, math.inf, seconds)
        if largest_ibound < math.inf and _ibound_of(planned) > largest_ibound:
            planned = plan_within(problem, order, replace(free, ibound=int(largest_ibound)), math.inf, seconds)
        return planned

    def top_seconds() -> float:
        return min(longest, _MAX_PLANNED_SECONDS, _DEADLINE_SHARE * remaining())

    seconds, last = _QUICK_SECONDS, 0.0
    orders = _orders(problem, asked)
    first = next(orders)
    while last < largest_ibound:
        planned = plan(first, seconds)
        ibound = _ibound_of(planned)
        if ibound > last:
            yield planned
        elif planned.plan.seconds < seconds / _RUNG_GROWTH**2:
            # Memory limits the i-bound, so a larger time limit would not increase it.
            break
        last = ibound
        if seconds >= top_seconds():
            break
        seconds = min(_RUNG_GROWTH * seconds, top_seconds())
    if last < math.inf and not problem.described.is_optimum:
        for order in orders:
            yield plan(order, top_seconds())


def _ibound_of(planned: PlannedProblem) -> float:
    """Return the i-bound of a plan; infinity if no bucket is partitioned."""
    return math.inf if planned.plan.minibuckets is None else planned.plan.minibuckets.ibound


def _orders(problem: Problem, options: CheckedOptions) -> Iterator[tuple[int, ...]]:
    """Yield different orders from short searches, or only the requested order if there is one."""
    if not isinstance(options.order, str):
        yield elimination_order(problem, options)
        return
    seen = set()
    for method, number in ORDERS:
        seed = options.seed ^ number
        order = elimination_order(problem, replace(options, order=method, order_seconds=_ORDER_SECONDS, seed=seed))
        if order not in seen:
            seen.add(order)
            yield order


def bounded_marginal_map(
    planned: PlannedProblem,
    options: CheckedOptions,
    progress: Progress | None,
    deadline: float | None,
    learn: Listener | None = None,
) -> Result:
    """Bound the largest sum from above, decode an assignment of the query, and compute its value.

    Args:
        planned: Plan of the task ``mmap``; it may exceed the memory.
        options: Options of mini-buckets; without an i-bound, ``affordable_ibounds`` chooses it.
        progress: Called repeatedly with the finished share of the bound.
        deadline: Deadline by ``time.monotonic``.
        learn: Called with each new bound.

    Returns:
        An answer with the ``value`` of the assignment if its sum is exact; otherwise with a ``lower_bound`` on the
        value.

    Raises:
        MemoryLimitError: Mini-buckets do not fit.
        TimeLimitError: The deadline passed before the first bound.
    """
    problem = planned.problem
    options = options.for_bounds if options.ibound is None else options
    order = [*planned.plan.order, *_query_order(planned)]
    joint = problem._replace(task="pr", free=(*problem.free, *problem.kept), kept=(), maximised=problem.kept)
    whole = PlannedProblem(joint, planned.plan, planned.backend, planned.seconds)
    result: Result | None = None
    if options.ibound is None and options.matches_moments and not options.needs_gpu:
        seconds = OPTIMISED_SECONDS if deadline is None else _OPTIMISED_SHARE * (deadline - time.monotonic())
        end = time.monotonic() + seconds
        for bounds in improve_marginal_map(joint, order, options, host_memory(options), end):
            result = combine(result, bounds, -1)
            if learn is not None:
                _report(learn, problem, result)
            if result.status != "bounded":
                return result.replace(assignment=with_observed(problem, result.assignment))
    ibounds = affordable_ibounds(joint, order, options, deadline) if options.ibound is None else [options.ibound]
    if result is not None and result.assignment is not None:
        # Only the smallest i-bound is tried, because optimised weights improve the bound more than larger i-bounds.
        ibounds = ibounds[:1]
    try:
        for ibound, shift in itertools.product(
            ibounds, (options.shift, "none") if options.matches_moments else ("none",)
        ):
            bound_options = replace(options, ibound=ibound, shift=shift, order=order)
            listener = None if learn is None else functools.partial(_report, learn, problem)
            result = combine(result, _marginal_map(whole, options, bound_options, progress, deadline, listener), -1)
            if listener is not None:
                listener(result)
            if result.status != "bounded":
                break
    except MemoryLimitError as error:
        reason = f"{summation_does_not_fit(planned)}. Bounds were tried, too: {error}"
        raise MemoryLimitError(reason) from error
    except TimeLimitError:
        if result is None:
            raise
    assert result is not None
    return result.replace(assignment=with_observed(problem, result.assignment))


def _marginal_map(
    joint: PlannedProblem,
    options: CheckedOptions,
    bound_options: CheckedOptions,
    progress: Progress | None,
    deadline: float | None,
    learn: Listener | None,
) -> Result:
    """Return the answer of one run; ``bound_options`` have an order of all variables in which the query comes last."""
    problem = joint.problem
    started = time.perf_counter()
    bounding = plan_problem(problem, bound_options)
    clock = dict(joint.seconds)
    add_seconds(clock, "plan", time.perf_counter() - started)
    execution = Execution(problem, bounding.plan, bounding.backend, progress, deadline)
    upper = _run(execution, clock, "upper")
    stats = {**statistics(execution, clock), "method": "mbe", **mini_bucket_statistics(bounding.plan)}
    if not upper.chosen:
        return Result("infeasible", "mmap", stats=stats)
    if learn is not None:
        learn(Result("bounded", "mmap", None, None, upper.log, stats=stats))
    query_values = {v: upper.chosen[0][v] for v in problem.maximised}
    lower, is_exact = -math.inf, False
    with contextlib.suppress(TimeLimitError):
        lower, is_exact = _value(execution, query_values, replace(bound_options, order=options.order), clock)
    stats["seconds"] = {phase: round(value, 6) for phase, value in clock.items()}
    if lower == -math.inf:
        return Result("bounded", "mmap", None, None, upper.log, stats=stats)
    variables = problem.model.variables
    assignment = {variables[v].name: variables[v].state(x) for v, x in query_values.items()}
    is_best = is_exact and bounds_meet(upper.log, lower)
    ends = (lower, lower) if is_best else (lower, upper.log)
    return Result(
        "optimal" if is_best else "bounded", "mmap", lower if is_exact else None, *ends, assignment, stats=stats
    )


def _report(learn: Listener, problem: Problem, result: Result) -> None:
    learn(result.replace(assignment=with_observed(problem, result.assignment)))


def affordable_ibounds(
    problem: Problem, order: Sequence[int], options: CheckedOptions, deadline: float | None
) -> list[IBound]:
    """Return the largest i-bounds, in ascending order, for runs of 0.2, 2 and 20 seconds within the memory limit.

    With a deadline, the longest run takes at most an eighth of the remaining time, and the others a tenth and a
    hundredth of this.
    """
    remaining_seconds = math.inf if deadline is None else deadline - time.monotonic()
    ibounds: list[IBound] = []
    for share in (0.01, 0.1, 1.0):
        seconds = share * min(MAX_RUNG_SECONDS, _DEADLINE_SHARE * remaining_seconds)
        divided = plan_within(problem, order, options, math.inf, seconds).plan.minibuckets
        ibounds.append("auto" if divided is None else divided.ibound)
    return list(dict.fromkeys(ibounds))


def _both_sides(execution: Execution, options: CheckedOptions) -> Generator[_Timed | None]:
    """Yield the upper and the lower bound.

    Several devices share long runs; short ones run one after another.
    """

    def bounds(backend: Backend, sides: Iterator[Bound]) -> Iterator[_Timed]:
        device_execution = execution._replace(backend=backend)
        for side in sides:
            spent: dict[str, float] = {}
            if side == "upper":
                yield _run(device_execution, spent, side, _SLICES), spent
            else:
                yield _from_below(device_execution, options, spent), spent

    is_long = execution.plan.seconds - execution.backend.machine.start > _MIN_CONCURRENT_RUN_SECONDS
    for together in (_SIDES,) if is_long else ((side,) for side in _SIDES):
        yield from spread(devices_of(execution.backend), together, bounds)


def _run(execution: Execution, clock: dict[str, float], side: Bound, assignments: int = 1) -> _Bound:
    """Bound a sum, rounding outwards, and decode assignments: the first one greedily, the others at random."""
    with run_mini_buckets(execution, clock) as (heuristic, session):
        if session is None or not math.isfinite(heuristic.cost):
            return _Bound(-math.inf, ())
        started = time.perf_counter()
        chosen = heuristic.decode(session, assignments)
        slack = heuristic.rounding(session, chosen[0])
        add_seconds(clock, "decode", time.perf_counter() - started)
        return _Bound(float(heuristic.total_of(heuristic.cost)) + (slack if side == "upper" else -slack), chosen)


def _from_below(execution: Execution, options: CheckedOptions, clock: dict[str, float]) -> _Bound:
    """Return Hölder's lower bound on the logarithm, with the upper bound's i-bound if such mini-buckets fit."""
    backend, plan = execution.backend, execution.plan
    started = time.perf_counter()
    ibound = options.ibound if plan.minibuckets is None else plan.minibuckets.ibound
    elimination = elimination_on(backend, execution.problem, plan.order, options)
    below = bounding_plan(elimination, replace(options, ibound=ibound), "lower")
    add_seconds(clock, "plan", time.perf_counter() - started)
    return _run(execution._replace(plan=below), clock, "lower")


def _conditioned(
    execution: Execution, options: CheckedOptions, clock: dict[str, float], chosen: Sequence[Sequence[int]]
) -> float:
    """Return the log of the sum over given assignments of partitioned buckets' variables; -inf if it does not fit.

    If memory limits the tables of all assignments, only the first ones are used.
    """
    plan = execution.plan
    assert plan.minibuckets is not None
    nodes = bucket_tree([factor.scope for factor in plan.factors], plan.order, ibound=plan.minibuckets.ibound).nodes
    mini_bucket_counts = Counter(node.variable for node in nodes)
    divided = [v for v in plan.order if mini_bucket_counts[v] > 1]
    order = [v for v in plan.order if mini_bucket_counts[v] == 1]
    distinct = dict.fromkeys(tuple(assignment[v] for v in divided) for assignment in chosen)
    assignments = [dict(zip(divided, values, strict=True)) for values in distinct]
    while assignments:
        started = time.perf_counter()
        conditioned = condition_on_each(execution.problem, assignments)
        whole = plan_on(execution.backend, conditioned, [*order, conditioned.free[-1]], options)
        add_seconds(clock, "plan", time.perf_counter() - started)
        if whole.fits:
            return _exact(execution._replace(problem=conditioned, plan=whole), clock)
        assignments = assignments[: len(assignments) // 4]
    return -math.inf


def _value(
    execution: Execution, query_values: Mapping[int, int], options: CheckedOptions, clock: dict[str, float]
) -> tuple[float, bool]:
    """Return the logarithm of the sum with some values fixed, or a lower bound on it, and whether it is exact."""
    started = time.perf_counter()
    restricted = restrict(execution.problem, query_values)
    order = (
        options.order if isinstance(options.order, str) else [v for v in execution.plan.order if v not in query_values]
    )
    planned = plan_problem(restricted, replace(options, ibound=None, slices="never", order=order))
    add_seconds(clock, "plan", time.perf_counter() - started)
    whole = Execution(restricted, planned.plan, planned.backend, deadline=execution.deadline)
    if planned.plan.fits:
        return _exact(whole, clock), True
    return _from_below(whole, options, clock).log, False


def _exact(execution: Execution, clock: dict[str, float]) -> float:
    answer = eliminate(execution, {})
    for phase, seconds in answer.stats["seconds"].items():
        add_seconds(clock, phase, seconds)
    assert answer.log10_z is not None
    return answer.log10_z * math.log(10)


def _query_order(planned: PlannedProblem) -> list[int]:
    """Return an order of the query variables, for the problem without the variables that are summed out."""
    problem, order = planned.problem, planned.plan.order
    tree = bucket_tree([group.scope for group in problem.groups], order, problem.kept)
    number = {v: n for n, v in enumerate(problem.kept)}
    scopes = [node.separator for node in tree.nodes if number.keys() >= set(node.separator)]
    scopes += [group.scope for group in problem.groups if number.keys() >= set(group.scope)]
    sizes = [problem.model.sizes[v] for v in problem.kept]
    query_order = find_order(sizes, [[number[v] for v in scope] for scope in scopes], method="min-fill", iterations=1)
    return [problem.kept[n] for n in query_order.order]
