"""A call in the caller's thread, for engines that check the clock and signals themselves."""

from __future__ import annotations

from collections.abc import Callable

from elimina.result import EndedBy, Result
from elimina.strategies.causes import cause_of
from elimina.strategies.clock import Clock

_PROVEN = ("optimal", "exact", "infeasible", "unbounded")
"""Statuses of answers that are complete even if the work ended early."""


class DirectCall(Clock):
    """A call without a separate thread.

    A ``Call`` takes 5 us to make and 0.2 ms to hand work to its thread, much longer than a small search (50 us).
    """

    def answer(self, work: Callable[[], Result], early: Callable[[EndedBy], Result | None]) -> Result:
        """Do the work; if it ends early, return the answer so far.

        Args:
            work: Work that raises ``TimeLimitError`` soon after the deadline, and ``KeyboardInterrupt`` soon after a
                signal, or returns its result so far.
            early: Function that returns the answer so far from the cause of the end; None if there is none.

        Raises:
            KeyboardInterrupt: The user interrupted before there was any result.
            EliminaError: The work failed, or ended without a result.
        """
        try:
            return work()
        except BaseException as error:
            cause = cause_of(error)
            result = None if cause is None else early(cause)
            if result is None:
                raise
        return result.replace(ended_by=None if result.status in _PROVEN else cause)
