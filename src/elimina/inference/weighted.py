"""Weighted mini-buckets (Liu and Ihler 2011): bounds on sums, and on the largest of many sums (marginal MAP)."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.inference.account import statistics
from elimina.inference.bucket import eliminate
from elimina.inference.choose import Options, Planned, bounding_plan, plan_on, plan_problem, plan_within
from elimina.inference.execution import Execution, Progress
from elimina.inference.marginal_map import summation_does_not_fit, with_known
from elimina.inference.minibucket import better, division, meet, note, running, sum_between
from elimina.order import find_order
from elimina.planning.minibuckets import IBound
from elimina.planning.prepare import Problem, restrict
from elimina.planning.weights import Bound
from elimina.result import Result
from elimina.tree import bucket_tree

_SECONDS = 20.0
"""Of the first of four runs by default, as estimated; the others take twice that together."""


_SLICES = 16
"""Assignments of the divided buckets' variables that are summed exactly."""


class _Bound(NamedTuple):
    """A bound on the natural logarithm of a sum, and assignments that the messages lead to; none: the sum is 0."""

    log: float
    chosen: Sequence[Sequence[int]]


def bounded_sum(execution: Execution, options: Options, seconds: Mapping[str, float]) -> Result:
    """Bound a sum from both sides.

    From below, it is at least what Hölder's inequality says with negative weights, and at least the sum over a few
    assignments of the variables of divided buckets: with these fixed no bucket has to be divided. The better of both
    counts.

    Args:
        execution: Of the task ``pr``, with mini-buckets that bound it from above.
        options: How it was planned.
        seconds: Time spent so far by phase.

    Returns:
        Bounds on the base-10 logarithm; minus infinity from below if time was up.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed before there was a bound.
    """
    clock = dict(seconds)
    upper = _run(execution, clock, "upper", _SLICES)
    lower = -math.inf
    if upper.chosen:
        with contextlib.suppress(TimeLimitError):
            lower = _from_below(execution, options, clock)
            lower = max(lower, _conditioned(execution, upper.chosen, options, clock))
    result = sum_between(lower / math.log(10), upper.log / math.log(10))
    stats = {**statistics(execution, clock), "method": "mbe", **division(execution.plan)}
    return result.replace(stats=stats)


def bounded_marginal_map(
    planned: Planned, options: Options, progress: Progress | None, deadline: float | None
) -> Result:
    """Bound the largest sum from above, and value the assignment of the query that this leads to.

    Args:
        planned: Of the task ``mmap``; its plan need not fit.
        options: How to plan mini-buckets; without an i-bound, it is ``affordable``.
        progress: Called now and then with the share of the bound that is done.
        deadline: By ``time.monotonic``.

    Returns:
        ``value`` is that of the assignment, where its sum is known exactly; else ``lower_bound`` bounds it.

    Raises:
        MemoryLimitError: Mini-buckets do not fit, either.
        TimeLimitError: The deadline passed before there was a bound.
    """
    problem = planned.problem
    options = options.for_bounds if options.ibound is None else options
    order = [*planned.plan.order, *_query_order(planned)]
    joint = problem._replace(task="pr", free=(*problem.free, *problem.kept), kept=(), maximised=problem.kept)
    ibounds = affordable(joint, order, options, deadline) if options.ibound is None else [options.ibound]
    whole = Planned(joint, planned.plan, planned.backend, planned.seconds)
    found: Result | None = None
    try:
        for ibound, shift in itertools.product(
            ibounds, (options.shift, "none") if options.levels_buckets else ("none",)
        ):
            own = options._replace(ibound=ibound, shift=shift, order=order)
            known = _marginal_map(whole, options, own, progress, deadline)
            found = known if found is None else better(known, found)
            if found.status != "bounded":
                break
    except MemoryLimitError as error:
        reason = f"{summation_does_not_fit(planned)}. Bounds were tried, too: {error}"
        raise MemoryLimitError(reason) from error
    except TimeLimitError:
        if found is None:
            raise
    assert found is not None
    return found.replace(assignment=with_known(problem, found.assignment))


def _marginal_map(
    joint: Planned, options: Options, own: Options, progress: Progress | None, deadline: float | None
) -> Result:
    """One run; ``own``: the options with which all variables are eliminated, the query last."""
    problem = joint.problem
    started = time.perf_counter()
    bounding = plan_problem(problem, own)
    clock = dict(joint.seconds)
    note(clock, "plan", time.perf_counter() - started)
    execution = Execution(problem, bounding.plan, bounding.backend, progress, deadline)
    upper = _run(execution, clock, "upper")
    stats = {**statistics(execution, clock), "method": "mbe", **division(bounding.plan)}
    if not upper.chosen:
        return Result("infeasible", "mmap", stats=stats)
    given = {v: upper.chosen[0][v] for v in problem.maximised}
    lower, is_exact = -math.inf, False
    with contextlib.suppress(TimeLimitError):
        lower, is_exact = _value(execution, given, own._replace(order=options.order), clock)
    stats["seconds"] = {phase: round(value, 6) for phase, value in clock.items()}
    if lower == -math.inf:
        return Result("bounded", "mmap", None, None, upper.log, stats=stats)
    variables = problem.model.variables
    assignment = {variables[v].name: variables[v].state(x) for v, x in given.items()}
    is_best = is_exact and meet(upper.log, lower)
    ends = (lower, lower) if is_best else (lower, upper.log)
    return Result(
        "optimal" if is_best else "bounded", "mmap", lower if is_exact else None, *ends, assignment, stats=stats
    )


