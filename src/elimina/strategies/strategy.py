"""Strategies: methods that may answer a question, their budgets of time and memory, and their outcomes.

A portfolio is a generator of strategies. It receives the outcome of each strategy before it yields the next one, so its
choice can depend on the bounds so far, and on failures such as tables that do not fit.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Generator
from typing import NamedTuple, cast

from elimina import system
from elimina._core import Stopped
from elimina.errors import EliminaError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.number_texts import number_text
from elimina.planning.plan import Plan
from elimina.result import OPEN_STATUSES, Result, error_rows, log10_z_rows
from elimina.running.advice import does_not_fit
from elimina.running.budget import Budget
from elimina.strategies.call import Call

logger = logging.getLogger("elimina")


class Strategy(NamedTuple):
    """A method that may answer a question, or improve the bounds on its answer.

    Attributes:
        run: The call, or the inner call, that stores bounds and assignments.
        name: Name in logs, and of the strategy's phase.
        work: Function that returns an answer, or better bounds.
        plan: Plan to run, if there is one; a strategy whose plan does not fit fails at once.
        seconds: Time budget in seconds; the call's time limit applies as well.
    """

    run: Call
    name: str
    work: Callable[[Budget], Result]
    plan: Plan | None = None
    seconds: float = math.inf


class Attempt(NamedTuple):
    """Outcome of a strategy: its result, its failure (too little memory or time, an unsupported model), or neither."""

    result: Result | None = None
    failure: EliminaError | None = None

    @staticmethod
    def failed(error: EliminaError) -> Attempt:
        """Return a failure without tracebacks, because their frames would keep tables in memory."""
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__
        return Attempt(None, error)


Portfolio = Generator[Strategy, Attempt, Attempt]
"""Generator of strategies: it receives each outcome, and returns the overall outcome. The call fails if that is a
failure."""


def portfolio_of(strategy: Strategy) -> Portfolio:
    """Return a portfolio of one strategy."""
    return (yield strategy)


def attempt(strategy: Strategy) -> Attempt:
    """Run a strategy, report its result to the call, and time its phases; return its outcome.

    Raises:
        TimeLimitError: The call's time is up.
        Stopped: The call has to end.
    """
    run, name, plan = strategy.run, strategy.name, strategy.plan
    if plan is not None and not plan.fits:
        return Attempt(None, MemoryLimitError(does_not_fit(plan)))
    logger.info("%s: started", name)
    try:
        with run.phase(name) as part_seconds:
            result = strategy.work(run.budget(strategy.seconds))
            part_seconds.update(result.stats.get("seconds", {}))
            run.report(result)
    except (MemoryLimitError, UnsupportedError) as error:
        return Attempt.failed(error)
    except TimeLimitError as error:
        if run.is_over:
            raise
        return Attempt.failed(error)
    except Stopped:
        # If the call is not over, a time limit within the method has passed, so only the strategy failed.
        if run.is_over:
            raise
        return Attempt.failed(TimeLimitError(f"{name} ended at a time limit of its own"))
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s: ended after %s s, %s", name, f"{run.age:.3g}", _described(result))
    return Attempt(result)


def pursue(run: Call, portfolio: Portfolio) -> None:
    """Run the strategies of a portfolio until it ends or the answer is good enough.

    Raises:
        EliminaError: The portfolio ended with a failure.
    """
    with contextlib.closing(portfolio):
        try:
            strategy = next(portfolio)
            while True:
                outcome = attempt(strategy)
                if run.is_answered:
                    return
                # Memory is released for the next strategy's tables.
                system.release_memory()
                strategy = portfolio.send(outcome)
        except StopIteration as end:
            outcome = end.value
    if outcome.failure is not None:
        raise outcome.failure


def until_answered(inner_call: Call, portfolio: Portfolio) -> Portfolio:
    """Yield the strategies of an inner call until it is answered; other strategies of the outer call may follow."""
    with contextlib.closing(portfolio):
        try:
            strategy = next(portfolio)
            while True:
                outcome = yield strategy
                if inner_call.is_answered:
                    return outcome
                strategy = portfolio.send(outcome)
        except StopIteration as end:
            return cast(Attempt, end.value)


def _described(result: Result) -> str:
    """Return the status and bounds of a result as text for the log."""
    if result.status == "estimated":
        rows = [*error_rows(result), *log10_z_rows(result)]
        return "estimated: " + ", ".join(f"{name} {text}" for name, text in rows)
    if result.status not in OPEN_STATUSES:
        return result.status
    return f"{result.status}: {_end_text(result.lower_bound)} to {_end_text(result.upper_bound)}"


def _end_text(end: float | None) -> str:
    if end is None:
        return "unknown"
    return f"{end:.12g}" if isinstance(end, float) else number_text(end)
