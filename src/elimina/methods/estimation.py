"""Approximate methods in turn: each goes on where it was, and the most trustworthy estimate stands."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elimina.methods.importance_sampling import importance_sampling
from elimina.methods.incremental_trees import incremental_trees
from elimina.methods.join_graph_propagation import propagate
from elimina.methods.sum_estimate import EstimateMethod, Limits, SumEstimate, hellinger_distances
from elimina.planning.options import Options
from elimina.problem.preparation import Problem


class Method(NamedTuple):
    """An approximate method, as the others are beside it.

    Attributes:
        run: Generator of its estimates.
        trust: Rank among methods whose estimates contradict each other: the highest one's stands.
        time_share: Share of the time, where others have estimates to make, too.
    """

    run: EstimateMethod
    trust: int
    time_share: float


METHODS = (Method(propagate, 1, 0.2), Method(incremental_trees, 2, 0.4), Method(importance_sampling, 3, 0.4))
"""Approximate methods, in the order of their first turns."""

DOUBT_SHARE = 0.25
"""Share of a contradiction that counts as error of the estimate that stands, for each rank of trust in the other."""


class _Run:
    """A method that runs: its time so far, and its best estimate.

    Args:
        method: The method.
        estimates: Its generator.
    """

    def __init__(self, method: Method, estimates: Iterator[SumEstimate]) -> None:
        self.method, self._estimates = method, estimates
        self.seconds = 0.0
        self.best: SumEstimate | None = None
        self.is_done = False

    @property
    def turn(self) -> float:
        """Time so far by the method's share: the least one has the next turn."""
        return self.seconds / self.method.time_share

    def advance(self) -> None:
        """Make the next estimate; keep it if it has marginals, or proves that there are none, and the least error."""
        started = time.monotonic()
        estimate = next(self._estimates, None)
        self.seconds += time.monotonic() - started
        if estimate is None:
            self.is_done = True
        elif (estimate.shares is not None or estimate.log_z == -math.inf) and (
            self.best is None or estimate.error <= self.best.error
        ):
            self.best = estimate


class Estimation:
    """State of the approximate methods for one problem.

    Args:
        problem: Problem whose sum and marginals are estimated.
        options: Options of the call.
        memory_bytes: Bytes that a method may use.

    Attributes:
        best: Estimate that stands; None: there is none.
    """

    def __init__(self, problem: Problem, options: Options, memory_bytes: int) -> None:
        self._limits = Limits(-math.inf, memory_bytes, options.seed)
        self._sizes = np.array([problem.model.sizes[v] for v in problem.free], dtype=np.int64)
        self._runs = [_Run(method, method.run(problem, options, self._limits)) for method in METHODS]
        self.best: SumEstimate | None = None

    @property
    def is_done(self) -> bool:
        """True if no method has a better estimate, or one has approximated nothing."""
        return all(run.is_done for run in self._runs) or (self.best is not None and self.best.error == 0)

    def improve(self, deadline: float) -> Iterator[SumEstimate]:
        """Yield estimates as better ones are made, until a time.

        Args:
            deadline: By ``time.monotonic``.
        """
        self._limits.deadline = deadline
        while not self.is_done:
            run = min((run for run in self._runs if not run.is_done), key=lambda run: run.turn)
            run.advance()
            chosen = self._chosen()
            if chosen is not None and (self.best is None or chosen.shares is not self.best.shares):
                self.best = chosen
                yield chosen
            self.best = chosen
            if self._limits.is_over:
                return

    def _chosen(self) -> SumEstimate | None:
        """Return the estimate of the method with most trust, or one of less error that agrees with it."""
        chosen: SumEstimate | None = None
        for run in sorted(self._runs, key=lambda run: -run.method.trust):
            if run.best is None:
                continue
            if chosen is None or (run.best.error < chosen.error and self._agree(run.best, chosen)):
                chosen = run.best
        return chosen if chosen is None or chosen.error == 0 else self._doubted(chosen)

    def _doubted(self, chosen: SumEstimate) -> SumEstimate:
        """Return an estimate with larger errors where others contradict it: they may be right."""
        assert chosen.errors is not None
        errors = chosen.errors
        for run in self._runs:
            other = run.best
            if other is None or other is chosen or other.shares is None or other.errors is None:
                continue
            assert chosen.shares is not None
            contradiction = hellinger_distances(chosen.shares, other.shares, self._sizes) - other.errors
            errors = np.maximum(errors, DOUBT_SHARE * run.method.trust * contradiction)
        return chosen._replace(errors=errors)

    def _agree(self, estimate: SumEstimate, other: SumEstimate) -> bool:
        """Return whether an estimate is within the error that another one states."""
        if estimate.shares is None or other.shares is None:
            return other.shares is None
        return float(hellinger_distances(estimate.shares, other.shares, self._sizes).mean()) <= other.error
