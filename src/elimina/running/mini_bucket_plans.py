"""Plans of mini-buckets on a device, with the i-bound of the options or within a time budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from elimina.backends.cpu import CpuBackend
from elimina.backends.gpu_start import outlasts_gpu_start
from elimina.backends.protocols import Backend
from elimina.backends.registry import find_cuda
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination
from elimina.planning.tree import Bound, Partition
from elimina.problem.preparation import Problem
from elimina.running.host import backend_of, host_memory, limits_of
from elimina.running.planned_problem import PlannedProblem
from elimina.running.sparse_plans import with_sparse_fit

MAX_PARTITION_SECONDS = 5.0
PARTITION_SECONDS_PER_MESSAGE_SECOND = 4.0
"""Largest estimated time of a partition by content, unless it is requested: in seconds, and as a multiple of the time
limit of the messages."""


def plan_within(
    problem: Problem, order: Sequence[int], options: CheckedOptions, max_bytes: float, seconds: float
) -> PlannedProblem:
    """Plan mini-buckets whose messages are stored on the host.

    Args:
        problem: Problem of the task ``mpe`` or ``pr``.
        order: The free variables in elimination order.
        options: Planning options; without an i-bound, the plan has the largest possible one.
        max_bytes: Largest number of bytes of host memory for messages.
        seconds: Limit of the estimated time of the messages.

    Raises:
        DeviceError: The device is missing or cannot be used.
    """
    backend: Backend = CpuBackend(options.threads)
    if options.may_use_gpu and (options.needs_gpu or outlasts_gpu_start(seconds)):
        backend = backend_of(options) if options.needs_gpu else find_cuda(options.threads) or backend
    machine, memory = limits_of(backend, options)
    memory = int(min(memory, max_bytes, host_memory(options)))
    ibound = "auto" if options.ibound is None else options.ibound
    matched, side = options.matches_moments, bound_side(problem)
    divide = _content_partition(problem, order, options, PARTITION_SECONDS_PER_MESSAGE_SECOND * seconds)
    elimination = Elimination(problem, order, machine, memory, options.dtype)
    plan = make_bounded_plan(elimination, ibound, matched, seconds, side, divide)
    if plan.has_large_factors:
        plan = with_sparse_fit(elimination, options, plan)
    return PlannedProblem(problem, plan, backend, {})


def bounding_plan(elimination: Elimination, options: CheckedOptions, side: Bound | None) -> Plan:
    """Plan mini-buckets with the given options; ``side``: side of the bound on a sum, None for an optimum."""
    ibound = "auto" if options.ibound is None else options.ibound
    divide = _content_partition(elimination.problem, elimination.order, options)
    plan = make_bounded_plan(elimination, ibound, options.matches_moments, side=side, divide=divide)
    return with_sparse_fit(elimination, options, plan) if plan.has_large_factors else plan


def _content_partition(
    problem: Problem, order: Sequence[int], options: CheckedOptions, seconds: float = MAX_PARTITION_SECONDS
) -> Callable[[int], Partition | None] | None:
    """Return a function that partitions by content for an i-bound; None if this is not requested or not possible.

    The function returns the result of ``partition_by_content``, which may be None. The limit ``seconds`` does not apply
    if the partition by content is requested.
    """
    if options.partition == "scope" or not problem.described.is_optimum:
        return None
    from elimina.running.content_partition import partition_by_content

    max_seconds = math.inf if options.partition == "content" else seconds
    return lambda ibound: partition_by_content(
        problem, order, ibound, host_memory(options), max_seconds, options.host_threads
    )


def bound_side(problem: Problem) -> Bound | None:
    """Return the side of the bound that mini-buckets give on a sum; None for an optimum."""
    return None if problem.described.is_optimum else "upper"
