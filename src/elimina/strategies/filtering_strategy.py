"""Strategy of filtered elimination for an optimum."""

from __future__ import annotations

from elimina.methods.filtering import filtered_optimum, optimum_on_rows
from elimina.methods.search_state import SearchLimits
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.strategies.call import Call
from elimina.strategies.facts import Facts, memory_of
from elimina.strategies.row import Row
from elimina.strategies.strategy import Strategy


def filtering(problem: Problem, options: CheckedOptions, run: Call, seconds: float) -> Strategy:
    """Return filtered elimination for at most ``seconds``; it drops assignments worse than the best one so far."""

    def work(budget: Budget) -> Result:
        incumbent = budget.best_result
        upper = options.upper_bound if incumbent is None or incumbent.value is None else int(incumbent.value)
        limits, remaining = SearchLimits(budget.deadline, run.gap, upper), options.after_growth(budget.growth_bytes)
        if options.looks_for_optimum and (options.needs_gpu or options.tables == "sparse"):
            return optimum_on_rows(problem, remaining, limits, budget.report)
        return filtered_optimum(problem, limits, memory_of(remaining), options.seed, budget.report)

    return Strategy(run, "filter", work, seconds=seconds)


def filtered_elimination(facts: Facts, row: Row) -> Strategy:
    """Return filtered elimination with the row's time budget."""
    return filtering(facts.problem, facts.options, facts.call, row.budget(facts))
