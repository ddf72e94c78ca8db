"""Estimates of a sum: from samples with a confidence interval, or from another method with a smaller error.

The other methods approximate the sum by clusters, regions or trees of bounded size, and cannot measure an error that
they have in common. The error of each method is therefore at least its distance from the closest other method. The
error is unknown if the method agrees with belief propagation and no other method states an error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from elimina.methods.count_bounds import integers_between, sum_of
from elimina.methods.estimate_methods import (
    BELIEF_PROPAGATION,
    GENERALISED_BELIEF_PROPAGATION,
    IMPORTANCE_SAMPLING,
    INCREMENTAL_TREES,
    JOIN_GRAPH_PROPAGATION,
    EstimateMethod,
)
from elimina.methods.join_graph_propagation import METHOD as JOIN_GRAPH
from elimina.methods.sum_estimate import Limits, SumEstimate, log10_interval
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem
from elimina.problem.tasks import Task, described
from elimina.result import Result
from elimina.running.bounded_results import sum_between
from elimina.running.combination import NO_PLAN, within_bounds


class SumMethod(NamedTuple):
    """A method without samples, and its share of the time.

    Attributes:
        method: The method.
        time_share: Share of the time of all estimates.
        replaces_first: True if each of its sums replaces the first sum, from which the others' distances are measured.
    """

    method: EstimateMethod
    time_share: float
    replaces_first: bool = False


SUM_METHODS = (
    SumMethod(BELIEF_PROPAGATION, 0.3, replaces_first=True),
    SumMethod(JOIN_GRAPH_PROPAGATION, 0.15),
    SumMethod(GENERALISED_BELIEF_PROPAGATION, 0.15),
    SumMethod(INCREMENTAL_TREES, 0.2),
)
"""Methods without samples, in the order in which they run. They converge soon or not at all, so samples get the
remaining time."""

EARLIER_CHANGE_SHARE = 0.5
"""Least error of a join graph's sum, as a share of its distance from the sum of belief propagation."""

SURE_ERROR = 0.05
"""Largest standard error (of the natural logarithm) at which samples are always preferred to other methods. A method
that states a smaller error may be biased."""


class SumEstimation:
    """State of the estimation of one sum, or of a count as a sum of products of zeros and ones.

    Args:
        problem: Problem of the task ``pr`` or ``count``.
        task: The task.
        options: Options of the call.
        memory_bytes: Memory limit of a method, in bytes.

    Attributes:
        estimate: The chosen estimate; None: no estimate.
    """

    def __init__(self, problem: Problem, task: Task, options: CheckedOptions, memory_bytes: int) -> None:
        self._task = task
        if described(task).is_count:
            problem = sum_of(problem)
        self._limits = Limits(-math.inf, memory_bytes, options.seed)
        self._runs = [(row, row.method.estimates(problem, options, self._limits)) for row in SUM_METHODS]
        self._samples = IMPORTANCE_SAMPLING.estimates(problem, options, self._limits)
        self._first_log_z: float | None = None
        self._latest: dict[SumMethod, SumEstimate] = {}
        self._of_samples: SumEstimate | None = None
        self.estimate: SumEstimate | None = None

    @property
    def best(self) -> Result | None:
        """Answer from the current best estimate; None: no estimate."""
        return None if self.estimate is None else estimated_sum(self.estimate, self._task)

    def improve(self, deadline: float) -> Iterator[Result]:
        """Yield answers as estimates improve, until a deadline.

        Args:
            deadline: Deadline by ``time.monotonic``.
        """
        seconds = deadline - time.monotonic()
        for row, run in self._runs:
            self._limits.deadline = time.monotonic() + row.time_share * seconds
            for estimate in run:
                if estimate.log_z is None:
                    break
                # The latest estimate replaces earlier ones even if its error is larger, because its approximation is
                # finer.
                self._latest[row] = estimate
                if self._first_log_z is None or row.replaces_first:
                    self._first_log_z = estimate.log_z
                self._limits.has_estimate = True
                self.estimate = self._chosen()
                yield estimated_sum(self.estimate, self._task)
                if self._limits.is_over or not estimate.log_z_error:
                    break
            if self.estimate is not None and not self.estimate.log_z_error:
                return
        self._limits.deadline = deadline
        for estimate in self._samples:
            if estimate.log_z is None:
                break
            self._of_samples = estimate
            self.estimate = self._chosen()
            yield estimated_sum(self.estimate, self._task)
            if self._limits.is_over:
                break

    def _chosen(self) -> SumEstimate:
        """Return the estimate from samples, or the other method's estimate with the least error."""
        assert self._first_log_z is not None or not self._latest
        others = surest(list(self._latest.values()), self._first_log_z or 0.0)
        chosen = combined(others, self._of_samples)
        assert chosen is not None
        return chosen


