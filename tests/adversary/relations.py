"""Changes of a model that keep its answers, or change them by a term or a factor."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable

LARGEST_TABLE = 100_000
"""Cells of a table that a relation writes out."""

INT_LIMIT = 2**40
"""Largest magnitude of integer costs that a relation changes."""


class Changed(NamedTuple):
    """A changed model, and the relation of its answers to those of the original.

    Attributes:
        model: The changed model.
        states: Name of a variable -> number of the original state of each of its states; None: all are as they were.
        shift: Summand of the objective: a cost, or a natural logarithm.
        factor: Factor of costs, applied before the shift.
    """

    model: Model
    states: dict[str, list[int]] | None = None
    shift: float = 0
    factor: int = 1


def permute_variables(model: Model, draws: random.Random) -> Changed:
    """Permute the variables."""
    places = list(range(len(model.variables)))
    draws.shuffle(places)
    moved = sorted(range(len(places)), key=lambda v: places[v])
    tables = [factor.over([places[v] for v in factor.scope]) for factor in model.factors]
    children = None if model.children is None else [places[child] for child in model.children]
    return Changed(_with(model, tables, variables=[model.variables[v] for v in moved], children=children))


def permute_states(model: Model, draws: random.Random) -> Changed:
    """Permute the states of the variables."""
    orders = [draws.sample(range(v.size), v.size) for v in model.variables]
    variables = [
        Variable(v.name, v.size, None if v.states is None else [v.states[x] for x in order])
        for v, order in zip(model.variables, orders, strict=True)
    ]
    tables = []
    for factor in model.factors:
        if factor.rows is None:
            places = np.ix_(*(orders[v] for v in factor.scope))
            tables.append(Table(factor.scope, factor.values[places] if factor.scope else factor.values))
        else:
            inverse = [np.argsort(orders[v]) for v in factor.scope]
            rows = np.stack([place[column] for place, column in zip(inverse, factor.rows.T, strict=True)], axis=1)
            tables.append(_listed(factor, factor.scope, factor.sizes, rows))
    states = {v.name: order for v, order in zip(variables, orders, strict=True)}
    return Changed(_with(model, tables, variables=variables, children=model.children), states)


def permute_factors(model: Model, draws: random.Random) -> Changed:
    """Permute the factors."""
    order = draws.sample(range(len(model.factors)), len(model.factors))
    children = None if model.children is None else [model.children[f] for f in order]
    return Changed(_with(model, [model.factors[f] for f in order], children=children))


def permute_axes(model: Model, draws: random.Random) -> Changed:
    """Transpose the tables."""
    tables = []
    for factor in model.factors:
        axes = draws.sample(range(len(factor.scope)), len(factor.scope))
        scope = [factor.scope[axis] for axis in axes]
        if factor.rows is None:
            tables.append(Table(scope, factor.values.transpose(axes)))
        else:
            tables.append(_listed(factor, scope, [factor.sizes[axis] for axis in axes], factor.rows[:, axes]))
    return Changed(_with(model, tables, children=model.children))


def rewrite_tables(model: Model, draws: random.Random) -> Changed:
    """List tuples of dense tables, and write out tables of tuples."""
    tables = []
    for factor in model.factors:
        if not factor.scope or factor.cells > LARGEST_TABLE or draws.random() < 0.5:
            tables.append(factor)
        elif factor.rows is not None:
            tables.append(Table(factor.scope, factor.dense()))
        else:
            values, numbers = np.unique(factor.values, return_counts=True)
            default = values[numbers.argmax()]
            rows = np.argwhere(factor.values != default)
            cells = factor.values[tuple(rows.T)]
            tables.append(Table(factor.scope, cells, sizes=factor.sizes, rows=rows, default=default.item()))
    return Changed(_with(model, tables, children=model.children))


def split_factors(model: Model, draws: random.Random) -> Changed:
    """Split tables into two over the same scope, or one over a part of it."""
    numbers = np.random.default_rng(draws.randrange(2**32))
    tables = []
    for factor in model.factors:
        if not factor.scope or factor.cells > LARGEST_TABLE or draws.random() < 0.5:
            tables.append(factor)
            continue
        cells, axes = (
            factor.dense(),
            sorted(draws.sample(range(len(factor.scope)), draws.randint(1, len(factor.scope)))),
        )
        shape = [size if axis in axes else 1 for axis, size in enumerate(factor.sizes)]
        scope = [factor.scope[axis] for axis in axes]
        if model.sense == "probability":
            other = 2.0 ** numbers.integers(-3, 4, shape)
            tables += [Table(factor.scope, cells / other), Table(scope, other.reshape([factor.sizes[a] for a in axes]))]
        else:
            other = numbers.integers(-9, 10, shape)
            part = other.reshape([factor.sizes[a] for a in axes])
            tables += [Table(factor.scope, _plus(cells, -other)), Table(scope, part)]
    return Changed(_with(model, tables))


def merge_factors(model: Model, draws: random.Random) -> Changed:
    """Join pairs of tables."""
    tables = list(model.factors)
    for _ in range(max(1, len(tables) // 4)):
        if len(tables) < 2:
            break
        one = tables.pop(draws.randrange(len(tables)))
        meeting = [n for n, table in enumerate(tables) if set(table.scope) & set(one.scope)]
        other = tables.pop(draws.choice(meeting) if meeting else draws.randrange(len(tables)))
        scope = draws.sample(sorted({*one.scope, *other.scope}), len({*one.scope, *other.scope}))
        if math.prod(model.variables[v].size for v in scope) > LARGEST_TABLE:
            tables += [one, other]
            continue
        cells = [_aligned(table, scope) for table in (one, other)]
        joined = cells[0] * cells[1] if model.sense == "probability" else _plus(cells[0], cells[1])
        tables.insert(draws.randint(0, len(tables)), Table(scope, joined))
    return Changed(_with(model, tables))


def scale(model: Model, draws: random.Random) -> Changed:
    """Multiply all costs by an integer, or some probabilities by a constant each."""
    if model.sense != "probability":
        factor = draws.choice([2, 3, 7])
        tables = [_mapped(table, lambda cells: _times(cells, factor)) for table in model.factors]
        bound = None if model.upper_bound is None else model.upper_bound * factor
        changed = _with(model, tables, constant=model.constant * factor, upper_bound=bound)
        return Changed(changed, factor=factor)
    tables, shift = [], 0.0
    for table in model.factors:
        share = draws.choice([1.0, 0.25, 8.0, 1e-30, 1e20])
        shift += math.log(share)
        tables.append(_mapped(table, lambda cells, share=share: cells * share))
    return Changed(_with(model, tables), shift=shift)


def add_constants(model: Model, draws: random.Random) -> Changed:
    """Add a constant, and tables without variables."""
    if model.sense == "probability":
        shift, extra = draws.choice([-500.0, 2.5]), draws.choice([0.5, 4.0])
        tables = [*model.factors, Table((), np.array(extra))]
        return Changed(_with(model, tables, constant=model.constant + shift), shift=shift + math.log(extra))
    shift, extra = draws.choice([-1000, 17]), draws.choice([-3, 5])
    bound = None if model.upper_bound is None else model.upper_bound + shift + extra
    tables = [*model.factors, Table((), np.array(extra))]
    return Changed(_with(model, tables, constant=model.constant + shift, upper_bound=bound), shift=shift + extra)


def keep(model: Model, draws: random.Random) -> Changed:
    """Change nothing: only the options of the call differ."""
    return Changed(model)


def _with(model: Model, tables: list[Table], **changes: Any) -> Model:
    parts = {"variables": model.variables, "constant": model.constant, "upper_bound": model.upper_bound, **changes}
    variables = parts.pop("variables")
    return Model(variables, tables, sense=model.sense, check=False, **parts)


def _listed(table: Table, scope: Any, sizes: Any, rows: np.ndarray) -> Table:
    assert table.default is not None
    return Table(scope, table.values, sizes=sizes, rows=rows, default=table.default)


def _aligned(table: Table, scope: list[int]) -> np.ndarray:
    order = sorted(range(len(table.scope)), key=lambda axis: scope.index(table.scope[axis]))
    places = dict(zip(table.scope, table.sizes, strict=True))
    return table.dense().transpose(order).reshape([places.get(v, 1) for v in scope])


def _plus(cells: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Add costs; what is forbidden stays so."""
    if cells.dtype.kind == "f" or others.dtype.kind == "f":
        as_floats = [
            np.where(np.abs(part) == FORBIDDEN, np.copysign(math.inf, part), part) if part.dtype.kind == "i" else part
            for part in (cells, others)
        ]
        return as_floats[0] + as_floats[1]
    lost = (np.abs(cells) == FORBIDDEN) | (np.abs(others) == FORBIDDEN)
    sign = -1 if (cells == -FORBIDDEN).any() or (others == -FORBIDDEN).any() else 1
    total = np.where(np.abs(cells) == FORBIDDEN, 0, cells) + np.where(np.abs(others) == FORBIDDEN, 0, others)
    return np.where(lost, sign * FORBIDDEN, total)


