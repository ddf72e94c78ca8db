"""Plans with partitioned buckets, whose messages are limited by an i-bound."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from elimina.planning.machine import EXPONENTIAL, Machine
from elimina.planning.option_values import IBound
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, Relaxation, make_plan, planning_bytes
from elimina.planning.record import AXIS_WORDS, HEADER, TABLE_STRIDES
from elimina.planning.tree import Bound, Partition, plan_tree
from elimina.problem.preparation import Problem

_MAX_BITS = 500.0
"""Base-2 logarithm at which numbers of cells are clipped: far beyond any machine's memory."""

_MATCHING_PASSES = 2.5
"""Estimated time of a bucket with moment matching, relative to a bucket without it."""

_MATCHING_RECORDS = 5
"""Bytes of records with moment matching, relative to records without it (509_VAC: 8.4 MiB instead of 1.5 MiB)."""


def make_bounded_plan(
    elimination: Elimination,
    ibound: IBound,
    matched: bool,
    seconds: float = math.inf,
    side: Bound | None = None,
    divide: Callable[[int], Partition | None] | None = None,
) -> Plan:
    """Plan mini-bucket elimination.

    Args:
        elimination: Elimination of the task ``mpe`` or ``pr``.
        ibound: I-bound; ``auto``: the largest one that fits the memory.
        matched: True for moment matching between the mini-buckets of a variable. With the i-bound ``auto``, matching is
            dropped if its records do not fit.
        seconds: Limit of the estimated time for the i-bound ``auto``, in addition to the device's start.
        side: Side of the bound on a sum; None for the task ``mpe``.
        divide: Function that returns the partition into mini-buckets for an i-bound; None, or a result of None: buckets
            are partitioned by scopes.

    Returns:
        The plan, without a partition if whole buckets are small enough. It may not fit if the factors alone exceed the
        memory, or if the i-bound is given.
    """
    problem, order, machine, memory = elimination[:4]

    def plan(number: int, partition: Partition | None = None) -> Plan:
        return make_plan(elimination, relaxation=Relaxation(number, matched, side, partition))

    def by_content(number: int) -> Partition | None:
        return None if divide is None else divide(number)

    if ibound != "auto":
        return plan(int(ibound), by_content(int(ibound)))
    rough = functools.partial(_rough, problem, order, machine, 1 if side is None else EXPONENTIAL)
    low = _largest_within(functools.partial(rough, matched), memory, seconds)
    if matched and not rough(matched, low).fits(memory, math.inf):
        matched = False
        low = _largest_within(functools.partial(rough, matched), memory, seconds)
    if seconds < math.inf:
        partition_of_bound = by_content(low)
        if partition_of_bound is None and low > 1 and rough(matched, low).is_divided:
            # A partition by content improves bounds more than a larger i-bound (16 x 16 grid: 1,756 nodes instead of
            # 34,494).
            partition_of_bound = by_content(low - 1)
            low -= partition_of_bound is not None
        bounded = plan(low, partition_of_bound)
    else:
        bounded = plan(low)
    # The memory is estimated roughly, so smaller i-bounds are planned until a plan fits.
    while low > 1 and not bounded.fits:
        low -= 1
        bounded = plan(low)
    if seconds < math.inf:
        return bounded
    while bounded.minibuckets is not None and bounded.fits:
        larger = plan(low + 1)
        if not larger.fits:
            break
        low, bounded = low + 1, larger
    partition_of_bound = None if bounded.minibuckets is None else by_content(low)
    by_contents = bounded if partition_of_bound is None else plan(low, partition_of_bound)
    return by_contents if by_contents.fits else bounded


class _Rough(NamedTuple):
    """Rough figures of mini-buckets; ``is_divided``: True if a bucket is partitioned."""

    bytes: float
    records: int
    seconds: float
    width: int
    is_divided: bool

    def fits(self, memory: int, seconds: float) -> bool:
        """Return whether the mini-buckets fit the limits."""
        return self.bytes + planning_bytes(self.records) <= memory and self.seconds <= seconds


def _largest_within(rough: Callable[[int], _Rough], memory: int, seconds: float) -> int:
    """Return the largest i-bound within the memory and the time, or the width if no bucket is partitioned.

    Large i-bounds come last, because building their trees takes longer than running small ones.
    """
    low, high = 1, 2
    while (needed := rough(high)).fits(memory, seconds):
        if not needed.is_divided:
            return max(1, needed.width)
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if rough(middle).fits(memory, seconds) else (low, middle)
    return low


def _rough(
    problem: Problem, order: Sequence[int], machine: Machine, exponential: float, matched: bool, ibound: int
) -> _Rough:
    sizes = problem.model.sizes
    itemsize = 4 if problem.model.is_integer else 8
    tree = plan_tree(problem.groups.scopes, sizes, order, problem.kept, ibound)
    starts, separators = tree.separators
    domains = np.array(sizes, dtype=np.float64)
    bits = np.concatenate([[0.0], np.cumsum(np.log2(domains)[separators])])
    cells = np.rint(np.exp2(np.minimum(bits[starts[1:]] - bits[starts[:-1]], _MAX_BITS)))
    work = domains[tree.variables] * cells
    lone = float(work[work < machine.shared].sum())
    running = lone / machine.lone_combinations + (float(work.sum()) - lone) / machine.combinations
    axes = np.diff(starts)
    tables = np.diff(tree.factors[0]) + np.diff(tree.children[0])
    records = 8 * int((HEADER + AXIS_WORDS * axes + tables * (TABLE_STRIDES + axes)).sum())
    size = float(cells.sum()) * itemsize
    width = int(axes.max(initial=0))
    is_divided = len(cells) > len(order)
    is_matched = matched and is_divided
    passes = exponential * (_MATCHING_PASSES if matched else 1)
    return _Rough(
        size,
        records * (_MATCHING_RECORDS if is_matched else 1),
        size / machine.fresh + passes * (running + len(cells) * machine.step),
        width,
        is_divided,
    )
