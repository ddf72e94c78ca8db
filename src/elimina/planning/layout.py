"""Places of tables in the arena, keys of sparse tables, and listed factors, whose places hold the allowed tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import UnsupportedError
from elimina.planning.machine import speeds
from elimina.planning.plan import FactorLayout, Plan
from elimina.planning.prepare import Problem
from elimina.table import Sense, Table, forbidden_value

WORD = 64
MOST_WORDS = 4
DTYPES = ("int32", "int64", "float32", "float64", "uint64")
"""Number types of the values of sparse tables."""


class Layout(NamedTuple):
    """Place of each variable's value index in a key of 64-bit words; no field is cut by the end of a word.

    Attributes:
        scope: Variables, the most significant one first; the variable that is eliminated next belongs to the end.
        sizes: Domain sizes of these variables.
        places: Word (0: the most significant one) and lowest bit of each field.
        words: Words of a key.
    """

    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    words: int

    @staticmethod
    def of(scope: Sequence[int], sizes: Sequence[int]) -> Layout:
        """Pack fields as tightly as words allow.

        Raises:
            UnsupportedError: The key would have more than ``MOST_WORDS`` words.
        """
        word, shift = 0, 0
        backwards = []
        for size in reversed(sizes):
            bits = field_bits(size)
            if shift + bits > WORD:
                word, shift = word + 1, 0
            backwards.append((word, shift))
            shift += bits
        if word >= MOST_WORDS:
            bits = sum(map(field_bits, sizes))
            raise UnsupportedError(
                f"a sparse table over {len(scope)} variables needs {bits} bits a tuple, more than {MOST_WORDS * WORD}: "
                "use dense tables or a smaller bucket size"
            )
        places = tuple((word - w, s) for w, s in reversed(backwards))
        return Layout(tuple(scope), tuple(sizes), places, word + 1)

    def size(self, variable: int) -> int:
        """Return the domain size of a variable of the scope."""
        return self.sizes[self.scope.index(variable)]

    def low(self) -> int:
        """Return the bits of the last variable's field, which is the lowest one of the last word."""
        return (1 << field_bits(self.sizes[-1])) - 1

    def mask(self, variables: Iterable[int]) -> NDArray[np.uint64]:
        """Return the bits of some variables' fields, a number for each word."""
        words = [0] * self.words
        for variable in variables:
            at = self.scope.index(variable)
            word, shift = self.places[at]
            words[word] |= ((1 << field_bits(self.sizes[at])) - 1) << shift
        return np.array(words, dtype=np.uint64)

    def without_last(self) -> Layout:
        """Return the layout of the table after the last variable is eliminated: its bits are zero."""
        return Layout(self.scope[:-1], self.sizes[:-1], self.places[:-1], self.words)

    def segments(self, target: Layout) -> NDArray[np.int64]:
        """Return the moves of bits to another layout: int64 of (n, 5), see ``SegmentWord`` in ``elimina/rows.hpp``."""
        merged: list[list[int]] = []
        for at in sorted(range(len(self.scope)), key=lambda at: self.places[at]):
            bits = field_bits(self.sizes[at])
            if not bits:
                continue
            (word, shift), (to_word, to_shift) = self.places[at], target.places[target.scope.index(self.scope[at])]
            last = merged[-1] if merged else None
            after = [last[0], last[1] + last[2], last[3], last[4] + last[2]] if last else []
            if last and after == [word, shift, to_word, to_shift] and last[2] + bits < WORD:
                last[2] += bits
            else:
                merged.append([word, shift, bits, to_word, to_shift])
        found = np.array(merged, dtype=np.int64).reshape(-1, 5)
        found[:, 2] = [signed((1 << bits) - 1) for bits in found[:, 2].tolist()]
        return found

    def terms(self, scope: Sequence[int], strides: Sequence[int]) -> NDArray[np.int64]:
        """Return the terms of a key's dense cell: int64, shape (n, 4), see ``TermWord`` in ``elimina/rows.hpp``."""
        merged: list[list[int]] = []
        where = [self.scope.index(v) for v in scope]
        fields = [(*self.places[at], self.sizes[at], stride) for at, stride in zip(where, strides, strict=True)]
        for word, shift, size, stride in sorted(fields):
            bits = field_bits(size)
            last = merged[-1] if merged else None
            after = [last[0], last[1] + last[2], last[3] << last[2]] if last else []
            if last and after == [word, shift, stride] and last[2] + bits < WORD:
                last[2] += bits
            elif bits:
                merged.append([word, shift, bits, stride])
        found = np.array(merged, dtype=np.int64).reshape(-1, 4)
        found[:, 2] = [signed((1 << bits) - 1) for bits in found[:, 2].tolist()]
        return found


