"""Axes of the packed record of a large step: their order and number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_VARIABLE,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    LO_CELLS,
    MID_AXES,
    MID_CELLS,
    OUT,
    OUTER_AXES,
    TABLES_A,
    TABLES_B,
    WORDS,
    tables,
)

MAX_ROW_CELLS = 1 << 16
"""Largest number of cells of a row that ``lengthen`` makes."""


def rearrange(record: list[int], outer: Sequence[int], mid: Sequence[int], order: Sequence[int]) -> None:
    """Replace the slow axes by ``outer`` and the middle ones by ``mid``; put the tables in the order ``order``."""
    lo = record[OUTER_AXES] + record[MID_AXES]
    axes = [*outer, *mid, *range(lo, record[AXES])]
    operands = tables(record)
    sizes = record[HEADER : HEADER + AXIS_WORDS * record[AXES] : AXIS_WORDS]
    words = [record[HEADER + 3 * axis : HEADER + 3 * axis + 3] for axis in axes]
    record[OUTER_AXES : MID_CELLS + 1] = (
        len(outer),
        len(mid),
        math.prod(sizes[a] for a in outer),
        math.prod(sizes[a] for a in mid),
    )
    record[HEADER:] = [word for axis in words for word in axis]
    for number in order:
        record += operands[number][:3] + [operands[number][3 + axis] for axis in axes]


def widen(record: list[int]) -> None:
    """Turn slow axes into middle axes if no rhs table has them, so that more cells share an rhs."""
    operands = tables(record)
    shared = operands[record[TABLES_A] : record[TABLES_A] + record[TABLES_B]]
    kept = [axis for axis in range(record[OUTER_AXES]) if any(table[3 + axis] for table in shared)]
    others = [axis for axis in range(record[OUTER_AXES] + record[MID_AXES]) if axis not in kept]
    if len(kept) < record[OUTER_AXES]:
        rearrange(record, kept, others, range(len(operands)))


def merge(record: list[int]) -> None:
    """Merge neighbouring axes that are contiguous in every table and in the output; remove axes of one value.

    The kernels compute offsets from cell numbers axis by axis, so a block starts sooner if there are few axes. The
    record then no longer has the axes' variables.
    """
    axes, operands = record[AXES], tables(record)
    size, out = (
        record[HEADER : HEADER + AXIS_WORDS * axes : AXIS_WORDS],
        record[HEADER + AXIS_STRIDE : HEADER + AXIS_WORDS * axes : AXIS_WORDS],
    )
    variables = record[HEADER + AXIS_VARIABLE : HEADER + AXIS_WORDS * axes : AXIS_WORDS]
    strides = [out, *(table[3:] for table in operands)]
    first, kept, counts = 0, [], []  # kept: size of each merged axis, and the last original axis in it
    for count in (record[OUTER_AXES], record[MID_AXES], axes - record[OUTER_AXES] - record[MID_AXES]):
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
    record[AXES : MID_AXES + 1] = len(kept), counts[0], counts[1]
    record[HEADER:] = [word for cells, axis in kept for word in (cells, out[axis], variables[axis])]
    for table in operands:
        record += table[:3] + [table[3 + axis] for _, axis in kept]
    record[WORDS] = len(record)


def is_aligned(offset: int, strides: list[int], sizes: list[int], unit: int) -> bool:
    """Return whether all cells of these axes start at multiples of ``unit`` elements."""
    return offset % unit == 0 and all(
        stride % unit == 0 for stride, size in zip(strides, sizes, strict=True) if size > 1
    )


def is_dense(strides: list[int], out_strides: list[int], sizes: list[int], lo: int) -> bool:
    """Return whether a table's fast cells are contiguous, as the output's are."""
    return all(strides[axis] == out_strides[axis] for axis in range(lo, len(sizes)) if sizes[axis] > 1)


def lengthen(record: list[int]) -> None:
    """Turn the last middle axes into fast ones if this lets streamed rows of 2-byte cells start at 16-byte addresses.

    Lhs tables that have such axes become rhs tables, so sums must not depend on the order of their terms.
    """
    axes, lo = record[AXES], record[OUTER_AXES] + record[MID_AXES]
    sizes, out_strides = (
        record[HEADER : HEADER + AXIS_WORDS * axes : AXIS_WORDS],
        record[HEADER + AXIS_STRIDE : HEADER + AXIS_WORDS * axes : AXIS_WORDS],
    )
    inner = tables(record)[: record[TABLES_A] + record[TABLES_B]]
    streams = tables(record)[record[TABLES_A] + record[TABLES_B] :]

    def rows_start_at_words(first: int) -> bool:
        return all(
            is_dense(t[3:], out_strides, sizes, first)
            and is_aligned(t[0], [t[1], *t[3 : 3 + first]], [record[DOMAIN], *sizes[:first]], 8)
            for t in [*streams, [record[OUT], 0, 0, *out_strides]]
        )

    cells = record[LO_CELLS]
    for first in range(lo - 1, record[OUTER_AXES], -1):
        follows = sizes[first] == 1 or out_strides[first] == cells
        cells *= sizes[first]
        mids = range(record[OUTER_AXES], first)
        shared = any(any(t[3 + m] for m in mids) and any(t[3 + first :]) for t in inner)
        if not follows or shared or cells > MAX_ROW_CELLS:
            return
        if rows_start_at_words(first) and not rows_start_at_words(lo):
            a_tables = [t for t in inner if not any(t[3 + first :])]
            b_tables = [t for t in inner if any(t[3 + first :])]
            record[MID_AXES], record[MID_CELLS], record[LO_CELLS] = (
                first - record[OUTER_AXES],
                record[MID_CELLS] * record[LO_CELLS] // cells,
                cells,
            )
            record[TABLES_A], record[TABLES_B] = len(a_tables), len(b_tables)
            record[HEADER + AXIS_WORDS * axes :] = [
                word for table in (*a_tables, *b_tables, *streams) for word in table
            ]
            return
