"""Search for an optimum until the call ends."""

from __future__ import annotations

from elimina.errors import MemoryLimitError
from elimina.methods.paused_search import PausedSearch
from elimina.running.advice import does_not_fit
from elimina.strategies.facts import Facts, can_filter
from elimina.strategies.filtering_strategy import filtering
from elimina.strategies.row import Row
from elimina.strategies.search_strategies import by_search
from elimina.strategies.strategy import Attempt, Portfolio

FILTER_TIME_SHARE = 0.25
"""Time of filtering, relative to the time of the preceding search."""


def search_to_the_end(facts: Facts, row: Row) -> Portfolio:
    """Alternate filtering and search with growing budgets, then only search until the call ends."""
    problem, options, run, seconds = facts.planned.problem, facts.options, facts.call, row.budget(facts)
    reason = "" if facts.plan.fits else does_not_fit(facts.plan)
    if not facts.plan.fits:
        # The plan is released, because it may have very many steps and the search needs the memory.
        facts.prepared = None
    paused = PausedSearch()
    while run.best_result is not None and can_filter(problem, options.after_growth(run.growth_bytes)):
        outcome = yield filtering(problem, options, run, FILTER_TIME_SHARE * seconds)
        if outcome.failure is not None:
            return outcome
        seconds *= 2
        yield by_search(problem, options, run, paused, seconds)
    result, failure = yield by_search(problem, options, run, paused)
    if failure is not None and reason:
        # The search fails if the factors do not fit or costs are too large. The text about the plan's memory is more
        # helpful than the search's error.
        failure = MemoryLimitError(reason)
    return Attempt(result, failure)
