"""Places of the tables in the arena."""

from __future__ import annotations

import heapq
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
    """Return a table's strides, slow to fast, and the elements that it spans; rows are padded to whole vectors.

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
    where long rows may. Free spans of one length and one distance from such a start are kept together, so that the
    first one that fits is found without going through all of them.
    """

    def __init__(self, itemsize: int) -> None:
        self._item = itemsize
        self._unit = _ALIGNMENT_BYTES // itemsize
        self._sizes: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        # Heaps of offsets; those that are no longer free are dropped when they come to the top.
        self._alike: dict[tuple[int, int], list[int]] = {}
        self.height = 0

    def take(self, span: int) -> int:
        """Offset of a free span: the first that fits."""
        unit, span = self._rounded(span)
        found = self._first(unit, span)
        if found is not None:
            start, end = found, found + self._remove(found)
        else:
            start = self._starts.get(self.height, self.height)
            if start < self.height:
                self._remove(start)
            end = self.height
        offset = _round_up(start, unit)
        self._add(start, offset)
        self._add(offset + span, end)
        self.height = max(self.height, offset + span)
        return offset

    def seal(self) -> None:
        """Leave what is free below the height unused."""
        self._sizes.clear()
        self._starts.clear()
        self._alike.clear()

    def give_back(self, offset: int, span: int) -> None:
        """Make a span free again, merged with its free neighbours."""
        start, end = offset, offset + self._rounded(span)[1]
        if end in self._sizes:
            end += self._remove(end)
        if start in self._starts:
            start = self._starts[start]
            self._remove(start)
        self._add(start, end)

    def _first(self, unit: int, span: int) -> int | None:
        """Return the lowest free offset from which a span fits."""
        best = None
        for kind in list(self._alike):
            size, rest = kind
            if size < span + -rest % unit:
                continue
            heap = self._alike[kind]
            while heap and self._sizes.get(heap[0]) != size:
                heapq.heappop(heap)
            if not heap:
                del self._alike[kind]
            elif best is None or heap[0] < best:
                best = heap[0]
        return best

    def _add(self, start: int, end: int) -> None:
        if start < end:
            self._sizes[start], self._starts[end] = end - start, start
            heapq.heappush(self._alike.setdefault((end - start, start % self._unit), []), start)

    def _remove(self, start: int) -> int:
        """Forget a free span; return its length."""
        size = self._sizes.pop(start)
        del self._starts[start + size]
        return size

    def _rounded(self, span: int) -> tuple[int, int]:
        """Return the unit that a span's start is a multiple of, and the elements that it takes."""
        alignment = _ALIGNMENT_BYTES if span * self._item >= _ALIGNMENT_BYTES else _VECTOR_BYTES
        return alignment // self._item, _round_up(max(span, 1), _VECTOR_BYTES // self._item)
