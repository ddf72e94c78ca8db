"""Large steps in ``sum-product`` that are matrix products."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from elimina.backends.cuda import kernels
from elimina.backends.cuda.record_axes import is_aligned, merge, widen
from elimina.planning.matrix_products import LIBRARY_DEPTH, LIBRARY_SIDE, LIBRARY_WORK
from elimina.planning.program import Program
from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    MID_AXES,
    OUT,
    OUTER_AXES,
    TABLES,
    TABLES_B,
    tables,
)
from elimina.problem.semirings import SEMIRINGS

MAX_CALLS = 64
"""Largest number of calls of the library for one step. A call multiplies a batch of matrices at regular distances."""
MAX_SIZE = 2**31 - 1
"""Largest size of a matrix that the library takes."""


class MatrixOperand(NamedTuple):
    """A matrix in the arena.

    Attributes:
        offset: Place of its first cell.
        pitch: Cells from the start of a line to that of the next.
        along_depth: True if its lines run along the eliminated variable.
        hop: Cells from the start of a matrix to the start of the next one in the batch.
    """

    offset: int
    pitch: int
    along_depth: bool
    hop: int


class MatrixLaunch(NamedTuple):
    """A launch of one large step: for each of ``offsets``, ``batch`` products of ``rows`` x ``columns`` x ``depth``.

    Attributes:
        number: Number of the step.
        record_at: Start of its record in the words.
        rows, columns, depth, batch: Shape of a call.
        lhs, rhs, out: Matrices to multiply, and the result's matrix.
        offsets: Cells to add to the three matrices' offsets, for each call.
        sources: Steps that wrote lhs and rhs; -1 for a factor.
        scalar: Position of the product of the messages' scales in the array of scalars.
        words: Number of cells that are read at once when the range of the output is found.
        work: Combinations of the step.
    """

    number: int
    record_at: int
    rows: int
    columns: int
    depth: int
    batch: int
    lhs: MatrixOperand
    rhs: MatrixOperand
    out: MatrixOperand
    offsets: tuple[tuple[int, ...], ...]
    sources: tuple[int, int]
    scalar: int
    words: int
    work: int

    def kernel_names(self, semiring: str, dtype: np.dtype[np.generic]) -> tuple[str, ...]:
        """Return the names of the kernels that the launch runs, in a semiring and a dtype."""
        kind = semiring, dtype
        return kernels.range_kernel(*kind), kernels.scale_kernel(*kind), kernels.extremes_kernel(*kind, self.words)

    @property
    def path(self) -> str:
        """Name of its executor path (``core/exec/paths.hpp``)."""
        return "cuda-library"

    @property
    def out_cells(self) -> int:
        """Cells of the output."""
        return self.work // self.depth

    def cells_of(self, side: int) -> tuple[int, int]:
        """Return the first cell read of the left (0) or right (1) table, and the number of cells up to the last one."""
        operand, lines = (self.lhs, self.rows) if side == 0 else (self.rhs, self.columns)
        lines, length = (lines, self.depth) if operand.along_depth else (self.depth, lines)
        farthest = max(offset[side] for offset in self.offsets) + (self.batch - 1) * operand.hop
        return operand.offset, farthest + (lines - 1) * operand.pitch + length


def choose_matrix(program: Program, number: int, start: int, record: list[int], scalar: int) -> MatrixLaunch | None:
    """Return the library calls that compute a step; None if it needs elimina's own kernels.

    Args:
        program: Program of the step.
        number: Number of the step.
        start: Future start of its record within the words.
        record: The step's record; it gets fewer, longer axes if the library takes the step.
        scalar: Place for the product of the messages' scales.
    """
    if (
        not SEMIRINGS[program.semiring].is_product
        or record[TABLES : TABLES_B + 1] != [2, 1, 1]
        or record[DOMAIN] < LIBRARY_DEPTH
    ):
        return None
    merged = list(record)
    widen(merged)
    merge(merged)
    axes, lo = merged[AXES], merged[OUTER_AXES] + merged[MID_AXES]
    sizes = merged[HEADER : HEADER + AXIS_WORDS * axes : 3]
    lhs, rhs = tables(merged)
    strides = list(zip(lhs[3:], rhs[3:], merged[HEADER + AXIS_STRIDE : HEADER + AXIS_WORDS * axes : 3], strict=True))
    rows_at = [axis for axis in range(lo) if strides[axis][1] == 0]
    if axes != lo + 1 or not rows_at:
        return None
    row = max(rows_at, key=sizes.__getitem__)
    others = sorted((axis for axis in range(lo) if axis != row), key=sizes.__getitem__)
    hops = strides[others[-1]] if others else (0, 0, 0)
    digits = itertools.product(*(range(sizes[axis]) for axis in others[:-1]))
    depth, columns, batch = merged[DOMAIN], sizes[lo], sizes[others[-1]] if others else 1
    work = depth * math.prod(sizes)
    calls = math.prod(sizes[axis] for axis in others[:-1])
    if calls > MAX_CALLS or min(sizes[row], columns) < LIBRARY_SIDE or work < LIBRARY_WORK:
        return None
    lhs_operand = _operand(lhs, strides[row][0], hops[0], depth, sizes[row])
    rhs_operand = _operand(rhs, strides[lo][1], hops[1], depth, columns)
    if lhs_operand is None or rhs_operand is None or strides[row][2] < columns:
        return None
    out = MatrixOperand(merged[OUT], strides[row][2], False, hops[2])
    if max(sizes[row], columns, depth, batch, lhs_operand.pitch, rhs_operand.pitch, out.pitch) > MAX_SIZE:
        return None
    offsets = tuple(
        tuple(sum(digit * strides[axis][k] for digit, axis in zip(numbers, others, strict=False)) for k in range(3))
        for numbers in digits
    )
    record[:] = merged
    vector = 16 // program.dtype.itemsize
    whole = [stride for _, _, stride in strides[:lo]]
    words = vector if columns % vector == 0 and is_aligned(merged[OUT], whole, sizes[:lo], vector) else 1
    return MatrixLaunch(
        number,
        start,
        sizes[row],
        columns,
        depth,
        batch,
        lhs_operand,
        rhs_operand,
        out,
        offsets,
        (lhs[2], rhs[2]),
        scalar,
        words,
        work,
    )


def _operand(table: list[int], stride: int, hop: int, depth: int, cells: int) -> MatrixOperand | None:
    """Return a matrix whose rows or columns are ``stride`` cells apart; None if no direction has adjacent cells."""
    if stride == 1 and table[1] >= cells:
        return MatrixOperand(table[0], table[1], False, hop)
    if table[1] == 1 and stride >= depth:
        return MatrixOperand(table[0], stride, True, hop)
    return None
