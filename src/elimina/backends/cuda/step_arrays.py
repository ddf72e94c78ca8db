"""A program's steps as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.planning.record import (
    AXES,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    LO_CELLS,
    MID_CELLS,
    OUTER_CELLS,
    TABLE_STRIDES,
    TABLES,
    ragged,
    spans,
)


class StepArrays(NamedTuple):
    """A program's steps as arrays, and the tables that they read.

    Attributes:
        headers: First ``HEADER`` words of each step's record.
        work: Combinations of output cells and eliminated values of each step.
        spans: Elements from the first to the last cell of each step's output.
        cells: Cells of each step's output.
        source_at: Position of each table's first word, its offset, in the words.
        sources: Step that wrote each table; -1 for a factor.
        readers: Step that reads each table.
    """

    headers: NDArray[np.int64]
    work: NDArray[np.int64]
    spans: NDArray[np.int64]
    cells: NDArray[np.int64]
    source_at: NDArray[np.int64]
    sources: NDArray[np.int64]
    readers: NDArray[np.int64]


def step_arrays(words: NDArray[np.int64], starts: NDArray[np.int64]) -> StepArrays:
    """Return the steps of packed records."""
    count = len(starts)
    headers = words[starts[:, None] + np.arange(HEADER)] if count else np.zeros((0, HEADER), np.int64)
    axes, tables = headers[:, AXES], headers[:, TABLES]
    cells = headers[:, OUTER_CELLS] * headers[:, MID_CELLS] * headers[:, LO_CELLS]
    source_at = np.repeat(starts + HEADER + AXIS_WORDS * axes, tables)
    source_at = source_at + np.repeat(TABLE_STRIDES + axes, tables) * ragged(np.zeros_like(tables), tables)
    return StepArrays(
        headers,
        cells * headers[:, DOMAIN],
        spans(words, starts, axes),
        cells,
        source_at,
        words[source_at + 2],
        np.repeat(np.arange(count), tables),
    )


def tables_from(steps: StepArrays, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the mask of the tables that are outputs of the chosen steps."""
    is_output: NDArray[np.bool_] = steps.sources >= 0
    is_output[is_output] = chosen[steps.sources[is_output]]
    return is_output
