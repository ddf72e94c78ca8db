"""Axes of the packed record of a large step: their order and number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from elimina.planning.record import HEADER, tables

MAX_ROW_CELLS = 1 << 16
"""Cells of the longest row that is made for the sake of where rows start."""


def rearrange(record: list[int], outer: Sequence[int], mid: Sequence[int], order: Sequence[int]) -> None:
    """Make these the slow and the middle axes, and put the tables in this order; the fast axes stay."""
    lo = record[4] + record[5]
    axes = [*outer, *mid, *range(lo, record[3])]
    operands = tables(record)
    sizes = record[HEADER : HEADER + 3 * record[3] : 3]
    words = [record[HEADER + 3 * axis : HEADER + 3 * axis + 3] for axis in axes]
    record[4:8] = len(outer), len(mid), math.prod(sizes[a] for a in outer), math.prod(sizes[a] for a in mid)
    record[HEADER:] = [word for axis in words for word in axis]
    for number in order:
        record += operands[number][:3] + [operands[number][3 + axis] for axis in axes]


def widen(record: list[int]) -> None:
    """Turn the slow axes that no rhs table has into middle axes, so that more cells share an rhs."""
    operands = tables(record)
    shared = operands[record[10] : record[10] + record[11]]
    kept = [axis for axis in range(record[4]) if any(table[3 + axis] for table in shared)]
    others = [axis for axis in range(record[4] + record[5]) if axis not in kept]
    if len(kept) < record[4]:
        rearrange(record, kept, others, range(len(operands)))


def merge(record: list[int]) -> None:
    """Make one axis of neighbours that follow each other in every table and in the output; axes of one value go.

    The kernels turn cell numbers into offsets digit by digit, so a block of few axes starts sooner. The axes' variables
    are lost.
    """
    axes, operands = record[3], tables(record)
    size, out = record[HEADER : HEADER + 3 * axes : 3], record[HEADER + 1 : HEADER + 3 * axes : 3]
    variables = record[HEADER + 2 : HEADER + 3 * axes : 3]
    strides = [out, *(table[3:] for table in operands)]
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
    for table in operands:
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
        if not follows or shared or cells > MAX_ROW_CELLS:
            return
        if rows_start_at_words(first) and not rows_start_at_words(lo):
            a_tables = [t for t in inner if not any(t[3 + first :])]
            b_tables = [t for t in inner if any(t[3 + first :])]
            record[5], record[7], record[8] = first - record[4], record[7] * record[8] // cells, cells
            record[10], record[11] = len(a_tables), len(b_tables)
            record[HEADER + 3 * axes :] = [word for table in (*a_tables, *b_tables, *streams) for word in table]
            return
