"""Factors stored as lists of allowed tuples: the arena contains sorted keys and values instead of all cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.model.table import Sense, Table, forbidden_value
from elimina.planning.key_layout import MAX_KEY_WORDS, WORD, KeyLayout, field_bits
from elimina.planning.machine import speeds
from elimina.planning.plan import Plan
from elimina.planning.step import FactorLayout
from elimina.problem.preparation import Problem

Array = NDArray[Any]

_VECTOR_BYTES = 16
_ALIGNMENT_BYTES = 256


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


MIN_LISTED_CELLS = 1 << 16
"""Least number of cells of a listed factor: a smaller factor is fast and takes little memory with all its cells."""

_LISTED_SHARE = 0.5
"""Largest size of a factor's list relative to the bytes of all its cells."""

_HEAD = 8
"""Bytes that store the number of tuples."""


class Section(NamedTuple):
    """Writable arrays over a listed factor's part of an arena.

    Attributes:
        layout: Layout of the keys.
        used: Array of one element: the number of tuples in use.
        keys: uint64 of shape (tuples, ``layout.words``), in ascending order; the first ``used`` are in use.
        values: Shape (tuples,).
    """

    layout: KeyLayout
    used: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: Array

    def write(self, keys: NDArray[np.uint64], values: Array) -> None:
        """Replace the tuples."""
        self.used[0] = len(values)
        self.keys[: len(values)] = keys
        self.values[: len(values)] = values

    def read(self) -> tuple[NDArray[np.uint64], Array]:
        """Return the keys and values in use."""
        count = int(self.used[0])
        return self.keys[:count], self.values[:count]


def section(arena: Array, factor: FactorLayout) -> Section:
    """Return writable arrays over a listed factor's part of an arena."""
    assert factor.tuples is not None
    layout = layout_of(factor)
    words = arena[factor.offset : factor.offset + factor.span].view(np.uint8)
    keys = _HEAD + 8 * layout.words * factor.tuples
    values = words[keys : keys + arena.itemsize * factor.tuples].view(arena.dtype)
    return Section(
        layout,
        words[:_HEAD].view(np.int64),
        words[_HEAD:keys].view(np.uint64).reshape(factor.tuples, layout.words),
        values,
    )


def layout_of(factor: FactorLayout) -> KeyLayout:
    """Return the layout of a listed factor's keys; the variable to eliminate first has the lowest field."""
    return KeyLayout.of(factor.scope[::-1], factor.sizes[::-1])


def listing_table(tables: Sequence[Table], scope: Sequence[int], sense: Sense) -> Table | None:
    """Return the smallest table that lists all allowed tuples of a scope; None if no table does."""
    lists = [
        table
        for table in tables
        if table.rows is not None
        and len(table.scope) == len(scope)
        and table.default == forbidden_value(sense, table.values.dtype)
    ]
    return min(lists, key=lambda table: len(table.values), default=None)


def listed_tuples(problem: Problem, plan: Plan) -> list[int | None]:
    """Return the largest number of tuples of each factor of a plan; None for factors with all cells."""
    return [_tuples(problem, factor, plan.itemsize) for factor in plan.factors]


def seconds_written(problem: Problem) -> float:
    """Return the estimated time of expanding listed tables to all cells."""
    cells = sum(
        table.cells
        for table in problem.tables
        if table.rows is not None
        and table.cells >= MIN_LISTED_CELLS
        and len(table.values) < _LISTED_SHARE * table.cells
        and table.default == forbidden_value(problem.model.sense, table.values.dtype)
    )
    return cells / speeds().encoded


def _tuples(problem: Problem, factor: FactorLayout, itemsize: int) -> int | None:
    tables = [problem.tables[member] for member in factor.members]
    if all(table.rows is None for table in tables) or factor.cells < MIN_LISTED_CELLS:
        return None
    # The number of tuples of the whole table also limits the tables of slices: a restricted table has no more tuples.
    widest = max(tables, key=lambda table: len(table.scope))
    listing = listing_table(tables, widest.scope, problem.model.sense)
    if listing is None or sum(map(field_bits, factor.sizes)) > WORD * (MAX_KEY_WORDS - 1):
        return None
    tuples = len(listing.values)
    takes = _span(factor, tuples, itemsize) * itemsize
    return tuples if takes <= _LISTED_SHARE * factor.cells * itemsize else None


def _span(factor: FactorLayout, tuples: int, itemsize: int) -> int:
    return -(-(_HEAD + (8 * layout_of(factor).words + itemsize) * tuples) // itemsize)


def with_listed(plan: Plan, tuples: Sequence[int | None]) -> Plan:
    """Return a plan with some factors as lists, for sparse steps.

    The offsets of messages do not change, because sparse steps do not use them.

    Args:
        plan: Plan with all cells of all factors.
        tuples: Largest number of tuples of each factor; None for factors with all cells.
    """
    if all(max_tuples is None for max_tuples in tuples):
        return plan
    # Python integers are used instead of the core's ``Arena``: the spans of a huge plan may exceed 64 bits in total.
    item, height, factors = plan.itemsize, 0, []
    for factor, max_tuples in zip(plan.factors, tuples, strict=True):
        span = factor.span if max_tuples is None else _span(factor, max_tuples, item)
        unit = _ALIGNMENT_BYTES if span * item >= _ALIGNMENT_BYTES else _VECTOR_BYTES
        offset = _round_up(height, unit // item)
        factors.append(factor._replace(offset=offset, span=span, tuples=max_tuples))
        height = offset + _round_up(max(span, 1), _VECTOR_BYTES // item)
    return plan._replace(factors=tuple(factors), factor_cells=height)


def cells_span(factor: FactorLayout) -> int:
    """Return the number of elements that all cells of a listed factor would take, including padding."""
    return factor.strides[0] * factor.sizes[0]
