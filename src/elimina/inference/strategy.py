"""Strategies: methods to answer a question, the budget of each in time and memory, and its outcome.

A portfolio is a generator of strategies. It is told the outcome of each before it yields the next, so that it may look
at what is known, and go on differently where something does not fit. ``anytime.Run.pursue`` runs it.

Parts of a search for the optimum that live at the same time share the memory. First come the tables: costs are shifted
between them, and soft local consistency copies them. What they leave is shared out among the messages of mini-buckets,
open nodes, and the cache of AND/OR search.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elimina.errors import EliminaError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.inference.execution import does_not_fit
from elimina.planning.plan import Plan
from elimina.planning.prepare import Problem
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.inference.anytime import Run
    from elimina.inference.consistency import Consistency
    from elimina.inference.knowledge import Improvement
    from elimina.inference.shifting import Original

logger = logging.getLogger("elimina")

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


def attempt(strategy: Strategy) -> Attempt:
    """Run a strategy, keep its results, and time its phases."""
    run, name, plan = strategy.run, strategy.name, strategy.plan
    if plan is not None and not plan.fits:
        return Attempt(None, MemoryLimitError(does_not_fit(plan)))
    logger.info("%s: started", name)
    try:
        with run.phase(name) as parts:
            found = strategy.work(run.budget(strategy.seconds))
            parts.update(found.stats.get("seconds", {}))
            run.learn(found)
    except (MemoryLimitError, UnsupportedError) as error:
        return Attempt.failed(error)
    except TimeLimitError as error:
        if run.is_over:
            raise
        return Attempt.failed(error)
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s: ended after %s s, %s", name, f"{run.age:.3g}", _described(found))
    return Attempt(found)


def _described(found: Result) -> str:
    """Return the status and bounds of a result, for the log."""
    if found.status not in ("bounded", "feasible"):
        return found.status
    ends = ("unknown" if end is None else f"{end:.12g}" for end in (found.lower_bound, found.upper_bound))
    return f"{found.status}: {' to '.join(ends)}"


_MOST_CELLS = 2**26
"""Most cells of all tables together."""

_CELL_BYTES = 56
"""Distances, in the core's units, there, shifted, for local search, and as tables, twice: 64 bits each."""

_TABLE_BYTES, _KEPT_BYTES = 2500, 1200
"""Bytes of a table's objects besides its cells while copies are made, and afterwards: of 24,777 tables of 4 cells."""

_VALUE_BYTES, _FUNCTION_BYTES = 24, 40
"""Bytes that a thread of soft local consistency keeps for each value and each function: fitted to 414_VAC and log-4."""

_TABLES = 2
"""Part of the memory that cells of tables may take; a search also keeps messages and a cache."""

_THREADS = 16
"""Part of the memory that the threads of soft local consistency may take, besides the first one."""

_WHOLE = 1 << 22
"""Limit in bytes up to which they may take all of it: a process takes more than that for anything."""

_MESSAGES, _NODES, _CACHE = 0.5, 0.25, 0.25
"""Shares of the memory that the tables do not take."""

_LEAST_LEFT = 0.25
"""Share of the memory that counts as left, however much the tables take: small messages bound something, too."""


class Shares(NamedTuple):
    """Bytes of the parts that live at the same time.

    Attributes:
        messages: Messages of mini-buckets.
        nodes: Open nodes of soft local consistency.
        cache: Cache of AND/OR search.
    """

    messages: int
    nodes: int
    cache: int


def cells_of(problem: Problem) -> int:
    """Return the total number of cells of all groups' tables, exact up to 2^53."""
    return int(problem.groups.cells(problem.model.sizes).sum())


def can_copy(cells: int, tables: int, memory: int) -> bool:
    """Return whether tables may be shifted, or made consistent, within a limit.

    Args:
        cells: Cells of all tables together.
        tables: Number of tables.
        memory: Limit in bytes.
    """
    if cells > min(_MOST_CELLS, max(memory // _TABLES, min(memory, _WHOLE)) // _CELL_BYTES):
        return False
    return memory <= _WHOLE or _CELL_BYTES * cells + _TABLE_BYTES * tables <= memory


def threads_within(problem: Problem, threads: int, memory: int) -> int:
    """Return how many threads may search by soft local consistency, or locally: each keeps costs of its own.

    Args:
        problem: Problem of the task ``mpe``.
        threads: Most threads.
        memory: Limit in bytes.
    """
    values = int(np.array(problem.model.sizes)[problem.groups.scopes.members].sum())
    own = _VALUE_BYTES * values + _FUNCTION_BYTES * len(problem.groups)
    return max(1, min(threads, 1 + int(memory // _THREADS // max(1, own))))


def shares_of(problem: Problem, memory: int) -> Shares:
    """Share out the memory of a search.

    Args:
        problem: Problem of the task ``mpe``.
        memory: Bytes of the host that the search may use.
    """
    cells, tables, left = cells_of(problem), len(problem.groups), memory
    if memory > _WHOLE and can_copy(cells, tables, memory):
        left -= _KEPT_BYTES * tables + _CELL_BYTES * cells
        left = max(left, int(_LEAST_LEFT * memory))
    return shared(left)


def shared(left: int) -> Shares:
    """Share out the bytes that tables leave."""
    return Shares(int(_MESSAGES * left), int(_NODES * left), int(_CACHE * left))
