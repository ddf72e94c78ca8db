"""Tiles of the plain planner, found by trying."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from elimina.planning.layout import row_axes

SMALL_WORK = 4096
"""Combinations below which a step is not worth a split."""

HOPELESS_WORK = 1 << 56
"""Combinations above which no step will ever run: it is planned for its figures alone."""

_LO_CELLS = 32
_LO_LIMIT = 16384
_MID_LIMIT = 1024
_GATHERED = 4.0
_ROW_OVERHEAD = 64.0


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
