"""Blocks of the tile kernel (``kernels/tile.cu``) for a large step."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda import product as cuda_product
from elimina.backends.cuda.kernels import (
    OUTERS,
    PRODUCT_THREADS,
    RING_UNITS,
    THREADS,
    FacesKernel,
    LevelKernel,
    ProductKernel,
    TileKernel,
    level_kernel,
    tile_kernel,
)
from elimina.backends.cuda.product import RESERVED, SHARED
from elimina.backends.cuda.record import is_aligned, is_dense, lengthen, merge, outers_of, share, widen
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.planning.record import HEADER, tables

MOST_OFFSET = 2**31 - 1
"""Largest offset of a streamed cell from the first one of its row, which kernels keep in 32 bits."""
START = 500.0
"""Cost of starting a block, in rows of the product per fast cell."""
WAVES = 6
"""Most blocks that a split makes for each place on the device."""
BUILD = 8.0
"""Cost of one cell of an rhs table, in rows of the product."""
STREAM_SETUP = 3.5
"""Relative cost of starting a block that streams, whose memory is idle meanwhile; twice that without a ring."""
COLUMNS = 128
"""Most threads beside each other along a streamed row: with more, the rhs is large and middle cells are few."""
LARGE_DOMAIN = 64
LARGE_COLUMNS = 32
"""The same from this domain on."""
NARROW_COLUMNS = 64
"""The same for cells of two bytes and domains from `NARROW_DOMAIN` on."""
NARROW_DOMAIN = 5
SHORT_RING = 32
"""Domain from which cells of two bytes leave more room for the rhs by a shorter ring."""
STREAM_B = 26 << 10
"""Bytes of the rhs from which building it costs more than longer rows gain."""
LEVEL_BLOCKS = 8
"""Blocks of a moment-matching step that a multiprocessor holds together."""
STREAM_ROW = 256
"""Bytes of a row that are worth more than a small rhs."""


_PATHS = {
    TileKernel: "cuda-tile",
    ProductKernel: "cuda-product",
    FacesKernel: "cuda-faces",
    LevelKernel: "cuda-levelling",
}


class Tile(NamedTuple):
    """A launch of one large step.

    Attributes:
        kernel: Instantiation of the tile kernel.
        record_at: Start of the step's record in the words.
        arguments: The kernel's arguments between ``record`` and ``arena`` (``kernels/tile.cu``, ``product.cu``,
            ``level.cu``).
        blocks: Number of blocks.
        threads: Threads of each block.
        shared: Bytes of shared memory of a block.
        work: Rows of the step.
    """

    kernel: TileKernel | ProductKernel | FacesKernel | LevelKernel
    record_at: int
    arguments: tuple[int, ...]
    blocks: int
    threads: int
    shared: int
    work: int

    def kernel_names(self, semiring: str, dtype: np.dtype[np.generic]) -> tuple[str]:
        """Return the name of the kernel that it runs, which belongs to a semiring and a dtype."""
        return (self.kernel.name,)

    @property
    def path(self) -> str:
        """Name of the executor path that it is."""
        return _PATHS[type(self.kernel)]


class _Shape(NamedTuple):
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
    outers: int  # of these, in a block


class _Cut(NamedTuple):
    chunk: int
    columns: int
    rows: int  # middle cells that a block takes at a time
    slab: int


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def choose(
    program: Program,
    number: int,
    start: int,
    record: list[int],
    multiprocessors: int,
    shared_limit: int,
) -> Tile:
    """Choose the kernel and the split for a step; move and merge the axes of its record for that kernel.

    Raises:
        DeviceError: The step needs more blocks or shared memory than a launch can have.
    """
    widen(record)
    if program.dtype == np.int16:
        lengthen(record)
    sharing = share(record, program.dtype.itemsize) if program.semiring == "sum-product" and _streams(record) else 1
    facing = cuda_product.split_outer(record) if sharing == 1 else 1
    merge(record)
    axes, lo = record[3], record[4] + record[5]
    sizes = record[HEADER : HEADER + 3 * axes : 3]
    out_strides = record[HEADER + 1 : HEADER + 3 * axes : 3]
    known, streams = tables(record), _streams(record)
    item = program.dtype.itemsize
    cells = record[6], record[7], record[8]
    counts = len(known), record[10], record[11], len(streams)
    shape = _Shape(record[1], *cells, record[0], *counts, item, sharing, outers_of(sharing))
    out_words = [n for n in (16, 8, 4) if n >= item and is_aligned(record[12], out_strides[:lo], sizes[:lo], n // item)]
    place = number, start, record[0], len(known), out_words[0] if out_words else 0
    faces = _choose_faces(program, shape, facing, place, multiprocessors) if facing > 1 else None
    if faces is not None:
        tile = faces
    elif streams:
        tile = _choose_streams(program, shape, streams, (out_strides, sizes, lo), place, multiprocessors)
    else:
        tile = _choose_product(program, shape, known, (sizes, record[4], lo), place, multiprocessors)
    if tile.blocks >= 2**31 or tile.shared > shared_limit:
        raise DeviceError(
            f"a step with {shape.domain} x {tile.work // shape.domain} rows needs {tile.blocks} blocks "
            f"of {tile.shared} bytes of shared memory, this device allows {2**31 - 1} and {shared_limit}; "
            "use --device cpu"
        )
    return tile


def _streams(record: list[int]) -> list[list[int]]:
    return tables(record)[record[10] + record[11] :]


def _work(shape: _Shape) -> int:
    return shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells


def _choose_faces(
    program: Program, shape: _Shape, sharing: int, place: tuple[int, int, int, int, int], multiprocessors: int
) -> Tile | None:
    """Return a launch of ``kernels/faces.cu``, if the box of a block is not mostly empty."""
    number, start, words, count, out_word = place
    box = cuda_product.FacesShape(
        shape.domain,
        shape.outer_cells,
        sharing,
        shape.mid_cells,
        shape.lo_cells,
        words,
        shape.tables_a,
        shape.tables_b,
    )
    cut = cuda_product.faces_cut(box, program.semiring, program.dtype, multiprocessors)
    if cut is None:
        return None
    shared = cuda_product.faces_shared_bytes(box, cut, shape.itemsize)
    arguments = (words, number, count, sharing, *cut[1:], out_word)
    return Tile(
        cut.kernel, start, arguments, cuda_product.faces_blocks(box, cut), cut.kernel.threads, shared, _work(shape)
    )


def _choose_product(
    program: Program,
    shape: _Shape,
    tables: list[list[int]],
    axes: tuple[list[int], int, int],
    place: tuple[int, int, int, int, int],
    multiprocessors: int,
) -> Tile:
    number, start, words, count, out_word = place
    sizes, outer, lo = axes
    first_b = shape.tables_a
    side_a = cuda_product.side(tables[:first_b], 0, sizes, range(outer, lo), outer, shape.itemsize)
    side_b = cuda_product.side(tables[first_b:], first_b, sizes, range(lo, len(sizes)), outer, shape.itemsize)
    product = cuda_product.Shape(
        shape.domain, shape.outer_cells, shape.mid_cells, shape.lo_cells, shape.words, side_a, side_b
    )
    cut = cuda_product.cut(product, program.semiring, program.dtype, multiprocessors)
    shared = cuda_product.shared_bytes(product, cut, shape.itemsize)
    blocks = shape.outer_cells * cut.chunks * cut.splits
    arguments = (words, number, count, *cut[1:], out_word)
    return Tile(cut.kernel, start, arguments, blocks, PRODUCT_THREADS, shared, _work(shape))


def _choose_streams(
    program: Program,
    shape: _Shape,
    streams: list[list[int]],
    axes: tuple[list[int], list[int], int],
    place: tuple[int, int, int, int, int],
    multiprocessors: int,
) -> Tile:
    number, start, words, count, out_word = place
    out_strides, sizes, lo = axes
    vector = 16 // shape.itemsize
    few = len(streams) <= 2
    aligned = all(
        table[1] % vector == 0 and is_aligned(table[0], table[3 : 3 + lo], sizes[:lo], vector) for table in streams
    )
    dense = few and all(is_dense(table[3:], out_strides, sizes, lo) for table in streams)
    spans = (sum((sizes[axis] - 1) * table[3 + axis] for axis in range(lo, len(sizes))) for table in streams)
    if not dense and max(spans) > MOST_OFFSET:
        raise DeviceError(
            f"a step reads a table whose cells lie more than {MOST_OFFSET} apart in one row, which no kernel does; "
            "use --device cpu"
        )

    # Reading through the ring is fastest, but leaves less room for the rhs, so large domains get short rows.
    outers = OUTERS if shape.outers > 1 else 1
    ways = ((True, True, outers), (False, True, 1), (False, False, 1))
    streamed = len(streams) if few else -1
    units = RING_UNITS - 1 if shape.itemsize == 2 and shape.domain >= SHORT_RING else RING_UNITS
    kernels = [
        tile_kernel(program.semiring, program.dtype, streamed, vectors, aligned or not vectors, whole, units, outers)
        for vectors, whole, outers in ways
        if dense or not vectors
    ]
    cuts = [(kernel, _cut_streams(shape, kernel)) for kernel in kernels]
    whole_cuts = [(kernel, cut) for kernel, cut in cuts if kernel.whole and cut.slab == shape.domain]
    long_cuts = [
        (kernel, cut)
        for kernel, cut in whole_cuts
        if cut.columns >= min(32, shape.lo_cells // kernel.cells) or (kernel.ring and shape.itemsize == 2)
    ]
    kernel, cut = (long_cuts or whole_cuts or cuts[-1:])[0]
    tile = _cover(shape, kernel, cut, multiprocessors)
    sharing, outers = (shape.sharing, shape.outers) if kernel.outers > 1 else (1, 1)
    arguments = (words, number, count, len(streams), *tile, out_word, sharing, outers)
    blocks = shape.outer_cells // sharing * -(-sharing // outers) * tile[0] * tile[2]
    return Tile(kernel, start, arguments, blocks, THREADS, _shared(shape, kernel, cut, tile[5]), _work(shape))


def _cut_streams(shape: _Shape, kernel: TileKernel) -> _Cut:
    """Choose long rows of fast cells, since that is how memory is read; shorter ones if the rhs would not fit."""
    most = COLUMNS if kernel.outers > 1 else _most_columns(shape)
    widest = most * kernel.cells
    line = max(kernel.cells, 128 // shape.itemsize)
    chunks = -(-shape.lo_cells // widest)
    while True:
        chunk = _up(-(-shape.lo_cells // chunks), line) if chunks > 1 else _up(shape.lo_cells, kernel.cells)
        columns = min(most, -(-chunk // kernel.cells))
        if columns < 32:  # a row does not straddle two warps
            columns = 1 << columns.bit_length() - 1
            chunk = columns * kernel.cells
        rows = THREADS // columns * kernel.rows
        budget = _room(shape, kernel, rows)
        cell_bytes = _outers(shape, kernel) * (chunk * shape.itemsize + rows * kernel.lane_bytes)
        row = chunk * shape.itemsize
        fits = shape.domain * cell_bytes <= budget
        short = shape.domain * row <= STREAM_B or row <= STREAM_ROW or not kernel.ring or kernel.outers > 1
        if (fits and short) or row <= 128:
            break
        chunks += 1
    slab = min(shape.domain, max(1, budget // cell_bytes))
    return _Cut(min(chunk, columns * kernel.cells), columns, rows, slab)


def _most_columns(shape: _Shape) -> int:
    if shape.domain >= LARGE_DOMAIN:
        return LARGE_COLUMNS
    return NARROW_COLUMNS if shape.itemsize == 2 and shape.domain >= NARROW_DOMAIN else COLUMNS


def _outers(shape: _Shape, kernel: TileKernel) -> int:
    return shape.outers if kernel.outers > 1 else 1


def _room(shape: _Shape, kernel: TileKernel, rows: int) -> int:
    """Return the shared memory, in bytes, that a block has for lhs and rhs if as many blocks as wanted are to fit."""
    words = shape.words + shape.tables + _outers(shape, kernel) * (shape.tables + 1) + 5 + (shape.streamed + 1) * rows
    return SHARED // kernel.blocks - RESERVED - kernel.ring - 8 * words - 64


def _cover(
    shape: _Shape, kernel: TileKernel, cut: _Cut, multiprocessors: int
) -> tuple[int, int, int, int, int, int, int]:
    """Return chunks, chunk, splits, mids, columns, batch, slab."""
    chunks = -(-shape.lo_cells // cut.chunk)
    outers = _outers(shape, kernel)
    splits, mids = _split(shape, kernel, cut, shape.outer_cells * chunks // outers, multiprocessors * kernel.blocks)
    batch = cut.rows
    if kernel.whole:
        cell_bytes = outers * shape.domain * kernel.lane_bytes + 8 * (shape.streamed + 1)
        left = _room(shape, kernel, 0) - outers * shape.domain * cut.chunk * shape.itemsize
        room = min(left, 8 << 10) // cell_bytes
        batch = max(batch, min(_up(mids, cut.rows), room // cut.rows * cut.rows))
    return chunks, cut.chunk, splits, mids, cut.columns, batch, cut.slab


def _split(shape: _Shape, kernel: TileKernel, cut: _Cut, parts: int, places: int) -> tuple[int, int]:
    """Split the middle cells so that blocks fill waves and repay the building of their rhs; return splits, mids."""
    # Unit: rows of the product per fast cell. A byte of a streamed row costs as much as two, an unaligned one more.
    row = max(2.0 * shape.itemsize, 0.0 if kernel.aligned else 8.0)
    setup = 2 * BUILD * shape.tables_b * _outers(shape, kernel) + START / max(1, shape.domain)
    setup *= STREAM_SETUP * (1 if kernel.ring else 2)
    best: tuple[float, int, int] | None = None
    for splits in range(1, max(1, min(shape.mid_cells // cut.rows, WAVES * places // parts)) + 1):
        mids = _up(-(-shape.mid_cells // splits), cut.rows) if splits > 1 else shape.mid_cells
        used = -(-shape.mid_cells // mids)
        waves = parts * used / places
        # Few waves are as slow as their last; with many, the last ones share what others leave.
        cost = (waves if waves >= 3 else math.ceil(waves)) + 0.5
        cost *= row * _up(mids, cut.rows) + setup
        if best is None or cost < best[0]:
            best = cost, used, mids
    assert best is not None
    return best[1:]


def _shared(shape: _Shape, kernel: TileKernel, cut: _Cut, batch: int) -> int:
    pitch = _up(cut.chunk, kernel.cells)
    outers = _outers(shape, kernel)
    size = 8 * (_up(shape.words, 2) + shape.tables + outers * (shape.tables + 1) + (shape.streamed + 1) * batch)
    if kernel.streamed < 0:
        size += 4 * shape.streamed * pitch
    size = _up(size, 16) + outers * cut.slab * batch * kernel.lane_bytes
    return _up(_up(size, 16) + outers * cut.slab * pitch * shape.itemsize, 16) + kernel.ring


def choose_level(program: Program, start: int, record: list[int], multiprocessors: int) -> Tile:
    """Choose the kernel for a step: which of its axes make rows, and whether they are read in words."""
    axes = record[3]
    sizes, out_strides = (record[HEADER + word : HEADER + 3 * axes : 3] for word in (0, 1))
    known = tables(record)
    strides = [out_strides, *(table[3:] for table in known)]
    row, cells = axes, 1
    while row and (sizes[row - 1] == 1 or all(own[row - 1] == cells for own in strides)):
        row -= 1
        cells *= sizes[row]
    unit = 16 // program.dtype.itemsize
    offsets = [record[12], *(table[0] for table in known)]
    words = all(is_aligned(at, own[:row], sizes[:row], unit) for at, own in zip(offsets, strides, strict=True))
    kernel = level_kernel(program.semiring, program.dtype, len(known), words and cells > 1)
    work = math.prod(sizes)
    threads = work // cells * -(-cells // kernel.lanes)
    blocks = min(-(-threads // THREADS), LEVEL_BLOCKS * multiprocessors)
    return Tile(kernel, start, (row,), blocks, THREADS, 0, work)
