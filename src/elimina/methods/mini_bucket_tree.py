"""Trees of mini-buckets for bounds on sums.

A tree has an i-bound and a limit on the number of variables of its cost shifts, which depends on the memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedTree, WeightedMiniBuckets
from elimina.methods.quasi_newton import VECTORS
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem

METHOD = "mbe"
"""Name of the method in ``Result.stats``."""

_MAX_BITS = 500.0
"""Base-2 logarithm at which numbers of cells are clipped; no machine holds as many."""

_MAX_CELLS = 1e15
"""Number of cells of all messages above which the tree is rejected without a layout, because it cannot fit."""

_SHARED_VARIABLES, _SHIFT_CELLS = 5, 256
"""Largest number of variables and of cells of a cost shift. On a 40 x 40 grid (i-bound 9), the gap of the bounds in
log10 is 11.3 with one variable and 6.0 with four; seven variables do not reduce it further."""


class MiniBucketTree(NamedTuple):
    """A tree of mini-buckets, and its statistics.

    Attributes:
        planned: The compiled tree.
        ibound: Largest number of variables of a message.
        shared: Largest number of variables of a cost shift.
        divided: True for each node whose bucket is partitioned.
        largest_table: Cells of the largest message.
        total_cells: Cells of all mini-buckets.
        peak_bytes: Bytes of tables and parameters, summed over all sides.
        has_large_tables: True if the tables alone exceed the memory, so that larger i-bounds exceed it too. If only the
            parameters exceed it, a larger i-bound may still fit, because it can have fewer parameters.
    """

    planned: PlannedTree
    ibound: int
    shared: int
    divided: NDArray[np.bool_]
    largest_table: int
    total_cells: int
    peak_bytes: int
    has_large_tables: bool

    @staticmethod
    def of(
        problem: Problem, order: Sequence[int], ibound: int, sides: int = 2, memory_bytes: float = math.inf
    ) -> MiniBucketTree:
        """Partition the buckets of an order; cost shifts get as many variables as fit the memory.

        Args:
            problem: Problem of the task ``pr``.
            order: The free variables in elimination order.
            ibound: Largest number of variables of a message.
            sides: Number of sides (upper or lower bound) whose tables are in memory at the same time.
            memory_bytes: Memory limit of tables and parameters, in bytes.
        """
        sizes = problem.model.size_array.astype(np.float64)
        planned = plan_tree(problem.groups.scopes, problem.model.sizes, order, (), ibound)
        starts, members = planned.separators
        bits = np.concatenate([[0.0], np.cumsum(np.log2(sizes)[members])])
        messages = np.exp2(np.minimum(bits[starts[1:]] - bits[starts[:-1]], _MAX_BITS))
        tables = sizes[planned.variables] * messages
        divided = np.bincount(planned.variables, minlength=len(sizes))[planned.variables] > 1
        factors = float(problem.groups.cells(problem.model.size_array).sum())
        cells = float(messages.sum())
        fixed = 16 * factors + (WeightedMiniBuckets.bytes(planned) if cells < _MAX_CELLS else 8 * cells)
        widest = max(2, max((problem.model.sizes[v] for v in order), default=2))
        shared = max(1, min(_SHARED_VARIABLES, int(math.log(_SHIFT_CELLS) / math.log(widest))))
        while True:
            parameters = float(np.minimum(tables[divided], widest**shared).sum()) + float(divided.sum())
            peak = sides * (fixed + 8 * VECTORS * parameters)
            if peak <= memory_bytes or shared == 1:
                break
            shared -= 1
        largest, total = int(messages.max(initial=1)), int(tables.sum())
        return MiniBucketTree(planned, ibound, shared, divided, largest, total, int(peak), sides * fixed > memory_bytes)

    @property
    def statistics(self) -> dict[str, Any]:
        """Figures for ``Result.stats``."""
        variables = self.planned.variables
        return {
            "method": METHOD,
            "device": "cpu",
            "dtype": "float64",
            "seconds": {},
            "partition": "scope",
            "induced_width": self.planned.width,
            "largest_table": self.largest_table,
            "total_cells": self.total_cells,
            "peak_bytes": self.peak_bytes,
            "ibound": self.ibound,
            "divided": len(np.unique(variables[self.divided])),
            "parts": len(variables),
        }


def largest_tree(
    problem: Problem, order: Sequence[int], least: int, memory_bytes: int, cells: float, sides: int = 2
) -> MiniBucketTree | None:
    """Return the mini-buckets with the largest i-bound within limits; None if not even the smallest fit the memory.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        least: Smallest i-bound, which may exceed the limit on cells.
        memory_bytes: Memory limit of tables and parameters, in bytes.
        cells: Limit on the number of cells of all mini-buckets.
        sides: Number of sides (upper or lower bound) whose tables are in memory at the same time.
    """
    best: MiniBucketTree | None = None
    for ibound in itertools.count(least):
        tree = MiniBucketTree.of(problem, order, ibound, sides, memory_bytes)
        if tree.has_large_tables or (best is not None and tree.total_cells > cells):
            break
        if tree.peak_bytes <= memory_bytes:
            best = tree
        if not tree.divided.any():
            break
    return best
