"""Splitting a step's output axes into outer, mid and lo ones (why: ``include/elimina/program.hpp``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

SMALL_WORK = 4096
"""Combinations below which a step is not worth a split."""

ROW_PADDING = 64
"""Cells of a table without its first axis from which that axis' stride is padded to whole vectors."""

_LO_CELLS = 256
_LO_LIMIT = 16384
_MID_CELLS = 32
_MID_LIMIT = 512


class Tile(NamedTuple):
    """A split: axes by position in the output's scope, operands by position in the step's list."""

    outer: tuple[int, ...]
    mid: tuple[int, ...]
    lo: tuple[int, ...]
    tables_a: tuple[int, ...]
    tables_b: tuple[int, ...]
    streamed: tuple[int, ...]


def choose_tile(domain: int, sizes: Sequence[int], members: Sequence[frozenset[int]]) -> Tile:
    """Choose the split with the fewest streamed tables, then with rows long enough.

    Args:
        domain: Values of the eliminated variable.
        sizes: Of the output's axes, slow to fast.
        members: For each operand, the axes that it has.
    """
    axes = range(len(sizes))
    if domain * math.prod(sizes) < SMALL_WORK:
        return _classify((), (), tuple(axes), members)
    padded = len(sizes) > 1 and math.prod(sizes[1:]) >= ROW_PADDING
    best: tuple[float, Tile] | None = None
    for first in range(len(sizes) - 1, -1 + padded, -1):
        lo = tuple(range(first, len(sizes)))
        lo_cells = math.prod(sizes[a] for a in lo)
        if best is not None and lo_cells > _LO_LIMIT:
            break
        mid = _choose_mid(sizes, range(first), lo, members)
        tile = _classify(tuple(a for a in range(first) if a not in mid), mid, lo, members)
        cost = _cost(tile, sizes, lo_cells, members)
        if best is None or cost < best[0]:
            best = cost, tile
    assert best is not None
    return best[1]


def _choose_mid(
    sizes: Sequence[int], rest: Sequence[int], lo: tuple[int, ...], members: Sequence[frozenset[int]]
) -> tuple[int, ...]:
    """Axes over which the B tables stay: those that the fewest tables share with the lo axes."""
    touching = [m for m in members if not m.isdisjoint(lo)]
    mid: list[int] = []
    left = list(rest)
    cells = 1
    while left:

        def added(axis: int) -> int:
            return sum(axis in m and m.isdisjoint(mid) for m in touching)

        axis = min(left, key=lambda a: (added(a), -a))
        if cells >= _MID_CELLS and (added(axis) or cells * sizes[axis] > _MID_LIMIT):
            break
        mid.append(axis)
        left.remove(axis)
        cells *= sizes[axis]
    return tuple(sorted(mid))


def _classify(
    outer: tuple[int, ...], mid: tuple[int, ...], lo: tuple[int, ...], members: Sequence[frozenset[int]]
) -> Tile:
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


def _cost(tile: Tile, sizes: Sequence[int], lo_cells: int, members: Sequence[frozenset[int]]) -> float:
    """Relative cost of one combination: a streamed table is read from memory, a gather takes several loads."""
    mid_cells = math.prod(sizes[a] for a in tile.mid)
    streamed = sum(1.0 if members[t].issuperset(tile.lo) else 3.0 for t in tile.streamed)
    build = 3.0 * len(tile.tables_b) / mid_cells + 2.0 * len(tile.tables_a) / lo_cells
    return (0.5 + streamed + build) * (1 + 0.25 * _LO_CELLS / (_LO_CELLS + lo_cells)) + 32 / lo_cells
