"""The k best assignments, by a search along the messages of one elimination."""

from __future__ import annotations

import time
from typing import Any

from elimina.errors import MemoryLimitError
from elimina.methods.best_assignments import BestAssignments
from elimina.result import RankedAssignment, Result
from elimina.running.budget import Budget
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, Rows
from elimina.strategies.strategy import Strategy


def k_best(facts: Facts, _: Row) -> Strategy:
    """Return the search for the best assignments."""
    solver = facts.solver
    options, run, problem, model = solver.options, solver.run, solver.problem, solver.question.model

    def work(budget: Budget) -> Result:
        search = BestAssignments(problem, options.beside(budget.held), is_over=lambda: run.is_over)
        started = time.monotonic()
        ranked: list[RankedAssignment] = []
        failure = None
        try:
            for value, chosen in search:
                ranked.append(RankedAssignment(value, model.states_at(chosen)))
                if len(ranked) == options.k:
                    break
        except MemoryLimitError as error:
            failure = error
        seconds = {**search.statistics["seconds"], "search": time.monotonic() - started}
        stats = {**search.statistics, "seconds": seconds}
        if search.is_complete or len(ranked) == options.k:
            return _complete(ranked, stats)
        # Equal bounds would end the call before all assignments are found.
        if ranked:
            best = ranked[0]
            lower, upper = model.ends(None, best.value)
            known = Result(
                "bounded", "kbest", best.value, lower, upper, best.assignment, ranked=tuple(ranked), stats=stats
            )
        else:
            lower, upper = model.ends(search.bound, None)
            known = Result("bounded", "kbest", lower_bound=lower, upper_bound=upper, stats=stats)
        if failure is not None:
            budget.report(known)
            raise failure
        return known

    return Strategy(run, "k best", work)


def _complete(ranked: list[RankedAssignment], stats: dict[str, Any]) -> Result:
    """Return all assignments that are asked for as an answer."""
    if not ranked:
        return Result("infeasible", "kbest", stats=stats)
    value, assignment = ranked[0]
    return Result("optimal", "kbest", value, value, value, assignment, ranked=tuple(ranked), stats=stats)


ROWS: Rows = (
    *BEGIN,
    Row("k best", "the messages of one elimination lead to all assignments", k_best, ends="always"),
)
