"""Where each table lies in the arena."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

ROW_CELLS = 1024
"""Cells from which trailing axes make a row: padding it then costs little."""

ROW_PADDING = 64
"""Cells of a table without its first axis from which the rest is padded to whole vectors, if it makes no long row."""

_LONG_ROW_BYTES = 64
_VECTOR_BYTES = 16
_ALIGNMENT_BYTES = 256


def row_axes(sizes: Sequence[int]) -> int:
    """Position of the first axis of a table's rows: the trailing axes up to where a padding is due, or the first axis.

    Rows never hold the first axis, that of the variable eliminated next, unless the table is tiny. Tables that share
    their trailing axes have the same rows, so a step's reads and writes start at whole vectors together.
    """
    cells = 1
    for axis in range(len(sizes) - 1, 0, -1):
        cells *= sizes[axis]
        if cells >= ROW_CELLS and cells % _LONG_ROW_BYTES:
            return axis
    return 1 if len(sizes) > 1 and cells >= ROW_PADDING else 0


def table_strides(sizes: Sequence[int], itemsize: int, rows: int | None = None) -> tuple[tuple[int, ...], int]:
    """Strides of a table's axes, slow to fast, and the elements that it spans; its rows are padded to whole vectors.

    ``rows`` is the position of the rows' first axis; without it, ``row_axes`` tells.
    """
    if not sizes:
        return (), 1
    rows = row_axes(sizes) if rows is None else rows
    strides = [1] * len(sizes)
    for axis in range(len(sizes) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * sizes[axis + 1]
        if axis == rows - 1:
            unit = _LONG_ROW_BYTES if strides[axis] >= ROW_CELLS else _VECTOR_BYTES
            strides[axis] = _round_up(strides[axis], unit // itemsize)
    return tuple(strides), strides[0] * sizes[0]


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class Arena:
    """Hands out spans of one block of memory, reusing what was given back; keeps the height reached.

    Small spans follow each other closely, so that a chain of small messages stays in few lines of a cache; others start
    where long rows may.
    """

    def __init__(self, itemsize: int) -> None:
        self._item = itemsize
        self._free: list[tuple[int, int]] = []
        self.height = 0

    def take(self, span: int) -> int:
        """Offset of a free span: the first that fits."""
        unit, span = self._rounded(span)
        for i, (offset, size) in enumerate(self._free):
            gap = -offset % unit
            if size >= gap + span:
                left = [(offset, gap), (offset + gap + span, size - gap - span)]
                self._free[i : i + 1] = [part for part in left if part[1]]
                return offset + gap
        start = self.height
        if self._free and sum(self._free[-1]) == self.height:
            start = self._free.pop()[0]
        offset = _round_up(start, unit)
        if offset > start:
            self._free.append((start, offset - start))
        self.height = offset + span
        return offset

    def seal(self) -> None:
        """Leave what is free below the height unused."""
        self._free.clear()

    def give_back(self, offset: int, span: int) -> None:
        """Make a span free again, merged with its free neighbours."""
        start, end = offset, offset + self._rounded(span)[1]
        place = bisect.bisect(self._free, (offset, 0))
        first = last = place
        if first and sum(self._free[first - 1]) == start:
            first -= 1
            start = self._free[first][0]
        if last < len(self._free) and self._free[last][0] == end:
            end = sum(self._free[last])
            last += 1
        self._free[first:last] = [(start, end - start)]

    def _rounded(self, span: int) -> tuple[int, int]:
        """The unit that a span's start is a multiple of, and the elements that it takes."""
        alignment = _ALIGNMENT_BYTES if span * self._item >= _ALIGNMENT_BYTES else _VECTOR_BYTES
        return alignment // self._item, _round_up(max(span, 1), _VECTOR_BYTES // self._item)
