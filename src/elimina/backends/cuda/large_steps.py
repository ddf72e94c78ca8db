"""The choice of the kernel of a large step."""

from __future__ import annotations

import numpy as np

from elimina.backends.cuda.faces_blocks import FacesShape, faces_block_count, faces_cut, faces_shared_bytes, split_outer
from elimina.backends.cuda.kernels import MAX_OUTERS, PRODUCT_THREADS, RING_UNITS, THREADS, tile_kernel
from elimina.backends.cuda.product_blocks import ProductStepShape, product_cut, product_shared_bytes, product_side
from elimina.backends.cuda.record_axes import is_aligned, is_dense, lengthen, merge, widen
from elimina.backends.cuda.shared_streams import outers_of, share
from elimina.backends.cuda.stream_blocks import (
    MAX_ROW_OFFSET,
    SHORT_RING_DOMAIN,
    StreamStepShape,
    combinations,
    cover,
    cut_streams,
    stream_shared_bytes,
    streamed_tables,
)
from elimina.backends.cuda.tile_launch import TileLaunch
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    LO_CELLS,
    MID_AXES,
    MID_CELLS,
    OUT,
    OUTER_AXES,
    OUTER_CELLS,
    TABLES_A,
    TABLES_B,
    WORDS,
    tables,
)
from elimina.problem.semirings import SEMIRINGS


