"""Optimum and optimal assignment from running a plan, slice by slice."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from elimina.errors import InputError
from elimina.model.model import Model
from elimina.planning.plan import Plan
from elimina.problem.preparation import Problem
from elimina.problem.semirings import SEMIRINGS
from elimina.result import Result
from elimina.running.bounded_results import bounds_meet, result_between
from elimina.running.encoding import Encoded
from elimina.running.execution import Execution, statistics
from elimina.running.rounding import TOLERANCES, check_value, rounding
from elimina.running.scales import roots
from elimina.running.sweep import Sweep

if TYPE_CHECKING:
    from elimina.methods.slice_bounds import SliceBounds
    from elimina.running.checkpoint import State


def optimum(execution: Execution, clock: dict[str, float]) -> Result:
    """Find an optimum and its assignment, slice by slice."""
    problem, plan = execution.problem, execution.plan
    sign = problem.model.sign
    state: State = {"best": None, "chosen": [], "skipped": 0, "least": None, "slack": 0.0, **execution.state}
    started = time.perf_counter()
    sweep, bounds = Sweep(execution, clock), None
    if plan.form.variables:
        sweep.reserve()
        bounds = _slice_bounds(execution, state)
    clock["bounds"] = time.perf_counter() - started
    _report_best(execution, state, bounds)
    numbers = _sequence(execution, bounds, sweep.count)[state["done"] :]
    sweep.done = state["done"]

    def is_promising(number: int) -> bool:
        best = state["best"]
        return bounds is None or best is None or not bounds.is_hopeless(number, sign * best)

    for slice_ in sweep.run(numbers, wanted=is_promising):
        if slice_ is None:
            state.update(done=state["done"] + 1, skipped=state["skipped"] + 1)
            continue
        value, ends = None, [] if slice_.run is None else roots(plan, slice_.run)
        if slice_.run is not None:
            value = decode_value(slice_.problem, plan, slice_.encoded, ends)
        slack = 0.0
        # Only sums have rounding errors: min-max just compares costs.
        if value is not None and not plan.dtype.startswith("int") and SEMIRINGS[plan.semiring].is_additive:
            slack = rounding(slice_.problem, plan, math.fsum(ends), slice_.encoded.constants)
            least = sign * value - slack
            state["least"] = least if state["least"] is None else min(least, state["least"])
        if value is not None and (state["best"] is None or sign * value < sign * state["best"]):
            assert slice_.run is not None
            assert slice_.run.assignment is not None
            values = slice_.run.assignment.tolist()
            state.update(best=value, chosen=slice_.problem.complete(range(len(values)), values), slack=slack)
            _report_best(execution, state, bounds)
        state["done"] += 1
        execution.save(state)
    best, chosen = state["best"], state["chosen"]
    considered_rows, kept_rows = sweep.rows
    stats = {} if plan.sparse is None else {"rows_made": considered_rows, "rows_filtered": considered_rows - kept_rows}
    if bounds is not None:
        stats["slices_skipped"] = state["skipped"]
    if best is None:
        return Result("infeasible", plan.task, stats=stats)
    return checked_optimum(problem, plan, best, chosen, state["least"], state["slack"]).replace(stats=stats)


def checked_optimum(
    problem: Problem, plan: Plan, best: int | float, chosen: Sequence[int], least: float | None, slack: float
) -> Result:
    """Return the answer with an assignment, after checking that the model gives the assignment the same value.

    Args:
        problem: Problem of the task.
        plan: Plan that found the value.
        best: The optimum that the plan found.
        chosen: Value index of each variable of the model.
        least: Lower bound on the cost of any assignment, corrected for rounding; None if nothing was rounded.
        slack: Largest rounding error of the value.

    Raises:
        InternalError: The values differ by more than rounding.
    """
    ring, sign = SEMIRINGS[plan.semiring], problem.model.sign
    terms = problem.model.terms(chosen, ring.is_logarithmic)
    terms += [problem.model.constant] if ring.is_additive else []
    score = 0 + sign * ring.total(terms if sign == 1 else [-term for term in terms])
    check_value(plan.dtype, best, score, terms, slack)
    if plan.dtype.startswith("int"):
        return optimum_result(problem.model, score, chosen, score)
    bound = sign * score if least is None else min(sign * score, least)
    if problem.model.is_integer:
        bound = math.ceil(bound)  # an integer total is at least the bound rounded up
    return optimum_result(problem.model, sign * bound, chosen, score, TOLERANCES[plan.dtype])


def decode_value(problem: Problem, plan: Plan, encoded: Encoded, roots: list[int | float]) -> int | float | None:
    """Return the optimum in the model's units from the values of the tree's roots; None if no assignment is allowed.

    Raises:
        InputError: The plan's semiring has no optimum.
    """
    ring = SEMIRINGS[plan.semiring]
    if not ring.is_idempotent:
        raise InputError(f"semiring {plan.semiring} has no optimum")
    forbidden = plan.forbidden
    if encoded.impossible or any(root == forbidden for root in roots):
        return None
    sign = problem.model.sign
    # Adding 0 turns a negative zero into 0.
    return 0 + sign * ring.total([*(sign * constant for constant in encoded.constants), *roots])


def optimum_result(
    model: Model, bound: int | float, chosen: Sequence[int], score: int | float, tolerance: float = 0.0
) -> Result:
    """Return the answer from a bound and an assignment; an assignment beyond the model's upper bound is left out."""
    result = result_between(model, bound, chosen, tolerance, score)
    is_none = result.value is None and (bounds_meet(bound, score, tolerance) or model.is_beyond_bound(bound))
    return Result("infeasible", "mpe") if is_none else result


