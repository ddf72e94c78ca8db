"""Approximate methods that run in turn; each resumes where it stopped, and the best estimate is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from elimina._core import stopped
from elimina.methods.estimate_choice import Candidate, choose_estimate
from elimina.methods.estimate_methods import (
    BELIEF_PROPAGATION,
    BELIEF_WAVES,
    BLOCK_GIBBS,
    CUTSET_CONDITIONING,
    GENERALISED_BELIEF_PROPAGATION,
    IMPORTANCE_SAMPLING,
    INCREMENTAL_TREES,
    JOIN_GRAPH_PROPAGATION,
    EstimateMethod,
)
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem


class MarginalMethod(NamedTuple):
    """An approximate method for marginals, with its rank and its share of the time.

    Attributes:
        method: The method.
        trust: Rank among methods whose estimates contradict each other; from ``RELIABLE_TRUST`` on, the method's own
            errors are reliable.
        time_share: Share of the time, relative to the shares of the other methods that still run.
        is_exact: True if the method gives only exact answers.
    """

    method: EstimateMethod
    trust: int
    time_share: float
    is_exact: bool = False


METHODS = (
    MarginalMethod(BELIEF_WAVES, 1, 0.2),
    MarginalMethod(BELIEF_PROPAGATION, 1, 0.2),
    MarginalMethod(JOIN_GRAPH_PROPAGATION, 1, 0.2),
    MarginalMethod(CUTSET_CONDITIONING, 4, 0.2, is_exact=True),
    MarginalMethod(GENERALISED_BELIEF_PROPAGATION, 2, 0.3),
    MarginalMethod(INCREMENTAL_TREES, 3, 0.4),
    MarginalMethod(IMPORTANCE_SAMPLING, 3, 0.4),
    MarginalMethod(BLOCK_GIBBS, 3, 0.4),
)
"""Approximate methods in the order of their first turns."""


LEADER_FACTOR = 3.0
"""Factor on the time share of the method with the current estimate, because improving this estimate helps most."""

SAMPLING_FACTOR, SAMPLING_AGE_SECONDS = 4.0, 3.0
"""Limits of a reduction of time shares. If the current estimate comes from samples, the time share of another method is
divided by the ratio of its error to the error of the samples. This divisor is at most the first limit. It applies only
when all methods together have run for the second limit, because some methods start slowly and end well."""


MAX_WAIT_SECONDS = 0.01
"""A turn without an estimate is not counted if it takes at most this many seconds. Methods that wait thus keep their
place in the sequence."""


class _Run:
    """State of a running method: its time so far, and its best estimate.

    Args:
        row: The method.
        estimates: Generator of the method's estimates.

    Attributes:
        best: Best estimate so far; None: no estimate.
        is_done: True if the method has no further estimates.
        is_waiting: True if the method cannot make an estimate in the remaining time.
    """

    def __init__(self, row: MarginalMethod, estimates: Iterator[SumEstimate]) -> None:
        self.row, self._estimates = row, estimates
        self.seconds = 0.0
        self.best: SumEstimate | None = None
        self.is_done = self.is_waiting = False

    @property
    def turn(self) -> float:
        """Time so far relative to the method's share; the method with the smallest value gets the next turn."""
        return self.seconds / self.row.time_share

    def advance(self) -> None:
        """Make the next estimate; store it if it has marginals or proves a sum of 0, and has the least error so far.

        Estimates from samples are stored regardless of their error: a better proposal may reveal that the error is
        larger.
        """
        started = time.monotonic()
        estimate = next(self._estimates, None)
        seconds = time.monotonic() - started
        self.is_waiting = estimate is not None and estimate.shares is None and not estimate.is_zero
        if not self.is_waiting or seconds > MAX_WAIT_SECONDS:
            self.seconds += seconds
        if estimate is None:
            self.is_done = True
            return
        is_better = self.best is None or estimate.folds is not None or estimate.error <= self.best.error
        if not self.is_waiting and is_better:
            self.best = estimate


class Estimation:
    """State of the approximate methods for one problem.

    Args:
        problem: Problem whose sum and marginals are estimated.
        options: Options of the call; with ``exact``, only exact methods run.
        memory_bytes: Memory limit of a method, in bytes.
        find_order: Function that quickly finds an elimination order of the free variables; None: methods find their
            own.

    Attributes:
        best: The chosen estimate; None: no estimate.
    """

    def __init__(
        self,
        problem: Problem,
        options: CheckedOptions,
        memory_bytes: int,
        find_order: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        def find_positions() -> Sequence[int]:
            assert find_order is not None
            positions: list[int] = np.searchsorted(problem.free, find_order()).tolist()
            return positions

        self._limits = Limits(-math.inf, memory_bytes, options.seed, None if find_order is None else find_positions)
        self._sizes = problem.free_sizes
        rows = [row for row in METHODS if row.is_exact or not options.exact]
        self._runs = [_Run(row, row.method.estimates(problem, options, self._limits)) for row in rows]
        self.best: SumEstimate | None = None

    @property
    def is_done(self) -> bool:
        """True if no method can give a better estimate, or if the estimate is exact."""
        return all(run.is_done for run in self._runs) or (self.best is not None and self.best.error == 0)

    def improve(self, deadline: float) -> Iterator[SumEstimate]:
        """Yield improving estimates until ``deadline``, or until no method can make another one in that time.

        Args:
            deadline: Deadline by ``time.monotonic``.
        """
        self._limits.deadline = deadline
        for run in self._runs:
            run.is_waiting = False
        while not self.is_done and (ready := [run for run in self._runs if not (run.is_done or run.is_waiting)]):
            run = min(ready, key=self._turn)
            run.advance()
            estimate = self._chosen()
            self._limits.has_estimate = estimate is not None
            if estimate is not None and (self.best is None or estimate.shares is not self.best.shares):
                self.best = estimate
                yield estimate
            self.best = estimate
            # The first estimate may end late, because a call without any estimate would have no answer.
            if stopped() or (self.best is not None and self._limits.is_over):
                return

    def _turn(self, run: _Run) -> float:
        """Return the time of a method relative to its share.

        The share depends on the errors of the method's best estimate and of the current estimate.
        """
        if self.best is None or run.best is None:
            return run.turn
        if run.best.method == self.best.method:
            return run.turn / LEADER_FACTOR
        if not self._is_sampled or not self.best.error or sum(r.seconds for r in self._runs) < SAMPLING_AGE_SECONDS:
            return run.turn
        return run.turn * min(max(1.0, run.best.error / self.best.error), SAMPLING_FACTOR)

    @property
    def _is_sampled(self) -> bool:
        """True if the current estimate comes from samples, which measure errors."""
        methods = [run.best.method for run in self._runs if run.best is not None and run.best.folds is not None]
        return self.best is not None and self.best.method in methods

    def _chosen(self) -> SumEstimate | None:
        candidates = [Candidate(run.best, run.row.trust) for run in self._runs if run.best is not None]
        return choose_estimate(candidates, self._sizes)
