"""Exact sums and marginals by conditioning on a cutset: a few variables without which elimination fits the memory.

Pearl 1988, "Probabilistic reasoning in intelligent systems", section 4.4.2. Each combination of states of the cutset is
a slice whose messages fit. The answers of the slices are added up, weighted by the slices' sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from elimina._core import CutsetConditioning, Stopped
from elimina.backends.cpu import CpuBackend
from elimina.methods.factor_lists import FactorList, table_bytes
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.slicing import Slicer
from elimina.problem.preparation import Problem

NAME = "cutset conditioning"

_ORDER_SHARE, _MIN_ORDER_SECONDS, _MAX_ORDER_SECONDS = 0.02, 0.05, 0.5
"""Share of the remaining time for the order search, and its limits in seconds."""

_MAX_SLICES_PER_SECOND = 1e6
"""Number of slices per second of remaining time above which they are not tried: each takes at least a microsecond."""

_CUTSET_SHARE, _STEP = 0.05, 0.99
"""Share of the remaining time for the search for a cutset; target of each of its steps, as a share of the current bytes
of a slice."""

_TRIAL_SHARE, _TIME_SHARE = 0.02, 0.7
"""Share of the remaining time for the first slices, which give the estimate for all; largest share for all slices."""

_UNLIMITED_SECONDS, _MAX_TRIAL_SECONDS = 1e5, 5.0
"""Largest estimated seconds of all slices without a time limit; largest seconds of the search for a cutset, and of the
first slices."""

_CELL_BYTES = 8

_SHRINK, _ROUNDS = 0.8, 8
"""Target for the next cutset as a share of a slice's bytes if slices do not fit; largest number of cutsets."""


def cutset_conditioning(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield estimates without an answer until all slices are expected to end in time, and then the exact marginals.

    The iterator ends without marginals if the factors do not fit, have a sum of 0 or leave the range of doubles, or if
    underflow makes the marginals inaccurate.

    Args:
        problem: Problem of a sum of products.
        options: Options of the call.
        limits: Limits of time and memory, and the seed.
    """
    if not problem.free or 2 * table_bytes(problem) > limits.memory_bytes:
        return
    factors: FactorList | None = None
    while True:
        factors = factors or limits.factors_of(problem)
        if factors.log_scale == -math.inf or not factors.is_complete:
            return
        try:
            conditioning = _conditioning(problem, factors, options, limits)
            if conditioning is not None and _is_timely(conditioning, limits) and conditioning.run(limits.seconds):
                if conditioning.is_accurate:
                    yield _exact(problem, factors, conditioning)
                return
        except Stopped:
            pass
        yield SumEstimate(NAME)


def _conditioning(
    problem: Problem, factors: FactorList, options: CheckedOptions, limits: Limits
) -> CutsetConditioning | None:
    """Condition on variables that cause little additional work; return None if no small cutset is found in time."""
    summed = problem._replace(task="pr", wanted=())
    sizes = problem.free_sizes
    number_of = {v: number for number, v in enumerate(problem.free)}
    seconds = min(max(_MIN_ORDER_SECONDS, _ORDER_SHARE * limits.seconds), _MAX_ORDER_SECONDS)
    is_quick = options.order == "auto"
    order = elimination_order(summed, replace(options, order_seconds=seconds) if is_quick else options)
    machine = CpuBackend(options.threads).machine
    whole = make_plan(Elimination(summed, order, machine, limits.memory_bytes, keeps_messages=True))
    slicer, target = Slicer(summed, order, machine, whole), float(limits.memory_bytes)
    remaining = min(limits.seconds, _UNLIMITED_SECONDS)
    max_slices = _MAX_SLICES_PER_SECOND * remaining
    end = time.monotonic() + min(_CUTSET_SHARE * remaining, _MAX_TRIAL_SECONDS)
    for _ in range(_ROUNDS):
        while slicer.cut.bytes > target:
            # Conditioning on a variable divides a slice's bytes by at most the number by which it multiplies the
            # slices, so the bytes of all slices together never decrease.
            if slicer.number * slicer.cut.bytes > max_slices * target or time.monotonic() > end:
                return None
            slicer.reduce(max(target, _STEP * slicer.cut.bytes))
        cutset = set(slicer.cut.fixed)
        eliminated = np.array([number_of[v] for v in order if v not in cutset], dtype=np.int32)
        starts, members = factors.scopes
        conditioning = CutsetConditioning(sizes, starts, members.astype(np.int32), factors.values, eliminated)
        if _CELL_BYTES * conditioning.cells <= limits.memory_bytes:
            return conditioning
        target = _SHRINK * min(target, slicer.cut.bytes)
    return None


def _is_timely(conditioning: CutsetConditioning, limits: Limits) -> bool:
    """Add up the first slices; return whether all slices are expected to end in time."""
    started, seconds = time.monotonic(), min(limits.seconds, _UNLIMITED_SECONDS)
    if conditioning.run(min(_TRIAL_SHARE * seconds, _MAX_TRIAL_SECONDS)):
        return True
    return time.monotonic() - started < _TIME_SHARE * seconds * conditioning.progress


def _exact(problem: Problem, factors: FactorList, conditioning: CutsetConditioning) -> SumEstimate:
    """Return the answer from all slices."""
    errors, log_sum = np.zeros(len(problem.free)), conditioning.log_sum
    if log_sum == -math.inf:
        return SumEstimate(NAME, -math.inf, 0.0, errors=errors, is_exact=True)
    return SumEstimate(NAME, log_sum + factors.log_scale, 0.0, conditioning.marginals(), errors, is_exact=True)
