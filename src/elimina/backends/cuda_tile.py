"""How a large step is cut into blocks for the tile kernel (``kernels/tile.cu``)."""

from __future__ import annotations

import math
from typing import NamedTuple

from elimina.backends.cuda_kernels import THREADS, TileKernel, tile_kernel
from elimina.errors import DeviceError
from elimina.planning.program import Program

HEADER = 13
START = 500.0
"""Cost of starting a block, in rows of the product a lo cell."""
WAVES = 6
"""Most blocks that a split makes for each place on the device."""
BUILD = 8.0
"""Cost of one cell of a table in B, in rows of the product."""
BUILD_A = 24.0
"""Cost of one cell of a table in A, in rows of the product: the threads that build it wait for it."""
STREAM_SETUP = 3.5
"""How much more it costs to start a block that streams: its memory is idle meanwhile; twice that without a ring."""
COLUMNS = 128
"""Most threads beside each other along a streamed row: with more, B is large and mid cells are few."""
STREAM_B = 26 << 10
"""Bytes of B from which building it costs more than longer rows gain."""
STREAM_ROW = 256
"""Bytes of a row that are worth more than a small B."""
SHARED = 228 << 10
"""Bytes of shared memory of a multiprocessor."""
RESERVED = 1 << 10
"""Bytes of it that each block costs besides its own."""


class Tile(NamedTuple):
    """A launch of one large step.

    Attributes:
        kernel: The instantiation.
        record_at: Where the step's record is in the words.
        arguments: The kernel's arguments from ``record_words`` to ``vector`` (``kernels/tile.cu``).
        blocks: Number of blocks.
        shared: Bytes of shared memory of a block.
        work: Rows of the step.
    """

    kernel: TileKernel
    record_at: int
    arguments: tuple[int, ...]
    blocks: int
    shared: int
    work: int


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


