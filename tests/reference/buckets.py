"""Single buckets as programs, for tests and benchmarks of the kernels."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from elimina._core import plan_steps
from elimina.planning.machine import cuda_machine
from elimina.planning.program import Program, place_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.tree import plan_tree


class Bucket(NamedTuple):
    """One bucket, min-sum: variable 0 is eliminated, variables 1, 2, ... are the output's axes, slow to fast.

    Attributes:
        domain: Values of variable 0.
        sizes: Values of the other variables.
        scopes: Other variables of each table.
    """

    domain: int
    sizes: tuple[int, ...]
    scopes: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> int:
        """Combinations of an output cell and a value of variable 0."""
        return self.domain * math.prod(self.sizes)

    def bytes(self, itemsize: int) -> int:
        """Return every table once and the output once."""
        tables = sum(self.domain * math.prod(self.sizes[v - 1] for v in scope) for scope in self.scopes)
        return itemsize * (tables + math.prod(self.sizes))


def bucket_program(bucket: Bucket, dtype: str) -> Program:
    """Lay a bucket out as the planner does, joins included; its output need not be one cell."""
    sizes = (bucket.domain, *bucket.sizes)
    scopes = [(0, *scope) for scope in bucket.scopes]
    tree = plan_tree(scopes, sizes, (0,), range(1, len(sizes)))
    made = plan_steps(tree, "lasting", MAX_OPERANDS, False, np.zeros(0), np.zeros(0, dtype=np.int32))
    placed = place_steps(made, np.dtype(dtype).itemsize, True, cuda_machine())
    return Program(
        semiring="min-sum",
        dtype=np.dtype(dtype),
        parameter=1e9 if dtype.startswith("float") else int(np.iinfo(dtype).max) // max(2, made.most_tables),
        words=placed.words,
        starts=placed.starts,
        variables=len(sizes),
        factor_cells=int(placed.factor_cells),
        arena_cells=int(placed.arena_cells),
        keep=True,
        decode=False,
        outputs=np.zeros((0, 3), np.int64),
        work=bucket.rows,
    )
