"""Blocks for a large step without streamed tables (``kernels/product.cu``), or with one that lacks some slow axes.

The tables of the latter are faces of a box of cells (``kernels/faces.cu``, names with ``faces``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda.kernels import (
    PRODUCT_THREADS,
    FacesKernel,
    ProductKernel,
    faces_kernels,
    product_kernel,
    product_shapes,
)
from elimina.backends.cuda.record import rearrange
from elimina.planning.record import HEADER, tables

SHARED = 228 << 10
"""Bytes of shared memory of a multiprocessor."""
RESERVED = 1 << 10
"""Bytes of it that each block costs besides its own."""
GATHERED = 24.0
"""Cost of gathering one cell of a table, in combinations of one register: the threads that do it wait for it."""
READ_BYTE = 0.75
"""Cost of a byte of a table that is read in words."""
READ = 2.5
"""Cost of reading a vector from shared memory, for cells of 4 bytes; wider ones take longer to combine."""
READ_SPREAD = 0.5
"""Share of it that reading a vector of A costs where each of its cells is spread over a register."""
FEW = 0.5
"""Cost of a combination where only one block fits a multiprocessor."""
TAIL = 0.7
"""Waves of blocks that the end of the last wave costs."""
START = 64000.0
"""Cost of starting a block."""
FILL = 50000.0
"""Cost of waiting for shared memory to be filled."""
MOST_SPLITS = 64
"""Largest number of blocks that the passes over the middle cells are split over, besides one for each pass."""
AT_ONCE = 4
"""Largest number of passes over the middle cells for which shared memory is filled at once."""


class Side(NamedTuple):
    """The lhs or the rhs tables of a step.

    Attributes:
        tables: Number of tables.
        word: Bytes of the words that all may be read in; 0: their cells do not follow each other.
        constant: Bit mask of those that have none of the side's axes.
    """

    tables: int
    word: int
    constant: int


class Cut(NamedTuple):
    """Parameters of the kernel: ``chunks`` of ``chunk`` fast cells, ``splits`` of ``mids`` middle cells, and so on."""

    kernel: ProductKernel
    constant: int
    chunks: int
    chunk: int
    splits: int
    mids: int
    columns: int
    batch: int
    slab: int


class Shape(NamedTuple):
    """A step: its cells, the words of its record, and its tables."""

    domain: int
    outer_cells: int
    mid_cells: int
    lo_cells: int
    words: int
    a: Side
    b: Side


def side(tables: list[list[int]], first: int, sizes: list[int], axes: range, outer: int, itemsize: int) -> Side:
    """Return the way in which the tables of one side may be read.

    Args:
        tables: Offset, domain stride, source and strides of each.
        first: Number of the first one in the step.
        sizes: Sizes of all axes.
        axes: Those of the side.
        outer: Number of slow axes.
        itemsize: Bytes of a cell.
    """
    wide = [axis for axis in axes if sizes[axis] > 1]
    along = [math.prod(sizes[axis + 1 : axes.stop]) for axis in wide]
    word, constant = 16, 0
    for number, table in enumerate(tables):
        strides = [table[3 + axis] for axis in wide]
        if not any(strides):
            constant |= 1 << first + number
            continue
        if strides != along:
            return Side(len(tables), 0, constant)
        steps = [table[0], table[1], *(table[3 + axis] for axis in range(outer) if sizes[axis] > 1)]
        word = math.gcd(word, *(step * itemsize for step in steps))
    return Side(len(tables), word if word >= max(4, itemsize) else 0, constant)


@functools.lru_cache(maxsize=1024)
def cut(shape: Shape, semiring: str, dtype: np.dtype[np.generic], multiprocessors: int) -> Cut:
    """Choose the tile with the least estimated time."""
    best: tuple[float, Cut] | None = None
    for form in range(len(product_shapes(semiring, dtype))):
        tried: set[tuple[int, int]] = set()
        for columns in range(1, PRODUCT_THREADS + 1):
            cells = product_kernel(semiring, dtype, 0, True, form).cells
            # With the same passes and chunks, more columns only make the rhs larger.
            passes = PRODUCT_THREADS // columns, -(-shape.lo_cells // (columns * cells))
            if passes in tried:
                continue
            found = _cut_columns(shape, semiring, dtype, form, columns, multiprocessors)
            if found is None:
                continue
            tried.add(passes)
            if best is None or found[0] < best[0]:
                best = found
    assert best is not None
    return best[1]


def _cut_columns(
    shape: Shape, semiring: str, dtype: np.dtype[np.generic], form: int, columns: int, multiprocessors: int
) -> tuple[float, Cut] | None:
    item, owned = dtype.itemsize, product_shapes(semiring, dtype)[form]
    rows = PRODUCT_THREADS // columns * owned.rows
    word = min(shape.a.word, shape.b.word, math.gcd(16, rows * item))
    kernel = product_kernel(semiring, dtype, word if word >= max(4, item) else 0, True, form)
    chunk = columns * kernel.cells
    chunks, passes = -(-shape.lo_cells // chunk), -(-shape.mid_cells // rows)
    row_bytes, chunk_bytes = rows * (shape.domain * kernel.lane_bytes + 8), shape.domain * chunk * item
    room = SHARED // kernel.blocks - RESERVED - 8 * (shape.words + 2 * (shape.a.tables + shape.b.tables) + 10)
    whole = row_bytes + chunk_bytes <= room
    slab = shape.domain
    if owned.whole not in (None, whole):
        return None
    if not whole:
        kernel = product_kernel(semiring, dtype, kernel.word, False, form)
        most = max(4, (room - 8 * rows) // (chunk * item + rows * kernel.lane_bytes))
        slab = -(-shape.domain // -(-shape.domain // most))
    cell = READ_BYTE * item if kernel.word else GATHERED
    build_a, build_b = (cell * side.tables * n * shape.domain for side, n in ((shape.a, rows), (shape.b, chunk)))
    # Threads without cells of their own wait, but so do others of other blocks for them.
    lanes = PRODUCT_THREADS * kernel.rows * kernel.cells * item // kernel.lane_bytes
    places, parts = multiprocessors * kernel.blocks, shape.outer_cells * chunks
    fold = lanes * _fold_cost(kernel) * shape.domain + build_a
    most_together = max(1, min((room - chunk_bytes) // row_bytes, AT_ONCE)) if whole else 1
    again, once = (0.0, START + build_b) if whole else (build_b + FILL * (shape.domain / slab - 1), START)
    best: tuple[float, int] | None = None
    for each in _passes_of_a_block(passes, max(1, -(-16 * places // parts))):
        waves = parts * -(-passes // each) / places
        tile = fold + FILL / min(each, most_together) + again
        # Blocks that share a multiprocessor do not end together, and the last ones do not keep it busy.
        cost = (max(1.0, waves) + TAIL) * kernel.blocks * (each * tile + once)
        if best is None or cost < best[0]:
            best = cost, each
    assert best is not None
    cost, each = best
    used, together = -(-passes // each), min(each, most_together)
    mids = each * rows if used > 1 else shape.mid_cells
    batch = -(-each // -(-each // together)) * rows
    return cost, Cut(kernel, shape.a.constant | shape.b.constant, chunks, chunk, used, mids, columns, batch, slab)


@functools.lru_cache(maxsize=1024)
def _passes_of_a_block(passes: int, most: int) -> tuple[int, ...]:
    """Return the passes that a block may take, the most first, for up to ``most`` blocks that share so many."""
    splits = *range(1, min(passes, MOST_SPLITS, most) + 1), min(passes, most)
    return tuple(sorted({-(-passes // split) for split in splits}, reverse=True))


@functools.cache
def _fold_cost(kernel: ProductKernel) -> float:
    """Cost of one combination: shared memory must be read for it, and few blocks leave gaps."""
    spread = READ_SPREAD if kernel.cells * kernel.lane_bytes > 16 * kernel.vectors else 1.0
    reads = spread * (kernel.rows * kernel.lane_bytes // 16) + kernel.vectors
    lanes = kernel.rows * kernel.vectors * 16 // kernel.lane_bytes
    return 1 + READ * reads / lanes * (4 / kernel.lane_bytes) + FEW / kernel.blocks


def shared_bytes(shape: Shape, cut: Cut, itemsize: int) -> int:
    """Return the shared memory of a block in bytes, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    tables = shape.a.tables + shape.b.tables
    size = 8 * (-(-shape.words // 2) * 2 + 2 * tables + 1 + cut.batch)
    size = -(-size // 16) * 16 + cut.slab * cut.batch * cut.kernel.lane_bytes
    return -(-(-(-size // 16) * 16 + cut.slab * cut.chunk * itemsize) // 16) * 16


WARP = 32
"""Threads of a warp."""
LEAST_SHARED = 4
"""Least values of the eliminated variable, and cells that have the same streamed values."""
SCHEDULERS = 4
"""Warps that a multiprocessor runs at a time."""
FOLD = 4.0
"""Cycles of a warp for a combination of two registers, with the third one joined to them."""
WAIT = 60.0
"""Cycles that it waits for shared memory, for each value of the eliminated variable."""
LOAD = 4.0
"""Cycles of a warp for loading a cell of a face a thread."""
SECTOR = 32
"""Bytes read besides those wanted, for each run of cells."""
CACHE = 30.0
"""Bytes that a multiprocessor reads from the cache in a cycle."""
HINDRANCE = 0.3
"""Share of overlapped work that still adds to the time."""
FACES_START = 6000.0
"""Cycles before the first value."""
STREAMED = 9.0
"""Bytes of a streamed table that a multiprocessor reads in a cycle, from a cache."""


class FacesShape(NamedTuple):
    """A step: its cells, the words of its record, and its tables."""

    domain: int
    outer_cells: int
    sharing: int  # successive slow cells with the same streamed values
    mid_cells: int
    lo_cells: int
    words: int
    tables_a: int
    tables_b: int


class FacesCut(NamedTuple):
    """Parameters of the kernel: ``outers`` slow cells per block, ``splits`` of ``batch`` middle cells, and so on."""

    kernel: FacesKernel
    outers: int
    splits: int
    batch: int
    chunks: int
    chunk: int
    columns: int
    workers: int


def split_outer(record: list[int]) -> int:
    """Move the slow axes that the only streamed table lacks behind the other slow ones.

    Returns:
        Number of successive slow cells with the same streamed values; 1 if there are several streamed tables.
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


def faces_cuts(shape: FacesShape, semiring: str, dtype: np.dtype[np.generic]) -> Iterator[FacesCut]:
    """Yield all shapes of a step's blocks that fit the threads and shared memory."""
    for kernel in faces_kernels(semiring, dtype):
        for columns in range(1, min(kernel.threads, -(-shape.lo_cells // kernel.cells)) + 1):
            for rows in range(1, min(kernel.threads // columns, -(-shape.mid_cells // kernel.rows)) + 1):
                most = min(kernel.threads // columns // rows, -(-shape.sharing // kernel.outers))
                for groups in range(1, most + 1):
                    outers, batch, chunk = groups * kernel.outers, rows * kernel.rows, columns * kernel.cells
                    workers = -(-columns * rows * groups // WARP) * WARP
                    if outers * (batch + chunk) + batch * chunk > kernel.items * (kernel.threads - workers):
                        break
                    splits, chunks = -(-shape.mid_cells // batch), -(-shape.lo_cells // chunk)
                    cut = FacesCut(kernel, outers, splits, batch, chunks, chunk, columns, workers)
                    if faces_shared_bytes(shape, cut, dtype.itemsize) <= SHARED // max(2, kernel.blocks) - RESERVED:
                        yield cut


def faces_shared_bytes(shape: FacesShape, cut: FacesCut, itemsize: int) -> int:
    """Return the shared memory of a block in bytes, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    count, slab = shape.tables_a + shape.tables_b + 1, 2 * cut.kernel.depth
    size = -(-shape.words // 2) * 2 + cut.outers * (count + 1) + count + (count + 1) * cut.batch + count * cut.chunk
    size = -(-8 * size // 16) * 16 + cut.outers * slab * cut.batch * cut.kernel.lane_bytes
    size = -(-size // 16) * 16 + cut.outers * slab * cut.chunk * itemsize
    return -(-size // 16) * 16 + slab * cut.batch * cut.chunk * itemsize


def faces_blocks(shape: FacesShape, cut: FacesCut) -> int:
    """Return the number of blocks of a launch."""
    return shape.outer_cells // shape.sharing * -(-shape.sharing // cut.outers) * cut.splits * cut.chunks


def faces_cost(shape: FacesShape, cut: FacesCut, multiprocessors: int, itemsize: int) -> float:
    """Predicted cycles: workers, loaders and the cache are at work together, and hinder each other."""
    kernel = cut.kernel
    warps = math.ceil(cut.workers / WARP / SCHEDULERS)
    combinations = kernel.outers * kernel.rows * kernel.cells * itemsize // kernel.lane_bytes
    worked = warps * (FOLD * combinations * kernel.lane_bytes / 4 + WAIT)
    loaded = LOAD * (cut.outers * (cut.batch + cut.chunk) + cut.batch * cut.chunk) / WARP
    runs = (cut.outers, cut.batch), (cut.outers, cut.chunk), (cut.batch, cut.chunk)
    moved = sum(rows * (cells * itemsize + SECTOR) for rows, cells in runs) / CACHE
    waves = math.ceil(faces_blocks(shape, cut) / multiprocessors / kernel.blocks) * kernel.blocks
    parts = worked, loaded, moved
    return waves * shape.domain * (max(parts) + HINDRANCE * sum(parts)) + FACES_START


def faces_cut(shape: FacesShape, semiring: str, dtype: np.dtype[np.generic], multiprocessors: int) -> FacesCut | None:
    """Return the cut with the least estimated time; None if streaming takes less."""
    if shape.sharing < LEAST_SHARED or shape.domain < LEAST_SHARED:
        return None
    costs = [
        (faces_cost(shape, cut, multiprocessors, dtype.itemsize), cut) for cut in faces_cuts(shape, semiring, dtype)
    ]
    best = min(costs, key=lambda found: found[0], default=None)
    rows = shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells
    streamed = rows * dtype.itemsize / (STREAMED * multiprocessors)
    return best[1] if best is not None and best[0] < streamed else None
