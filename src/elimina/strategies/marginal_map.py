"""Marginal MAP: the most probable states of some variables; all other variables are summed out.

The other variables are eliminated first, in a constrained order (Park and Darwiche 2004, "Complexity results and
approximation strategies for MAP explanations"). Any method for optima then maximises the product of the remaining
tables over the variables of the query.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from elimina.errors import MemoryLimitError
from elimina.methods.summation import summation_does_not_fit, with_observed
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.planning.options import replace
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.execution import Execution, Progress, statistics
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagator import Propagator
from elimina.strategies import optimum_schedule
from elimina.strategies.call import InnerCall
from elimina.strategies.facts import Facts
from elimina.strategies.portfolio import Question, Solver
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, Rows, scheduled
from elimina.strategies.strategy import Portfolio, Strategy


def marginal_map(facts: Facts, _: Row) -> Portfolio:
    """Sum out all variables except the query's, and maximise over the query by the requested method."""
    solver = facts.solver
    options, run = solver.options, solver.run
    planned = solver.plan(replace(options, ibound=None)).planned
    problem = planned.problem
    may_bound = (options.solving.may_bound or options.solving.searches) and not options.exact
    if not planned.plan.fits and may_bound:
        from elimina.methods.weighted_mini_buckets import bounded_marginal_map

        def work(budget: Budget) -> Result:
            remaining_options = options.after_growth(budget.growth_bytes)
            return bounded_marginal_map(
                planned, remaining_options, solver.report_progress, budget.deadline, budget.report
            )

        return (yield Strategy(run, "bounds", work))
    if options.on_plan is not None:
        run.notify(options.on_plan, planned.plan)
    with run.phase("sum out") as part_seconds:
        query_model, stats = sum_out(planned, solver.report_progress)
        part_seconds.update(stats["seconds"])
    if query_model is None:
        return (yield Strategy(run, "sum out", lambda _: Result("infeasible", "mmap", stats=stats)))

    def whole(maximum: Result) -> Result:
        assignment = with_observed(problem, maximum.assignment)
        return maximum.replace(task="mmap", assignment=assignment, stats={**stats, **maximum.stats, "summation": stats})

    maximisation_options = replace(
        options,
        order=options.order if isinstance(options.order, str) else "auto",
        ibound="auto" if options.solving.bounds and options.ibound is None else options.ibound,
        on_plan=None,
        progress=None,
    )
    return (
        yield from scheduled(
            Solver(Question(query_model, "mpe", {}, None), maximisation_options, InnerCall(run, whole, "max")),
            optimum_schedule.ROWS,
        )
    )


class Summed(NamedTuple):
    """Model over the query after summing out all other variables (None if the sum is 0), and the run's statistics."""

    rest: Model | None
    stats: dict[str, Any]


def sum_out(planned: PlannedProblem, progress: Progress | None = None) -> Summed:
    """Sum out all variables except those of the query.

    Args:
        planned: Plan of the task ``mmap``.
        progress: Function that is called repeatedly with the finished share of the summation.

    Raises:
        MemoryLimitError: The summation does not fit.
    """
    problem, plan = planned.problem, planned.plan
    if not plan.fits:
        raise MemoryLimitError(summation_does_not_fit(planned))
    propagator = Propagator(planned, "log-sum-exp")
    try:
        answer = propagator.run(range(len(plan.outputs)), log_sum=False, progress=progress)
        kept = set(problem.kept)
        tables = [(output.scope, table) for output, table in zip(plan.outputs, answer.tables, strict=True)]
        tables += [propagator.factor_table(n) for n, factor in enumerate(plan.factors) if kept.issuperset(factor.scope)]
        constant = propagator.constant
    finally:
        propagator.close()
    stats = statistics(Execution(problem, plan, planned.backend), propagator.seconds)
    if constant == -math.inf:
        return Summed(None, stats)
    number = {v: n for n, v in enumerate(problem.kept)}
    factors = [Table([number[v] for v in scope], np.array(table, dtype=np.float64)) for scope, table in tables]
    variables = [problem.model.variables[v] for v in problem.kept]
    return Summed(Model(variables, factors, sense="max-cost", constant=constant), stats)


ROWS: Rows = (
    *BEGIN,
    Row("sum out, and maximise", "an order that sums out first keeps the sums exact", marginal_map, ends="always"),
)
