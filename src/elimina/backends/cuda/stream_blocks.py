"""Blocks of the tile kernel (``kernels/tile.cu``), for a large step with streamed tables."""

from __future__ import annotations

import math
from typing import NamedTuple

from elimina.backends.cuda.kernels import THREADS, TileKernel
from elimina.backends.cuda.multiprocessor import RESERVED_SHARED_BYTES, SHARED_BYTES
from elimina.planning.record import TABLES_A, TABLES_B, tables

MAX_ROW_OFFSET = 2**31 - 1
"""Largest offset of a streamed cell from the first one of its row, which kernels keep in 32 bits."""
BLOCK_START_COST = 500.0
"""Cost of starting a block, for all values of the eliminated variable together, in the unit of ``_split``."""
MAX_WAVES = 6
"""Largest number of waves of a split: its blocks, divided by the number of blocks that run at a time."""
BUILD_CELL_COST = 8.0
"""Cost of reading one cell of an rhs table, in the unit of ``_split``."""
STREAM_SETUP_FACTOR = 3.5
"""Factor of the costs of a block's setup, during which memory is idle; it is doubled for kernels without a ring."""
MAX_COLUMNS = 128
"""Largest number of threads along a streamed row: with more, the rhs would be large, and a block would have few middle
cells."""
LARGE_DOMAIN = 64
LARGE_COLUMNS = 32
"""Domains of at least ``LARGE_DOMAIN`` values get at most ``LARGE_COLUMNS`` threads along a streamed row."""
NARROW_COLUMNS = 64
"""Largest number of threads along a streamed row of two-byte cells, if there are at least ``NARROW_DOMAIN`` values."""
NARROW_DOMAIN = 5
SHORT_RING_DOMAIN = 32
"""Domains of at least this many values have a shorter ring if cells have two bytes, which saves memory for the rhs."""
CHEAP_RHS_BYTES = 26 << 10
"""Up to this size, an rhs is cheap to build. Rows are shortened only if the rhs is larger."""
MIN_ROW_BYTES = 256
"""Rows of at most this length are not cut further to make the rhs smaller."""


class StreamStepShape(NamedTuple):
    """Sizes of a step: values of the eliminated variable, cells of each group of axes, words of the record, and tables.

    ``tables``, ``tables_a``, ``tables_b`` and ``streamed`` are the numbers of all, lhs, rhs and streamed tables.
    ``itemsize``: bytes of a cell.
    """

    domain: int
    outer_cells: int
    mid_cells: int
    lo_cells: int
    words: int
    tables: int
    tables_a: int
    tables_b: int
    streamed: int
    itemsize: int
    sharing: int  # successive slow cells with the same streamed values
    outers: int  # number of such cells that a block takes


class StreamCut(NamedTuple):
    """Sizes of a block: fast cells, threads along them, middle cells, and values of the eliminated variable."""

    chunk: int
    columns: int
    rows: int  # middle cells that a block takes at a time
    slab: int


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def streamed_tables(record: list[int]) -> list[list[int]]:
    """Return the tables of a record that are neither lhs nor rhs."""
    return tables(record)[record[TABLES_A] + record[TABLES_B] :]


def combinations(shape: StreamStepShape) -> int:
    """Return the number of combinations of values that a step computes."""
    return shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells


