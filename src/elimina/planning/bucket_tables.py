"""The tables that buckets read, in arrays, for decoding of assignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class BucketTables(NamedTuple):
    """Factors and messages, sorted by the bucket that reads them.

    Variables are numbered by their position in the elimination order. A bucket's tables are over its variable and
    variables with higher numbers. All arrays are int64.

    Attributes:
        sizes: Domain size of each variable.
        table_starts: First table of each bucket, followed by the number of tables.
        offsets: Position of each table's first cell in the arena.
        strides: Stride of the bucket's variable in each table.
        axis_starts: First further axis of each table, followed by the number of these axes.
        axis_variables: Variable of each further axis.
        axis_strides: Stride of each further axis.
    """

    sizes: NDArray[np.int64]
    table_starts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    strides: NDArray[np.int64]
    axis_starts: NDArray[np.int64]
    axis_variables: NDArray[np.int64]
    axis_strides: NDArray[np.int64]

    @staticmethod
    def of(words: NDArray[np.int64], sizes: Sequence[int]) -> BucketTables:
        """Return the tables of a pseudo-tree; tables without variables are left out.

        Args:
            words: See ``PseudoTreeTables.tables``.
            sizes: Domain size of each variable.
        """
        positions, at, numbers = [], 0, words.tolist()
        while at < len(numbers):
            positions.append(at)
            at += 5 + 2 * numbers[at + 4]
        records = np.array(positions, dtype=np.int64)
        homes = words[records + 1]
        records = records[np.argsort(homes, kind="stable")][(homes < 0).sum() :]
        axis_counts = words[records + 4]
        axis_starts = np.concatenate([[0], np.cumsum(axis_counts)])
        number_in_table = np.arange(axis_starts[-1]) - np.repeat(axis_starts[:-1], axis_counts)
        axes = np.repeat(records, axis_counts) + 5 + 2 * number_in_table
        table_starts = np.searchsorted(words[records + 1], np.arange(len(sizes) + 1))
        return BucketTables(
            np.array(sizes, dtype=np.int64),
            table_starts.astype(np.int64),
            words[records],
            words[records + 2],
            axis_starts,
            words[axes],
            words[axes + 1],
        )

    def strides_of(self, table: int, variable: int) -> dict[int, int]:
        """Return the stride of each variable of a table in a variable's bucket."""
        axes = slice(self.axis_starts[table], self.axis_starts[table + 1])
        others = zip(self.axis_variables[axes].tolist(), self.axis_strides[axes].tolist(), strict=True)
        return {variable: int(self.strides[table]), **dict(others)}

    def cells_at(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position of each table's cell at a value for each variable."""
        buckets = np.repeat(np.arange(len(self.sizes)), np.diff(self.table_starts))
        tables = np.repeat(np.arange(len(self.offsets)), np.diff(self.axis_starts))
        cells = self.offsets + values[buckets] * self.strides
        np.add.at(cells, tables, values[self.axis_variables] * self.axis_strides)
        return cells


class ValueCosts(NamedTuple):
    """The cost of a value: the sum of its cells in the tables of its bucket, minus noise.

    Attributes:
        forbidden: Cell of a forbidden value.
        sign: 1 if smaller cells are better, -1 if larger ones are.
        noise: Noise that is subtracted from the costs of the second assignment and further ones, shape ``(assignments -
            1, total number of values)``.
    """

    forbidden: float
    sign: int
    noise: NDArray[np.float64]

    @property
    def assignments(self) -> int:
        """Number of assignments."""
        return 1 + len(self.noise)
