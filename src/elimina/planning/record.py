"""Positions of the words of a step's packed record: see ``include/elimina/program.hpp``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

(
    WORDS,
    DOMAIN,
    VARIABLE,
    AXES,
    OUTER_AXES,
    MID_AXES,
    OUTER_CELLS,
    MID_CELLS,
    LO_CELLS,
    TABLES,
    TABLES_A,
    TABLES_B,
    OUT,
    WEIGHT,
    HEADER,
) = range(15)

AXIS_SIZE, AXIS_STRIDE, AXIS_VARIABLE, AXIS_WORDS = range(4)
"""Positions of the words for an output's axis, and their number."""

TABLE_OFFSET, TABLE_DOMAIN_STRIDE, TABLE_SOURCE, TABLE_STRIDES = range(4)
"""Positions of the words for a table that is read, and of the first of its strides along the output's axes."""

OTHER_WORDS = 2
"""Number of words, after the tables, for each further variable that a step eliminates: variable and domain size."""

MAX_OPERANDS = 16
"""Largest number of tables that one step reads."""


def tables(record: list[int]) -> list[list[int]]:
    """Return offset, domain stride, source and strides of each table that a record reads."""
    size, at = TABLE_STRIDES + record[AXES], HEADER + AXIS_WORDS * record[AXES]
    return [record[at + n * size : at + (n + 1) * size] for n in range(record[TABLES])]


def ragged(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return starts[i], starts[i] + 1, ... starts[i] + counts[i] - 1 for all i in one array."""
    ends = np.cumsum(counts)
    numbers: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return numbers


def spans(words: NDArray[np.int64], starts: NDArray[np.int64], axes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of elements from the first to the last cell of each record's output.

    Args:
        words: Records, one after another.
        starts: Start of each record.
        axes: Number of axes of each record's output.
    """
    at = np.repeat(starts + HEADER, axes) + AXIS_WORDS * ragged(np.zeros_like(axes), axes)
    elements = np.ones(len(starts), dtype=np.int64)
    np.add.at(elements, np.repeat(np.arange(len(starts)), axes), (words[at] - 1) * words[at + 1])
    return elements
