"""The k best assignments, by a search along the messages of one elimination."""

from __future__ import annotations

import time
from typing import Any

from elimina.methods.best_assignments import BestAssignments
from elimina.result import RankedAssignment, Result, Status
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
        for value, chosen in search:
            ranked.append(RankedAssignment(value, model.states_at(chosen)))
            if len(ranked) == 1:
                budget.report(_answer(ranked, search.statistics, is_complete=False))
            if len(ranked) == options.k:
                break
        is_complete = search.is_complete or len(ranked) == options.k
        seconds = {**search.statistics["seconds"], "search": time.monotonic() - started}
        return _answer(ranked, {**search.statistics, "seconds": seconds}, is_complete)

    return Strategy(run, "k best", work)


def _answer(ranked: list[RankedAssignment], stats: dict[str, Any], is_complete: bool) -> Result:
    """Return assignments as an answer: optimal once all that are asked for are there."""
    if not ranked:
        return Result("infeasible" if is_complete else "unknown", "kbest", stats=stats)
    value, assignment = ranked[0]
    status: Status = "optimal" if is_complete else "bounded"
    return Result(status, "kbest", value, value, value, assignment, ranked=tuple(ranked), stats=stats)


K_BEST: Rows = (
    *BEGIN,
    Row("k best", "the messages of one elimination lead to all assignments", k_best, ends="always"),
)
