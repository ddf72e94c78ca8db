"""Strategy of a local search for an optimum."""

from __future__ import annotations

from elimina.errors import TimeLimitError
from elimina.methods.local_search import AssignmentSearch
from elimina.methods.paused_search import PausedSearch
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.host import sharing_threads
from elimina.strategies.call import Call
from elimina.strategies.facts import Facts, memory_of
from elimina.strategies.row import Row
from elimina.strategies.strategy import Strategy


def improving(problem: Problem, options: CheckedOptions, run: Call, paused: PausedSearch, seconds: float) -> Strategy:
    """Return a local search with a time limit that starts from the best assignment so far."""

    def work(budget: Budget) -> Result:
        memory = memory_of(options.after_growth(budget.growth_bytes))
        kept = paused.within(problem, memory)
        search = kept.improvement
        if search is None:
            search = AssignmentSearch.of(problem, memory, options.seed, sharing_threads(options))
            kept.improvement = search
        if search is not None:
            incumbent = budget.best_result
            if incumbent is not None and incumbent.assignment is not None:
                search.start(problem.model.indices_of(incumbent.assignment))
            search.run(budget.seconds)
        result = None if search is None else search.result()
        if result is None:
            raise TimeLimitError("local search found no allowed assignment")
        return result

    return Strategy(run, "improve", work, seconds=seconds)


def local_search(facts: Facts, row: Row) -> Strategy:
    """Return a local search with the row's time budget."""
    return improving(facts.problem, facts.host_options, facts.call, facts.paused, row.budget(facts))
