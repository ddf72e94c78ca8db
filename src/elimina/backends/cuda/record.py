"""The packed record of one large step for the tile kernels, and the data that its blocks share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from elimina.backends.cuda.kernels import OUTERS
from elimina.planning.record import HEADER, tables

LONGEST_ROW = 1 << 16
"""Cells of the longest row that is made for the sake of where rows start."""


def rearrange(record: list[int], outer: Sequence[int], mid: Sequence[int], order: Sequence[int]) -> None:
    """Make these the slow and the middle axes, and put the tables in this order; the fast axes stay."""
    lo = record[4] + record[5]
    axes = [*outer, *mid, *range(lo, record[3])]
    known = tables(record)
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    words = [record[HEADER + 3 * axis : HEADER + 3 * axis + 3] for axis in axes]
    record[4:8] = len(outer), len(mid), math.prod(sizes[a] for a in outer), math.prod(sizes[a] for a in mid)
    record[HEADER:] = [word for axis in words for word in axis]
    for number in order:
        record += known[number][:3] + [known[number][3 + axis] for axis in axes]


def widen(record: list[int]) -> None:
    """Turn the slow axes that no rhs table has into middle axes, so that more cells share an rhs."""
    known = tables(record)
    shared = known[record[10] : record[10] + record[11]]
    kept = [axis for axis in range(record[4]) if any(table[3 + axis] for table in shared)]
    others = [axis for axis in range(record[4] + record[5]) if axis not in kept]
    if len(kept) < record[4]:
        rearrange(record, kept, others, range(len(known)))


def merge(record: list[int]) -> None:
    """Make one axis of neighbours that follow each other in every table and in the output; axes of one value go.

    The kernels turn cell numbers into offsets digit by digit, so a block of few axes starts sooner. The axes' variables
    are lost.
    """
    axes, known = record[3], tables(record)
    size, out = record[HEADER : HEADER + 3 * axes : 3], record[HEADER + 1 : HEADER + 3 * axes : 3]
    variables = record[HEADER + 2 : HEADER + 3 * axes : 3]
    strides = [out, *(table[3:] for table in known)]
    first, kept, counts = 0, [], []  # kept: size of an axis, and the last one of those that it was made of
    for count in (record[4], record[5], axes - record[4] - record[5]):
        group: list[tuple[int, int]] = []
        for axis in range(first, first + count):
            if size[axis] == 1:
                continue
            if group and all(s[group[-1][1]] == s[axis] * size[axis] for s in strides):
                group[-1] = group[-1][0] * size[axis], axis
            else:
                group.append((size[axis], axis))
        kept += group
        counts.append(len(group))
        first += count
    record[3:6] = len(kept), counts[0], counts[1]
    record[HEADER:] = [word for cells, axis in kept for word in (cells, out[axis], variables[axis])]
    for table in known:
        record += table[:3] + [table[3 + axis] for _, axis in kept]
    record[0] = len(record)


def is_aligned(offset: int, strides: list[int], sizes: list[int], unit: int) -> bool:
    """Return whether all cells of these axes start at multiples of ``unit`` elements."""
    return offset % unit == 0 and all(
        stride % unit == 0 for stride, size in zip(strides, sizes, strict=True) if size > 1
    )


def is_dense(strides: list[int], out_strides: list[int], sizes: list[int], lo: int) -> bool:
    """Return whether a table's fast cells are contiguous, as the output's are."""
    return all(strides[axis] == out_strides[axis] for axis in range(lo, len(sizes)) if sizes[axis] > 1)


def lengthen(record: list[int]) -> None:
    """Turn the last middle axes into fast ones if only then streamed rows start at 16-byte addresses; for 2-byte cells.

    Lhs tables that have such axes become rhs tables, so sums must not depend on the order of their terms.
    """
    axes, lo = record[3], record[4] + record[5]
    sizes, out_strides = record[HEADER : HEADER + 3 * axes : 3], record[HEADER + 1 : HEADER + 3 * axes : 3]
    inner = tables(record)[: record[10] + record[11]]
    streams = tables(record)[record[10] + record[11] :]

    def rows_start_at_words(first: int) -> bool:
        return all(
            is_dense(t[3:], out_strides, sizes, first)
            and is_aligned(t[0], [t[1], *t[3 : 3 + first]], [record[1], *sizes[:first]], 8)
            for t in [*streams, [record[12], 0, 0, *out_strides]]
        )

    cells = record[8]
    for first in range(lo - 1, record[4], -1):
        follows = sizes[first] == 1 or out_strides[first] == cells
        cells *= sizes[first]
        mids = range(record[4], first)
        shared = any(any(t[3 + m] for m in mids) and any(t[3 + first :]) for t in inner)
        if not follows or shared or cells > LONGEST_ROW:
            return
        if rows_start_at_words(first) and not rows_start_at_words(lo):
            a_tables = [t for t in inner if not any(t[3 + first :])]
            b_tables = [t for t in inner if any(t[3 + first :])]
            record[5], record[7], record[8] = first - record[4], record[7] * record[8] // cells, cells
            record[10], record[11] = len(a_tables), len(b_tables)
            record[HEADER + 3 * axes :] = [word for table in (*a_tables, *b_tables, *streams) for word in table]
            return


LEAST_LO = 64
"""Lo cells from which rows are long enough."""
MOST_TABLES = 6
"""Largest number of tables with fast axes, any of which may be streamed."""
MOST_BYTES = 64 << 10
"""Shared memory that the rhs may take with rows of `LEAST_LO` cells."""
MOST_MIDS = 256
"""Mid cells of a block that its start is spread over."""
BUILD = 2.0
"""Cost of a vector of an rhs table, in streamed vectors: nothing else is read meanwhile."""
START = 80.0
"""Cost of starting a block, likewise."""
GAIN = 0.8
"""Cost of a new split, as a share of the old one's, from which it is taken."""


