"""Strategies that estimate posteriors, where their elimination does not fit the memory or the time."""

from __future__ import annotations

import time

from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.host import host_memory
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Strategy

MEMORY_SHARE = 0.5
"""Share of the host's memory for the tables of one method: others run beside it."""


def estimates(facts: Facts, row: Row) -> Strategy:
    """Return the approximate methods in turn, which go on where they were."""
    solver, options = facts.solver, facts.options

    def work(budget: Budget) -> Result:
        from elimina.methods.estimation import Estimation
        from elimina.methods.marginals import estimated_posteriors

        if solver.estimation is None:
            memory = int(host_memory(options.beside(budget.held)) * MEMORY_SHARE)
            solver.estimation = Estimation(solver.problem, options, memory, solver.rough_order().order)
        inquiry = solver.inquiry
        deadline = time.monotonic() + budget.seconds
        for estimate in solver.estimation.improve(deadline):
            budget.report(estimated_posteriors(inquiry, estimate))
        best = solver.estimation.best
        if best is None:
            if time.monotonic() >= deadline:
                raise TimeLimitError("no estimate was made in time; allow more time")
            raise MemoryLimitError("no approximate method fits the memory; allow more memory")
        return estimated_posteriors(inquiry, best)

    return Strategy(facts.call, "estimate", work, seconds=row.budget(facts))
