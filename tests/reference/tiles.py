"""Tiles of the plain planner, found by trying."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

SMALL_WORK = 4096
"""Combinations below which a step is not worth a split."""

HOPELESS_WORK = 1 << 56
"""Combinations above which no step will ever run: it is planned for its figures alone."""

_LO_CELLS = 32
_LO_LIMIT = 16384
_MID_LIMIT = 1024
_GATHERED = 4.0
_ROW_OVERHEAD = 64.0

_ROW_CELLS = 1024
"""Cells from which trailing axes make a row: padding it then costs little."""

_ROW_PADDING = 64
"""Cells of a table without its first axis from which the rest is padded to whole vectors, if it makes no long row."""

_LONG_ROW_BYTES = 64
_VECTOR_BYTES = 16


def row_axes(sizes: Sequence[int]) -> int:
    """Position of the first axis of a table's rows: the trailing axes up to where a padding is due, or the first axis.

    Rows never hold the first axis, that of the variable eliminated next, unless the table is tiny. Tables that share
    their trailing axes have the same rows, so a step's reads and writes start at whole vectors together.
    """
    cells = 1
    for axis in range(len(sizes) - 1, 0, -1):
        cells *= sizes[axis]
        if cells >= _ROW_CELLS and cells % _LONG_ROW_BYTES:
            return axis
    return 1 if len(sizes) > 1 and cells >= _ROW_PADDING else 0


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
            unit = _LONG_ROW_BYTES if strides[axis] >= _ROW_CELLS else _VECTOR_BYTES
            strides[axis] = -(-strides[axis] // (unit // itemsize)) * (unit // itemsize)
    return tuple(strides), strides[0] * sizes[0]


class Tile(NamedTuple):
    """A split: axes by position in the output's scope, operands by position in the step's list."""

    outer: tuple[int, ...]
    mid: tuple[int, ...]
    lo: tuple[int, ...]
    tables_a: tuple[int, ...]
    tables_b: tuple[int, ...]
    streamed: tuple[int, ...]


def choose_tile(domain: int, sizes: Sequence[int], members: Sequence[frozenset[int]], rows: int | None = None) -> Tile:
    """Choose the split with the fewest streamed tables, then with rows long enough.

    Args:
        domain: Values of the eliminated variable.
        sizes: Sizes of the output's axes, slow to fast.
        members: Axes of each operand.
        rows: Position of the first axis of the output's rows; without it, ``row_axes`` tells.
    """
    rows = row_axes(sizes) if rows is None else rows
    if not sizes or not SMALL_WORK <= domain * math.prod(sizes) <= HOPELESS_WORK:
        return classify(tuple(range(rows)), (), tuple(range(rows, len(sizes))), members)
    best: tuple[float, Tile] | None = None
    for first in range(len(sizes) - 1, rows - 1, -1):
        lo = tuple(range(first, len(sizes)))
        lo_cells = math.prod(sizes[a] for a in lo)
        if best is not None and lo_cells > _LO_LIMIT:
            break
        if lo_cells < _LO_CELLS and first > rows:
            continue
        for mid in _mid_choices(sizes, range(first), lo, members):
            tile = classify(tuple(a for a in range(first) if a not in mid), mid, lo, members)
            cost = _cost(tile, domain, sizes, lo_cells, members)
            if best is None or cost < best[0]:
                best = cost, tile
    assert best is not None
    return best[1]


def _mid_choices(
    sizes: Sequence[int], rest: Sequence[int], lo: tuple[int, ...], members: Sequence[frozenset[int]]
) -> Iterator[tuple[int, ...]]:
    """Growing sets of axes over which the B tables stay: first those that the fewest tables share with the lo axes."""
    touching = [m for m in members if not m.isdisjoint(lo)]
    left = list(rest)
    # Of equals the last axis: a table counts for more than all differences of positions.
    table = len(sizes)
    keys = [table * sum(a in m for m in touching) - a for a in left]
    mid: list[int] = []
    cells = 1
    if not left:
        yield ()
    while left:
        axis = min(left, key=keys.__getitem__)
        cells *= sizes[axis]
        if mid and cells > _MID_LIMIT:
            return
        mid.append(axis)
        left.remove(axis)
        for m in [m for m in touching if axis in m]:
            touching.remove(m)
            for a in m.intersection(left):
                keys[a] -= table
        yield tuple(sorted(mid))


def classify(
    outer: tuple[int, ...], mid: tuple[int, ...], lo: tuple[int, ...], members: Sequence[frozenset[int]]
) -> Tile:
    """Tell A, B and streamed tables apart, for a given split of the axes."""
    a: list[int] = []
    b: list[int] = []
    streamed: list[int] = []
    for number, axes in enumerate(members):
        if axes.isdisjoint(lo):
            a.append(number)
        elif mid and axes.isdisjoint(mid):
            b.append(number)
        else:
            streamed.append(number)
    return Tile(outer, mid, lo, tuple(a), tuple(b), tuple(streamed))


def _cost(tile: Tile, domain: int, sizes: Sequence[int], lo_cells: int, members: Sequence[frozenset[int]]) -> float:
    """Relative cost of one combination: streamed tables are read for each, the rest is spread over a tile."""
    mid_cells = math.prod(sizes[a] for a in tile.mid)
    streamed = sum(1.0 if members[t].issuperset(tile.lo) else _GATHERED for t in tile.streamed)
    build = _GATHERED * len(tile.tables_b) / mid_cells + 2.0 * len(tile.tables_a) / lo_cells
    cells = 0.5 + streamed + build + _ROW_OVERHEAD / (lo_cells * min(domain, 16))
    return cells * (1 + _LO_CELLS / lo_cells)
