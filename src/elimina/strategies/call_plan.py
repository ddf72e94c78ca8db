"""The plan of a call, made from the call's arguments."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.order import Order
from elimina.problem.evidence import Observed, indices_asked, observe
from elimina.problem.preparation import Problem, prepare
from elimina.problem.tasks import Task, described
from elimina.running.plan_choice import plan_again, plan_problem
from elimina.running.planned_problem import PlannedProblem

if TYPE_CHECKING:
    from elimina.methods.cost_shifting import ShiftedProblem
    from elimina.methods.junction_structure import MarginalQuery
    from elimina.running.checkpoint import Checkpoint

_ORDER_TIME_SHARE = 1 / 6
"""Share of a call's time limit for the order search. The search converts this time to an amount of work; the clock ends
it only after ten times this time."""


class PlannedCall(NamedTuple):
    """A plan with the call's preparations and, for mini-buckets of an optimum, the problem before cost shifting."""

    first: Preparation
    planned: PlannedProblem
    original: ShiftedProblem | None


class Preparation(NamedTuple):
    """Preparations shared by all plans of a call.

    Attributes:
        problem: Problem of the call.
        rough: An elimination order that was found quickly; None: no search was made.
        order: Order of an earlier plan; None: no earlier plan.
        inquiry: Requested marginals (``mar``).
    """

    problem: Problem
    rough: Order | None = None
    order: Sequence[int] | None = None
    inquiry: MarginalQuery | None = None


def plan_call(
    model: Model,
    task: Task,
    evidence: Evidence | None,
    query: Sequence[str | int] | None,
    options: CheckedOptions,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
    shift_seconds: float = math.inf,
    first: Preparation | None = None,
    refinements: int = 0,
) -> PlannedCall:
    """Prepare a call's problem, shift its costs if mini-buckets are requested, and make the plan.

    Args:
        model: Model, as in ``elimina.solve``.
        task: Task, as in ``elimina.solve``.
        evidence: Evidence, as in ``elimina.solve``.
        query: Query, as in ``elimina.solve``.
        options: Checked options of the call.
        time_limit: Time limit of the whole call, in seconds.
        checkpoint: Checkpoint that stores the plan, or contains the plan of an interrupted run.
        shift_seconds: Seconds after which no further pass of cost shifting is begun.
        first: Preparations of an earlier plan; None: they are made here.
        refinements: Number of earlier plans of this call whose tuples exceeded the memory.

    Raises:
        InputError: An option or the evidence does not fit the model.
        DeviceError: The device is missing or cannot be used.
    """
    call_options = options
    asked = indices_asked(model, task, query)
    if time_limit is not None:
        options = replace(options, order_seconds=min(options.order_seconds, _ORDER_TIME_SHARE * time_limit))
    started = time.perf_counter()
    if first is None:
        observed = observe(model, task, {} if evidence is None else evidence, asked)
        if described(task).is_marginal:
            inquiry = inquire(model, observed, asked, options)
            first = Preparation(inquiry.structure.problem, inquiry.structure.rough, inquiry=inquiry)
        else:
            first = Preparation(prepare(observed.model, described(task).problem or task, observed.values, asked))
    problem, rough, order, _ = first
    original = None
    if options.ibound is not None and described(task).is_optimum:
        from elimina.methods.cost_shifting import MAX_SHIFT_SECONDS, shift_all

        max_shift_seconds = min(MAX_SHIFT_SECONDS, (time_limit or math.inf) / 10, shift_seconds)
        original, options = shift_all(problem, options, max_shift_seconds)
        problem, rough, order = original.moved, None, None
    prepared = time.perf_counter()
    if checkpoint is None:
        planned = plan_problem(problem, options, rough, order, refinements=refinements)
    elif checkpoint.is_new:
        planned = plan_problem(problem, options, rough, order, refinements=refinements)
        if planned.plan.fits:
            checkpoint.begin(model, problem, planned, call_options)
    else:
        checkpoint.check(model, problem, call_options)
        planned = plan_again(problem, checkpoint.choice, options)
        checkpoint.begin(model, problem, planned, call_options)
    seconds = {"prepare": prepared - started, **planned.seconds}
    return PlannedCall(first, planned._replace(seconds=seconds), original)


def inquire(model: Model, observed: Observed, query: Sequence[int] | None, options: CheckedOptions) -> MarginalQuery:
    """Return the query for the requested posteriors, with the structure that computes them."""
    from elimina.methods.junction_structure import MarginalQuery, choose_structure

    asked = range(len(model.variables)) if query is None else query
    structure = choose_structure(observed.model, observed.values, None if query is None else tuple(asked), options)
    return MarginalQuery(observed.model, observed.values, asked, query is None, structure, observed.merged)
