"""Estimates of a sum: from samples with a confidence interval, or of a join graph if that is more certain."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from elimina.methods.count_bounds import integers_between, sum_of
from elimina.methods.importance_sampling import importance_sampling
from elimina.methods.join_graph_propagation import propagate
from elimina.methods.sum_estimate import Limits, SumEstimate, log10_interval
from elimina.planning.options import Options
from elimina.problem.preparation import Problem
from elimina.problem.tasks import Task, described
from elimina.result import Result
from elimina.running.bounded_results import sum_between
from elimina.running.combination import NO_PLAN, within_bounds

JOIN_GRAPH_TIME_SHARE = 0.25
"""Share of the time for join graphs, which converge soon or seldom."""

EARLIER_CHANGE_SHARE = 0.5
"""Share of the distance from the first join graph's estimate that counts as error: larger graphs may be as far off."""

SURE_ERROR = 0.05
"""Standard error of a natural logarithm up to which samples are not doubted: join graphs, even if surer, are biased."""


class SumEstimation:
    """State of the estimates of one sum, or of a count as the sum of products of zeros and ones.

    Args:
        problem: Problem of the task ``pr`` or ``count``.
        task: The task.
        options: Options of the call.
        memory_bytes: Bytes that a method may use.

    Attributes:
        estimate: The chosen estimate; None: there is none.
    """

    def __init__(self, problem: Problem, task: Task, options: Options, memory_bytes: int) -> None:
        self._task = task
        if described(task).is_count:
            problem = sum_of(problem)
        self._limits = Limits(-math.inf, memory_bytes, options.seed)
        self._graphs = propagate(problem, options, self._limits)
        self._samples = importance_sampling(problem, options, self._limits)
        self._first_log_z: float | None = None
        self._of_graphs: SumEstimate | None = None
        self._of_samples: SumEstimate | None = None
        self.estimate: SumEstimate | None = None

    @property
    def best(self) -> Result | None:
        """Answer of the current best estimate; None if there is none."""
        return None if self.estimate is None else estimated_sum(self.estimate, self._task)

    def improve(self, deadline: float) -> Iterator[Result]:
        """Yield answers as better estimates are made, until a time.

        Args:
            deadline: The time, by ``time.monotonic``.
        """
        now = time.monotonic()
        self._limits.deadline = now + JOIN_GRAPH_TIME_SHARE * (deadline - now)
        for graph_estimate in self._graphs:
            estimate = self._doubted(graph_estimate)
            if estimate.log_z is not None and (
                self._of_graphs is None or estimate.log_z_error <= self._of_graphs.log_z_error
            ):
                self._of_graphs = estimate
                self.estimate = self._combined()
                yield estimated_sum(self.estimate, self._task)
            if self._limits.is_over or estimate.is_zero:
                break
        if self.estimate is not None and self.estimate.log_z_error == 0:
            return
        self._limits.deadline = deadline
        for estimate in self._samples:
            if estimate.log_z is not None:
                self._of_samples = estimate
                self.estimate = self._combined()
                yield estimated_sum(self.estimate, self._task)
            if self._limits.is_over:
                break

    def _doubted(self, estimate: SumEstimate) -> SumEstimate:
        """Return a join graph's estimate with an error that allows for the change since the first one."""
        if estimate.log_z is None or not estimate.log_z_error:
            return estimate
        if self._first_log_z is None:
            self._first_log_z = estimate.log_z
        change = EARLIER_CHANGE_SHARE * abs(estimate.log_z - self._first_log_z)
        return estimate._replace(log_z_error=max(estimate.log_z_error, change))

    def _combined(self) -> SumEstimate:
        """Return the surer estimate, of samples or of a join graph; its error grows if the other one contradicts it.

        A join graph outside the samples' interval is refuted. One inside is as uncertain as the samples, which do not
        confirm it any closer.
        """
        graphs, samples = self._of_graphs, self._of_samples
        if samples is None or graphs is None or -math.inf in (samples.log_z, graphs.log_z):
            combined = samples if graphs is None or (samples is not None and samples.is_zero) else graphs
            assert combined is not None
            return combined
        assert graphs.log_z is not None
        assert samples.log_z is not None
        interval, difference = samples.interval, abs(graphs.log_z - samples.log_z)
        if interval is not None and not interval.low <= graphs.log_z <= interval.high:
            return samples
        if samples.log_z_error <= max(SURE_ERROR, graphs.log_z_error):
            doubt = 0.0 if samples.log_z_error <= SURE_ERROR else difference - graphs.log_z_error
            return samples._replace(log_z_error=max(samples.log_z_error, doubt))
        error = max(graphs.log_z_error, samples.log_z_error, difference - samples.log_z_error)
        return graphs._replace(log_z_error=error, interval=interval, upper=samples.upper)


def estimated_sum(estimate: SumEstimate, task: Task) -> Result:
    """Return the answer by an estimate of a sum.

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
