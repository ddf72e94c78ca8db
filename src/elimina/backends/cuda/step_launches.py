"""The launches of a large step: a call of the library, one kernel, or several that sum over parts of the values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.large_steps import choose_large
from elimina.backends.cuda.matrix_launch import MatrixLaunch, choose_matrix
from elimina.backends.cuda.moment_matching import choose_level
from elimina.backends.cuda.split_sums import split_sum
from elimina.backends.cuda.tile_launch import TileLaunch
from elimina.planning.program import Program
from elimina.planning.record import VARIABLE, WORDS
from elimina.planning.step import MATCHING


class LargeLaunches(NamedTuple):
    """The launches of a large step.

    Attributes:
        launches: One, or several that sum over parts of the eliminated variable's values.
        records: The record of each launch, empty if the launch reads the step's record.
        scratch_cells: Number of scratch cells behind the arena that the launches use.
    """

    launches: tuple[TileLaunch | MatrixLaunch, ...]
    records: tuple[list[int], ...]
    scratch_cells: int


def launches_of(
    program: Program,
    words: NDArray[np.int64],
    step: int,
    scratch_at: int,
    multiprocessors: int,
    shared_bytes: int,
    library: bool,
) -> LargeLaunches:
    """Return the launches of a large step; in launches with records, ``record_at`` and ``scalar`` are still 0."""
    begin, length = int(program.starts[step]), int(words[program.starts[step] + WORDS])
    record = words[begin : begin + length].tolist()
    if record[VARIABLE] == MATCHING:
        return LargeLaunches((choose_level(program, begin, record, multiprocessors),), ([],), 0)
    if library:
        matrix = choose_matrix(program, step, 0, record, 0)
        if matrix is not None:
            return LargeLaunches((matrix,), (record,), 0)
    sums = split_sum(record, scratch_at, multiprocessors)
    if sums is None:
        return LargeLaunches((choose_large(program, step, 0, record, multiprocessors, shared_bytes),), (record,), 0)
    unread = len(program.starts)
    partial = [choose_large(program, unread, 0, part, multiprocessors, shared_bytes) for part in sums.partial]
    total = choose_large(program, step, 0, sums.total, multiprocessors, shared_bytes)
    launches = *(launch._replace(is_partial=True) for launch in partial), total
    return LargeLaunches(launches, (*sums.partial, sums.total), sums.scratch_cells)
