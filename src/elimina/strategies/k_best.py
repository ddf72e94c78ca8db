"""The k best assignments, by a search along the messages of one elimination, or by branch and bound."""

from __future__ import annotations

import time
from typing import Any

from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.methods.best_assignments import BestAssignments
from elimina.methods.k_best_search import KBestSearch
from elimina.result import RankedAssignment, Result
from elimina.running.budget import Budget
from elimina.running.combination import NO_PLAN
from elimina.running.host import host_memory
from elimina.strategies import conditions as when
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, Rows
from elimina.strategies.strategy import Strategy

LONGEST_SEARCH_SECONDS = 60.0
"""Largest time of branch and bound, in seconds, before a search along messages."""

SEARCH_TIME_SHARE = 0.5
"""Share of the remaining time for branch and bound, if exact messages do not fit."""


def seconds_of_search(facts: Facts) -> float:
    """Return the seconds of branch and bound: about those of the elimination after it, or more if it may not fit."""
    seconds = facts.seconds_in(facts.searched_order)
    if 2 * facts.searched_order.largest_table >= facts.memory_bytes:
        seconds = max(seconds, SEARCH_TIME_SHARE * facts.call.seconds)
    return min(seconds, LONGEST_SEARCH_SECONDS)


def k_best_by_search(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that finds the best assignments by branch and bound; a later turn resumes it."""
    solver, options, order = facts.solver, facts.options, facts.quick_order.order
    problem, model = solver.problem, solver.question.model

    def work(budget: Budget) -> Result:
        if solver.k_best_search is None:
            memory = host_memory(options.beside(budget.held))
            solver.k_best_search = KBestSearch(problem, order, options.assignments, options.host_threads, memory)
        search = solver.k_best_search
        if not search.is_possible:
            raise UnsupportedError("branch and bound does not take the costs, or its copies of the tables do not fit")
        search.run(budget.seconds)
        assignments, is_whole = search.ranked(lambda: facts.call.is_over)
        ranked = [RankedAssignment(value, model.states_at(chosen)) for value, chosen in assignments]
        seconds = {"search": search.seconds}
        stats = {**NO_PLAN, "method": "search", "nodes": search.nodes, "seconds": seconds}
        if search.is_complete and is_whole:
            return _complete(ranked, stats)
        if not ranked:
            lower, upper = model.ends(search.bound, None)
            return Result("bounded", "kbest", lower_bound=lower, upper_bound=upper, stats=stats)
        best, bound = ranked[0], model.sign * search.bound
        proven = tuple(row for row in ranked if model.sign * row.value <= bound)
        lower, upper = model.ends(best.value if proven else search.bound, best.value)
        return Result("bounded", "kbest", best.value, lower, upper, best.assignment, ranked=proven, stats=stats)

    return Strategy(facts.call, "branch and bound", work, seconds=row.budget(facts))


def k_best(facts: Facts, _: Row) -> Strategy:
    """Return a strategy that finds the best assignments along the messages of elimination."""
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
                if len(ranked) == options.assignments:
                    break
        except MemoryLimitError as error:
            failure = error
        seconds = {**search.statistics["seconds"], "search": time.monotonic() - started}
        stats = {**search.statistics, "seconds": seconds}
        if search.is_complete or len(ranked) == options.assignments:
            return _complete(ranked, stats)
        if ranked:
            best = ranked[0]
            lower, upper = model.ends(best.value, best.value)
            result = Result(
                "bounded", "kbest", best.value, lower, upper, best.assignment, ranked=tuple(ranked), stats=stats
            )
        else:
            lower, upper = model.ends(search.bound, None)
            result = Result("bounded", "kbest", lower_bound=lower, upper_bound=upper, stats=stats)
        if failure is not None:
            budget.report(result)
            raise failure
        return result

    return Strategy(run, "k best", work)


def _complete(ranked: list[RankedAssignment], stats: dict[str, Any]) -> Result:
    """Return the final result with all requested assignments; infeasible if there are none."""
    if not ranked:
        return Result("infeasible", "kbest", stats=stats)
    value, assignment = ranked[0]
    return Result("optimal", "kbest", value, value, value, assignment, ranked=tuple(ranked), stats=stats)


ROWS: Rows = (
    *BEGIN,
    Row(
        "branch and bound at once",
        "it ends many wide models before an order is found",
        k_best_by_search,
        (when.ON_HOST, when.QUICK_ELIMINATION_IS_NOT_SHORT),
        seconds=0.2,
        is_shared=True,
    ),
    Row(
        "branch and bound",
        "elimination takes as long",
        k_best_by_search,
        (when.ON_HOST, when.ELIMINATION_IS_NOT_SHORT),
        seconds=seconds_of_search,
    ),
    Row("k best", "the messages of one elimination lead to all assignments", k_best, ends="always"),
)