def affordable(problem: Problem, order: Sequence[int], options: Options, deadline: float | None) -> list[IBound]:
    """The largest i-bounds, ascending, with which a run may take a second, and 20, within the memory.

    With a deadline it is an eightieth of the time left at most, and an eighth.
    """
    left = math.inf if deadline is None else deadline - time.monotonic()
    found: list[IBound] = []
    for share in (0.1, 1.0):
        divided = plan_within(problem, order, options, 1.0, share * min(_SECONDS, left / 8)).plan.minibuckets
        found.append("auto" if divided is None else divided.ibound)
    return list(dict.fromkeys(found))


def _run(execution: Execution, clock: dict[str, float], side: Bound, assignments: int = 1) -> _Bound:
    """Bound a sum, rounding errors included; the first assignment follows what is most of it, others are drawn."""
    with running(execution, clock) as (heuristic, session):
        if session is None or not math.isfinite(heuristic.cost):
            return _Bound(-math.inf, ())
        started = time.perf_counter()
        noise = np.random.default_rng(0)
        chosen = [heuristic.decode(session, noise if number else None) for number in range(assignments)]
        slack = heuristic.rounding(session, chosen[0])
        note(clock, "decode", time.perf_counter() - started)
        return _Bound(float(heuristic.total_of(heuristic.cost)) + (slack if side == "upper" else -slack), chosen)


def _from_below(execution: Execution, options: Options, clock: dict[str, float]) -> float:
    """Hölder's bound on the logarithm with the same mini-buckets, as far as they fit."""
    backend, plan = execution.backend, execution.plan
    started = time.perf_counter()
    ibound = options.ibound if plan.minibuckets is None else plan.minibuckets.ibound
    below = bounding_plan(backend, execution.problem, plan.order, options._replace(ibound=ibound), "lower")
    note(clock, "plan", time.perf_counter() - started)
    return _run(execution._replace(plan=below), clock, "lower").log


def _conditioned(
    execution: Execution, chosen: Sequence[Sequence[int]], options: Options, clock: dict[str, float]
) -> float:
    """The logarithm of the sum over what assignments give the variables of divided buckets."""
    plan = execution.plan
    assert plan.minibuckets is not None
    nodes = bucket_tree([factor.scope for factor in plan.factors], plan.order, ibound=plan.minibuckets.ibound).nodes
    parts = Counter(node.variable for node in nodes)
    divided = [v for v in plan.order if parts[v] > 1]
    slices = [
        restrict(execution.problem, dict(zip(divided, values, strict=True)))
        for values in dict.fromkeys(tuple(assignment[v] for v in divided) for assignment in chosen)
    ]
    started = time.perf_counter()
    whole = plan_on(execution.backend, slices[0], [v for v in plan.order if parts[v] == 1], options)
    note(clock, "plan", time.perf_counter() - started)
    if not whole.fits:
        return -math.inf
    logs = [_exact(execution._replace(problem=part, plan=whole), clock) for part in slices]
    return float(np.logaddexp.reduce(logs))


def _value(
    execution: Execution, given: Mapping[int, int], options: Options, clock: dict[str, float]
) -> tuple[float, bool]:
    """The logarithm of the sum with some values given, or a bound on it from below; and whether it is exact."""
    started = time.perf_counter()
    part = restrict(execution.problem, given)
    order = options.order if isinstance(options.order, str) else [v for v in execution.plan.order if v not in given]
    planned = plan_problem(part, options._replace(ibound=None, slices="never", order=order))
    note(clock, "plan", time.perf_counter() - started)
    whole = Execution(part, planned.plan, planned.backend, deadline=execution.deadline)
    if planned.plan.fits:
        return _exact(whole, clock), True
    return _from_below(whole, options, clock), False


def _exact(execution: Execution, clock: dict[str, float]) -> float:
    answer = eliminate(execution, {})
    for phase, seconds in answer.stats["seconds"].items():
        note(clock, phase, seconds)
    assert answer.log10_z is not None
    return answer.log10_z * math.log(10)


def _query_order(planned: Planned) -> list[int]:
    """An order of the variables that stay, by what is left of the problem when the others are summed out."""
    problem, order = planned.problem, planned.plan.order
    tree = bucket_tree([group.scope for group in problem.groups], order, problem.kept)
    number = {v: n for n, v in enumerate(problem.kept)}
    scopes = [node.separator for node in tree.nodes if number.keys() >= set(node.separator)]
    scopes += [group.scope for group in problem.groups if number.keys() >= set(group.scope)]
    sizes = [problem.model.sizes[v] for v in problem.kept]
    found = find_order(sizes, [[number[v] for v in scope] for scope in scopes], method="min-fill", iterations=1)
    return [problem.kept[n] for n in found.order]
