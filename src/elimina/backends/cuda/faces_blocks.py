"""Blocks of the faces kernel (``kernels/faces.cu``), for a large step whose streamed table lacks slow axes.

The cells of a block are a box of slow, middle and fast cells. Each table depends on two of the three groups of axes, so
the cells that a block reads from it are a face of the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda.kernels import FacesKernel, faces_kernels
from elimina.backends.cuda.multiprocessor import RESERVED_SHARED_BYTES, SHARED_BYTES
from elimina.backends.cuda.record_axes import rearrange
from elimina.planning.record import AXES, AXIS_WORDS, HEADER, MID_AXES, OUTER_AXES, TABLES_A, TABLES_B, tables

WARP_THREADS = 32
"""Threads of a warp."""
MIN_SHARING = 4
"""The kernel is used only if the eliminated variable has at least this many values, and at least this many slow cells
have the same streamed values."""
SCHEDULERS = 4
"""Warps that a multiprocessor runs in the same cycle."""
FOLD_CYCLES = 4.0
"""Cycles in which a warp combines two registers and adds the result to a third one."""
WAIT_CYCLES = 60.0
"""Cycles for which a warp waits for shared memory, for each value of the eliminated variable."""
LOAD_CYCLES = 4.0
"""Cycles in which each thread of a warp loads one cell of a face."""
SECTOR_BYTES = 32
"""Additional bytes that are read with each run of adjacent cells, because memory is read in whole sectors."""
CACHE_BYTES_PER_CYCLE = 30.0
"""Bytes that a multiprocessor reads from the cache in a cycle."""
HINDRANCE_SHARE = 0.3
"""Share of the work of workers, loaders and cache that adds to the time although the three work at the same time."""
START_CYCLES = 6000.0
"""Cycles of a launch before it computes the first value of the eliminated variable."""
STREAMED_BYTES_PER_CYCLE = 9.0
"""Bytes of a streamed table that the tile kernel reads from a cache in a cycle, on each multiprocessor."""


class FacesShape(NamedTuple):
    """Sizes of a step: of its eliminated variable, its cells and its record; the numbers of its lhs and rhs tables."""

    domain: int
    outer_cells: int
    sharing: int  # successive slow cells with the same streamed values
    mid_cells: int
    lo_cells: int
    words: int
    tables_a: int
    tables_b: int


class FacesCut(NamedTuple):
    """Parameters of the kernel.

    A block has ``outers`` slow cells, one of ``splits`` batches of ``batch`` middle cells, and one of ``chunks`` chunks
    of ``chunk`` fast cells. ``workers`` threads compute, ``columns`` of them along the fast cells; the others load.
    """

    kernel: FacesKernel
    outers: int
    splits: int
    batch: int
    chunks: int
    chunk: int
    columns: int
    workers: int


def split_outer(record: list[int]) -> int:
    """Move the slow axes that the only streamed table lacks behind the other slow axes.

    Returns:
        Number of successive slow cells with the same streamed values; 1 unless exactly one table is streamed.
    """
    operands = tables(record)
    if len(operands) - record[TABLES_A] - record[TABLES_B] != 1:
        return 1
    outer = range(record[OUTER_AXES])
    sharing = [axis for axis in outer if not operands[-1][3 + axis]]
    others = [axis for axis in outer if axis not in sharing]
    sizes = record[HEADER : HEADER + AXIS_WORDS * record[AXES] : AXIS_WORDS]
    rearrange(
        record,
        [*others, *sharing],
        range(record[OUTER_AXES], record[OUTER_AXES] + record[MID_AXES]),
        range(len(operands)),
    )
    return math.prod(sizes[axis] for axis in sharing)


def faces_cuts(shape: FacesShape, semiring: str, dtype: np.dtype[np.generic]) -> Iterator[FacesCut]:
    """Yield all shapes of a step's blocks that fit the threads and shared memory."""
    for kernel in faces_kernels(semiring, dtype):
        for columns in range(1, min(kernel.threads, -(-shape.lo_cells // kernel.cells)) + 1):
            for rows in range(1, min(kernel.threads // columns, -(-shape.mid_cells // kernel.rows)) + 1):
                max_groups = min(kernel.threads // columns // rows, -(-shape.sharing // kernel.outers))
                for groups in range(1, max_groups + 1):
                    outers, batch, chunk = groups * kernel.outers, rows * kernel.rows, columns * kernel.cells
                    workers = -(-columns * rows * groups // WARP_THREADS) * WARP_THREADS
                    if outers * (batch + chunk) + batch * chunk > kernel.items * (kernel.threads - workers):
                        break
                    splits, chunks = -(-shape.mid_cells // batch), -(-shape.lo_cells // chunk)
                    cut = FacesCut(kernel, outers, splits, batch, chunks, chunk, columns, workers)
                    if (
                        faces_shared_bytes(shape, cut, dtype.itemsize)
                        <= SHARED_BYTES // max(2, kernel.blocks) - RESERVED_SHARED_BYTES
                    ):
                        yield cut


def faces_shared_bytes(shape: FacesShape, cut: FacesCut, itemsize: int) -> int:
    """Return the shared memory of a block in bytes, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    count, slab = shape.tables_a + shape.tables_b + 1, 2 * cut.kernel.depth
    size = -(-shape.words // 2) * 2 + cut.outers * (count + 1) + count + (count + 1) * cut.batch + count * cut.chunk
    size = -(-8 * size // 16) * 16 + cut.outers * slab * cut.batch * cut.kernel.lane_bytes
    size = -(-size // 16) * 16 + cut.outers * slab * cut.chunk * itemsize
    return -(-size // 16) * 16 + slab * cut.batch * cut.chunk * itemsize


def faces_block_count(shape: FacesShape, cut: FacesCut) -> int:
    """Return the number of blocks of a launch."""
    return shape.outer_cells // shape.sharing * -(-shape.sharing // cut.outers) * cut.splits * cut.chunks


def faces_cost(shape: FacesShape, cut: FacesCut, multiprocessors: int, itemsize: int) -> float:
    """Return the predicted cycles. Workers, loaders and the cache work at the same time, and slow each other down."""
    kernel = cut.kernel
    warps = math.ceil(cut.workers / WARP_THREADS / SCHEDULERS)
    combinations = kernel.outers * kernel.rows * kernel.cells * itemsize // kernel.lane_bytes
    worked = warps * (FOLD_CYCLES * combinations * kernel.lane_bytes / 4 + WAIT_CYCLES)
    loaded = LOAD_CYCLES * (cut.outers * (cut.batch + cut.chunk) + cut.batch * cut.chunk) / WARP_THREADS
    runs = (cut.outers, cut.batch), (cut.outers, cut.chunk), (cut.batch, cut.chunk)
    moved = sum(rows * (cells * itemsize + SECTOR_BYTES) for rows, cells in runs) / CACHE_BYTES_PER_CYCLE
    waves = math.ceil(faces_block_count(shape, cut) / multiprocessors / kernel.blocks) * kernel.blocks
    cycles = worked, loaded, moved
    return waves * shape.domain * (max(cycles) + HINDRANCE_SHARE * sum(cycles)) + START_CYCLES


def faces_cut(shape: FacesShape, semiring: str, dtype: np.dtype[np.generic], multiprocessors: int) -> FacesCut | None:
    """Return the cut with the least estimated time; None if the step is small, no cut fits, or streaming is faster."""
    if shape.sharing < MIN_SHARING or shape.domain < MIN_SHARING:
        return None
    costs = [
        (faces_cost(shape, cut, multiprocessors, dtype.itemsize), cut) for cut in faces_cuts(shape, semiring, dtype)
    ]
    best = min(costs, key=lambda option: option[0], default=None)
    rows = shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells
    streamed = rows * dtype.itemsize / (STREAMED_BYTES_PER_CYCLE * multiprocessors)
    return best[1] if best is not None and best[0] < streamed else None