def field_bits(size: int) -> int:
    """Return the bits of a field for value indices below ``size``."""
    return max(0, size - 1).bit_length()


def signed(word: int) -> int:
    """Return a 64-bit word as the signed number of the same bits."""
    return word - (1 << WORD) if word >> (WORD - 1) else word


_VECTOR_BYTES = 16
_ALIGNMENT_BYTES = 256


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


Array = NDArray[Any]


def view_of(arena: Array, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """Return a table of an arena as an array of these sizes, from its place and strides in elements."""
    item = arena.itemsize
    return np.ndarray(sizes, arena.dtype, arena, offset * item, [stride * item for stride in strides])


FEWEST_CELLS = 1 << 16
"""Cells of the smallest factor that is listed: smaller ones are quickly looked up, and take little memory."""

_LISTED_SHARE = 0.5
"""Share of the bytes of its cells that the tuples of a listed factor take at most."""

_HEAD = 8
"""Bytes of the number of tuples."""


class Section(NamedTuple):
    """A listed factor's place in an arena, as arrays that can be written to.

    Attributes:
        layout: Layout of the keys.
        used: One number: how many of the tuples there are.
        keys: uint64 of shape (tuples, ``layout.words``), ascending; the first ``used`` are in use.
        values: Shape (tuples,).
    """

    layout: Layout
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
    """Return a listed factor's place in an arena."""
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


def layout_of(factor: FactorLayout) -> Layout:
    """Return the layout of a listed factor's keys: the variable that is eliminated first is the lowest field."""
    return Layout.of(factor.scope[::-1], factor.sizes[::-1])


def listing_table(tables: Sequence[Table], scope: Sequence[int], sense: Sense) -> Table | None:
    """Return the listed table of a scope with the fewest tuples (all others are forbidden); None if there is none."""
    lists = [
        table
        for table in tables
        if table.rows is not None
        and len(table.scope) == len(scope)
        and table.default == forbidden_value(sense, table.values.dtype)
    ]
    return min(lists, key=lambda table: len(table.values), default=None)


def listed_tuples(problem: Problem, plan: Plan) -> list[int | None]:
    """Return the most tuples of each factor of a plan; None for a factor that is written out."""
    return [_tuples(problem, factor, plan.itemsize) for factor in plan.factors]


def seconds_written(problem: Problem) -> float:
    """Return the estimated time in which the tables that may be listed are written out."""
    cells = sum(
        table.cells
        for table in problem.tables
        if table.rows is not None
        and table.cells >= FEWEST_CELLS
        and len(table.values) < _LISTED_SHARE * table.cells
        and table.default == forbidden_value(problem.model.sense, table.values.dtype)
    )
    return cells / speeds().encoded


def _tuples(problem: Problem, factor: FactorLayout, itemsize: int) -> int | None:
    tables = [problem.tables[member] for member in factor.members]
    if all(table.rows is None for table in tables) or factor.cells < FEWEST_CELLS:
        return None
    # Slices restrict the table; it then has no more tuples than before.
    widest = max(tables, key=lambda table: len(table.scope))
    found = listing_table(tables, widest.scope, problem.model.sense)
    if found is None or sum(map(field_bits, factor.sizes)) > WORD * (MOST_WORDS - 1):
        return None
    tuples = len(found.values)
    takes = _span(factor, tuples, itemsize) * itemsize
    return tuples if takes <= _LISTED_SHARE * factor.cells * itemsize else None


def _span(factor: FactorLayout, tuples: int, itemsize: int) -> int:
    return -(-(_HEAD + (8 * layout_of(factor).words + itemsize) * tuples) // itemsize)


def with_listed(plan: Plan, tuples: Sequence[int | None]) -> Plan:
    """Lay a plan's factors out again, some of them listed; messages keep their places and are for rows alone.

    Args:
        plan: With all factors written out.
        tuples: Most tuples of each factor; None for one that is written out.
    """
    if all(most is None for most in tuples):
        return plan
    # Not by ``Arena``: the spans of a plan that no machine holds may add up to more than 64 bits.
    item, height, factors = plan.itemsize, 0, []
    for factor, most in zip(plan.factors, tuples, strict=True):
        span = factor.span if most is None else _span(factor, most, item)
        unit = _ALIGNMENT_BYTES if span * item >= _ALIGNMENT_BYTES else _VECTOR_BYTES
        offset = _round_up(height, unit // item)
        factors.append(factor._replace(offset=offset, span=span, tuples=most))
        height = offset + _round_up(max(span, 1), _VECTOR_BYTES // item)
    return plan._replace(factors=tuple(factors), factor_cells=height)


def cells_span(factor: FactorLayout) -> int:
    """Return the elements that a listed factor's cells would take, padding included."""
    return factor.strides[0] * factor.sizes[0]
