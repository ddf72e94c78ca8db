"""Rewriting of models with large listed tables or large domains to smaller models with the same answer.

Plans expand tables that list some tuples and allow all others; bounds and search expand all tables. Therefore, values
of variables in large tables are merged first if no table distinguishes them (``merging``). A table that is still large
is replaced by several small ones. If it allows unlisted tuples, these form a chain: auxiliary variables represent the
state of an automaton that reads the scope from left to right. If it forbids unlisted tuples, they form a star: an
auxiliary variable is the number of the listed tuple (the hidden-variable encoding: F. Rossi, C. Petrie, V. Dhar, "On
the equivalence of constraint satisfaction problems", ECAI 1990).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elimina.model.model import Model
from elimina.model.table import LARGEST_NUMBER, Sense, Table, forbidden_value
from elimina.model.variable import Variable
from elimina.problem.merging import BEST, Merged, MergedModel, Purpose, first_gap, merge_values

MAX_WRITTEN_CELLS = 1 << 20
"""Largest number of cells at which a listed table is not replaced: a plan expands it in about a millisecond."""

MIN_LARGE_DOMAIN = 1 << 12
"""Number of values above which a variable's values are merged, even if its tables are small."""

_MAX_CHAIN_CELLS = 1 << 22
"""Number of cells above which tables become chains: expanding so many cells takes 10 ms. A table of mostly forbidden
tuples is not replaced if 64 bits can number its cells, because lists are then faster."""

_MAX_LINKS, _LINK_SHARE = 1 << 22, 1 / 256
"""Largest number of transitions in a chain's table, and their largest share of the replaced table's cells. Longer
chains would not save time."""


class Rewritten(NamedTuple):
    """A model with the same answer as the original one.

    Attributes:
        model: The model: the original variables, some of them with fewer values, followed by auxiliary variables.
        observed: The observed values, and the best values of variables whose tables were solved separately.
        merged: The variables with fewer values.
    """

    model: Model
    observed: dict[int, int]
    merged: Mapping[int, Merged]


def is_rewritten(model: Model) -> bool:
    """Return whether rewriting could change a model; the check is quick, because most models are not changed."""
    return max(model.sizes, default=1) > MIN_LARGE_DOMAIN or any(
        table.rows is not None and table.cells > MAX_WRITTEN_CELLS for table in model.factors
    )


def with_small_tables(
    model: Model,
    observed: Mapping[int, int],
    purpose: Purpose,
    maximised: Sequence[int] = (),
    whole: Collection[int] = (),
) -> Rewritten:
    """Return a model with small tables and the same answer.

    Args:
        model: A model.
        observed: Variable -> index of its observed value.
        purpose: Use of the values of eliminated variables.
        maximised: Variables of which only the best value counts, regardless of ``purpose``.
        whole: Variables whose values are all kept.
    """
    if not is_rewritten(model):
        return Rewritten(model, dict(observed), {})
    reduced = with_needed_values(model, observed, purpose, maximised, whole)
    model, values = reduced.model, dict(observed)
    if purpose == BEST:
        values.update(solved_alone(model, observed))
    counted = {v: merged.multiplicity for v, merged in reduced.merged.items() if merged.multiplicity > 1}
    return Rewritten(_with_auxiliary_variables(model, values, counted, purpose), values, reduced.merged)


def with_needed_values(
    model: Model,
    observed: Mapping[int, int],
    purpose: Purpose,
    maximised: Sequence[int] = (),
    whole: Collection[int] = (),
) -> MergedModel:
    """Return a model with the same answer and variables, in which variables of large tables have fewer values.

    The arguments are those of ``with_small_tables``.
    """
    large = {v for table in model.factors if _is_large(table) for v in table.scope}
    large.update(v for v, size in enumerate(model.sizes) if size > MIN_LARGE_DOMAIN)
    large.difference_update(observed, whole)
    return merge_values(model, large, purpose, maximised)


def _is_large(table: Table) -> bool:
    return table.rows is not None and table.cells > MAX_WRITTEN_CELLS


def _is_written(table: Table, sense: Sense, max_cells: int) -> bool:
    """Return whether a table has more than ``max_cells`` cells, and a plan would expand it."""
    if table.rows is None or table.cells <= max_cells:
        return False
    return table.default != forbidden_value(sense, table.values.dtype)


