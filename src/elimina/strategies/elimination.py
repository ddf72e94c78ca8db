"""Elimination in the schedule: plans and their runs, retries after a lack of memory, and mini-buckets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from elimina import system
from elimina.errors import MemoryLimitError
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.plan import Plan
from elimina.problem.tasks import described
from elimina.result import Result
from elimina.running.advice import does_not_fit
from elimina.running.budget import Budget
from elimina.running.host import turn_share
from elimina.strategies.conditions import can_search, is_long, is_out_of_reach, needs_order_search
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row, walk
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

logger = logging.getLogger("elimina")

MAX_REFINEMENTS = 6
"""Largest number of retries with finer slices after too many tuples; each retry plans for many more tuples."""


# --- plans ---


def plan_whole(facts: Facts, _: Row) -> Attempt:
    """Plan without slices; the order search is short, because other strategies wait for the plan."""
    options = replace(facts.options, slices="never")
    if isinstance(options.order, str):
        if is_out_of_reach(facts.quick_order, facts):
            options = replace(options, order=facts.quick_order.order)
        elif needs_order_search(facts):
            options = replace(options, order_seconds=options.order_seconds * turn_share(options))
    return _planned(facts, options)


def plan_as_asked(facts: Facts, _: Row) -> Attempt:
    """Plan with the call's options."""
    return _planned(facts, facts.options)


def _planned(facts: Facts, options: CheckedOptions) -> Attempt:
    facts.prepared = facts.solver.plan(options, facts.refinements)
    if facts.plan.has_large_steps and not (facts.has_open_method and can_search(facts)):
        return Attempt(None, MemoryLimitError(does_not_fit(facts.plan)))
    return Attempt()


def plan_in_slices(facts: Facts, _: Row) -> Attempt:
    """Plan again with the call's options: in slices if the plan does not fit otherwise."""
    facts.prepared = facts.solver.plan(facts.options, facts.refinements)
    return Attempt()


def searches_before_running(facts: Facts, row: Row) -> Portfolio:
    """Run the inner rows; then release the memory of their searches for later rows."""
    yield from walk(row.rows, facts)
    facts.paused.clear()
    system.release_memory()
    return Attempt()


def run_plan(facts: Facts, _: Row) -> Strategy:
    """Return a strategy that runs the plan."""
    options, prepared = facts.options, facts.prepared
    assert prepared is not None
    facts.executed = facts.plan
    if facts.solver.options.on_plan is not None:
        facts.call.notify(facts.solver.options.on_plan, facts.plan)
    return facts.solver.execution(prepared, options)


# --- elimination ---


def elimination(facts: Facts, row: Row) -> Portfolio:
    """Run the inner rows, which make and run plans; repeat them if sparse tables do not fit: see ``eliminated``."""
    return (yield from eliminated(facts, facts.options, row.rows))


def eliminated(facts: Facts, options: CheckedOptions, rows: tuple[Row, ...]) -> Portfolio:
    """Run rows that make and run plans; if sparse tables do not fit, repeat them in finer slices or on dense tables."""
    sparse_failure: MemoryLimitError | None = None
    refinements = 0
    while True:
        trial = Facts(facts.solver, options, refinements)
        outcome = yield from walk(rows, trial)
        plan, failure = trial.executed, outcome.failure
        if plan is None or not isinstance(failure, MemoryLimitError):
            return outcome
        if sparse_failure is not None:
            return Attempt(None, MemoryLimitError(f"{failure}. Sparse tables were tried, too: {sparse_failure}"))
        refinements += 1
        logger.info("elimination ran out of memory: %s", failure)
        if _is_worth_finer_slices(trial, plan):
            logger.info("more slices are tried")
            continue
        if plan.sparse is None or options.tables != "auto":
            return Attempt(None, failure)
        sparse_failure = failure
        options = replace(options, tables="dense")
        logger.info("dense tables are tried")


def _is_worth_finer_slices(facts: Facts, plan: Plan) -> bool:
    """Return whether a retry with more slices is worthwhile after a sparse plan had too many tuples."""
    options = facts.options
    return (
        options.tables == "sparse"
        and plan.fits
        and described(plan.task).merges_slices
        and options.slices != "never"
        and facts.refinements < MAX_REFINEMENTS
        and not facts.has_checkpoint
    )


# --- bounds ---


