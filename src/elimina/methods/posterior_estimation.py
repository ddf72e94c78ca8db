"""Estimates of posteriors that are asked for, as answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from elimina.methods.estimation import Estimation
from elimina.methods.junction_structure import MarginalQuery
from elimina.methods.marginals import estimated_posteriors
from elimina.planning.options import Options
from elimina.result import Result


class PosteriorEstimation:
    """State of the approximate methods for posteriors.

    Args:
        inquiry: Posteriors that are asked for.
        options: Options of the call.
        memory_bytes: Bytes that a method may use.
        order: Free variables in a quick order of elimination; None: methods find one.
    """

    def __init__(
        self, inquiry: MarginalQuery, options: Options, memory_bytes: int, order: Sequence[int] | None = None
    ) -> None:
        self._inquiry = inquiry
        self._estimation = Estimation(inquiry.structure.problem, options, memory_bytes, order)

    @property
    def best(self) -> Result | None:
        """Answer of the estimate that stands; None: there is none."""
        estimate = self._estimation.best
        return None if estimate is None else estimated_posteriors(self._inquiry, estimate)

    def improve(self, deadline: float) -> Iterator[Result]:
        """Yield answers as better estimates are made, until a time.

        Args:
            deadline: By ``time.monotonic``.
        """
        for estimate in self._estimation.improve(deadline):
            yield estimated_posteriors(self._inquiry, estimate)
