"""Count of the optimal assignments.

In an optimal assignment, the tables of each bucket add up to the bucket's message. After one elimination, each bucket
therefore gets a table that allows exactly the assignments with this equality, and the solutions of these tables are
counted. If no elimination fits, branch and bound lists the optima.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.methods.count_bounds import optima_at_most
from elimina.methods.k_best_search import KBestSearch, largest_k
from elimina.methods.mini_buckets import Heuristic, run_mini_buckets
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.number_texts import counted
from elimina.option_names import by_interface, option
from elimina.planning.options import replace
from elimina.result import Result
from elimina.running.advice import MAX_MACHINE_BYTES, does_not_fit
from elimina.running.budget import Budget
from elimina.running.execution import statistics
from elimina.running.host import host_memory
from elimina.running.plan_choice import plan_on
from elimina.strategies import conditions as when
from elimina.strategies import count_schedule, optimum_schedule
from elimina.strategies.call import InnerCall
from elimina.strategies.facts import Facts
from elimina.strategies.portfolio import Question, Solver
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, Rows, scheduled
from elimina.strategies.strategy import Attempt, Portfolio, Strategy, until_answered

_BOUNDS_SECONDS, _BOUNDS_SHARE = 4.0, 0.25
"""Time limit for listing optima, and for bounds on their number: in seconds, and as a share of the remaining time."""

_MAX_LISTED = 100_000
"""Largest number of optima that branch and bound lists."""

_CELL_BYTES = 16  # 8 bytes in the sum of a bucket's tables, and 8 in the table derived from it


def count_optima(facts: Facts, _: Row) -> Portfolio:
    """Find the optimum, and count the optimal assignments.

    Raises:
        UnsupportedError: The costs are not integers.
    """
    solver = facts.solver
    options, run, model = solver.options, solver.run, solver.question.model
    if not model.is_integer:
        kind = "probabilities" if model.sense == "probability" else "floats as costs"
        converter = by_interface("elimina.write to a .wcsp file, then elimina.read", "elimina convert MODEL OUT.wcsp")
        raise UnsupportedError(
            f"task count-optima needs integer costs, and this model has {kind}: round them first ({converter})"
        )
    if _may_search(facts) and when.ORDER_IS_OPEN.holds(facts) and when.QUICK_ORDER_IS_FAR_TOO_LARGE.holds(facts):
        # The search for an order is skipped: it takes seconds, and no order is expected to have tables that fit.
        return (yield from _bounded_optima(facts, _too_large(facts.quick_order.total_cells, facts.quick_order.width)))
    planned = solver.plan(replace(options, slices="never", scratch=None, tables="dense")).planned
    if planned.plan.has_large_steps:
        return (yield from _bounded_optima(facts, MemoryLimitError(does_not_fit(planned.plan))))
    # Each variable needs its own bucket, so no step may eliminate several variables.
    plan = plan_on(planned.backend, planned.problem, planned.plan.order, options)
    planned = planned._replace(plan=plan)
    model = planned.problem.model
    if not plan.fits or _CELL_BYTES * plan.work > host_memory(options):
        return (yield from _bounded_optima(facts, _too_large(plan.work, plan.width)))
    execution = solver.begun(planned, run.budget())
    result = Result("infeasible", "count-optima", count=0, stats=statistics(execution, {}))
    tables: list[Table] = []
    with run.phase("minimise") as part_seconds, run_mini_buckets(execution, part_seconds) as (optimum, session):
        if (
            session is not None
            and math.isfinite(optimum.cost)
            and not model.is_beyond_bound(optimum.total_of(optimum.cost))
        ):
            ends = dict.fromkeys(("value", "lower_bound", "upper_bound"), optimum.total_of(optimum.cost))
            result = result.replace(status="bounded", assignment=model.states_at(optimum.decode(session)[0]), **ends)
            tables += _tight(optimum._replace(arena=session.fetch(0, plan.arena_cells)))
    if result.status == "infeasible":
        return (yield Strategy(run, "minimise", lambda _: result))
    run.fallback = lambda _: result.replace(count=None)
    counting = InnerCall(run, functools.partial(_counted, result), "count")
    # Variables in no table are not part of the plan, but their domain sizes multiply the number of optima.
    idle = set(range(len(model.variables))).difference(plan.order, planned.problem.fixed)
    rest = Model([model.variables[v] for v in (*plan.order, *idle)], tables, sense="probability")
    counting_options = replace(options, order="auto", dtype=None)
    return (
        yield from scheduled(Solver(Question(rest, "count", {}, None), counting_options, counting), count_schedule.ROWS)
    )


def _too_large(work: int, width: int) -> MemoryLimitError:
    """Return the error for tables that do not fit.

    Args:
        work: Number of cells of all tables.
        width: Induced width of the order.
    """
    memory = "" if _CELL_BYTES * work > MAX_MACHINE_BYTES else f"more memory ({option('memory')}), "
    return MemoryLimitError(
        f"counting optima needs tables of {counted(work, 'cell', is_rounded=True)} (induced width {width}); "
        f"{memory}a better order (a longer {option('order_seconds')}) or "
        f"looking for one optimum only ({option('task', 'mpe')}) would help"
    )


def _counted(result: Result, counted: Result) -> Result:
    """Return the optimum with the number of optimal assignments, or with bounds on this number."""
    if counted.status == "exact":
        return result.replace(status="exact", count=counted.value)
    return result.replace(stats={**counted.stats, **_bounds_of_number(counted.lower_bound, counted.upper_bound)})


def _bounds_of_number(lower: float | None, upper: float | None) -> dict[str, int]:
    """Return bounds on the number of optima, at least 1, as entries of ``Result.stats``."""
    ends = {"optima_lower_bound": max(1, int(lower or 1))}
    return ends if upper is None else {**ends, "optima_upper_bound": int(upper)}


def _may_search(facts: Facts) -> bool:
    """Return whether the options allow a search, which may end with bounds."""
    options = facts.solver.options
    is_excluded = options.exact or options.needs_gpu or options.names_another_way or facts.has_checkpoint
    return options.solving.is_open and not is_excluded


def _bounded_optima(facts: Facts, failure: MemoryLimitError) -> Portfolio:
    """Search for an optimum, list the optima, and bound their number, without the large tables of elimination.

    The outcome is the failure of elimination if the options exclude the search, or if the search finds nothing.
    """
    solver = facts.solver
    options, run, question = solver.options, solver.run, solver.question
    if not _may_search(facts):
        return Attempt(None, failure)
    task, figures = question.task, _bounds_of_number(1, None)

    def counted(result: Result) -> Result:
        if result.status == "infeasible":
            return result.replace(task=task, count=0)
        return result.replace(task=task, status="bounded", stats={**result.stats, **figures})

    def bound(best: Result | None, budget: Budget) -> Result:
        if best is None or best.value is None:
            raise MemoryLimitError(str(failure))
        budget.report(counted(best))
        if best.status == "optimal":
            number, is_complete = _listed_optima(facts, int(best.value), budget)
            if is_complete:
                return counted(best).replace(status="exact", count=number)
            figures.update(_bounds_of_number(number, None))
        seconds = min(_BOUNDS_SECONDS, _BOUNDS_SHARE * budget.seconds)
        with contextlib.suppress(MemoryLimitError):
            upper = optima_at_most(solver.problem, best.value, options.after_growth(budget.growth_bytes), seconds)
            figures.update(_bounds_of_number(figures["optima_lower_bound"], upper))
        return counted(best)

    optimum_search = InnerCall(run, counted, "optimum")
    search = scheduled(
        Solver(question._replace(task="mpe", query=None), options, optimum_search), optimum_schedule.ROWS
    )
    yield from until_answered(optimum_search, search)
    best = optimum_search.best_result
    if best is None or best.status == "infeasible":
        return Attempt(None, failure) if best is None else Attempt(counted(best))
    return (yield Strategy(run, "bounds", functools.partial(bound, best)))


def _listed_optima(facts: Facts, optimum: int, budget: Budget) -> tuple[int, bool]:
    """Return the number of optima listed by branch and bound (1 if it cannot run), and whether these are all."""
    problem, options = facts.solver.problem, facts.options
    memory = host_memory(options.after_growth(budget.growth_bytes))
    k = min(_MAX_LISTED, largest_k(problem, memory))
    if k < 1:
        return 1, False
    search = KBestSearch(problem, facts.quick_order.order, k, options.host_threads, memory, optimum)
    if not search.is_possible:
        return 1, False
    search.run(min(_BOUNDS_SECONDS, _BOUNDS_SHARE * budget.seconds))
    return search.count, search.is_complete and search.solutions < k


def _tight(optimum: Heuristic) -> Iterator[Table]:
    """Yield a table for each variable: 1 where the tables of its bucket add up to its message, otherwise 0."""
    buckets = optimum.guide.buckets
    for v, (first, end) in enumerate(itertools.pairwise(buckets.table_starts.tolist())):
        strides_of_tables = [buckets.strides_of(table, v) for table in range(first, end)]
        scope = [v, *sorted(set().union(*strides_of_tables) - {v})]
        total = np.zeros([optimum.guide.sizes[u] for u in scope], dtype=np.int64)
        for offset, strides in zip(buckets.offsets[first:end].tolist(), strides_of_tables, strict=True):
            steps = [strides.get(u, 0) * optimum.arena.itemsize for u in scope]
            total += np.lib.stride_tricks.as_strided(optimum.arena[offset:], total.shape, steps)
            np.minimum(total, optimum.plan.forbidden, out=total, casting="unsafe")
        is_tight = (total == total.min(axis=0)) & (total < optimum.plan.forbidden)
        yield Table(scope, is_tight.astype(np.float64))


ROWS: Rows = (
    *BEGIN,
    Row("minimise, and count", "the messages of one elimination tell all optima", count_optima, ends="always"),
)
