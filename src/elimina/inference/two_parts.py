"""Tasks in two parts, the second of which is a problem of its own: marginal MAP, and the number of optima.

Marginal MAP asks for the most probable values of some variables, all others summed out. The others are eliminated
first, which leaves tables over the variables asked for: a constrained order (Park and Darwiche 2004, "Complexity
results and approximation strategies for MAP explanations"). What maximises their product is found by all that there is
for optima.

In an optimal assignment each variable has a value whose tables add up to the message that it sends. The messages of one
elimination so make tables of such values, whose solutions are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from elimina.display import count_text
from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.inference.anytime import Part
from elimina.inference.choose import Planned, host_memory, plan_on
from elimina.inference.execution import Execution, Progress, does_not_fit, statistics
from elimina.inference.minibucket import Heuristic, running
from elimina.inference.propagator import Propagator
from elimina.inference.solver import Question, Solver
from elimina.inference.strategy import Budget, Portfolio, Strategy
from elimina.model import Model
from elimina.planning.prepare import Problem
from elimina.result import Result
from elimina.states import State
from elimina.table import Table


def marginal_map(solver: Solver) -> Portfolio:
    """Sum out, and find the best values of the remaining variables by the requested method."""
    options, run, method = solver.options, solver.run, solver.options.method
    planned = solver.plan(options._replace(ibound=None)).planned
    problem = planned.problem
    if not planned.plan.fits and method in ("auto", "mbe"):
        from elimina.inference.weighted import bounded_marginal_map

        def work(budget: Budget) -> Result:
            left = options.beside(budget.held)
            return bounded_marginal_map(planned, left, solver.tell_progress, budget.deadline, budget.learn)

        return (yield Strategy(run, "bounds", work))
    if options.on_plan is not None:
        run.tell(options.on_plan, planned.plan)
    with run.phase("sum out") as parts:
        rest, stats = sum_out(planned, solver.tell_progress)
        parts.update(stats["seconds"])
    if rest is None:
        return (yield Strategy(run, "sum out", lambda _: Result("infeasible", "mmap", stats=stats)))

    def whole(found: Result) -> Result:
        assignment = with_known(problem, found.assignment)
        return found.replace(task="mmap", assignment=assignment, stats={**stats, **found.stats, "summation": stats})

    own = options._replace(
        order=options.order if isinstance(options.order, str) else "auto",
        ibound="auto" if method == "mbe" and options.ibound is None else options.ibound,
        on_plan=None,
        progress=None,
        refined=0,
        is_kept=False,
    )
    return (yield from Solver(Question(rest, "mpe", {}, None), own, Part(run, whole, "max")).portfolio())


class Summed(NamedTuple):
    """Remainder of a problem when all but the query is summed out, to be maximised; None: nothing is possible."""

    rest: Model | None
    stats: dict[str, Any]


def sum_out(planned: Planned, progress: Progress | None = None) -> Summed:
    """Sum out all variables but those of the query.

    Args:
        planned: Plan of the task ``mmap``.
        progress: Called now and then with the share of the summation that is done.

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


def summation_does_not_fit(planned: Planned) -> str:
    """Return the error of a plan that does not fit: its needs, and the options that help."""
    problem = planned.problem
    return (
        f"{does_not_fit(planned.plan)}. That is for summing out {len(problem.free)} variables, with "
        f"{len(problem.kept)} that stay; fewer of these would help, too"
    )


def with_known(problem: Problem, assignment: Mapping[str, State] | None) -> dict[str, State] | None:
    """Return the assignment of a query and of the variables observed before."""
    if assignment is None:
        return None
    variables = problem.model.variables
    known = {variables[v].name: variables[v].state(problem.fixed[v]) for v in problem.wanted}
    return {**assignment, **known}


_CELL_BYTES = 16  # of the sum and of the table that is made


def count_optima(solver: Solver) -> Portfolio:
    """Find the optimum, and count the assignments that reach it."""
    options, run, model = solver.options, solver.run, solver.question.model
    if not model.is_integer:
        kind = "probabilities" if model.sense == "probability" else "floats as costs"
        raise UnsupportedError(
            f"task count-optima needs integer costs, and this model has {kind}: round them first "
            "(elimina convert MODEL OUT.wcsp; in Python elimina.io.convert_sense)"
        )
    planned = solver.plan(options._replace(slices="never", scratch=None, tables="dense")).planned
    # The tables of each variable's own bucket are needed, so no step may eliminate several.
    plan = plan_on(planned.backend, planned.problem, planned.plan.order, options)
    planned = planned._replace(plan=plan)
    if not plan.fits or _CELL_BYTES * plan.work > host_memory(options):
        cells = f"{count_text(plan.work)} cells (induced width {plan.width})"
        raise MemoryLimitError(
            f"counting optima needs tables of {cells}; give more --memory, or more --order-time to find a better order"
        )
    execution = solver.begun(planned, run.budget())
    result = Result("infeasible", "count-optima", count=0, stats=statistics(execution, {}))
    tables: list[Table] = []
    with run.phase("minimise") as parts, running(execution, parts) as (found, session):
        if session is not None and math.isfinite(found.cost) and not model.is_beyond_bound(found.total_of(found.cost)):
            ends = dict.fromkeys(("value", "lower_bound", "upper_bound"), found.total_of(found.cost))
            result = result.replace(status="bounded", assignment=model.states_at(found.decode(session)[0]), **ends)
            tables += _tight(found._replace(arena=session.fetch(0, plan.arena_cells)))
    if result.status == "infeasible":
        return (yield Strategy(run, "minimise", lambda _: result))
    run.fallback = lambda _: result.replace(count=None)
    part = Part(run, lambda counted: result.replace(status="exact", count=counted.value), "count")
    # Variables in no table are not part of the plan, and count with all their values.
    idle = set(range(len(model.variables))).difference(plan.order, planned.problem.fixed)
    rest = Model([model.variables[v] for v in (*plan.order, *idle)], tables, sense="probability")
    own = options._replace(order="auto", dtype=None)
    return (yield from Solver(Question(rest, "count", {}, None), own, part).portfolio())


def _tight(found: Heuristic) -> Iterator[Table]:
    """Yield a table for each variable: 1 where its tables add up to its message, 0 elsewhere."""
    for v, tables in enumerate(found.guide.homes()):
        scope = [v, *sorted({u for table in tables for u, _ in table.others})]
        total = np.zeros([found.guide.sizes[u] for u in scope], dtype=np.int64)
        for table in tables:
            strides = {v: table.stride, **dict(table.others)}
            steps = [strides.get(u, 0) * found.arena.itemsize for u in scope]
            total += np.lib.stride_tricks.as_strided(found.arena[table.offset :], total.shape, steps)
            np.minimum(total, found.plan.forbidden, out=total, casting="unsafe")
        is_tight = (total == total.min(axis=0)) & (total < found.plan.forbidden)
        yield Table(scope, is_tight.astype(np.float64))
