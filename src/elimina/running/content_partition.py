"""Partition of buckets into mini-buckets by the contents of their tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from elimina._core import FORBIDDEN_COST
from elimina._core import partition_by_content as partition
from elimina.planning.machine import (
    COMPARED_PAIR_SECONDS,
    JOINED_CELL_SECONDS,
    PARTITIONED_BUCKET_SECONDS,
    PLANNED_BUCKET_SECONDS,
)
from elimina.planning.tree import Partition, bucket_tree
from elimina.problem.preparation import Problem
from elimina.running.encoding import distances, tables_of

_MAX_JOINED_CELLS = 2**28
"""Largest number of cells of all joined tables; with more cells, a partition would take too long."""

_JOINED_CELL_BYTES = 32
"""Bytes for each cell of the joined tables, including the tables from which they are joined, and their messages."""


def partition_by_content(
    problem: Problem, order: Sequence[int], ibound: int, memory: int, seconds: float, threads: int
) -> Partition | None:
    """Partition each bucket by the values of its tables.

    This is a content-based greedy partition (Rollon and Dechter 2010, "New mini-bucket partitioning heuristics for
    bounding the probability of evidence", section 4), with costs instead of probabilities: the tables that gain most
    from a joint message are joined. The gains depend on the messages, which are therefore computed here, on the host,
    before planning. The plan uses only the assignment of tables to mini-buckets.

    Args:
        problem: Problem of the task ``mpe``.
        order: The free variables in elimination order.
        ibound: Largest number of variables of a message.
        memory: Memory limit of the joined tables, in bytes.
        seconds: Limit of the estimated time, in addition to an allowance for each bucket.
        threads: Number of CPU threads that compare tables.

    Returns:
        The partition; None if it would take too much time or memory, or if no assignment is allowed.

    Raises:
        Stopped: The call has to end.
    """
    sizes = problem.model.sizes
    position = {v: i for i, v in enumerate(order)}
    scopes = [tuple(sorted(group.scope, key=position.__getitem__)) for group in problem.groups]
    nodes = bucket_tree(scopes, order, ibound=ibound).nodes
    cells = sum(sizes[node.variable] * math.prod(sizes[v] for v in node.separator) for node in nodes)
    tables = Counter[int]()
    for node in nodes:
        tables[node.variable] += len(node.factors) + len(node.children)
    pairs = sum(number * number for number in tables.values())
    needed = JOINED_CELL_SECONDS * cells + COMPARED_PAIR_SECONDS * pairs + PARTITIONED_BUCKET_SECONDS * len(nodes)
    if cells > min(_MAX_JOINED_CELLS, memory // _JOINED_CELL_BYTES) or needed > seconds + PLANNED_BUCKET_SECONDS * len(
        nodes
    ):
        return None
    cost_distances = distances(problem, FORBIDDEN_COST)
    if not cost_distances.possible:
        return None
    costs = []
    for group, table in zip(problem.groups, tables_of(problem, cost_distances.costs), strict=True):
        axes = sorted(range(len(group.scope)), key=lambda axis: position[group.scope[axis]])
        costs.append(np.where(table < FORBIDDEN_COST, table, math.inf).astype(np.float64).transpose(axes).ravel())
    # The forbidden cost exceeds every sum of allowed costs.
    forbidden_cost = 1.0 + sum(float(table.max(initial=0, where=np.isfinite(table))) for table in costs)
    positions = [[position[v] for v in scope] for scope in scopes]
    return partition([sizes[v] for v in order], positions, costs, ibound, forbidden_cost, threads)