def _report_best(execution: Execution, state: State, bounds: SliceBounds | None) -> None:
    """Report the best assignment and the bound over all slices so far, if the plan has slices."""
    if execution.report_bounds is None or not execution.plan.form.variables:
        return
    model, sign = execution.problem.model, execution.problem.model.sign
    bound = None if bounds is None else sign * (bounds.costs.min().item() - bounds.slack)
    value = None if state["best"] is None else model.score(state["chosen"])
    if (bound is None and value is None) or (value is not None and (math.isinf(value) or model.is_beyond_bound(value))):
        return
    assignment = None if value is None else model.states_at(state["chosen"])
    ends = model.ends(bound, value)
    execution.report_bounds(Result("bounded", "mpe", value, *ends, assignment, stats=statistics(execution, {})))


def initial_state(execution: Execution) -> State:
    """Return the state before the first slice, which several runs may share: see ``Execution.start_state``."""
    state: State = {"best": None, "chosen": [], **execution.state}
    if execution.problem.described.is_optimum and execution.plan.form.variables:
        _slice_bounds(execution, state)
    return state


def _slice_bounds(execution: Execution, state: State) -> SliceBounds | None:
    """Return the bounds of the slices; None if the slices are not bounded.

    Bounds are computed once, together with a first assignment, and stored in the state: a resumed run needs the same
    bounds, because they determine the sequence of the slices.
    """
    from elimina.methods.slice_bounds import SliceBounds, bound_slices

    if state["done"] == 0 and "bounds" not in state:
        bounds_and_values = bound_slices(execution)
        state["bounds"] = (
            None if bounds_and_values is None else [bounds_and_values[0].costs.tolist(), bounds_and_values[0].slack]
        )
        if bounds_and_values is not None and bounds_and_values[1] is not None:
            state.update(best=execution.problem.model.score(bounds_and_values[1]), chosen=bounds_and_values[1])
    kept_bounds = state.get("bounds")
    return None if kept_bounds is None else SliceBounds(np.array(kept_bounds[0]), kept_bounds[1])


def _sequence(execution: Execution, bounds: SliceBounds | None, count: int) -> Sequence[int]:
    """Return the sequence of the slices to run: if there are bounds, promising slices come first."""
    numbers = execution.slice_numbers(count)
    if bounds is None or not execution.plan.form.variables:
        return numbers
    sequence = bounds.sequence(execution.plan.form.sizes)
    return [sequence[position] for position in numbers]