def choose_large(
    program: Program,
    number: int,
    start: int,
    record: list[int],
    multiprocessors: int,
    shared_limit: int,
) -> TileLaunch:
    """Choose the kernel and the split for a step; move and merge the axes of its record for that kernel.

    Raises:
        DeviceError: The step needs more blocks or shared memory than a launch can have.
    """
    widen(record)
    if program.dtype == np.int16:
        lengthen(record)
    sharing = (
        share(record, program.dtype.itemsize)
        if SEMIRINGS[program.semiring].is_product and streamed_tables(record)
        else 1
    )
    facing = split_outer(record) if sharing == 1 else 1
    merge(record)
    axes, lo = record[AXES], record[OUTER_AXES] + record[MID_AXES]
    sizes = record[HEADER : HEADER + AXIS_WORDS * axes : AXIS_WORDS]
    out_strides = record[HEADER + AXIS_STRIDE : HEADER + AXIS_WORDS * axes : AXIS_WORDS]
    operands, streams = tables(record), streamed_tables(record)
    item = program.dtype.itemsize
    cells = record[OUTER_CELLS], record[MID_CELLS], record[LO_CELLS]
    counts = len(operands), record[TABLES_A], record[TABLES_B], len(streams)
    shape = StreamStepShape(record[DOMAIN], *cells, record[WORDS], *counts, item, sharing, outers_of(sharing))
    out_words = [
        n for n in (16, 8, 4) if n >= item and is_aligned(record[OUT], out_strides[:lo], sizes[:lo], n // item)
    ]
    record_location = number, start, record[WORDS], len(operands), out_words[0] if out_words else 0
    faces = _choose_faces(program, shape, facing, record_location, multiprocessors) if facing > 1 else None
    if faces is not None:
        tile = faces
    elif streams:
        tile = _choose_streams(program, shape, streams, (out_strides, sizes, lo), record_location, multiprocessors)
    else:
        tile = _choose_product(
            program, shape, operands, (sizes, record[OUTER_AXES], lo), record_location, multiprocessors
        )
    if tile.blocks >= 2**31 or tile.shared > shared_limit:
        raise DeviceError(
            f"a step with {shape.domain} x {tile.work // shape.domain} rows needs {tile.blocks} blocks "
            f"of {tile.shared} bytes of shared memory, this device allows {2**31 - 1} and {shared_limit}; "
            "use the CPU"
        )
    return tile


def _choose_faces(
    program: Program,
    shape: StreamStepShape,
    sharing: int,
    record_location: tuple[int, int, int, int, int],
    multiprocessors: int,
) -> TileLaunch | None:
    """Return a launch of ``kernels/faces.cu``; None if streaming should take less time, or no cut fits the step."""
    number, start, words, count, out_word = record_location
    box = FacesShape(
        shape.domain,
        shape.outer_cells,
        sharing,
        shape.mid_cells,
        shape.lo_cells,
        words,
        shape.tables_a,
        shape.tables_b,
    )
    cut = faces_cut(box, program.semiring, program.dtype, multiprocessors)
    if cut is None:
        return None
    shared = faces_shared_bytes(box, cut, shape.itemsize)
    arguments = (words, number, count, sharing, *cut[1:], out_word)
    return TileLaunch(
        cut.kernel, start, arguments, faces_block_count(box, cut), cut.kernel.threads, shared, combinations(shape)
    )


def _choose_product(
    program: Program,
    shape: StreamStepShape,
    tables: list[list[int]],
    axes: tuple[list[int], int, int],
    record_location: tuple[int, int, int, int, int],
    multiprocessors: int,
) -> TileLaunch:
    number, start, words, count, out_word = record_location
    sizes, outer, lo = axes
    first_b = shape.tables_a
    side_a = product_side(tables[:first_b], 0, sizes, range(outer, lo), outer, shape.itemsize)
    side_b = product_side(tables[first_b:], first_b, sizes, range(lo, len(sizes)), outer, shape.itemsize)
    product = ProductStepShape(
        shape.domain, shape.outer_cells, shape.mid_cells, shape.lo_cells, shape.words, side_a, side_b
    )
    cut = product_cut(product, program.semiring, program.dtype, multiprocessors)
    shared = product_shared_bytes(product, cut, shape.itemsize)
    blocks = shape.outer_cells * cut.chunks * cut.splits
    arguments = (words, number, count, *cut[1:], out_word)
    return TileLaunch(cut.kernel, start, arguments, blocks, PRODUCT_THREADS, shared, combinations(shape))


def _choose_streams(
    program: Program,
    shape: StreamStepShape,
    streams: list[list[int]],
    axes: tuple[list[int], list[int], int],
    record_location: tuple[int, int, int, int, int],
    multiprocessors: int,
) -> TileLaunch:
    number, start, words, count, out_word = record_location
    out_strides, sizes, lo = axes
    vector = 16 // shape.itemsize
    few = len(streams) <= 2
    aligned = all(
        table[1] % vector == 0 and is_aligned(table[0], table[3 : 3 + lo], sizes[:lo], vector) for table in streams
    )
    dense = few and all(is_dense(table[3:], out_strides, sizes, lo) for table in streams)
    spans = (sum((sizes[axis] - 1) * table[3 + axis] for axis in range(lo, len(sizes))) for table in streams)
    if not dense and max(spans) > MAX_ROW_OFFSET:
        raise DeviceError(
            f"a step reads a table whose cells lie more than {MAX_ROW_OFFSET} apart in one row, "
            "more than kernels support; use the CPU"
        )

    # Reading streamed tables through the ring is fastest. But the ring takes shared memory from the rhs, so rows are
    # short for large domains.
    outers = MAX_OUTERS if shape.outers > 1 else 1
    ways = ((True, True, outers), (False, True, 1), (False, False, 1))
    streamed = len(streams) if few else -1
    units = RING_UNITS - 1 if shape.itemsize == 2 and shape.domain >= SHORT_RING_DOMAIN else RING_UNITS
    kernels = [
        tile_kernel(program.semiring, program.dtype, streamed, vectors, aligned or not vectors, whole, units, outers)
        for vectors, whole, outers in ways
        if dense or not vectors
    ]
    cuts = [(kernel, cut_streams(shape, kernel)) for kernel in kernels]
    whole_cuts = [(kernel, cut) for kernel, cut in cuts if kernel.whole and cut.slab == shape.domain]
    long_cuts = [
        (kernel, cut)
        for kernel, cut in whole_cuts
        if cut.columns >= min(32, shape.lo_cells // kernel.cells) or (kernel.ring and shape.itemsize == 2)
    ]
    kernel, cut = (long_cuts or whole_cuts or cuts[-1:])[0]
    tile = cover(shape, kernel, cut, multiprocessors)
    sharing, outers = (shape.sharing, shape.outers) if kernel.outers > 1 else (1, 1)
    arguments = (words, number, count, len(streams), *tile, out_word, sharing, outers)
    blocks = shape.outer_cells // sharing * -(-sharing // outers) * tile[0] * tile[2]
    return TileLaunch(
        kernel, start, arguments, blocks, THREADS, stream_shared_bytes(shape, kernel, cut, tile[5]), combinations(shape)
    )
