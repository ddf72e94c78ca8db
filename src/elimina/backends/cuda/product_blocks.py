"""Blocks of the product kernel (``kernels/product.cu``), for a large step without streamed tables."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda.kernels import PRODUCT_THREADS, ProductKernel, product_forms, product_kernel
from elimina.backends.cuda.multiprocessor import RESERVED_SHARED_BYTES, SHARED_BYTES

GATHERED_CELL_COST = 24.0
"""Cost of gathering one cell of a table, while threads wait. The unit of costs is one combination in one register."""
READ_BYTE_COST = 0.75
"""Cost of a byte of a table that is read in words."""
VECTOR_READ_COST = 2.5
"""Cost of reading a vector from shared memory, for cells of 4 bytes; wider cells take longer to combine."""
SPREAD_READ_SHARE = 0.5
"""Relative cost of reading a vector of lhs cells if registers hold two cells, because each lhs cell is then stored
twice."""
SINGLE_BLOCK_COST = 0.5
"""Additional cost of a combination if one block fits a multiprocessor; n blocks have 1/n of this cost."""
TAIL_WAVES = 0.7
"""Cost of the last wave's end, where few blocks run, in waves of blocks."""
BLOCK_START_COST = 64000.0
"""Cost of starting a block."""
FILL_COST = 50000.0
"""Cost of waiting while shared memory is filled once."""
MAX_SPLITS = 64
"""Largest number of blocks that share the passes over the middle cells, unless each pass gets its own block."""
MAX_PASSES_AT_ONCE = 4
"""Largest number of passes over the middle cells for which shared memory is filled at once."""


class ProductSide(NamedTuple):
    """The lhs or the rhs tables of a step.

    Attributes:
        tables: Number of tables.
        word: Bytes of the words in which all tables may be read; 0: their cells are not adjacent.
        constant: Bit mask of the tables that have none of the side's axes.
    """

    tables: int
    word: int
    constant: int


class ProductCut(NamedTuple):
    """Parameters of the kernel.

    The fast cells are divided into ``chunks`` chunks of ``chunk`` cells, and the middle cells into ``splits`` splits of
    ``mids`` cells. A block computes one chunk of one split; ``columns`` of its threads lie along the chunk. Shared
    memory holds ``batch`` middle cells and ``slab`` values of the eliminated variable at a time.
    """

    kernel: ProductKernel
    constant: int
    chunks: int
    chunk: int
    splits: int
    mids: int
    columns: int
    batch: int
    slab: int


class ProductStepShape(NamedTuple):
    """Size of a step with a product.

    Attributes:
        domain: Number of values of the eliminated variable.
        outer_cells, mid_cells, lo_cells: Numbers of combinations of the slow, middle and fast axes.
        words: Number of words of the step's record.
        a, b: The lhs and the rhs.
    """

    domain: int
    outer_cells: int
    mid_cells: int
    lo_cells: int
    words: int
    a: ProductSide
    b: ProductSide