def _times(cells: np.ndarray, factor: int) -> np.ndarray:
    if cells.dtype.kind == "f":
        return cells * factor
    return np.where(np.abs(cells) == FORBIDDEN, cells, np.where(np.abs(cells) == FORBIDDEN, 0, cells) * factor)


def _mapped(table: Table, function: Callable[[np.ndarray], np.ndarray]) -> Table:
    if table.rows is None:
        return Table(table.scope, function(table.values))
    default = function(np.array(table.default)).item()
    return Table(table.scope, function(table.values), sizes=table.sizes, rows=table.rows, default=default)


def is_small_enough(model: Model) -> bool:
    """Return whether relations can change the costs without leaving 64 bits."""
    if model.sense == "probability":
        return True
    largest = 0.0
    for factor in model.factors:
        cells = factor.values if factor.rows is None else np.append(factor.values, factor.default)
        finite = cells[(np.abs(cells) != FORBIDDEN) & np.isfinite(cells)]
        largest += float(np.abs(finite).max(initial=0))
    return largest < INT_LIMIT


RELATIONS: dict[str, Callable[[Model, random.Random], Changed]] = {
    "variables": permute_variables,
    "states": permute_states,
    "factors": permute_factors,
    "axes": permute_axes,
    "layout": rewrite_tables,
    "split": split_factors,
    "merge": merge_factors,
    "scale": scale,
    "constants": add_constants,
    "options": keep,
}
"""Relation -> the function that changes a model."""