class _Split(NamedTuple):
    outer: list[int]
    sharing: list[int]
    mid: list[int]
    streamed: tuple[int, ...]
    cost: float


def outers_of(sharing: int) -> int:
    """Outer cells that a block takes of so many that share what is streamed: about the same in all blocks."""
    return -(-sharing // -(-sharing // OUTERS))


def share(record: list[int], itemsize: int) -> int:
    """Split a step's axes and tables again if that saves much reading.

    Returns:
        Number of successive slow cells with the same streamed values.
    """
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    known = tables(record)
    lo, first = record[4] + record[5], record[10] + record[11]
    moving = [n for n, table in enumerate(known) if any(table[3 + lo :])]
    if record[8] < LEAST_LO or len(moving) > MOST_TABLES:
        return 1
    streamed = range(first, len(known))
    least = GAIN * _cost(record[1], 1, record[7], record[11], len(streamed))
    best: _Split | None = None
    readable = [n for n in moving if _is_readable(record, known[n], sizes, 16 // itemsize)]
    for chosen in itertools.chain(itertools.combinations(readable, 1), itertools.combinations(readable, 2)):
        split = _split(record[1], sizes[:lo], known, moving, chosen)
        outers = outers_of(math.prod(sizes[a] for a in split.sharing))
        fits = outers * record[1] * LEAST_LO * itemsize <= MOST_BYTES
        if outers > 1 and fits and split.cost < (least if best is None else best.cost):
            best = split
    if best is None:
        return 1
    constant = [n for n in range(len(known)) if n not in moving]
    built = [n for n in moving if n not in best.streamed]
    record[10:12] = len(constant), len(built)
    rearrange(record, best.outer + best.sharing, best.mid, [*constant, *built, *best.streamed])
    return math.prod(sizes[a] for a in best.sharing)


def _is_readable(record: list[int], table: list[int], sizes: list[int], vector: int) -> bool:
    lo = record[4] + record[5]
    out_strides = record[HEADER + 1 : HEADER + 3 * record[3] : 3]
    aligned = table[1] % vector == 0 and is_aligned(table[0], table[3 : 3 + lo], sizes[:lo], vector)
    return aligned and is_dense(table[3:], out_strides, sizes, lo)


def _split(
    domain: int, sizes: list[int], known: list[list[int]], moving: Sequence[int], streamed: tuple[int, ...]
) -> _Split:
    """Return the slow and middle axes if these tables are streamed and the other tables with fast axes are rhs."""
    built = [n for n in moving if n not in streamed]
    sharing, mid, outer = [], [], []
    for axis in range(len(sizes)):
        if not any(known[n][3 + axis] for n in streamed):
            sharing.append(axis)
        elif not any(known[n][3 + axis] for n in built):
            mid.append(axis)
        else:
            outer.append(axis)
    cells, mids = (math.prod(sizes[a] for a in axes) for axes in (sharing, mid))
    return _Split(outer, sharing, mid, streamed, _cost(domain, outers_of(cells), mids, len(built), len(streamed)))


def _cost(domain: int, outers: int, mid_cells: int, built: int, streamed: int) -> float:
    """Return the vectors read and written for one combination."""
    mids = min(mid_cells, MOST_MIDS)
    moved = outers * domain * built * BUILD + domain * mids * streamed + outers * mids + START
    return moved / (outers * domain * mids)
