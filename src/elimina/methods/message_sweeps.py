"""Loopy belief propagation by sweeps over factors: the first estimate of very large models.

It needs no elimination order (Pearl 1988, "Probabilistic Reasoning in Intelligent Systems", section 4.4). The core
(``core/approx/message_sweeps.hpp``) passes the messages. For smaller models, the smallest join graph gives the same
estimate, and larger join graphs follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from elimina._core import MessageSweeps
from elimina.methods.factor_lists import FactorList
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem

METHOD = "belief propagation"

MIN_VARIABLES = 20_000
"""Least number of variables; for smaller models, the smallest join graph takes at most a tenth of a second."""

TOLERANCE = 1e-6
"""Largest change of a probability at which messages have converged."""

FIRST_SWEEPS, ROUND_SWEEPS, MAX_SWEEPS = 4, 8, 512
"""Number of sweeps before the first estimate, which run even beyond the time limit; number of sweeps between further
estimates; and largest number of sweeps."""

DAMPINGS, MIN_PROGRESS = (0.0, 0.3, 0.6), 0.7
"""Damping factors. If the residual after a round is more than ``MIN_PROGRESS`` times the residual before it, the next
factor is used."""

UNKNOWN_ERROR = 0.5
"""Estimated error of marginals if there is no other estimate to compare them with."""


def belief_propagation(problem: Problem, _: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield estimates of belief propagation; none for models of fewer than ``MIN_VARIABLES`` variables.

    Args:
        problem: Problem of a sum of products.
        limits: Limits of time and memory.
    """
    if len(problem.free) < MIN_VARIABLES:
        return
    factors = limits.factors_of(problem)
    if factors.log_scale == -math.inf:
        yield SumEstimate(METHOD, -math.inf, 0.0)
        return
    messages = messages_of(problem, factors)
    is_settled = messages.run(TOLERANCE, 0.0, FIRST_SWEEPS, math.inf)
    sweeps, failures = FIRST_SWEEPS, 0
    while True:
        if messages.is_impossible:
            # A sum of 0 is not proved: messages may have underflowed.
            return
        yield estimate_of(messages, factors, sweeps)
        if is_settled or sweeps >= MAX_SWEEPS:
            return
        before = messages.residual
        is_settled = messages.run(TOLERANCE, DAMPINGS[min(failures, len(DAMPINGS) - 1)], ROUND_SWEEPS, limits.seconds)
        failures += messages.residual > MIN_PROGRESS * before
        sweeps += ROUND_SWEEPS


def messages_of(problem: Problem, factors: FactorList) -> MessageSweeps:
    """Return the messages between the factors and the free variables of a problem, before the first sweep."""
    starts, members = factors.scopes
    return MessageSweeps(problem.free_sizes, starts, members.astype(np.int32), factors.values)


def estimate_of(messages: MessageSweeps, factors: FactorList, sweeps: int) -> SumEstimate:
    """Return the estimate after some sweeps; its error is unknown."""
    log_z, shares = messages.log_sum() + factors.log_scale, messages.marginals()
    errors = np.full(messages.variables, min(1.0, UNKNOWN_ERROR + messages.residual))
    figures = {"sweeps": sweeps, "residual": messages.residual}
    return SumEstimate(METHOD, log_z, math.inf, shares, errors, figures=figures)
