"""Sums as chains of partial sums over few variables each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina.cp.constraint_tables import ConstraintTables
from elimina.cp.views import Integers, View, constant

Term = tuple[int, View]
"""A factor and the expression that it multiplies."""

_MAX_DENSE_CELLS = 1 << 20
"""Largest number of cells of a dense table that links two successive partial sums. If a table would be larger, each
partial sum is represented by two digits, whose tables are smaller."""


def weighted_sum(terms: Sequence[Term], values: Sequence[Integers]) -> Integers:
    """Return the sum of the terms, given the values of their views."""
    return sum((factor * x for (factor, _), x in zip(terms, values, strict=True)), np.zeros(1, np.int64))


def condensed(
    tables: ConstraintTables, terms: Sequence[Term], final: Term, separated_totals: tuple[int, int]
) -> list[Term]:
    """Return a few terms that can replace all terms in comparisons of the sum with 0.

    All partial sums that the remaining terms cannot raise above the smallest total become one value. So do those that
    the remaining terms cannot lower below the largest total. If dense tables of partial sums would be large, each
    partial sum is represented by two digits.

    Args:
        tables: Tables, to which the variables of the partial sums are added.
        terms: Terms to add.
        final: Term that is added after ``terms``.
        separated_totals: Smallest and largest total that matter; totals beyond them count as the nearer one.

    Raises:
        InputError: There are too many partial sums.
    """
    constants = sum(factor * x.offset for factor, x in terms if x.var < 0)
    free = [(factor, x) for factor, x in terms if x.var >= 0]
    if len(free) < 2:
        return [*free, (1, constant(constants))]
    ends = [_ends(tables, term) for term in (*free, final)]
    limits = []
    for count in range(1, len(free) + 1):
        later = [sum(column) + constants for column in zip(*ends[count:], strict=True)]
        limits.append((separated_totals[0] - later[1], separated_totals[1] - later[0]))
    start = sum(low for low, _ in ends[:-1])
    beyond = max(limits[-1][1] - start, 0)
    largest = min(sum(high - low for low, high in ends[:-1]), beyond)
    base = math.isqrt(largest) + 2
    fits = (largest // base + 2) * base * tables.cells([final[1]]) <= tables.limit // 2
    if fits and _cells(tables, free, limits) > _MAX_DENSE_CELLS:
        return [*_digits(tables, free, base, beyond // base + 1), (1, constant(start + constants))]
    factor, total = free[0]
    for (by, x), (low, high) in zip(free[1:], limits[1:], strict=True):
        total = tables.define(
            [total, x], lambda a, b, factor=factor, by=by, low=low, high=high: np.clip(factor * a + by * b, low, high)
        )
        factor = 1
    return [(factor, total), (1, constant(constants))]


def _ends(tables: ConstraintTables, term: Term) -> tuple[int, int]:
    """Return the smallest and the largest value of a term."""
    factor, x = term
    values = factor * tables.values(x)
    return int(values.min()), int(values.max())


def _cells(tables: ConstraintTables, terms: Sequence[Term], limits: Sequence[tuple[int, int]]) -> float:
    """Return the cells of the largest dense table of a chain of partial sums; infinity if tuples exceed the limit."""
    largest = 0
    sums: Integers = np.zeros(1, np.int64)
    for (factor, x), (low, high) in zip(terms, limits, strict=True):
        values = factor * tables.values(x)
        if len(sums) * len(values) > tables.limit:
            return math.inf
        clipped_sums = np.unique(np.clip(np.add.outer(sums, values), low, high))
        largest = max(largest, len(sums) * len(values) * len(clipped_sums))
        sums = clipped_sums
    return largest


def _digits(tables: ConstraintTables, terms: Sequence[Term], base: int, max_digit: int) -> list[Term]:
    """Return two terms, a high and a low digit, for the sum of the terms minus their least values.

    A high digit above ``max_digit`` becomes ``max_digit``.
    """
    high = low = constant(0)
    for factor, x in terms:
        smallest = _ends(tables, (factor, x))[0]

        def moved(a: Integers, b: Integers, factor: int = factor, smallest: int = smallest) -> Integers:
            return a + factor * b - smallest

        carry = tables.define([low, x], lambda a, b, moved=moved: np.minimum(moved(a, b) // base, max_digit))
        low = tables.define([low, x], lambda a, b, moved=moved: moved(a, b) % base)
        high = carry if high.var < 0 else tables.define([high, carry], lambda a, b: np.minimum(a + b, max_digit))
    return [(base, high), (1, low)]
