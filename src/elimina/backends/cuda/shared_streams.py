"""Slow cells of a large step that share the values of its streamed tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from elimina.backends.cuda.kernels import MAX_OUTERS
from elimina.backends.cuda.record_axes import is_aligned, is_dense, rearrange
from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    LO_CELLS,
    MID_AXES,
    MID_CELLS,
    OUTER_AXES,
    TABLES_A,
    TABLES_B,
    tables,
)

MIN_LO_CELLS = 64
"""The split of a step is changed only if its rows have at least this many fast cells."""
MAX_TABLES = 6
"""Largest number of tables with fast axes, because each choice of the streamed ones among them is tried."""
MAX_RHS_BYTES = 64 << 10
"""Largest shared memory of the rhs with rows of `MIN_LO_CELLS` cells."""
MAX_MID_CELLS = 256
"""The estimate divides the cost of starting a block among at most this many middle cells."""
BUILD_COST = 2.0
"""Cost of reading a vector of an rhs table, in units of reading a streamed vector. It is high because this read does
not overlap other reads."""
BLOCK_START_COST = 80.0
"""Cost of starting a block, in units of reading a streamed vector."""
MAX_COST_SHARE = 0.8
"""Largest cost of a new split, relative to that of the old split."""


class _AxisSplit(NamedTuple):
    outer: list[int]
    sharing: list[int]
    mid: list[int]
    streamed: tuple[int, ...]
    cost: float


def outers_of(sharing: int) -> int:
    """Return the number of slow cells of a block that share streamed values; all blocks get about as many."""
    return -(-sharing // -(-sharing // MAX_OUTERS))


def share(record: list[int], itemsize: int) -> int:
    """Change the split of axes and tables so that slow cells share streamed values, if that saves much reading.

    Returns:
        Number of successive slow cells with the same streamed values; 1 if the split stays.
    """
    sizes = record[HEADER : HEADER + AXIS_WORDS * record[AXES] : AXIS_WORDS]
    operands = tables(record)
    lo, first = record[OUTER_AXES] + record[MID_AXES], record[TABLES_A] + record[TABLES_B]
    moving = [n for n, table in enumerate(operands) if any(table[3 + lo :])]
    if record[LO_CELLS] < MIN_LO_CELLS or len(moving) > MAX_TABLES:
        return 1
    streamed = range(first, len(operands))
    least = MAX_COST_SHARE * _cost(record[DOMAIN], 1, record[MID_CELLS], record[TABLES_B], len(streamed))
    best: _AxisSplit | None = None
    readable = [n for n in moving if _is_readable(record, operands[n], sizes, 16 // itemsize)]
    for chosen in itertools.chain(itertools.combinations(readable, 1), itertools.combinations(readable, 2)):
        split = _split(record[DOMAIN], sizes[:lo], operands, moving, chosen)
        outers = outers_of(math.prod(sizes[a] for a in split.sharing))
        fits = outers * record[DOMAIN] * MIN_LO_CELLS * itemsize <= MAX_RHS_BYTES
        if outers > 1 and fits and split.cost < (least if best is None else best.cost):
            best = split
    if best is None:
        return 1
    constant = [n for n in range(len(operands)) if n not in moving]
    built = [n for n in moving if n not in best.streamed]
    record[TABLES_A : TABLES_B + 1] = len(constant), len(built)
    rearrange(record, best.outer + best.sharing, best.mid, [*constant, *built, *best.streamed])
    return math.prod(sizes[a] for a in best.sharing)


def _is_readable(record: list[int], table: list[int], sizes: list[int], vector: int) -> bool:
    lo = record[OUTER_AXES] + record[MID_AXES]
    out_strides = record[HEADER + AXIS_STRIDE : HEADER + AXIS_WORDS * record[AXES] : AXIS_WORDS]
    aligned = table[1] % vector == 0 and is_aligned(table[0], table[3 : 3 + lo], sizes[:lo], vector)
    return aligned and is_dense(table[3:], out_strides, sizes, lo)


def _split(
    domain: int, sizes: list[int], operands: list[list[int]], moving: Sequence[int], streamed: tuple[int, ...]
) -> _AxisSplit:
    """Return a split of the axes in which ``streamed`` are streamed and the other tables with fast axes are rhs."""
    built = [n for n in moving if n not in streamed]
    sharing, mid, outer = [], [], []
    for axis in range(len(sizes)):
        if not any(operands[n][3 + axis] for n in streamed):
            sharing.append(axis)
        elif not any(operands[n][3 + axis] for n in built):
            mid.append(axis)
        else:
            outer.append(axis)
    cells, mids = (math.prod(sizes[a] for a in axes) for axes in (sharing, mid))
    return _AxisSplit(outer, sharing, mid, streamed, _cost(domain, outers_of(cells), mids, len(built), len(streamed)))


def _cost(domain: int, outers: int, mid_cells: int, built: int, streamed: int) -> float:
    """Return the cost of a split, in vectors read and written for each combination."""
    mids = min(mid_cells, MAX_MID_CELLS)
    moved = outers * domain * built * BUILD_COST + domain * mids * streamed + outers * mids + BLOCK_START_COST
    return moved / (outers * domain * mids)