def cut_streams(shape: StreamStepShape, kernel: TileKernel) -> StreamCut:
    """Choose the sizes of a block: long rows, as memory is read in rows; shorter ones if the rhs would not fit."""
    max_columns = MAX_COLUMNS if kernel.outers > 1 else _max_columns(shape)
    widest = max_columns * kernel.cells
    line = max(kernel.cells, 128 // shape.itemsize)
    chunks = -(-shape.lo_cells // widest)
    while True:
        chunk = _up(-(-shape.lo_cells // chunks), line) if chunks > 1 else _up(shape.lo_cells, kernel.cells)
        columns = min(max_columns, -(-chunk // kernel.cells))
        if columns < 32:  # with a power of two, no row straddles two warps
            columns = 1 << columns.bit_length() - 1
            chunk = columns * kernel.cells
        rows = THREADS // columns * kernel.rows
        budget = _room(shape, kernel, rows)
        cell_bytes = _outers(shape, kernel) * (chunk * shape.itemsize + rows * kernel.lane_bytes)
        row = chunk * shape.itemsize
        fits = shape.domain * cell_bytes <= budget
        short = shape.domain * row <= CHEAP_RHS_BYTES or row <= MIN_ROW_BYTES or not kernel.ring or kernel.outers > 1
        if (fits and short) or row <= 128:
            break
        chunks += 1
    slab = min(shape.domain, max(1, budget // cell_bytes))
    return StreamCut(min(chunk, columns * kernel.cells), columns, rows, slab)


def _max_columns(shape: StreamStepShape) -> int:
    if shape.domain >= LARGE_DOMAIN:
        return LARGE_COLUMNS
    return NARROW_COLUMNS if shape.itemsize == 2 and shape.domain >= NARROW_DOMAIN else MAX_COLUMNS


def _outers(shape: StreamStepShape, kernel: TileKernel) -> int:
    return shape.outers if kernel.outers > 1 else 1


def _room(shape: StreamStepShape, kernel: TileKernel, rows: int) -> int:
    """Return the bytes of shared memory for lhs and rhs of a block if ``kernel.blocks`` are to fit a multiprocessor."""
    words = shape.words + shape.tables + _outers(shape, kernel) * (shape.tables + 1) + 5 + (shape.streamed + 1) * rows
    return SHARED_BYTES // kernel.blocks - RESERVED_SHARED_BYTES - kernel.ring - 8 * words - 64


def cover(
    shape: StreamStepShape, kernel: TileKernel, cut: StreamCut, multiprocessors: int
) -> tuple[int, int, int, int, int, int, int]:
    """Return the kernel's arguments ``chunks``, ``chunk``, ``splits``, ``mids``, ``columns``, ``batch``, ``slab``."""
    chunks = -(-shape.lo_cells // cut.chunk)
    outers = _outers(shape, kernel)
    splits, mids = _split(shape, kernel, cut, shape.outer_cells * chunks // outers, multiprocessors * kernel.blocks)
    batch = cut.rows
    if kernel.whole:
        cell_bytes = outers * shape.domain * kernel.lane_bytes + 8 * (shape.streamed + 1)
        free_bytes = _room(shape, kernel, 0) - outers * shape.domain * cut.chunk * shape.itemsize
        room = min(free_bytes, 8 << 10) // cell_bytes
        batch = max(batch, min(_up(mids, cut.rows), room // cut.rows * cut.rows))
    return chunks, cut.chunk, splits, mids, cut.columns, batch, cut.slab


def _split(
    shape: StreamStepShape, kernel: TileKernel, cut: StreamCut, block_rows: int, concurrent_blocks: int
) -> tuple[int, int]:
    """Return the division of the middle cells with the least estimated time: number of parts, and cells of a part."""
    # Costs are for one fast cell and one value of the eliminated variable. A streamed row costs 2 for each byte of a
    # cell, and at least 8 if it is unaligned.
    row = max(2.0 * shape.itemsize, 0.0 if kernel.aligned else 8.0)
    setup = 2 * BUILD_CELL_COST * shape.tables_b * _outers(shape, kernel) + BLOCK_START_COST / max(1, shape.domain)
    setup *= STREAM_SETUP_FACTOR * (1 if kernel.ring else 2)
    best: tuple[float, int, int] | None = None
    for splits in range(1, max(1, min(shape.mid_cells // cut.rows, MAX_WAVES * concurrent_blocks // block_rows)) + 1):
        mids = _up(-(-shape.mid_cells // splits), cut.rows) if splits > 1 else shape.mid_cells
        used = -(-shape.mid_cells // mids)
        waves = block_rows * used / concurrent_blocks
        # With few waves, a partial last wave costs as much as a full one. With many, waves overlap and fill its gaps.
        cost = (waves if waves >= 3 else math.ceil(waves)) + 0.5
        cost *= row * _up(mids, cut.rows) + setup
        if best is None or cost < best[0]:
            best = cost, used, mids
    assert best is not None
    return best[1:]


def stream_shared_bytes(shape: StreamStepShape, kernel: TileKernel, cut: StreamCut, batch: int) -> int:
    """Return the shared memory of a block in bytes, added up as ``map_of`` in ``kernels/tile_parts.cuh`` does."""
    pitch = _up(cut.chunk, kernel.cells)
    outers = _outers(shape, kernel)
    size = 8 * (_up(shape.words, 2) + shape.tables + outers * (shape.tables + 1) + (shape.streamed + 1) * batch)
    if kernel.streamed < 0:
        size += 4 * shape.streamed * pitch
    size = _up(size, 16) + outers * cut.slab * batch * kernel.lane_bytes
    return _up(_up(size, 16) + outers * cut.slab * pitch * shape.itemsize, 16) + kernel.ring
