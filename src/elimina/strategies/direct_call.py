"""A call in the caller's thread, for engines that check the clock and signals themselves."""

from __future__ import annotations

from collections.abc import Callable

from elimina.result import EndedBy, Result
from elimina.strategies.causes import cause_of
from elimina.strategies.clock import Clock

_PROVEN = ("optimal", "exact", "infeasible", "unbounded")
"""Statuses of complete answers, which an early end does not change."""


class DirectCall(Clock):
    """A call without a separate thread.

    Creating a ``Call`` takes 5 us, and handing work to its thread 0.2 ms: much longer than a small search (50 us).
    """

    def answer(self, work: Callable[[], Result], early: Callable[[EndedBy], Result | None]) -> Result:
        """Do the work; return its answer or, if it ends early, the answer so far.

        Args:
            work: Function that returns the answer. Soon after the deadline, it raises ``TimeLimitError``, and soon
                after a signal, ``KeyboardInterrupt``; or it returns its result so far.
            early: Function that returns the answer so far for a cause of the early end; None if there is no answer.

        Raises:
            KeyboardInterrupt: The user interrupted the call before its first result.
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
