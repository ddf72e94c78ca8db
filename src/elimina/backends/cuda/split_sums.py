"""Large steps with few cells and many values: sums over parts of the values first, then over the parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    LO_CELLS,
    MID_AXES,
    MID_CELLS,
    OUT,
    OUTER_AXES,
    OUTER_CELLS,
    TABLES,
    TABLES_A,
    TABLES_B,
    VARIABLE,
    WORDS,
    tables,
)

MIN_DOMAIN = 128
"""Least number of values that are divided into parts. Summing over fewer takes less time than a second launch."""
BUSY_CELLS = 2048
"""Output cells that keep a multiprocessor busy."""
ALIGNED_CELLS = 16
"""The sums of each part start at a multiple of this number of cells, which is 16-byte aligned for all types."""


class SplitSum(NamedTuple):
    """A step in parts.

    Attributes:
        partial: Records that sum over parts of the values, into scratch cells.
        total: Record of the step's output, which sums over the parts.
        scratch_cells: Number of scratch cells.
    """

    partial: tuple[list[int], ...]
    total: list[int]
    scratch_cells: int


def split_sum(record: list[int], scratch: int, multiprocessors: int) -> SplitSum | None:
    """Divide the values of a step's eliminated variable into parts, which a GPU sums up in parallel.

    A thread computes whole cells, one value after another, so a step of few cells leaves most of a GPU idle.

    Args:
        record: The step's packed record.
        scratch: Place of the scratch cells, a multiple of ``ALIGNED_CELLS``.
        multiprocessors: The device's number of multiprocessors.

    Returns:
        The records; None if the step has enough cells or too few values.
    """
    domain, cells = record[DOMAIN], record[OUTER_CELLS] * record[MID_CELLS] * record[LO_CELLS]
    parts = min(multiprocessors * BUSY_CELLS // cells, math.isqrt(domain))
    if domain < MIN_DOMAIN or parts < 2:
        return None
    depth, rest = divmod(domain, parts)
    span = _span(record)
    partial = [_part(record, 0, depth, parts, span, scratch)]
    if rest:
        partial.append(_part(record, parts * depth, rest, 1, span, scratch + parts * span))
    sums = parts + bool(rest)
    total = _total(record, sums, span, scratch)
    end = scratch + sums * span
    further = split_sum(total, end, multiprocessors)
    if further is None:
        return SplitSum(tuple(partial), total, end - scratch)
    return SplitSum((*partial, *further.partial), further.total, end - scratch + further.scratch_cells)


def _axes(record: list[int]) -> list[list[int]]:
    words = record[HEADER : HEADER + AXIS_WORDS * record[AXES]]
    return [words[at : at + AXIS_WORDS] for at in range(0, len(words), AXIS_WORDS)]


def _span(record: list[int]) -> int:
    """Return the cells from the output's first to its last one, rounded up."""
    cells = 1 + sum((size - 1) * stride for size, stride, _ in _axes(record))
    return -(-cells // ALIGNED_CELLS) * ALIGNED_CELLS


def _part(record: list[int], first: int, depth: int, parts: int, span: int, out: int) -> list[int]:
    """Return the record of ``parts`` sums over ``depth`` values each; the slowest axis is that of the parts."""
    operands = []
    for offset, domain_stride, source, *strides in tables(record):
        operands.append([offset + first * domain_stride, domain_stride, source, depth * domain_stride, *strides])
    part = list(record[:HEADER])
    part[DOMAIN], part[OUT] = depth, out
    part[AXES] += 1
    part[OUTER_AXES] += 1
    part[OUTER_CELLS] *= parts
    return _packed(part, [[parts, span, record[VARIABLE]], *_axes(record)], operands)


def _total(record: list[int], sums: int, span: int, scratch: int) -> list[int]:
    """Return the record that sums over the parts."""
    axes = _axes(record)
    strides = [axis[AXIS_STRIDE] for axis in axes]
    lo = record[OUTER_AXES] + record[MID_AXES]
    total = list(record[:HEADER])
    total[DOMAIN], total[TABLES] = sums, 1
    total[TABLES_A] = int(not any(strides[lo:]))
    total[TABLES_B] = int(any(strides[lo:]) and not any(strides[record[OUTER_AXES] : lo]))
    # Partial sums are in the scale of the step's output, so they are read without a scale, as factors are.
    return _packed(total, axes, [[scratch, span, -1, *strides]])


def _packed(header: list[int], axes: Sequence[list[int]], operands: Sequence[list[int]]) -> list[int]:
    record = [*header, *(word for row in (*axes, *operands) for word in row)]
    record[WORDS] = len(record)
    return record
