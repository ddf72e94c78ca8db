"""Strategies that estimate posteriors, sums and counts if elimination exceeds the memory or the time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.result import Result
from elimina.running.advice import needs_for_estimate
from elimina.running.budget import Budget
from elimina.running.estimate_memory import METHOD_MEMORY_SHARE, written_bytes
from elimina.running.host import host_memory
from elimina.strategies.call import FIRST_BOUNDS_AGE_SECONDS
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


def provide_estimate(facts: Facts, _: Row) -> Attempt:
    """Provide an estimate for a call that ends without any."""
    solver, call = facts.solver, facts.call

    def first_estimate(_: float) -> Result | None:
        from elimina.methods.posterior_estimation import quick_posteriors

        return None if call.best_result is not None else quick_posteriors(solver.inquiry)

    call.fallback, call.fallback_after = first_estimate, FIRST_BOUNDS_AGE_SECONDS
    return Attempt()


def least_memory(facts: Facts, _: Row) -> Attempt:
    """Return the failure of elimination, with the memory that an estimate needs."""
    return Attempt(None, MemoryLimitError(needs_for_estimate(str(facts.failure), written_bytes(facts.problem))))


def _estimation(facts: Facts, budget: Budget) -> PosteriorEstimation | SumEstimation:
    """Begin estimates of posteriors, a sum or a count."""
    solver, options = facts.solver, facts.options
    memory = int(host_memory(options.beside(budget.held)) * METHOD_MEMORY_SHARE)
    if facts.description.is_marginal:
        from elimina.methods.posterior_estimation import PosteriorEstimation

        return PosteriorEstimation(solver.inquiry, options, memory, lambda: solver.rough_order().order)
    from elimina.methods.sum_estimation import SumEstimation

    return SumEstimation(solver.problem, facts.task, options, memory)
