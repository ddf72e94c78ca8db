"""Rows of the schedule, and the loop that runs them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from operator import methodcaller
from typing import Literal, NamedTuple

from elimina.strategies.facts import Facts
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

logger = logging.getLogger("elimina")


class Condition(NamedTuple):
    """A condition on facts.

    Attributes:
        words: Text for the log if the condition holds, or a function that returns this text with the current figures.
        holds: Function that returns whether the condition holds.
    """

    words: str | Callable[[Facts], str]
    holds: Callable[[Facts], bool]

    def text(self, facts: Facts) -> str:
        """Return the condition in words."""
        return self.words if isinstance(self.words, str) else self.words(facts)


def no(condition: Condition, words: str) -> Condition:
    """Return the negation of a condition, with its own text."""
    return Condition(words, lambda facts: not condition.holds(facts))


class Row(NamedTuple):
    """A method, its conditions and its budget.

    Attributes:
        name: Name in the log.
        reason: Reason for the row and its figures.
        method: Function that returns a strategy, several strategies, or an outcome (for work without a budget); None:
            the inner rows run.
        conditions: Conditions that all have to hold. They are tested in turn until one fails, so cheap ones come first:
            a condition on memory takes 0.1 ms, because it queries the system.
        seconds: Time budget with one thread, in seconds.
        is_shared: True if several threads share the work, which shortens the time (``turn_share``).
        memory_share: Share of the host's memory for copies of tables.
        ends: Kind of outcome after which no further row runs: an answer, a failure, any outcome, or none.
        rows: Inner rows.
    """

    name: str
    reason: str
    method: Callable[[Facts, Row], Strategy | Portfolio | Attempt] | None = None
    conditions: tuple[Condition, ...] = ()
    seconds: float | Callable[[Facts], float] = math.inf
    is_shared: bool = False
    memory_share: float = 1.0
    ends: Literal["never", "answered", "failed", "always"] = "never"
    rows: tuple[Row, ...] = ()

    def budget(self, facts: Facts) -> float:
        """Return the time budget in seconds, shortened for several threads if they share the work."""
        seconds = self.seconds(facts) if callable(self.seconds) else self.seconds
        return facts.turn_share * seconds if self.is_shared else seconds

    def applies(self, facts: Facts) -> bool:
        """Return whether all conditions hold."""
        # map is faster here than a generator expression, which would take longer than most conditions.
        return all(map(methodcaller("holds", facts), self.conditions))

    def is_last(self, outcome: Attempt) -> bool:
        """Return whether an outcome makes this row the last one."""
        if self.ends == "answered":
            return outcome.result is not None and outcome.failure is None
        return self.ends == "always" or (self.ends == "failed" and outcome.failure is not None)

    def log(self, facts: Facts) -> None:
        """Log the current row and why it runs: its conditions or, without any, its reason."""
        if not logger.isEnabledFor(logging.INFO):
            return
        seconds = self.budget(facts)
        budget = "" if seconds == math.inf else f", for {seconds:.3g} s"
        why = "; ".join(condition.text(facts) for condition in self.conditions) or self.reason
        logger.info("next: %s%s (%s)", self.name, budget, why)


def walk(rows: tuple[Row, ...], facts: Facts) -> Portfolio:
    """Run the rows whose conditions hold, one after another, until an outcome makes a row the last one.

    Returns:
        The outcome that made a row the last one. If none did, the outcome of the latest row whose ``ends`` is not
        ``never``.
    """
    last = Attempt()
    for row in rows:
        if not row.applies(facts):
            continue
        row.log(facts)
        outcome = yield from _run_row(row, facts)
        facts.failure = outcome.failure
        if row.ends != "never":
            last = outcome
        if row.is_last(outcome):
            return outcome
    return last


def _run_row(row: Row, facts: Facts) -> Portfolio:
    step = walk(row.rows, facts) if row.method is None else row.method(facts, row)
    if isinstance(step, Strategy):
        return (yield step)
    if isinstance(step, Attempt):
        return step
    return (yield from step)
