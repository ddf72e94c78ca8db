"""Ising grids with random fields and couplings, and their marginals by transfer matrices.

Spins of neighbours agree or not with weights exp(J) and exp(-J), J normal with deviation `coupling`; the states of a
spin have weights exp(h) and exp(-h), h normal with deviation `field`.

A transfer matrix moves a vector over the states of one column of a strip from column to column: it needs 2^height
numbers, whatever the length. A grid that is too high for it is covered by strips of its rows. The marginals of a row
are those of the strip in whose middle it lies, and log Z is the sum over strips less that over their overlaps: both
converge exponentially with the height of the strips, so that two heights tell the error of the smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import elimina

Floats = NDArray[np.float64]


class Grid(NamedTuple):
    """Fields of shape (rows, columns), and couplings to the right (rows, columns - 1) and down (rows - 1, columns)."""

    fields: Floats
    right: Floats
    down: Floats

    def strip(self, first: int, last: int) -> Grid:
        """Return the rows from `first` up to `last`, which is excluded."""
        return Grid(self.fields[first:last], self.right[first:last], self.down[first : last - 1])


def random_grid(rows: int, columns: int, coupling: float = 0.5, field: float = 0.3, seed: int = 0) -> Grid:
    """Return a grid with normal fields and couplings."""
    rng = np.random.default_rng(seed)
    return Grid(
        rng.normal(0, field, (rows, columns)),
        rng.normal(0, coupling, (rows, columns - 1)),
        rng.normal(0, coupling, (rows - 1, columns)),
    )


def model_of(grid: Grid) -> elimina.Model:
    """Return a grid as a model; the variable of row r and column c has the number r * columns + c."""
    numbers = np.arange(grid.fields.size).reshape(grid.fields.shape)
    signs = np.array([1.0, -1.0])
    tables = [
        elimina.Table([number], weights)
        for number, weights in zip(numbers.ravel().tolist(), np.exp(grid.fields.reshape(-1, 1) * signs), strict=True)
    ]
    for couplings, one, other in (
        (grid.right, numbers[:, :-1], numbers[:, 1:]),
        (grid.down, numbers[:-1], numbers[1:]),
    ):
        weights = np.exp(couplings.reshape(-1, 1, 1) * np.outer(signs, signs))
        scopes = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        tables += [elimina.Table(scope, table) for scope, table in zip(scopes, weights, strict=True)]
    variables = [elimina.Variable(f"s{number}", 2) for number in range(numbers.size)]
    return elimina.Model(variables, tables, sense="probability")


class Transfer:
    """Transfer matrices of a strip: vectors over the states of a column, its first row the slowest axis."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.height, self.length = grid.fields.shape

    def log_z(self) -> float:
        """Return the natural logarithm of the partition function."""
        return sum(logarithm for _, _, logarithm in self._passed(range(self.length)))

    def shares(self, row: int) -> Floats:
        """Return the probabilities of the first state of the spins of a row."""
        ahead = {column: vector for column, vector, _ in self._passed(range(self.length))}
        probabilities = np.empty(self.length)
        for column, back, _ in self._passed(range(self.length - 1, -1, -1)):
            # Both vectors hold the weights of the column.
            joint = (ahead.pop(column) * back / self._weights(column)).reshape(2**row, 2, -1).sum(axis=(0, 2))
            probabilities[column] = joint[0] / joint.sum()
        return probabilities

    def _passed(self, columns: range) -> Iterator[tuple[int, Floats, float]]:
        """Pass over the columns; yield each with its normalised vector and the logarithm of its sum."""
        vector = np.ones(2**self.height)
        for place, column in enumerate(columns):
            if place:
                couplings = self.grid.right[:, min(column, columns[place - 1])]
                for row, coupling in enumerate(couplings):
                    vector = _move(vector, row, coupling)
            vector = vector * self._weights(column)
            total = vector.sum()
            vector = vector / total
            yield column, vector, math.log(total)

    def _weights(self, column: int) -> Floats:
        """Return the weights of the states of a column: its fields, and the couplings within it."""
        signs = np.array([1.0, -1.0])
        exponents = np.zeros(1)
        for row in range(self.height):
            exponents = (exponents[:, None] + self.grid.fields[row, column] * signs).ravel()
            if row:
                pairs = self.grid.down[row - 1, column] * np.outer(signs, signs)
                exponents = (exponents.reshape(-1, 2, 2) + pairs).ravel()
        return np.exp(exponents)


def _move(vector: Floats, row: int, coupling: float) -> Floats:
    """Sum out a spin of the column behind, and put the one of the column ahead in its place."""
    split = vector.reshape(2**row, 2, -1)
    moved = np.empty_like(split)
    same, different = math.exp(coupling), math.exp(-coupling)
    moved[:, 0] = same * split[:, 0] + different * split[:, 1]
    moved[:, 1] = different * split[:, 0] + same * split[:, 1]
    return moved.ravel()


def row_shares(grid: Grid, row: int, height: int) -> Floats:
    """Return the probabilities of the first state in a row, from the strip of a height around it."""
    rows = len(grid.fields)
    first = max(0, min(row - height // 2, rows - height))
    return Transfer(grid.strip(first, min(rows, first + height))).shares(row - first)


def log10_z(grid: Grid, height: int) -> float:
    """Return log10 Z, from strips of a height."""
    rows = len(grid.fields)
    total = Transfer(grid.strip(0, min(rows, height))).log_z()
    for first in range(1, rows - height + 1):
        total += Transfer(grid.strip(first, first + height)).log_z()
        total -= Transfer(grid.strip(first, first + height - 1)).log_z()
    return total / math.log(10)


def named(shares: Floats, row: int) -> dict[str, list[float]]:
    """Return the marginals of a row under the names of its variables."""
    columns = shares.size
    return {f"s{row * columns + column}": [p, 1 - p] for column, p in enumerate(shares.tolist())}