class _Cut(NamedTuple):
    chunk: int
    columns: int
    rows: int  # mid cells that a block takes at a time
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
    """Choose the kernel and the cut for a step; may turn outer axes of its record into mid ones.

    Raises:
        DeviceError: The step needs more blocks or shared memory than a launch can have.
    """
    _widen(record)
    axes, lo = record[3], record[4] + record[5]
    sizes = record[HEADER : HEADER + 3 * axes : 3]
    out_strides = record[HEADER + 1 : HEADER + 3 * axes : 3]
    tables = _tables(record)
    streams = tables[record[10] + record[11] :]
    item = program.dtype.itemsize
    shape = _Shape(
        record[1], record[6], record[7], record[8], record[0], len(tables), record[10], record[11], len(streams), item
    )
    vector = 16 // item
    out_words = [
        n for n in (16, 8, 4) if n >= item and _is_aligned(record[12], out_strides[:lo], sizes[:lo], n // item)
    ]
    few = len(streams) <= 2
    aligned = all(
        table[1] % vector == 0 and _is_aligned(table[0], table[3 : 3 + lo], sizes[:lo], vector) for table in streams
    )
    if streams:
        dense = few and all(_is_dense(table[3:], out_strides, sizes, lo) for table in streams)
    else:
        dense = bool(out_words) or shape.domain >= 16

    def kernel_of(vectors: bool, whole: bool, half: bool = False) -> TileKernel:
        number = len(streams) if few else -1
        return tile_kernel(program.semiring, program.dtype, number, vectors, aligned or not vectors, whole, half)

    if streams:
        # Reading through the ring is fastest, but leaves less room for B, so that large domains get short rows.
        ways = ((True, True), (False, True), (False, False))
        kernels = [kernel_of(vectors, whole) for vectors, whole in ways if dense or not vectors]
        cuts = [(kernel, _cut_streams(shape, kernel)) for kernel in kernels]
        whole_cuts = [(kernel, cut) for kernel, cut in cuts if kernel.whole and cut.slab == shape.domain]
        long_cuts = [
            (kernel, cut)
            for kernel, cut in whole_cuts
            if cut.columns >= min(32, shape.lo_cells // kernel.cells) or (kernel.ring and item == 2)
        ]
        kernel, cut = (long_cuts or whole_cuts or cuts[-1:])[0]
    else:
        for whole in (True, False):
            kernels = [kernel_of(dense, whole, half) for half in (False, True)]
            kernel, cut = _cut_product(shape, kernels, multiprocessors)
            if cut.slab == shape.domain:
                break
    tile = _cover(shape, kernel, cut, multiprocessors)
    blocks = shape.outer_cells * tile[0] * tile[2]
    shared = _shared(shape, kernel, cut, tile[5])
    if blocks >= 2**31 or shared > shared_limit:
        raise DeviceError(
            f"a step with {shape.domain} x {shape.outer_cells * shape.mid_cells * shape.lo_cells} rows needs {blocks} "
            f"blocks of {shared} bytes of shared memory, this device allows {2**31 - 1} and {shared_limit}; "
            "use --device cpu"
        )
    work = shape.domain * shape.outer_cells * shape.mid_cells * shape.lo_cells
    arguments = (record[0], number, len(tables), len(streams), *tile, out_words[0] if out_words else 0)
    return Tile(kernel, start, arguments, blocks, shared, work)


def _tables(record: list[int]) -> list[list[int]]:
    axes, at = record[3], HEADER + 3 * record[3]
    return [record[at + n * (3 + axes) : at + (n + 1) * (3 + axes)] for n in range(record[9])]


def _widen(record: list[int]) -> None:
    """Make mid axes of the outer axes that no B table has: more cells share each B."""
    axes, outer = record[3], record[4]
    tables = _tables(record)
    shared = tables[record[10] : record[10] + record[11]]
    kept = [axis for axis in range(outer) if any(table[3 + axis] for table in shared)]
    if len(kept) == outer:
        return
    order = kept + [axis for axis in range(outer) if axis not in kept] + list(range(outer, axes))
    words = [record[HEADER + 3 * axis : HEADER + 3 * axis + 3] for axis in order]
    cells = math.prod(words[n][0] for n in range(len(kept)))
    record[4:8] = len(kept), record[5] + outer - len(kept), cells, record[7] * (record[6] // cells)
    record[HEADER:] = [word for axis in words for word in axis]
    for table in tables:
        record += table[:3] + [table[3 + axis] for axis in order]


def _is_aligned(offset: int, strides: list[int], sizes: list[int], unit: int) -> bool:
    return offset % unit == 0 and all(
        stride % unit == 0 for stride, size in zip(strides, sizes, strict=True) if size > 1
    )


def _is_dense(strides: list[int], out_strides: list[int], sizes: list[int], lo: int) -> bool:
    return all(strides[axis] == out_strides[axis] for axis in range(lo, len(sizes)) if sizes[axis] > 1)


def _cut_streams(shape: _Shape, kernel: TileKernel) -> _Cut:
    """Long rows of lo cells, since that is how memory is read; shorter if B would not fit with them."""
    widest = COLUMNS * kernel.cells
    line = max(kernel.cells, 128 // shape.itemsize)
    chunks = -(-shape.lo_cells // widest)
    while True:
        chunk = _up(-(-shape.lo_cells // chunks), line) if chunks > 1 else _up(shape.lo_cells, kernel.cells)
        columns = min(COLUMNS, -(-chunk // kernel.cells))
        if columns < 32:  # a row does not straddle two warps
            columns = 1 << columns.bit_length() - 1
            chunk = columns * kernel.cells
        rows = THREADS // columns * kernel.rows
        budget = _room(shape, kernel, rows)
        cell_bytes = chunk * shape.itemsize + rows * kernel.lane_bytes
        row = chunk * shape.itemsize
        fits = shape.domain * cell_bytes <= budget
        short = shape.domain * row <= STREAM_B or row <= STREAM_ROW or not kernel.ring
        if (fits and short) or row <= 128:
            break
        chunks += 1
    slab = min(shape.domain, max(1, budget // cell_bytes))
    return _Cut(min(chunk, columns * kernel.cells), columns, rows, slab)


def _room(shape: _Shape, kernel: TileKernel, rows: int) -> int:
    """Bytes of shared memory that a block has for A and B if as many blocks as wanted are to fit."""
    words = shape.words + 2 * shape.tables + 6 + (shape.streamed + 1) * rows
    return SHARED // kernel.blocks - RESERVED - kernel.ring - 8 * words - 64


def _cut_product(shape: _Shape, kernels: list[TileKernel], multiprocessors: int) -> tuple[TileKernel, _Cut]:
    """A tile that keeps the threads busy, and is large enough to pay for building its A and B."""
    best: tuple[float, TileKernel, _Cut] | None = None
    for half, kernel in enumerate(kernels):
        for columns in range(1, THREADS + 1):
            width = columns * kernel.cells
            chunks = -(-shape.lo_cells // width)
            rows = THREADS // columns * kernel.rows
            passes = -(-shape.mid_cells // rows)
            cell_bytes = width * shape.itemsize + rows * kernel.lane_bytes
            slab = min(shape.domain, max(4, _room(shape, kernel, rows) // cell_bytes))
            busy = shape.lo_cells / (chunks * width) * (columns * (THREADS // columns)) / THREADS
            busy *= shape.mid_cells / (passes * rows)
            places = multiprocessors * kernel.blocks
            busy *= min(1.0, shape.outer_cells * chunks * passes / places)
            passes_b = 4 if slab == shape.domain else 1
            build = BUILD_A * shape.tables_a / width
            build += BUILD * shape.tables_b / min(shape.mid_cells, passes_b * rows)
            # Cells that share a register take half the time, building them does not.
            score = busy / (1 + max(1, 4 // shape.itemsize) * build + 0.15 * half)
            if best is None or score > best[0]:
                best = score, kernel, _Cut(width, columns, rows, slab)
    assert best is not None
    return best[1:]


def _cover(
    shape: _Shape, kernel: TileKernel, cut: _Cut, multiprocessors: int
) -> tuple[int, int, int, int, int, int, int]:
    """Return chunks, chunk, splits, mids, columns, batch, slab."""
    chunks = -(-shape.lo_cells // cut.chunk)
    splits, mids = _split(shape, kernel, cut, shape.outer_cells * chunks, multiprocessors * kernel.blocks)
    batch = cut.rows
    if kernel.whole:
        cell_bytes = shape.domain * kernel.lane_bytes + 8 * (shape.streamed + 1)
        left = _room(shape, kernel, 0) - shape.domain * cut.chunk * shape.itemsize
        room = min(left, (24 if kernel.streamed == 0 else 8) << 10) // cell_bytes
        batch = max(batch, min(_up(mids, cut.rows), room // cut.rows * cut.rows))
    return chunks, cut.chunk, splits, mids, cut.columns, batch, cut.slab


def _split(shape: _Shape, kernel: TileKernel, cut: _Cut, parts: int, places: int) -> tuple[int, int]:
    """Split the mid cells so that blocks fill whole waves, and each pays for building its B; return splits, mids."""
    # In rows of the product a lo cell; a byte of a streamed row costs as much as two, shifting an unaligned one more.
    row = 1.0 if kernel.streamed == 0 else max(2.0 * shape.itemsize, 0.0 if kernel.aligned else 8.0)
    setup = 2 * BUILD * shape.tables_b + START / max(1, shape.domain)
    if kernel.streamed:
        setup *= STREAM_SETUP * (1 if kernel.ring else 2)
    best: tuple[float, int, int] | None = None
    for splits in range(1, max(1, min(shape.mid_cells // cut.rows, WAVES * places // parts)) + 1):
        mids = _up(-(-shape.mid_cells // splits), cut.rows) if splits > 1 else shape.mid_cells
        used = -(-shape.mid_cells // mids)
        waves = parts * used / places
        # Few waves are as slow as their last; with many, blocks that stream share what the last ones leave.
        cost = math.ceil(waves) + (0.5 if kernel.streamed else 0.0)
        if kernel.streamed and waves >= 3:
            cost = waves + 0.5
        cost *= row * _up(mids, cut.rows) + setup
        if best is None or cost < best[0]:
            best = cost, used, mids
    assert best is not None
    return best[1:]


def _shared(shape: _Shape, kernel: TileKernel, cut: _Cut, batch: int) -> int:
    pitch = _up(cut.chunk, kernel.cells)
    size = 8 * (_up(shape.words, 2) + 2 * shape.tables + 1 + (shape.streamed + 1) * batch)
    if kernel.streamed < 0:
        size += 4 * shape.streamed * pitch
    size = _up(size, 16) + cut.slab * batch * kernel.lane_bytes
    return _up(_up(size, 16) + cut.slab * pitch * shape.itemsize, 16) + kernel.ring
