"""Copies between GPUs that share a plan: the cells that each GPU reads from the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from elimina.planning.shard_program import Box, Exchange, Range, cells


def boxes(copy: Exchange, gpu: int, gpus: int) -> Iterator[Box]:
    """Yield the boxes that a GPU copies from other GPUs."""
    source, target = copy
    source_ranges, target_ranges = ({range_.variable: range_ for range_ in table.division} for table in copy)
    pieces = [
        list(_pieces(size, source_ranges.get(v), target_ranges.get(v), gpu))
        for v, size in zip(source.axes, source.sizes, strict=True)
    ]
    for combination in itertools.product(*pieces):
        digits = {v: piece.digit for v, piece in zip(source.axes, combination, strict=True)}
        owners = ((gpu + number) % gpus for number in range(gpus))
        yield Box(
            next(k for k in owners if all(k // s.stride % s.ranges == digits[s.variable] for s in source.division)),
            cells(source, [piece.source for piece in combination], [piece.length for piece in combination]),
            cells(target, [piece.target for piece in combination], [piece.length for piece in combination]),
        )


class _Piece(NamedTuple):
    """Consecutive values of a variable: start in the target's range, number, start in the source's range, its index."""

    target: int
    length: int
    source: int
    digit: int


def _pieces(size: int, source_range: Range | None, target_range: Range | None, gpu: int) -> Iterator[_Piece]:
    first, length = 0, size
    if target_range is not None:
        length = target_range.length(size)
        first = gpu // target_range.stride % target_range.ranges * length
    source_length = size if source_range is None else source_range.length(size)
    at = 0
    while at < length:
        value = (first + at) % size
        run = min(length - at, size - value, source_length - value % source_length)
        yield _Piece(at, run, value % source_length, value // source_length)
        at += run
