"""Plans whose buckets are divided so that messages stay small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from elimina.planning.estimate import Machine
from elimina.planning.plan import Plan
from elimina.planning.planner import make_plan, mini_bucket_tree
from elimina.planning.prepare import Problem

IBound = int | Literal["auto"]
"""The most variables of a message, or as many as memory (and time) allow."""


def make_bounded_plan(
    problem: Problem,
    order: Sequence[int],
    machine: Machine,
    memory: int,
    dtype: str | None,
    ibound: IBound,
    levelled: bool,
    seconds: float = math.inf,
) -> Plan:
    """Plan mini-bucket elimination.

    Args:
        problem: Of the task ``mpe``.
        order: The free variables in elimination order.
        machine: The device.
        memory: Bytes that the plan may use there.
        dtype: Override of the arena's dtype.
        ibound: ``auto``: the largest one that fits the memory.
        levelled: Whether mini-buckets of a variable are levelled.
        seconds: Estimated time that ``auto`` may take besides the device's start.

    Returns:
        The plan, which divides nothing where whole buckets are small enough. It need not fit: where the factors alone
        do not, or the i-bound is given.
    """

    def plan(number: int) -> Plan:
        return make_plan(problem, order, machine, memory, dtype, ibound=number, levelled=levelled)

    if ibound != "auto":
        return plan(int(ibound))
    least = plan(1)
    itemsize = np.dtype(least.dtype).itemsize
    # Message cells grow with the i-bound: the first one too many is found by halving, without plans.
    low, high = 1, max(1, mini_bucket_tree(problem, order, None).width)
    while low < high:
        middle = (low + high + 1) // 2
        nodes = mini_bucket_tree(problem, order, middle).nodes
        cells = sum(math.prod(problem.model.sizes[v] for v in node.separator) for node in nodes)
        low, high = (middle, high) if cells * itemsize <= memory else (low, middle - 1)
    for number in range(low, 1, -1):
        found = plan(number)
        if found.fits and found.seconds - machine.start <= seconds:
            return found
    return least
