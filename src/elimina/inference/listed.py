"""Writing listed factors: the values of their tuples, in time and memory that grow with the tuples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import TableList, rows_sort, rows_sorted
from elimina.inference.encode import Rule, write_factors
from elimina.planning.layout import Layout, field_bits, listing_table, section
from elimina.planning.plan import FactorLayout
from elimina.planning.steps import Factors
from elimina.table import Sense, Table, cell_numbers

Array = NDArray[Any]


class Written(NamedTuple):
    """Properties of a listed factor that was written.

    Attributes:
        ends: Smallest and largest allowed value of each table at the tuples; None if it allows none of them.
        range: Largest and smallest positive value (``products``).
        exponent: Power of two that was taken out (``products``).
        is_exact: True if no positive product left the normal range.
    """

    ends: list[tuple[float, float] | None]
    range: Array
    exponent: int
    is_exact: bool


def write_listed(
    factor: FactorLayout, tables: Sequence[Table], sense: Sense, rule: Rule, limit: int, arena: Array
) -> Written:
    """Write the join of tables to a listed factor's place.

    Args:
        factor: Layout of the factor.
        tables: Tables within its scope; one of them lists its tuples.
        sense: Sense of the tables.
        rule: Encoding of their values.
        limit: See ``write_factors``.
        arena: Arena of the factor.
    """
    place = section(arena, factor)
    table = listing_table(tables, factor.scope, sense)
    assert table is not None
    assert table.rows is not None
    if not len(table.rows):
        place.write(place.keys[:0], place.values[:0])
        return Written([None] * len(tables), np.zeros(2), 0, True)
    values: Array = np.empty(len(table.rows), dtype=arena.dtype)
    # The tuples as the values of one variable.
    line = FactorLayout(tuple(range(len(tables))), (0,), (len(values),), (1,), 0, len(values))
    own = TableList([Table((0,), _at(one, table.scope, table.rows)) for one in tables])
    found = write_factors(own, sense, rule, limit, Factors.packed([line]), values)
    is_allowed = values != _zero(rule, sense, limit)
    keys = _keys(place.layout, table.scope, table.rows[is_allowed])
    place.write(*_sorted(keys, values[is_allowed]))
    ends = own.ends(sense)
    if rule != "products":
        return Written(ends, np.zeros(2), 0, True)
    ranges, exponents, exact = found
    return Written(ends, ranges[0], int(exponents[0]), bool(exact[0]))


def _zero(rule: Rule, sense: Sense, limit: int) -> float:
    """Return the value of a forbidden assignment."""
    if rule in ("support", "products"):
        return 0
    if rule == "distances":
        return limit
    return math.inf if sense == "min-cost" else -math.inf


class ListedValues:
    """Values of a listed factor, to be changed in place.

    Args:
        arena: Arena of the factor.
        factor: Layout of the factor.

    Attributes:
        values: One for each of its tuples.
    """

    def __init__(self, arena: Array, factor: FactorLayout) -> None:
        self._place = section(arena, factor)
        self._keys, self.values = self._place.read()

    def at(self, variable: int, weights: Array) -> Array:
        """Return the weight of a variable's value in each tuple."""
        layout = self._place.layout
        at = layout.scope.index(variable)
        word, shift = layout.places[at]
        field = np.uint64((1 << field_bits(layout.sizes[at])) - 1)
        found: Array = weights[(self._keys[:, word] >> np.uint64(shift) & field).astype(np.int64)]
        return found

    def drop(self, zero: float) -> None:
        """Drop the tuples that are no longer allowed."""
        is_left = self.values != zero
        self._place.write(self._keys[is_left], self.values[is_left])


def _at(table: Table, scope: Sequence[int], rows: NDArray[np.int32]) -> Array:
    """Return a table's values at assignments of a scope that contains its own."""
    axes = [scope.index(v) for v in table.scope]
    if table.rows is None:
        found: Array = table.values[tuple(rows[:, axis] for axis in axes)]
        return found
    if table.rows is rows:
        return table.values
    listed = cell_numbers(table.rows, table.sizes, range(len(axes)))
    order = np.argsort(listed, kind="stable")
    listed = listed[order]
    wanted = cell_numbers(rows[:, axes], table.sizes, range(len(axes)))
    values = np.full(len(rows), table.default, dtype=table.values.dtype)
    places = np.searchsorted(listed, wanted)
    hits = np.flatnonzero(places < len(listed))
    hits = hits[listed[places[hits]] == wanted[hits]]
    values[hits] = table.values[order[places[hits]]]
    return values


def _keys(layout: Layout, scope: Sequence[int], rows: NDArray[np.int32]) -> NDArray[np.uint64]:
    keys = np.zeros((len(rows), layout.words), dtype=np.uint64)
    for v, (word, shift) in zip(layout.scope, layout.places, strict=True):
        keys[:, word] |= rows[:, scope.index(v)].astype(np.uint64) << np.uint64(shift)
    return keys


def _sorted(keys: NDArray[np.uint64], values: Array) -> tuple[NDArray[np.uint64], Array]:
    if rows_sorted(keys, 1):
        return keys, values
    return rows_sort(keys, values, 1)[:2]
