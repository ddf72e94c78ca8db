"""Samples as CSV files: a column for each variable, a row for each sample."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.model.variable import Variable, texts_of

LOG_WEIGHT = "log_weight"
"""Name of the last column of weighted samples: the natural logarithm of a sample's weight."""

_CELLS_PER_CHUNK = 1 << 18


def csv_chunks(
    variables: Sequence[Variable],
    indices: NDArray[np.int32],
    logs: NDArray[np.float64] | None,
    last_column: str = LOG_WEIGHT,
) -> Iterator[str]:
    """Yield the text of a CSV file, part by part.

    Args:
        variables: Variables of the columns.
        indices: Index of each sample's state, shape ``(samples, variables)``; -1 for an empty cell.
        logs: Numbers of a last column; None: the file has no such column.
        last_column: Name of the last column.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*(v.name for v in variables), *([] if logs is None else [last_column])])
    # States without names are written as their indices.
    states = [None if v.states is None else np.array([*texts_of(v), ""], dtype=object) for v in variables]
    has_gaps = bool((indices < 0).any())
    step = max(1, _CELLS_PER_CHUNK // max(1, len(variables)))
    for start in range(0, len(indices), step):
        block = indices[start : start + step]
        columns = [
            (column if state_texts is None else state_texts[column]).tolist()
            for state_texts, column in zip(states, block.T, strict=True)
        ]
        if has_gaps:
            columns = [["" if cell == -1 else cell for cell in column] for column in columns]
        if logs is not None:
            columns.append([repr(log) for log in logs[start : start + step].tolist()])
        rows.writerows(zip(*columns, strict=True) if columns else [()] * len(block))
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()
