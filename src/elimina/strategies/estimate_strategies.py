"""Strategies that estimate posteriors, sums and counts if elimination exceeds the memory or the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Union

from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.result import Result
from elimina.running.advice import needs_for_estimate
from elimina.running.budget import Budget
from elimina.running.estimate_memory import METHOD_MEMORY_SHARE, written_bytes
from elimina.running.host import host_memory
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

if TYPE_CHECKING:
    from elimina.methods.posterior_estimation import PosteriorEstimation
    from elimina.methods.sum_estimation import SumEstimation

Estimation = Union["PosteriorEstimation", "SumEstimation"]


def estimates(facts: Facts, row: Row, begin: Callable[[Facts, int], Estimation]) -> Portfolio:
    """Begin or resume estimates; an earlier failure remains in the outcome unless ``row.ends`` is ``always``.

    Args:
        facts: Facts about the call.
        row: The current row.
        begin: Function that begins estimates within a memory limit in bytes.
    """
    solver, failure = facts.solver, facts.failure

    def work(budget: Budget) -> Result:
        if solver.estimation is None:
            memory = host_memory(facts.options.after_growth(budget.growth_bytes)) * METHOD_MEMORY_SHARE
            solver.estimation = begin(facts, int(memory))
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


def least_memory(facts: Facts, _: Row) -> Attempt:
    """Return the failure of elimination; its text also states the memory that an estimate needs."""
    return Attempt(None, MemoryLimitError(needs_for_estimate(str(facts.failure), written_bytes(facts.problem))))
