"""The packed record of one large step, as the tile kernels read it (layout: ``include/elimina/program.hpp``)."""

from __future__ import annotations

import math
from collections.abc import Sequence

HEADER = 13


def tables(record: list[int]) -> list[list[int]]:
    """Offset, domain stride, source and strides of each table."""
    axes, at = record[3], HEADER + 3 * record[3]
    return [record[at + n * (3 + axes) : at + (n + 1) * (3 + axes)] for n in range(record[9])]


def rearrange(record: list[int], outer: Sequence[int], mid: Sequence[int], order: Sequence[int]) -> None:
    """Make these the outer and the mid axes, and put the tables in this order; the lo axes stay."""
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
    """Make mid axes of the outer axes that no B table has: more cells share each B."""
    known = tables(record)
    shared = known[record[10] : record[10] + record[11]]
    kept = [axis for axis in range(record[4]) if any(table[3 + axis] for table in shared)]
    others = [axis for axis in range(record[4] + record[5]) if axis not in kept]
    if len(kept) < record[4]:
        rearrange(record, kept, others, range(len(known)))


def is_aligned(offset: int, strides: list[int], sizes: list[int], unit: int) -> bool:
    """Whether all cells of these axes start at multiples of ``unit`` elements."""
    return offset % unit == 0 and all(
        stride % unit == 0 for stride, size in zip(strides, sizes, strict=True) if size > 1
    )


def is_dense(strides: list[int], out_strides: list[int], sizes: list[int], lo: int) -> bool:
    """Whether a table's lo cells follow each other as the output's do."""
    return all(strides[axis] == out_strides[axis] for axis in range(lo, len(sizes)) if sizes[axis] > 1)