def bounds_of_tables(facts: Facts, row: Row) -> Strategy | Attempt:
    """Return a strategy with bounds from the best value of each table; without such bounds, return the last failure."""
    result = facts.solver.first_bounds(row.memory_share)
    return Attempt(None, facts.failure) if result is None else Strategy(facts.call, "bounds", lambda _: result)


def quick_bounds(facts: Facts, _: Row) -> Strategy | Attempt:
    """Return a strategy with the next larger mini-buckets, at first the smallest; an empty outcome after the last."""
    return facts.solver.next_rung() or Attempt()


def sum_bounds(facts: Facts, row: Row) -> Portfolio:
    """Bound a sum by the methods of the inner rows; return the last success."""
    # The estimates have ended. The memory of their tables is released for larger mini-buckets.
    facts.solver.estimation = None
    system.release_memory()
    outcome = Attempt()
    for inner_row in row.rows:
        outcome = _later(outcome, (yield from walk((inner_row,), facts)))
    return outcome


def growing_mini_buckets(facts: Facts, _: Row | None = None) -> Portfolio:
    """Run growing mini-buckets; return the last success."""
    outcome = Attempt()
    while facts.call.seconds > 0 and (rung := facts.solver.next_rung()) is not None:
        outcome = _later(outcome, (yield rung))
    return outcome


def timely_mini_buckets(facts: Facts, row: Row) -> Portfolio:
    """Run mini-buckets up to the largest that time allows, without optimised weights."""
    return (yield from _bounded(facts, replace(facts.options.for_bounds, ibound="auto"), row.rows))


def optimised_bounds(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that bounds a sum by weighted mini-buckets, with optimised weights and cost shifts."""

    def work(budget: Budget) -> Result:
        from elimina.methods.task_bounds import bounded_task

        solver, (clock, deadline) = facts.solver, _clock_of(facts, row)
        return bounded_task(
            solver.problem, solver.options.after_growth(budget.growth_bytes), deadline, budget.report, clock
        )

    return Strategy(facts.call, "bounds", work)


def count_bounds(facts: Facts, row: Row) -> Portfolio:
    """Bound a count by ``optimised_bounds``; if they fail too, return the failure of elimination."""
    failure = facts.failure
    outcome = yield optimised_bounds(facts, row)
    return outcome if outcome.failure is None else Attempt(None, failure)


def _clock_of(facts: Facts, row: Row) -> tuple[Callable[[], float], float]:
    """Return a clock for bounds, and its reading at which the bounds end.

    Without a time limit, the clock is the thread's processor time, so that other work on the machine does not change
    the bounds.
    """
    clock = time.thread_time if facts.call.deadline is None else time.monotonic
    return clock, clock() + min(row.budget(facts), facts.call.seconds)


def mini_buckets(facts: Facts, row: Row) -> Portfolio:
    """Run mini-buckets, small ones first.

    The largest ones run with and without cost shifting. Their buckets are partitioned by content, and then by scope.
    """
    return (yield from _bounded(facts, facts.options, row.rows))


def largest_mini_buckets(facts: Facts, row: Row) -> Portfolio:
    """Run mini-buckets in the order of a failed plan: small ones first, then the largest that time allows."""
    order, options = facts.plan.whole.order, facts.options.for_bounds
    ibound = facts.solver.affordable_ibound(facts.planned, options)
    return (yield from _bounded(facts, replace(options, ibound=ibound, order=order), row.rows))


def _bounded(facts: Facts, options: CheckedOptions, rows: tuple[Row, ...]) -> Portfolio:
    solver, outcome = facts.solver, Attempt()
    asked = Facts(solver, solver.options)
    if is_long(asked.quick_order, asked):
        outcome = yield from growing_mini_buckets(asked)
    for shift in dict.fromkeys((options.shift, "none")):
        for partition in ("auto", "scope") if options.partition == "auto" else (options.partition,):
            order = solver.planned_order() or options.order
            largest = replace(options, shift=shift, partition=partition, order=order)
            last = yield from eliminated(facts, largest, rows)
            # The call fails if a requested i-bound does not fit, even if smaller mini-buckets gave bounds.
            outcome = last if solver.options.ibound not in (None, "auto") else _later(outcome, last)
            if last.result is not None and last.result.stats.get("partition") != "content":
                break
    return outcome


def _later(outcome: Attempt, other: Attempt) -> Attempt:
    """Return the second attempt; the first one if only that succeeded, or if the second one did nothing."""
    return outcome if other.result is None and (outcome.result is not None or other.failure is None) else other
