"""Places of tables in the arena, keys of sparse tables, and listed factors, whose places hold the allowed tuples.

A table that lists some tuples and allows all others is written out by a plan. A large one first loses values of its
variables that another value can stand for. If it is still large, it becomes a chain of tables: auxiliary variables hold
the state of an automaton that reads the scope from left to right.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import UnsupportedError
from elimina.model import Model, Variable
from elimina.planning.machine import speeds
from elimina.planning.plan import FactorLayout, Plan
from elimina.planning.prepare import Problem
from elimina.table import LARGEST_NUMBER, Sense, Table, forbidden_value

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


_WRITTEN_CELLS = 1 << 20
"""Cells up to which a table that lists its tuples is left to the plan, which writes it out in about a millisecond."""

_CHAIN_CELLS = 1 << 26
"""Cells from which a table becomes a chain, whose variables a given order cannot name: written out, it takes 0.1 s."""

_MOST_LINKS = 200_000
"""Transitions for each variable of a chain, whose tables list them."""


def with_small_tables(model: Model, observed: Mapping[int, int], is_optimum: bool) -> tuple[Model, dict[int, int]]:
    """Return a model with the same answer whose tables that list some tuples, and allow all others, are small.

    Tables that forbid all other tuples are never written out, and stay as they are.

    Args:
        model: A model.
        observed: Variable -> index of its observed value.
        is_optimum: True if only the best assignment counts.

    Returns:
        The model, whose variables are those of the given one, perhaps with fewer values, and then auxiliary ones; and
        the observed values, with those of variables whose tables stand alone.
    """
    if not any(_is_written(table, model.sense, _WRITTEN_CELLS) for table in model.factors):
        return model, dict(observed)
    values = dict(observed)
    if is_optimum:
        model = _with_fewer_values(model, observed)
        values.update(best_alone(model, observed))
    return _with_chains(model, values), values


def _is_written(table: Table, sense: Sense, most: int) -> bool:
    """Return whether a plan would write out a table of more than so many cells."""
    if table.rows is None or table.cells <= most:
        return False
    return table.default != forbidden_value(sense, table.values.dtype)


def _with_fewer_values(model: Model, observed: Mapping[int, int]) -> Model:
    """Leave out values of the variables of large tables that another one can stand for, which becomes the last one.

    These are values that no table lists, if no other table has them but one over the variable alone: its best one
    stands for the others.
    """
    written = [table for table in model.factors if _is_written(table, model.sense, _WRITTEN_CELLS)]
    free = {v for table in written for v in table.scope if v not in observed}
    users: dict[int, list[Table]] = {v: [] for v in free}
    for table in model.factors:
        for v in free.intersection(table.scope):
            users[v].append(table)
    kept = {v: values for v in free if (values := _needed_values(model, v, users[v])) is not None}
    if not kept:
        return model
    variables = [
        Variable(own.name, len(kept[v]), [own.state(x) for x in kept[v].tolist()]) if v in kept else own
        for v, own in enumerate(model.variables)
    ]
    factors = [table if kept.keys().isdisjoint(table.scope) else _of_values(table, kept) for table in model.factors]
    bound = model.upper_bound
    return Model(variables, factors, sense=model.sense, constant=model.constant, upper_bound=bound, name=model.name)


def _needed_values(model: Model, v: int, tables: Sequence[Table]) -> NDArray[np.int64] | None:
    """Return the values that are listed, and then the best of the others; None if all are needed."""
    size, own = model.sizes[v], [table for table in tables if table.rows is None]
    listed = [table.rows[:, table.scope.index(v)] for table in tables if table.rows is not None]
    values = np.unique(np.concatenate(listed)).astype(np.int64)
    if len(values) >= size - 1 or len(own) > 1 or any(len(table.scope) > 1 for table in own):
        return None
    if own:
        others = np.setdiff1d(np.arange(size), values)
        costs = own[0].values[others]
        best = int(others[costs.argmin() if model.sense == "min-cost" else costs.argmax()])
    else:
        best = _first_gap(values)
    return np.append(values, best)


def _first_gap(sorted_numbers: NDArray[np.int64]) -> int:
    """Return the least number from 0 on that is not among sorted ones."""
    gaps = np.flatnonzero(sorted_numbers != np.arange(len(sorted_numbers)))
    return int(gaps[0]) if len(gaps) else len(sorted_numbers)


def _of_values(table: Table, kept: Mapping[int, NDArray[np.int64]]) -> Table:
    """Return a table over fewer values of its variables."""
    if table.rows is None:
        return Table(table.scope, table.values[kept[table.scope[0]]])
    sizes = [len(kept[v]) if v in kept else size for v, size in zip(table.scope, table.sizes, strict=True)]
    rows = table.rows.copy()
    for axis, v in enumerate(table.scope):
        if v in kept:
            rows[:, axis] = np.searchsorted(kept[v][:-1], rows[:, axis])
    return Table(table.scope, table.values, sizes=sizes, rows=rows, default=table.default)


def best_alone(model: Model, observed: Mapping[int, int]) -> dict[int, int]:
    """Return the best values of the variables of each large table that stands alone.

    None of these is observed, or in another table.
    """
    large = [
        table
        for table in model.factors
        if _is_written(table, model.sense, _WRITTEN_CELLS) and table.cells <= LARGEST_NUMBER
    ]
    users = Counter(v for table in model.factors for v in table.scope) if large else Counter()
    users.update(observed.keys())
    best: dict[int, int] = {}
    for table in large:
        if all(users[v] == 1 for v in table.scope):
            best.update(zip(table.scope, _best_tuple(table, model.sense), strict=True))
    return best


def _best_tuple(table: Table, sense: Sense) -> list[int]:
    """Return the best tuple of a table that lists some and allows the others."""
    assert table.rows is not None
    assert table.default is not None
    sign = 1 if sense == "min-cost" else -1
    values = sign * table.values
    place = int(values.argmin()) if len(values) else -1
    if len(table.rows) < table.cells and (place < 0 or sign * table.default < values[place]):
        listed = np.sort(np.ravel_multi_index(tuple(table.rows.astype(np.int64).T), table.sizes))
        return [int(x) for x in np.unravel_index(_first_gap(listed), table.sizes)]
    return [int(x) for x in table.rows[place]]


def _with_chains(model: Model, observed: Mapping[int, int]) -> Model:
    """Return a model with chains instead of the tables that are still large."""
    variables, factors = list(model.variables), []
    for table in model.factors:
        free = [size for v, size in zip(table.scope, table.sizes, strict=True) if v not in observed]
        is_large = len(free) > 1 and math.prod(free) > _CHAIN_CELLS and _is_written(table, model.sense, _CHAIN_CELLS)
        chain = _chain_of(table, model.sense, len(variables)) if is_large else None
        if chain is None:
            factors.append(table)
            continue
        tables, sizes = chain
        factors += tables
        names = (name for number in itertools.count() if model.find(name := f"_s{number}") is None)
        taken = len(variables) - len(model.variables)
        variables += map(Variable, itertools.islice(names, taken, taken + len(sizes)), sizes)
    if len(variables) == len(model.variables):
        return model
    bound = model.upper_bound
    return Model(variables, factors, sense=model.sense, constant=model.constant, upper_bound=bound, name=model.name)


def _chain_of(table: Table, sense: Sense, first: int) -> tuple[list[Table], list[int]] | None:
    """Return the tables of a chain, and its variables' sizes; None if it would have too many transitions.

    A state is a beginning of listed tuples, or the last one, from which none is left.

    Args:
        table: A table that lists some tuples.
        sense: Sense of its model.
        first: Index of the chain's first variable.
    """
    assert table.rows is not None
    assert table.default is not None
    rows, dtype = table.rows.astype(np.int64), table.values.dtype
    neutral, worst = (1 if sense == "probability" else 0), forbidden_value(sense, dtype)
    states, before = np.zeros(len(rows), dtype=np.int64), 1
    tables: list[Table] = []
    sizes: list[int] = []
    for place, (v, size) in enumerate(zip(table.scope[:-1], table.sizes[:-1], strict=True)):
        if before * size > _MOST_LINKS:
            return None
        steps, following = np.unique(states * size + rows[:, place], return_inverse=True)
        targets = np.full(before * size, len(steps))
        targets[steps] = np.arange(len(steps))
        links = np.stack([*np.divmod(np.arange(before * size), size), targets], axis=1)
        scope, ends = [first + place - 1, v, first + place], [before, size, len(steps) + 1]
        if place == 0:
            scope, ends, links = scope[1:], ends[1:], links[:, 1:]
        values = np.full(len(links), neutral, dtype=dtype)
        tables.append(Table(scope, values, sizes=ends, rows=links, default=worst))
        sizes.append(len(steps) + 1)
        states, before = following, len(steps) + 1
    if before * table.sizes[-1] > _MOST_LINKS:
        return None
    last = np.full((before, table.sizes[-1]), table.default, dtype=dtype)
    last[states, rows[:, -1]] = table.values
    tables.append(Table((first + len(sizes) - 1, table.scope[-1]), last))
    return tables, sizes
