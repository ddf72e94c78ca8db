"""Factors of a sum of products as arrays: joined if one scope contains the others, and scaled."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.model import table as tables
from elimina.model.table import Scopes
from elimina.problem.preparation import Problem

_BLOCK_CELLS = 1 << 18
"""Cells that are scaled at once, so that their divisors stay in a cache."""


class FactorList(NamedTuple):
    """Factors of a problem, one for each of its groups, with their values in one array.

    Attributes:
        scopes: Positions of each factor's variables among the free ones, from the slowest axis to the fastest.
        values: Values of each factor, divided by its largest value.
        log_scale: Natural logarithm of the product of all divisors and constants; minus infinity if the sum is 0.
        is_complete: True if no product of positive numbers left the range of normal floats.
    """

    scopes: Scopes
    values: NDArray[np.float64]
    log_scale: float
    is_complete: bool

    def supports(self) -> FactorList:
        """Return the supports of the factors: 1 for positive values, otherwise 0."""
        return self._replace(values=(self.values > 0).astype(np.float64), log_scale=0.0)


def table_bytes(problem: Problem) -> float:
    """Return the bytes of the factors' values."""
    return 8 * float(problem.groups.cells(problem.model.size_array).sum())


def factors_of(problem: Problem) -> FactorList:
    """Return the factors of a sum of products."""
    _, starts, members = problem.network
    axis_sizes = problem.free_sizes[members]
    strides, cells = _row_major(starts, axis_sizes)
    offsets = np.concatenate([[0], np.cumsum(cells)])
    values = np.ones(int(offsets[-1]))
    groups = problem.groups
    encoded = problem.tables.listed.encode(
        "probability",
        "products",
        0,
        groups.starts,
        groups.members,
        starts,
        groups.scopes.members.astype(np.int32),
        axis_sizes,
        strides,
        offsets[:-1],
        None,
        values,
        tables.BLOCK_CELLS,
        1,
    )
    constants = np.array([float(problem.tables[c].values) for c in problem.constants])
    peaks, is_complete = encoded.ranges[:, 0], bool(encoded.exact.all())
    if not constants.all() or problem.model.constant == -math.inf or (not peaks.all() and is_complete):
        return FactorList(Scopes(starts, members.astype(np.int64)), values, -math.inf, is_complete)
    peaks = np.where(peaks > 0, peaks, 1.0)
    logarithms = [np.log(constants), np.log(peaks), math.log(2) * encoded.exponents]
    if (peaks != 1).any():
        _divide(values, offsets, peaks)
    log_scale = math.fsum([problem.model.constant, *(float(terms.sum()) for terms in logarithms)])
    return FactorList(Scopes(starts, members.astype(np.int64)), values, log_scale, is_complete)


def _divide(values: NDArray[np.float64], offsets: NDArray[np.int64], divisors: NDArray[np.float64]) -> None:
    """Divide the values of each factor by its divisor, without a copy of all values.

    Args:
        values: Values of all factors, one factor after another.
        offsets: Start of each factor's values, followed by the end of the last factor's values.
        divisors: Divisor of each factor.
    """
    first = 0
    while first < len(divisors):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK_CELLS, "right")) - 1)
        block = values[offsets[first] : offsets[last]]
        block /= (
            divisors[first]
            if last == first + 1
            else np.repeat(divisors[first:last], np.diff(offsets[first : last + 1]))
        )
        first = last


def _row_major(starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the strides of tables' axes, and the cells of each table.

    Args:
        starts: Start of each table's axes, followed by the end of the last table's axes.
        sizes: Size of each axis.
    """
    strides, counts = np.ones_like(sizes), np.diff(starts)
    axes = starts[1:] - 1
    for step in range(1, int(counts.max(initial=0))):
        at = axes[counts > step] - step
        strides[at] = strides[at + 1] * sizes[at + 1]
    cells = np.ones(len(counts), dtype=np.int64)
    has_axes = counts > 0
    firsts = starts[:-1][has_axes]
    cells[has_axes] = strides[firsts] * sizes[firsts]
    return strides, cells