def solved_alone(model: Model, observed: Mapping[int, int]) -> dict[int, int]:
    """Return the best values of the variables of each large isolated table.

    A table is isolated if none of its variables is observed or in another table.
    """
    large = [
        table
        for table in model.factors
        if _is_written(table, model.sense, MAX_WRITTEN_CELLS) and table.cells <= LARGEST_NUMBER
    ]
    users = Counter(v for table in model.factors for v in table.scope) if large else Counter()
    users.update(observed.keys())
    best: dict[int, int] = {}
    for table in large:
        if all(users[v] == 1 for v in table.scope):
            best.update(zip(table.scope, _best_tuple(table, model.sense), strict=True))
    return best


def _best_tuple(table: Table, sense: Sense) -> list[int]:
    """Return the best tuple of a table that lists some tuples and allows all others."""
    assert table.rows is not None
    assert table.default is not None
    sign = 1 if sense == "min-cost" else -1
    values = sign * table.values
    position = int(values.argmin()) if len(values) else -1
    if len(table.rows) < table.cells and (position < 0 or sign * table.default < values[position]):
        # NumPy's own functions for indices of cells support at most 64 axes.
        strides = np.cumprod([1, *table.sizes[:0:-1]], dtype=np.int64)[::-1]
        gap = first_gap(np.sort(table.rows.astype(np.int64) @ strides))
        return [int(gap // stride % size) for stride, size in zip(strides, table.sizes, strict=True)]
    return [int(x) for x in table.rows[position]]


def _with_auxiliary_variables(
    model: Model, observed: Mapping[int, int], counted: Mapping[int, int], purpose: Purpose
) -> Model:
    """Return a model with small tables in place of large ones; a merged value counts as all values that it represents.

    Args:
        model: A model.
        observed: Variable -> index of its observed value.
        counted: Variable -> number of assignments that its last value represents.
        purpose: Use of the values; for counts, tables without forbidden tuples are not replaced.
    """
    variables, factors = list(model.variables), []
    names = (name for number in itertools.count() if model.find(name := f"_s{number}") is None)
    for table in model.factors:
        is_needed = not purpose.counts or _forbids(table, model.sense)
        replacement = _replacement(table, model.sense, observed, len(variables)) if is_needed else None
        if replacement is None:
            factors.append(table)
            continue
        tables, sizes = replacement
        factors += tables
        variables += map(Variable, itertools.islice(names, len(sizes)), sizes)
    for v, number in counted.items():
        tables, sizes = _counting_chain(v, model.sizes[v], number, model.sense, len(variables))
        factors += tables
        variables += map(Variable, itertools.islice(names, len(sizes)), sizes)
    if len(variables) == len(model.variables):
        return model
    bound = model.upper_bound
    return Model(variables, factors, sense=model.sense, constant=model.constant, upper_bound=bound, name=model.name)


def _forbids(table: Table, sense: Sense) -> bool:
    """Return whether a listed table forbids at least one tuple."""
    worst = forbidden_value(sense, table.values.dtype)
    return table.default == worst or bool((table.values == worst).any())


def _replacement(
    table: Table, sense: Sense, observed: Mapping[int, int], first: int
) -> tuple[list[Table], list[int]] | None:
    """Return the tables that replace a large table, and the sizes of their auxiliary variables; None: not replaced.

    Args:
        table: Any table.
        sense: Sense of its model.
        observed: Variable -> index of its observed value.
        first: Index of the first auxiliary variable.
    """
    free = [size for v, size in zip(table.scope, table.sizes, strict=True) if v not in observed]
    cells = math.prod(free)
    if table.rows is None or len(free) <= 1 or cells <= _MAX_CHAIN_CELLS:
        return None
    if _is_written(table, sense, _MAX_CHAIN_CELLS):
        return _chain_of(table, sense, first)
    return _star_of(table, sense, first) if cells > LARGEST_NUMBER else None


def _star_of(table: Table, sense: Sense, tuple_number: int) -> tuple[list[Table], list[int]]:
    """Return the tables of a star, and the size of its auxiliary variable: the number of the listed tuple.

    One table has the values of the tuples; for each variable of the scope, one table lists its value in each tuple.

    Args:
        table: A table that forbids all unlisted tuples.
        sense: Sense of its model.
        tuple_number: Index of the auxiliary variable.
    """
    assert table.rows is not None
    dtype = table.values.dtype
    neutral, worst = (1 if sense == "probability" else 0), forbidden_value(sense, dtype)
    count = len(table.rows)
    # One value stays even if the table lists no tuple, because a domain must not be empty.
    values = table.values if count else np.array([worst], dtype=dtype)
    numbers, neutrals = np.arange(count), np.full(count, neutral, dtype=dtype)
    tables = [Table([tuple_number], values)]
    for v, size, column in zip(table.scope, table.sizes, table.rows.T, strict=True):
        rows = np.stack([column, numbers], axis=1)
        tables.append(Table([v, tuple_number], neutrals, sizes=[size, len(values)], rows=rows, default=worst))
    return tables, [len(values)]


def _chain_of(table: Table, sense: Sense, first: int) -> tuple[list[Table], list[int]] | None:
    """Return the tables of a chain, and the sizes of its variables; None if there would be too many transitions.

    A state is a prefix of listed tuples; the last state represents all other prefixes.

    Args:
        table: A table that lists some tuples.
        sense: Sense of its model.
        first: Index of the chain's first variable.
    """
    assert table.rows is not None
    assert table.default is not None
    rows, dtype = table.rows.astype(np.int64), table.values.dtype
    neutral, worst = (1 if sense == "probability" else 0), forbidden_value(sense, dtype)
    states, count = np.zeros(len(rows), dtype=np.int64), 1
    max_links = _LINK_SHARE * min(_MAX_LINKS / _LINK_SHARE, table.cells)
    tables: list[Table] = []
    sizes: list[int] = []
    for position, (v, size) in enumerate(zip(table.scope[:-1], table.sizes[:-1], strict=True)):
        if count * size > max_links:
            return None
        steps, next_states = np.unique(states * size + rows[:, position], return_inverse=True)
        targets = np.full(count * size, len(steps))
        targets[steps] = np.arange(len(steps))
        links = np.stack([*np.divmod(np.arange(count * size), size), targets], axis=1)
        scope, ends = [first + position - 1, v, first + position], [count, size, len(steps) + 1]
        if position == 0:
            scope, ends, links = scope[1:], ends[1:], links[:, 1:]
        values = np.full(len(links), neutral, dtype=dtype)
        tables.append(Table(scope, values, sizes=ends, rows=links, default=worst))
        sizes.append(len(steps) + 1)
        states, count = next_states, len(steps) + 1
    if count * table.sizes[-1] > max_links:
        return None
    final = np.full((count, table.sizes[-1]), table.default, dtype=dtype)
    final[states, rows[:, -1]] = table.values
    tables.append(Table((first + len(sizes) - 1, table.scope[-1]), final))
    return tables, sizes


_OFF, _EQUAL, _BELOW = 0, 1, 2
"""States of a chain that reads a number from its highest bit on. Off: the variable has another value; equal: the bits
so far are those of the bound; below: they are below the bound.

The state below the bound also stores the last bit, so that each number corresponds to exactly one path.
"""


def _counting_chain(v: int, size: int, number: int, sense: Sense, first: int) -> tuple[list[Table], list[int]]:
    """Return tables that count a variable's last value ``number`` times, and the sizes of their auxiliary variables.

    For the last value, the auxiliary variables can be the bits of any number from 0 to ``number`` - 1; for each other
    value, only one assignment is allowed.

    Args:
        v: The variable.
        size: Number of its values.
        number: Number of assignments.
        sense: Sense of the model.
        first: Index of the chain's first variable.
    """
    allowed, forbidden = (1, 0) if sense == "probability" else (0, forbidden_value(sense, np.int64))
    bits = [int(bit) for bit in f"{number - 1:b}"]
    tables = []
    for position, bit in enumerate(bits):
        before = [_OFF, _EQUAL, _BELOW, _BELOW] if position else [_OFF] * (size - 1) + [_EQUAL]
        following = {_OFF: [_OFF], _BELOW: [_BELOW, _BELOW + 1], _EQUAL: [_EQUAL, _BELOW] if bit else [_EQUAL]}
        links = [(state, after) for state, kind in enumerate(before) for after in following[kind]]
        scope, ends = (v if position == 0 else first + position - 1, first + position), (len(before), _BELOW + 2)
        tables.append(Table(scope, [allowed] * len(links), sizes=ends, rows=links, default=forbidden))
    return tables, [_BELOW + 2] * len(bits)
