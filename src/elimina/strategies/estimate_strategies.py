"""Strategies that estimate posteriors, sums and counts if elimination exceeds the memory or the time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.estimate_memory import METHOD_MEMORY_SHARE
from elimina.running.host import host_memory
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

if TYPE_CHECKING:
    from elimina.methods.posterior_estimation import PosteriorEstimation
    from elimina.methods.sum_estimation import SumEstimation


def estimates(facts: Facts, row: Row) -> Portfolio:
    """Begin or resume estimates; if more rows follow, an earlier failure of elimination stays the outcome's failure."""
    solver, failure = facts.solver, facts.failure

    def work(budget: Budget) -> Result:
        if solver.estimation is None:
            solver.estimation = _estimation(facts, budget)
        deadline = time.monotonic() + budget.seconds
        for result in solver.estimation.improve(deadline):
            budget.report(result)
        best = solver.estimation.best
        if best is None:
            if time.monotonic() >= deadline:
                raise TimeLimitError("no estimate was made in time; allow more time")
            raise MemoryLimitError("no approximate method fits the memory; allow more memory")
        return best

    outcome = yield Strategy(facts.call, "estimate", work, seconds=row.budget(facts))
    return outcome if row.ends == "always" else Attempt(outcome.result, failure or outcome.failure)


def _estimation(facts: Facts, budget: Budget) -> PosteriorEstimation | SumEstimation:
    """Begin estimates of posteriors, a sum or a count."""
    solver, options = facts.solver, facts.options
    memory = int(host_memory(options.beside(budget.held)) * METHOD_MEMORY_SHARE)
    if facts.description.is_marginal:
        from elimina.methods.posterior_estimation import PosteriorEstimation

        return PosteriorEstimation(solver.inquiry, options, memory, solver.rough_order().order)
    from elimina.methods.sum_estimation import SumEstimation

    return SumEstimation(solver.problem, facts.task, options, memory)
