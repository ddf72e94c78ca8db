"""How a large step whose streamed table lacks some outer axes is cut into blocks for ``kernels/faces.cu``."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda_kernels import FacesKernel, faces_kernels
from elimina.backends.cuda_product import RESERVED, SHARED
from elimina.backends.cuda_record import HEADER, rearrange, tables

SLAB = 16
"""Values of the eliminated variable in shared memory together: those whose loads are in flight together."""

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
    groups: int
    splits: int
    batch: int
    chunks: int
    chunk: int
    columns: int
    slab: int


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


def cuts(shape: Shape, semiring: str, dtype: np.dtype[np.generic]) -> list[Cut]:
    """All ways to cut a step that shared memory has room for."""
    found = []
    for kernel in faces_kernels(semiring, dtype):
        threads = kernel.threads
        for columns in range(1, min(threads, -(-shape.lo_cells // kernel.cells)) + 1):
            for rows in range(1, min(threads // columns, -(-shape.mid_cells // kernel.rows)) + 1):
                groups = min(threads // columns // rows, -(-shape.sharing // kernel.outers))
                for group in range(1, groups + 1):
                    if 2 * columns * rows * group > threads or groups == group:
                        found.append(_cut(shape, kernel, columns, rows, group, dtype.itemsize))
    return [cut for cut in found if cut.slab > 0]


def _cut(shape: Shape, kernel: FacesKernel, columns: int, rows: int, groups: int, itemsize: int) -> Cut:
    outers, batch, chunk = groups * kernel.outers, rows * kernel.rows, columns * kernel.cells
    cut = Cut(
        kernel, outers, groups, -(-shape.mid_cells // batch), batch, -(-shape.lo_cells // chunk), chunk, columns, 0
    )
    room = SHARED // kernel.blocks - RESERVED - shared_bytes(shape, cut, itemsize)
    cell = outers * batch * kernel.lane_bytes + (outers + batch) * chunk * itemsize
    most = min(SLAB, room // cell, shape.domain)
    return cut._replace(slab=-(-shape.domain // -(-shape.domain // most)) if most > 0 else 0)


def shared_bytes(shape: Shape, cut: Cut, itemsize: int) -> int:
    """Bytes of shared memory of a block, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    count = shape.tables_a + shape.tables_b + 1
    size = -(-shape.words // 2) * 2 + cut.outers * (count + 1) + count + (count + 1) * cut.batch + count * cut.chunk
    size = -(-8 * size // 16) * 16 + cut.outers * cut.slab * cut.batch * cut.kernel.lane_bytes
    size = -(-size // 16) * 16 + cut.outers * cut.slab * cut.chunk * itemsize
    return -(-size // 16) * 16 + cut.slab * cut.batch * cut.chunk * itemsize


def blocks(shape: Shape, cut: Cut) -> int:
    """Blocks of a launch."""
    return shape.outer_cells // shape.sharing * -(-shape.sharing // cut.outers) * cut.splits * cut.chunks


def cost(shape: Shape, cut: Cut, multiprocessors: int, itemsize: int) -> float:
    """Predicted cycles."""
    kernel = cut.kernel
    used = -(-cut.columns * cut.batch // kernel.rows * cut.groups // 32)
    thread = kernel.outers * kernel.rows * kernel.cells
    per_thread = thread * itemsize / kernel.lane_bytes
    compute = 32 * used * per_thread * shape.domain / 32  # combinations of 32 lanes a cycle
    reads = (kernel.outers * (kernel.rows * kernel.lane_bytes // 16 + 1) + kernel.rows) * 4 * used * shape.domain
    fill = cut.outers * cut.batch * shape.tables_a + cut.outers * cut.chunk * shape.tables_b + cut.batch * cut.chunk
    fill_time = fill * shape.domain * itemsize / 20
    count = blocks(shape, cut)
    waves = count / multiprocessors
    each = max(compute, reads) * 1.2 + fill_time + 700 * (shape.domain / cut.slab) / min(cut.kernel.blocks, max(1, waves))
    return math.ceil(waves) * each + 4000


def choose(shape: Shape, semiring: str, dtype: np.dtype[np.generic], multiprocessors: int) -> Cut | None:
    """The cut that takes the least time by a simple model of it; None where streaming takes less."""
    if shape.sharing < LEAST or shape.domain < LEAST:
        return None
    costs = [(cost(shape, cut, multiprocessors, dtype.itemsize), cut) for cut in cuts(shape, semiring, dtype)]
    best = min(costs, key=lambda found: found[0], default=None)
    rows = shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells
    streamed = rows * dtype.itemsize / (STREAMED * multiprocessors)
    return best[1] if best is not None and best[0] < streamed else None