def surest(estimates: Sequence[SumEstimate], first_log_z: float) -> SumEstimate | None:
    """Raise each estimate's error to its distance from the closest other one; return the one with the least error.

    The result is None if there is no estimate.

    Args:
        estimates: The latest estimate of each method without samples; better methods come last.
        first_log_z: Logarithm of the sum by belief propagation.
    """
    for estimate in estimates:
        if not estimate.log_z_error:
            return estimate
    doubted = [_doubted(estimate, estimates, first_log_z) for estimate in estimates]
    return min(reversed(doubted), key=lambda estimate: estimate.log_z_error, default=None)


def _doubted(estimate: SumEstimate, estimates: Sequence[SumEstimate], first_log_z: float) -> SumEstimate:
    """Return an estimate whose error is at least its distance from the closest estimate of another method.

    The error of belief propagation's sum is unknown, and so is the error of an estimate that agrees with it if no other
    method states an error. The error of a join graph may be as large as its distance from belief propagation.
    """
    assert estimate.log_z is not None
    others = [other for other in estimates if other is not estimate]
    change = abs(estimate.log_z - first_log_z)
    if change <= estimate.log_z_error and all(other.log_z_error == math.inf for other in others):
        return estimate._replace(log_z_error=math.inf)
    distances = [abs(estimate.log_z - other.log_z) for other in others if other.log_z is not None]
    error = max(estimate.log_z_error, min(distances, default=0.0))
    if estimate.method == JOIN_GRAPH:
        error = max(error, EARLIER_CHANGE_SHARE * change)
    return estimate._replace(log_z_error=error)


def combined(others: SumEstimate | None, samples: SumEstimate | None) -> SumEstimate | None:
    """Return the better estimate, from samples or from another method; a contradiction between them raises its error.

    An estimate of another method is rejected if it is outside the samples' interval. Otherwise, its error is at least
    that of the samples, because they cannot confirm the estimate more closely.

    Args:
        others: Best estimate without samples; None: no such estimate.
        samples: Estimate from samples; None: no samples.
    """
    if samples is None or others is None or -math.inf in (samples.log_z, others.log_z):
        return samples if others is None or (samples is not None and samples.is_zero) else others
    assert others.log_z is not None
    assert samples.log_z is not None
    interval, difference = samples.interval, abs(others.log_z - samples.log_z)
    if interval is not None and not interval.low <= others.log_z <= interval.high:
        return samples
    if samples.log_z_error <= max(SURE_ERROR, others.log_z_error):
        doubt = 0.0 if samples.log_z_error <= SURE_ERROR else difference - others.log_z_error
        return samples._replace(log_z_error=max(samples.log_z_error, doubt))
    error = max(others.log_z_error, samples.log_z_error, difference - samples.log_z_error)
    return others._replace(log_z_error=error, interval=interval, upper=samples.upper)


def estimated_sum(estimate: SumEstimate, task: Task) -> Result:
    """Return the answer from the estimate of a sum.

    Args:
        estimate: Estimate of the sum.
        task: ``pr``, or ``count`` if the sum is a number of assignments.
    """
    stats = {**NO_PLAN, "method": estimate.method, **estimate.figures}
    assert estimate.log_z is not None
    if estimate.is_zero:
        proven = Result("exact", task, 0, 0, 0) if described(task).is_count else sum_between(-math.inf, -math.inf)
        return proven.replace(stats=stats)
    upper: int | float | None = None
    if estimate.upper < math.inf:
        is_count = described(task).is_count
        upper = integers_between(-math.inf, estimate.upper)[1] if is_count else estimate.upper / math.log(10)
    error = None if estimate.log_z_error == math.inf else estimate.stated_log_error / math.log(10)
    interval = log10_interval(estimate.interval)
    log10_z = estimate.log_z / math.log(10)
    return within_bounds(
        Result("estimated", task, None, None, upper, log10_z=log10_z, error=error, interval=interval, stats=stats)
    )
