"""Approximate methods in turn: each goes on where it was, and the estimate with the least error stands."""

from __future__ import annotations

import math
from collections.abc import Iterator

from elimina.methods.incremental_trees import incremental_trees
from elimina.methods.join_graph_propagation import propagate
from elimina.methods.sum_estimate import EstimateMethod, Limits, SumEstimate
from elimina.planning.options import Options
from elimina.problem.preparation import Problem

METHODS: tuple[EstimateMethod, ...] = (propagate, incremental_trees)
"""Approximate methods, in the order of their first turns."""

NEGLIGIBLE_ERROR = 1e-6
"""Estimated error that needs no better estimate."""


class Estimation:
    """State of the approximate methods for one problem.

    Args:
        problem: Problem whose sum and marginals are estimated.
        options: Options of the call.
        memory_bytes: Bytes that a method may use.

    Attributes:
        best: Estimate with the least error so far; None: there is none.
    """

    def __init__(self, problem: Problem, options: Options, memory_bytes: int) -> None:
        self._limits = Limits(-math.inf, memory_bytes, options.seed)
        self._runs = [method(problem, options, self._limits) for method in METHODS]
        self.best: SumEstimate | None = None

    @property
    def is_done(self) -> bool:
        """True if no method has a better estimate."""
        return not self._runs or (self.best is not None and self.best.error <= NEGLIGIBLE_ERROR)

    def improve(self, deadline: float) -> Iterator[SumEstimate]:
        """Yield better and better estimates until a time.

        Args:
            deadline: By ``time.monotonic``.
        """
        self._limits.deadline = deadline
        while not self.is_done:
            for run in list(self._runs):
                estimate = next(run, None)
                if estimate is None:
                    self._runs.remove(run)
                elif self._is_best(estimate):
                    self.best = estimate
                    yield estimate
                if self._limits.is_over:
                    return

    def _is_best(self, estimate: SumEstimate) -> bool:
        """Return whether an estimate has marginals, or proves that there are none, and its error is the least."""
        is_complete = estimate.shares is not None or estimate.log_z == -math.inf
        return is_complete and (self.best is None or estimate.error < self.best.error)
