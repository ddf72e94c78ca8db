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
    variables: Sequence[Variable], indices: NDArray[np.int32], log_weights: NDArray[np.float64] | None
) -> Iterator[str]:
    """Yield the text of a CSV file, part by part.

    Args:
        variables: Variables of the columns.
        indices: Index of each sample's state, shape ``(samples, variables)``.
        log_weights: Natural logarithms of the weights; None: all samples count alike.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow([*(v.name for v in variables), *([] if log_weights is None else [LOG_WEIGHT])])
    # Indices are the texts of states without names.
    states = [None if v.states is None else np.array(texts_of(v), dtype=object) for v in variables]
    step = max(1, _CELLS_PER_CHUNK // max(1, len(variables)))
    for start in range(0, len(indices), step):
        block = indices[start : start + step]
        columns = [
            (column if own is None else own[column]).tolist() for own, column in zip(states, block.T, strict=True)
        ]
        if log_weights is not None:
            columns.append([repr(log) for log in log_weights[start : start + step].tolist()])
        rows.writerows(zip(*columns, strict=True) if columns else [()] * len(block))
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()
