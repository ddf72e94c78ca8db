"""Strategies: methods to answer a question, the budget of each, and its outcome.

A portfolio is a generator of strategies. It is told the outcome of each before it yields the next, so that it may look
at what is known, and go on differently where something does not fit. ``anytime.Run.pursue`` runs it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple

from elimina.errors import EliminaError
from elimina.planning.plan import Plan
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.inference.anytime import Run
    from elimina.inference.consistency import Consistency
    from elimina.inference.improve import Improvement
    from elimina.inference.shifting import Original
    from elimina.planning.prepare import Problem

FIRST_TURN = 0.25
"""Seconds of soft local consistency before anything else is tried."""

LEAST_KEPT = 1 << 30
"""Limit of the memory in bytes from which a search is kept for the next one."""


class Budget(NamedTuple):
    """Budget of a strategy: its time, the bounds and assignment so far, and a listener for its results.

    Attributes:
        deadline: By ``time.monotonic``; None: there is none.
        known: Best result so far.
        learn: Called with bounds as soon as they are known.
        held: Bytes that the call holds already, about.
    """

    deadline: float | None
    known: Result | None
    learn: Callable[[Result], None]
    held: int = 0

    @property
    def seconds(self) -> float:
        """Seconds until the deadline."""
        return math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class Strategy(NamedTuple):
    """A way to answer a question.

    Attributes:
        run: The call, or the part of it, that keeps what is found.
        name: Name in logs and of its phase.
        work: Returns an answer, or better bounds.
        plan: Predicted work, time and memory, where a plan is run; one that does not fit is not begun.
        seconds: Time budget; the call's time limit holds as well.
    """

    run: Run
    name: str
    work: Callable[[Budget], Result]
    plan: Plan | None = None
    seconds: float = math.inf


class Attempt(NamedTuple):
    """Result of a strategy, or its failure: memory or its own time were too little, or it cannot take the model."""

    found: Result | None = None
    failure: EliminaError | None = None

    @staticmethod
    def failed(error: EliminaError) -> Attempt:
        """Return a failure without its tracebacks, whose frames would keep tables alive."""
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__
        return Attempt(None, error)


class Paused:
    """State that a search leaves to the next one of the same problem.

    Attributes:
        problem: Problem of both; None: nothing was left yet.
        original: The problem with its costs shifted.
        improvement: Local search where it stopped; None: it was not begun, or its tables are too large.
        consistency: Soft local consistency where it stopped; None: it was not begun, or is to begin again.
        first_order: Elimination order that was found quickly; None: none was.
        order: Number of the order of soft local consistency (``consistency_order``).
        orders: Number of the last order that was tried.
        is_spent: True if soft local consistency has nothing left to do.
        unit: The units that it had when it was done the last time.
    """

    def __init__(self) -> None:
        self.clear()

    def within(self, problem: Problem, memory: int) -> Paused:
        """Return the state for a problem: itself, without what other problems left, or a new one in little memory."""
        if memory < LEAST_KEPT:
            return Paused()
        if self.problem is not problem:
            self.clear(problem)
        return self

    def clear(self, problem: Problem | None = None) -> None:
        """Leave nothing, or no more than the problem."""
        self.problem = problem
        self.original: Original | None = None
        self.improvement: Improvement | None = None
        self.consistency: Consistency | None = None
        self.first_order: tuple[int, ...] | None = None
        self.order = self.orders = 0
        self.is_spent = False
        self.unit: int | float = 0


Portfolio = Generator[Strategy, Attempt, Attempt]
"""Strategies in turn. What it returns is the outcome of all: a failure ends the call."""


def portfolio_of(strategy: Strategy) -> Portfolio:
    """Return a portfolio of one strategy."""
    return (yield strategy)