def product_side(
    tables: list[list[int]], first: int, sizes: list[int], axes: range, outer: int, itemsize: int
) -> ProductSide:
    """Return how the tables of one side may be read.

    Args:
        tables: Offset, domain stride, source and strides of each table.
        first: Number of the first of these tables in the step.
        sizes: Sizes of all axes.
        axes: Axes of the side.
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
            return ProductSide(len(tables), 0, constant)
        steps = [table[0], table[1], *(table[3 + axis] for axis in range(outer) if sizes[axis] > 1)]
        word = math.gcd(word, *(step * itemsize for step in steps))
    return ProductSide(len(tables), word if word >= max(4, itemsize) else 0, constant)


@functools.lru_cache(maxsize=1024)
def product_cut(
    shape: ProductStepShape, semiring: str, dtype: np.dtype[np.generic], multiprocessors: int
) -> ProductCut:
    """Choose the tile with the least estimated time."""
    best: tuple[float, ProductCut] | None = None
    for form in range(len(product_forms(semiring, dtype))):
        tried: set[tuple[int, int]] = set()
        for columns in range(1, PRODUCT_THREADS + 1):
            cells = product_kernel(semiring, dtype, 0, True, form).cells
            # If the numbers of thread rows and of chunks stay the same, more columns only make the rhs larger.
            passes = PRODUCT_THREADS // columns, -(-shape.lo_cells // (columns * cells))
            if passes in tried:
                continue
            option = _cut_columns(shape, semiring, dtype, form, columns, multiprocessors)
            if option is None:
                continue
            tried.add(passes)
            if best is None or option[0] < best[0]:
                best = option
    assert best is not None
    return best[1]


def _cut_columns(
    shape: ProductStepShape, semiring: str, dtype: np.dtype[np.generic], form: int, columns: int, multiprocessors: int
) -> tuple[float, ProductCut] | None:
    item, owned = dtype.itemsize, product_forms(semiring, dtype)[form]
    rows = PRODUCT_THREADS // columns * owned.rows
    word = min(shape.a.word, shape.b.word, math.gcd(16, rows * item))
    kernel = product_kernel(semiring, dtype, word if word >= max(4, item) else 0, True, form)
    chunk = columns * kernel.cells
    chunks, passes = -(-shape.lo_cells // chunk), -(-shape.mid_cells // rows)
    row_bytes, chunk_bytes = rows * (shape.domain * kernel.lane_bytes + 8), shape.domain * chunk * item
    room = (
        SHARED_BYTES // kernel.blocks
        - RESERVED_SHARED_BYTES
        - 8 * (shape.words + 2 * (shape.a.tables + shape.b.tables) + 10)
    )
    whole = row_bytes + chunk_bytes <= room
    slab = shape.domain
    if owned.whole not in (None, whole):
        return None
    if not whole:
        kernel = product_kernel(semiring, dtype, kernel.word, False, form)
        max_slab = max(4, (room - 8 * rows) // (chunk * item + rows * kernel.lane_bytes))
        slab = -(-shape.domain // -(-shape.domain // max_slab))
    cell = READ_BYTE_COST * item if kernel.word else GATHERED_CELL_COST
    build_a, build_b = (cell * side.tables * n * shape.domain for side, n in ((shape.a, rows), (shape.b, chunk)))
    # Threads without cells also take part in the block's barriers, so the cost is that of all threads.
    lanes = PRODUCT_THREADS * kernel.rows * kernel.cells * item // kernel.lane_bytes
    concurrent_blocks, block_rows = multiprocessors * kernel.blocks, shape.outer_cells * chunks
    fold = lanes * _fold_cost(kernel) * shape.domain + build_a
    most_together = max(1, min((room - chunk_bytes) // row_bytes, MAX_PASSES_AT_ONCE)) if whole else 1
    again, once = (
        (0.0, BLOCK_START_COST + build_b)
        if whole
        else (build_b + FILL_COST * (shape.domain / slab - 1), BLOCK_START_COST)
    )
    best: tuple[float, int] | None = None
    for each in _passes_of_a_block(passes, max(1, -(-16 * concurrent_blocks // block_rows))):
        waves = block_rows * -(-passes // each) / concurrent_blocks
        tile = fold + FILL_COST / min(each, most_together) + again
        # Blocks that share a multiprocessor do not end together, and the last ones do not keep it busy.
        cost = (max(1.0, waves) + TAIL_WAVES) * kernel.blocks * (each * tile + once)
        if best is None or cost < best[0]:
            best = cost, each
    assert best is not None
    cost, each = best
    used, together = -(-passes // each), min(each, most_together)
    mids = each * rows if used > 1 else shape.mid_cells
    batch = -(-each // -(-each // together)) * rows
    return cost, ProductCut(
        kernel, shape.a.constant | shape.b.constant, chunks, chunk, used, mids, columns, batch, slab
    )


@functools.lru_cache(maxsize=1024)
def _passes_of_a_block(passes: int, max_splits: int) -> tuple[int, ...]:
    """Return the possible numbers of passes per block, the largest first, if up to ``max_splits`` blocks share them."""
    splits = *range(1, min(passes, MAX_SPLITS, max_splits) + 1), min(passes, max_splits)
    return tuple(sorted({-(-passes // split) for split in splits}, reverse=True))


@functools.cache
def _fold_cost(kernel: ProductKernel) -> float:
    """Return the cost of one combination: arithmetic, reads of shared memory, and idle time if few blocks run."""
    spread = SPREAD_READ_SHARE if kernel.cells * kernel.lane_bytes > 16 * kernel.vectors else 1.0
    reads = spread * (kernel.rows * kernel.lane_bytes // 16) + kernel.vectors
    lanes = kernel.rows * kernel.vectors * 16 // kernel.lane_bytes
    return 1 + VECTOR_READ_COST * reads / lanes * (4 / kernel.lane_bytes) + SINGLE_BLOCK_COST / kernel.blocks


def product_shared_bytes(shape: ProductStepShape, cut: ProductCut, itemsize: int) -> int:
    """Return the shared memory of a block in bytes, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    tables = shape.a.tables + shape.b.tables
    size = 8 * (-(-shape.words // 2) * 2 + 2 * tables + 1 + cut.batch)
    size = -(-size // 16) * 16 + cut.slab * cut.batch * cut.kernel.lane_bytes
    return -(-(-(-size // 16) * 16 + cut.slab * cut.chunk * itemsize) // 16) * 16
