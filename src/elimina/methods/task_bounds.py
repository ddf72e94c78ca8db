"""Bounds on partition functions and counts from optimised mini-buckets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from elimina.methods.bound_optimisation import Clock, SumBounds, improve_bounds
from elimina.methods.count_bounds import count_result, sum_of
from elimina.methods.search_state import Listener
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.bounded_results import sum_between
from elimina.running.host import host_memory


class BoundedTask(NamedTuple):
    """A task whose answer is a sum.

    Attributes:
        sum_of: Function that returns the problem of the task ``pr`` for a problem of this task; its sum is the answer.
        result_of: Function that returns the answer from bounds on the sum.
    """

    sum_of: Callable[[Problem], Problem]
    result_of: Callable[[SumBounds], Result]


def sum_result(bounds: SumBounds) -> Result:
    """Return the bounds on a sum as a result."""
    ends = bounds.lower / math.log(10), bounds.upper / math.log(10)
    return sum_between(*ends).replace(stats=bounds.tree.statistics)


TASKS: Mapping[str, BoundedTask] = {
    "pr": BoundedTask(lambda problem: problem, sum_result),
    "count": BoundedTask(sum_of, count_result),
}
"""Tasks whose answers can be bounded."""


def bounded_task(
    problem: Problem, options: CheckedOptions, deadline: float, learn: Listener, clock: Clock = time.monotonic
) -> Result:
    """Bound the answer of a task; the status is ``unknown`` if time ends before the first bound.

    Args:
        problem: Problem of one of ``TASKS``.
        options: Options with the memory limit, the seed of orders, and a requested order.
        deadline: Deadline by the clock.
        learn: Called with the result after each improvement.
        clock: Function that returns the time in seconds.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    task, result = TASKS[problem.task], Result("unknown", problem.task)
    for bounds in improve_bounds(task.sum_of(problem), options, host_memory(options), deadline, clock):
        result = task.result_of(bounds)
        learn(result)
    return result
