"""Launches of large moment-matching steps (``kernels/matching.cu``)."""

from __future__ import annotations

import math

from elimina.backends.cuda.kernels import THREADS, matching_kernel
from elimina.backends.cuda.record_axes import is_aligned
from elimina.backends.cuda.tile_launch import TileLaunch
from elimina.planning.program import Program
from elimina.planning.record import AXES, AXIS_WORDS, HEADER, OUT, tables

BLOCKS_PER_MULTIPROCESSOR = 8
"""Blocks of a moment-matching step that a multiprocessor holds together."""


def choose_level(program: Program, start: int, record: list[int], multiprocessors: int) -> TileLaunch:
    """Choose the kernel for a step: which of its axes make rows, and whether they are read in words."""
    axes = record[AXES]
    sizes, out_strides = (record[HEADER + word : HEADER + AXIS_WORDS * axes : AXIS_WORDS] for word in (0, 1))
    operands = tables(record)
    strides = [out_strides, *(table[3:] for table in operands)]
    row, cells = axes, 1
    while row and (sizes[row - 1] == 1 or all(steps[row - 1] == cells for steps in strides)):
        row -= 1
        cells *= sizes[row]
    unit = 16 // program.dtype.itemsize
    offsets = [record[OUT], *(table[0] for table in operands)]
    words = all(is_aligned(at, steps[:row], sizes[:row], unit) for at, steps in zip(offsets, strides, strict=True))
    kernel = matching_kernel(program.semiring, program.dtype, len(operands), words and cells > 1)
    work = math.prod(sizes)
    threads = work // cells * -(-cells // kernel.lanes)
    blocks = min(-(-threads // THREADS), BLOCKS_PER_MULTIPROCESSOR * multiprocessors)
    return TileLaunch(kernel, start, (row,), blocks, THREADS, 0, work)
