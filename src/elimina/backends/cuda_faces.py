"""How a large step whose streamed table lacks some outer axes is cut into blocks for ``kernels/faces.cu``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda_kernels import FacesKernel, faces_kernels
from elimina.backends.cuda_product import RESERVED, SHARED
from elimina.backends.cuda_record import HEADER, rearrange, tables

LEAST = 4
"""Least values of the eliminated variable, and cells that have the same streamed values."""
STREAMED = 9.0
"""Bytes of a streamed table that a multiprocessor reads in a cycle, from a cache."""


class Shape(NamedTuple):
    """A step: its cells, the words of its record, and its tables."""

    domain: int
    outer_cells: int
    sharing: int  # successive outer cells with the same streamed values
    mid_cells: int
    lo_cells: int
    words: int
    tables_a: int
    tables_b: int


class Cut(NamedTuple):
    """What the kernel is told: ``outers`` cells of those that share, ``splits`` of ``batch`` mid cells, and so on."""

    kernel: FacesKernel
    outers: int
    splits: int
    batch: int
    chunks: int
    chunk: int
    columns: int


def split_outer(record: list[int]) -> int:
    """Move the outer axes that the only streamed table lacks behind the others.

    Returns:
        How many successive outer cells have the same streamed values then; 1 if there are several streamed tables.
    """
    known = tables(record)
    if len(known) - record[10] - record[11] != 1:
        return 1
    outer = range(record[4])
    sharing = [axis for axis in outer if not known[-1][3 + axis]]
    others = [axis for axis in outer if axis not in sharing]
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    rearrange(record, [*others, *sharing], range(record[4], record[4] + record[5]), range(len(known)))
    return math.prod(sizes[axis] for axis in sharing)


def cuts(shape: Shape, semiring: str, dtype: np.dtype[np.generic]) -> Iterator[Cut]:
    """All ways to cut a step that the threads and shared memory have room for."""
    for kernel in faces_kernels(semiring, dtype):
        for columns in range(1, min(kernel.threads, -(-shape.lo_cells // kernel.cells)) + 1):
            for rows in range(1, min(kernel.threads // columns, -(-shape.mid_cells // kernel.rows)) + 1):
                most = min(kernel.threads // columns // rows, -(-shape.sharing // kernel.outers))
                for groups in range(max(1, most // 2), most + 1):
                    outers, batch, chunk = groups * kernel.outers, rows * kernel.rows, columns * kernel.cells
                    splits, chunks = -(-shape.mid_cells // batch), -(-shape.lo_cells // chunk)
                    cut = Cut(kernel, outers, splits, batch, chunks, chunk, columns)
                    items = outers * (batch + chunk) + batch * chunk
                    room = SHARED // kernel.blocks - RESERVED
                    if items <= kernel.items * kernel.threads and shared_bytes(shape, cut, dtype.itemsize) <= room:
                        yield cut


def shared_bytes(shape: Shape, cut: Cut, itemsize: int) -> int:
    """Bytes of shared memory of a block, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    count, slab = shape.tables_a + shape.tables_b + 1, 2 * cut.kernel.depth
    size = -(-shape.words // 2) * 2 + cut.outers * (count + 1) + count + (count + 1) * cut.batch + count * cut.chunk
    size = -(-8 * size // 16) * 16 + cut.outers * slab * cut.batch * cut.kernel.lane_bytes
    size = -(-size // 16) * 16 + cut.outers * slab * cut.chunk * itemsize
    return -(-size // 16) * 16 + slab * cut.batch * cut.chunk * itemsize


def blocks(shape: Shape, cut: Cut) -> int:
    """Blocks of a launch."""
    return shape.outer_cells // shape.sharing * -(-shape.sharing // cut.outers) * cut.splits * cut.chunks


def cost(shape: Shape, cut: Cut, multiprocessors: int, itemsize: int) -> float:
    """Predicted cycles."""
    kernel = cut.kernel
    threads = cut.columns * (cut.batch // kernel.rows) * (cut.outers // kernel.outers)
    warps = -(-threads // 32)
    per_thread = kernel.outers * kernel.rows * kernel.cells * itemsize / kernel.lane_bytes
    compute = warps * per_thread * shape.domain
    reads = (kernel.outers * (kernel.rows * kernel.lane_bytes // 16 + 1) + kernel.rows) * 3 * warps * shape.domain
    fill = cut.outers * (cut.batch + cut.chunk) + cut.batch * cut.chunk
    moved = fill * shape.domain * itemsize / 20
    waves = blocks(shape, cut) / multiprocessors
    return max(1.0, waves) * (max(compute, reads, moved) + 0.3 * (compute + reads + moved)) + 4000


def choose(shape: Shape, semiring: str, dtype: np.dtype[np.generic], multiprocessors: int) -> Cut | None:
    """The cut that takes the least time by a simple model of it; None where streaming takes less."""
    if shape.sharing < LEAST or shape.domain < LEAST:
        return None
    costs = [(cost(shape, cut, multiprocessors, dtype.itemsize), cut) for cut in cuts(shape, semiring, dtype)]
    best = min(costs, key=lambda found: found[0], default=None)
    rows = shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells
    streamed = rows * dtype.itemsize / (STREAMED * multiprocessors)
    return best[1] if best is not None and best[0] < streamed else None
