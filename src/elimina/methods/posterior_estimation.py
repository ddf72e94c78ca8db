"""Posteriors within the memory limit: exact ones if an elimination fits, otherwise estimates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from elimina.errors import MemoryLimitError
from elimina.methods.estimation import Estimation
from elimina.methods.factor_lists import factors_of
from elimina.methods.junction_structure import MarginalQuery, Structure
from elimina.methods.marginals import marginals_asked, posteriors
from elimina.methods.message_sweeps import FIRST_SWEEPS, METHOD, TOLERANCE, estimate_of, messages_of
from elimina.methods.small_networks import rewritten_for_sums
from elimina.methods.sum_estimate import SumEstimate, log10_interval
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.ordering import rough_order
from elimina.problem.evidence import Observed
from elimina.problem.preparation import prepare
from elimina.result import Result
from elimina.running.advice import does_not_fit, needs_for_estimate
from elimina.running.combination import NO_PLAN
from elimina.running.estimate_memory import (
    FLOAT_BYTES,
    METHOD_MEMORY_SHARE,
    QUICK_ORDER_FACTOR,
    can_write_tables,
    written_bytes,
)
from elimina.running.execution import Execution
from elimina.running.host import host_memory
from elimina.running.plan_choice import plan_problem

_QUICK_CELL_SECONDS = 1e-7
"""Seconds of the first sweeps of belief propagation per cell of the factors, on graphs such as grids."""

ESTIMATE_SECONDS = 1.0
"""Seconds for estimates if there is no time limit."""


class PosteriorEstimation:
    """State of the approximate methods for posteriors.

    Args:
        inquiry: The requested posteriors.
        options: Options of the call.
        memory_bytes: Memory limit of a method, in bytes.
        find_order: Function that quickly finds an elimination order of the free variables; None: methods find their
            own.
    """

    def __init__(
        self,
        inquiry: MarginalQuery,
        options: CheckedOptions,
        memory_bytes: int,
        find_order: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        self._inquiry = inquiry
        self._estimation = Estimation(inquiry.structure.problem, options, memory_bytes, find_order)
        self._answer: tuple[SumEstimate, Result] | None = None

    @property
    def best(self) -> Result | None:
        """Answer from the current best estimate; None if there is no estimate."""
        estimate = self._estimation.best
        return None if estimate is None else self._answered(estimate)

    def improve(self, deadline: float) -> Iterator[Result]:
        """Yield answers as estimates improve, until a deadline.

        Args:
            deadline: Deadline by ``time.monotonic``.
        """
        for estimate in self._estimation.improve(deadline):
            yield self._answered(estimate)

    def _answered(self, estimate: SumEstimate) -> Result:
        """Return the answer from an estimate, made once: a million marginals take half a second."""
        if self._answer is None or self._answer[0] is not estimate:
            self._answer = estimate, _estimated_posteriors(self._inquiry, estimate)
        return self._answer[1]


def quick_posteriors(inquiry: MarginalQuery, seconds: float) -> Result | None:
    """Estimate posteriors by a few sweeps of belief propagation.

    Return None if the sweeps would take longer than the time limit, or if messages underflow.

    Args:
        inquiry: The requested posteriors.
        seconds: Time limit, in seconds.
    """
    problem = inquiry.structure.problem
    if _QUICK_CELL_SECONDS * float(problem.groups.cells(problem.model.size_array).sum()) > seconds:
        return None
    factors = factors_of(problem)
    if factors.log_scale == -math.inf:
        return _estimated_posteriors(inquiry, SumEstimate(METHOD, -math.inf, 0.0))
    messages = messages_of(problem, factors)
    messages.run(TOLERANCE, 0.0, FIRST_SWEEPS, math.inf)
    if messages.is_impossible:
        return None
    return _estimated_posteriors(inquiry, estimate_of(messages, factors, FIRST_SWEEPS))


def posteriors_within(observed: Observed, asked: Sequence[int], options: CheckedOptions, seconds: float) -> Result:
    """Return posteriors of a model: exact ones if their elimination fits the memory, otherwise estimates.

    Args:
        observed: A probability model and its observations.
        asked: The queried variables.
        options: Planning options, including the memory limit.
        seconds: Time limit of the estimates, in seconds.

    Raises:
        MemoryLimitError: Neither the elimination nor any approximate method fits.
    """
    model, evidence, merged = rewritten_for_sums(observed)
    problem = prepare(model, "mar", evidence)
    rough = rough_order(problem, options)
    structure = Structure(problem, (problem.wanted, problem.wanted), 1, (), rough=rough)
    inquiry = MarginalQuery(model, evidence, asked, True, structure, merged)
    memory = host_memory(options)
    failure = "the elimination does not fit"
    if FLOAT_BYTES * rough.total_cells <= QUICK_ORDER_FACTOR * memory:
        planned = plan_problem(problem, options, rough)
        if planned.plan.fits:
            return posteriors(inquiry, Execution(problem, planned.plan, planned.backend), options, {})
        failure = does_not_fit(planned.plan)
    if not can_write_tables(problem, memory):
        raise MemoryLimitError(needs_for_estimate(failure, written_bytes(problem)))
    estimation = PosteriorEstimation(inquiry, options, int(METHOD_MEMORY_SHARE * memory), lambda: rough.order)
    for _ in estimation.improve(time.monotonic() + seconds):
        pass
    if estimation.best is None:
        raise MemoryLimitError(f"{failure}, and no approximate method does, either")
    return estimation.best


def error_of(result: Result) -> float:
    """Return the error of posteriors: 0 if they are exact, NaN if it is unknown."""
    if result.status != "estimated":
        return 0.0
    return math.nan if result.error is None or math.isinf(result.error) else result.error


def _estimated_posteriors(inquiry: MarginalQuery, estimate: SumEstimate) -> Result:
    """Return the answer from an estimate for the structure of a query.

    Args:
        inquiry: The requested posteriors.
        estimate: Estimate of the sum of the structure's problem and of its marginals.
    """
    structure, problem = inquiry.structure, inquiry.structure.problem
    stats: dict[str, Any] = {**NO_PLAN, "method": estimate.method, **estimate.figures}
    if estimate.is_zero:
        return Result("infeasible", "mar", log10_z=-math.inf, stats=stats)
    assert estimate.shares is not None
    sizes = problem.free_sizes
    starts = np.full(len(problem.model.variables), -1)
    starts[list(problem.free)] = np.cumsum(sizes) - sizes
    marginals = marginals_asked(inquiry, starts, estimate.shares)
    log10_z = interval = None
    if estimate.log_z is not None and structure.trees == 1 and inquiry.complete:
        log10_z = (estimate.log_z + structure.log_states) / math.log(10)
        interval = log10_interval(estimate.interval, structure.log_states)
        stats["log10_z_error"] = estimate.stated_log_error / math.log(10)
    if estimate.is_exact and not _may_be_impossible(inquiry):
        return Result("exact", "mar", log10_z=log10_z, marginals=marginals, stats=stats)
    error = _error_of_asked(inquiry, estimate)
    return Result("estimated", "mar", log10_z=log10_z, marginals=marginals, error=error, interval=interval, stats=stats)


def _may_be_impossible(inquiry: MarginalQuery) -> bool:
    """Return whether factors with zeros, although irrelevant to the query, may contradict the evidence."""
    left_out = [inquiry.model.factors[number] for number in inquiry.structure.left_out]
    return any(not table.values.all() or table.default == 0 for table in left_out)


def _error_of_asked(inquiry: MarginalQuery, estimate: SumEstimate) -> float:
    """Return the mean error of the queried marginals; the error of an observed variable is 0."""
    if estimate.errors is None:
        return estimate.error
    (variables, sources), problem = inquiry.structure.wanted, inquiry.structure.problem
    if len(sources) == len(problem.free) and len(inquiry.asked) == len(inquiry.model.variables):
        return estimate.error
    positions = np.full(len(problem.model.variables), -1)
    positions[list(problem.free)] = np.arange(len(problem.free))
    is_asked = np.zeros(len(inquiry.model.variables), dtype=bool)
    is_asked[list(inquiry.asked)] = True
    asked_positions = positions[list(sources)][is_asked[list(variables)]]
    asked_positions = asked_positions[asked_positions >= 0]
    return float(estimate.errors[asked_positions].mean()) if len(asked_positions) else 0.0
