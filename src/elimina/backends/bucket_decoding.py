"""Decoding of assignments from the tables of buckets on the host."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elimina.planning.bucket_tables import BucketTables, ValueCosts


def decode_buckets(arena: NDArray[np.generic], tables: BucketTables, costs: ValueCosts) -> NDArray[np.int32]:
    """Give each variable its value of least cost, in reverse elimination order: see ``GatheringSession``."""
    values = np.zeros((costs.assignments, len(tables.sizes)), dtype=np.int64)
    state_starts = np.concatenate([[0], np.cumsum(tables.sizes)])
    table_starts, axis_starts = tables.table_starts.tolist(), tables.axis_starts
    for v in reversed(range(len(tables.sizes))):
        bucket = slice(table_starts[v], table_starts[v + 1])
        axes = slice(axis_starts[bucket.start], axis_starts[bucket.stop])
        counts = np.diff(axis_starts[bucket.start : bucket.stop + 1])
        cells = np.repeat(tables.offsets[bucket, None], costs.assignments, axis=1)
        distances = (values[:, tables.axis_variables[axes]] * tables.axis_strides[axes]).T
        np.add.at(cells, np.repeat(np.arange(len(counts)), counts), distances)
        cells = cells[:, :, None] + np.multiply.outer(tables.strides[bucket], np.arange(tables.sizes[v]))[:, None]
        numbers = arena[cells]
        total = np.where(numbers == costs.forbidden, math.inf, costs.sign * numbers).sum(axis=0)
        total[1:] -= costs.noise[:, state_starts[v] : state_starts[v + 1]]
        values[:, v] = total.argmin(axis=1)
    return values.astype(np.int32)
