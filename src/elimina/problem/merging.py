"""Merging of values that no table distinguishes, and removal of values without allowed tuples.

Values are interchangeable (E. Freuder, "Eliminating interchangeable values in constraint satisfaction problems", AAAI
1991) if they are in no listed tuple, and all tables depend equally on them, except a table over the variable alone. The
time is linear in the number of listed tuples and stored cells, and does not depend on the domain size.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.model.model import Model
from elimina.model.table import Table, forbidden_value
from elimina.model.variable import Variable


class Purpose(NamedTuple):
    """Use of the values of an eliminated variable.

    Attributes:
        sums: True if the values are summed over.
        counts: True if allowed assignments are counted, so that tables without forbidden tuples have no effect.
        counts_best: True if only the best assignments are counted.
    """

    sums: bool = False
    counts: bool = False
    counts_best: bool = False


BEST, SUM, COUNT, COUNT_BEST = Purpose(), Purpose(sums=True), Purpose(counts=True), Purpose(counts_best=True)

"""Uses of a variable's values: only the best one; their sum; the number of allowed ones; the number of best ones."""


class Merged(NamedTuple):
    """A variable of which some values were merged or removed.

    Attributes:
        variable: The variable with all values.
        values: Indices of the listed values, in ascending order.
        others: Index of the value that represents all unlisted values; it follows the listed values. None: unlisted
            values are forbidden.
        weights: Weights of all values; only those of unlisted values are used. None: all weights are equal.
        multiplicity: Number of unlisted values that ``others`` represents in counts.
    """

    variable: Variable
    values: NDArray[np.int64]
    others: int | None = None
    weights: NDArray[Any] | None = None
    multiplicity: int = 1

    @property
    def indices(self) -> NDArray[np.int64]:
        """Original index of each value of the smaller variable."""
        return self.values if self.others is None else np.append(self.values, self.others)

    def share_of_others(self, shares: NDArray[np.float64]) -> float:
        """Return the probability of an unlisted value, from those of the smaller variable.

        If values have weights, return the probability of an unlisted value of weight 1.
        """
        if self.others is None:
            return 0.0
        total: float = self.variable.size - len(self.values)
        if self.weights is not None:
            weights = self.weights.astype(np.float64)
            weights[self.values] = 0
            total = float(weights.sum())
        return float(shares[-1]) / total

    def spread(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of all values from those of the smaller variable, along the last axis."""
        spread = np.zeros((*shares.shape[:-1], self.variable.size))
        if self.others is not None:
            weights = np.ones(self.variable.size) if self.weights is None else self.weights.astype(np.float64)
            weights[self.values] = 0
            spread[:] = weights * (shares[..., -1:] / weights.sum())
        spread[..., self.values] = shares[..., : len(self.values)]
        return spread

    def drawn(self, numbers: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
        """Return original values for values of the smaller variable.

        The value that represents the unlisted ones is replaced by one of them, drawn in proportion to their weights.
        """
        values = self.indices[numbers]
        if self.others is None:
            return values
        is_other = numbers == len(self.values)
        count = int(np.count_nonzero(is_other))
        if self.weights is None:
            ranks = random.integers(0, self.variable.size - len(self.values), count)
            # The unlisted value with a given rank has the index: rank plus number of listed values before it.
            values[is_other] = ranks + np.searchsorted(self.values - np.arange(len(self.values)), ranks, side="right")
        elif count:
            weights = self.weights.astype(np.float64)
            weights[self.values] = 0
            values[is_other] = random.choice(self.variable.size, count, p=weights / weights.sum())
        return values


class MergedModel(NamedTuple):
    """A model after merging.

    Attributes:
        model: The model.
        merged: Variable with fewer values -> its values before and after.
    """

    model: Model
    merged: dict[int, Merged]


def merge_values(model: Model, variables: Collection[int], purpose: Purpose, maximised: Sequence[int]) -> MergedModel:
    """Merge interchangeable values of variables: one value represents them.

    Args:
        model: A model.
        variables: Variables whose values may be merged.
        purpose: Use of the values.
        maximised: Variables of which only the best value counts, regardless of ``purpose``.
    """
    users: dict[int, list[Table]] = {v: [] for v in variables}
    for table in model.factors:
        for v in users.keys() & table.scope:
            users[v].append(table)
    merged: dict[int, Merged] = {}
    factors: list[Table] = []
    for v, tables in users.items():
        merged_values = _merged(model, v, tables, BEST if v in maximised else purpose)
        if merged_values is None:
            continue
        merged[v], weight = merged_values
        if weight != 1:
            weights = np.ones(len(merged[v].indices))
            weights[-1] = weight
            factors.append(Table([v], weights))
    if not merged:
        return MergedModel(model, {})
    indices = {v: values_of_variable.indices for v, values_of_variable in merged.items()}
    sizes = {v: len(variable) for v, variable in indices.items()}
    smaller = [
        Variable(variable.name, sizes[v], [variable.state(x) for x in indices[v].tolist()]) if v in merged else variable
        for v, variable in enumerate(model.variables)
    ]
    restricted = [
        table if merged.keys().isdisjoint(table.scope) else _restricted(table, merged) for table in model.factors
    ]
    # Distributions still sum to 1 after removal of values of probability 0, but not after merging.
    children = (
        model.children
        if not factors and all(values_of_variable.others is None for values_of_variable in merged.values())
        else None
    )
    smaller_model = Model(
        smaller, [*restricted, *factors], sense=model.sense, constant=model.constant, upper_bound=model.upper_bound,
        children=children, name=model.name, check=False,
    )  # fmt: skip
    return MergedModel(smaller_model, merged)


def _merged(model: Model, v: int, tables: Sequence[Table], purpose: Purpose) -> tuple[Merged, float] | None:
    """Return a variable's required values, and the weight of the last one; None if all values are required."""
    variable = model.variables[v]
    allowing: list[NDArray[np.int64]] = []
    forbidding: list[NDArray[np.int64]] = []
    for table in tables:
        if table.rows is not None:
            values = np.unique(table.rows[:, table.scope.index(v)]).astype(np.int64)
            worst = forbidden_value(model.sense, table.values.dtype)
            (forbidding if table.default == worst else allowing).append(values)
    if forbidding:
        values = forbidding[0]
        for values_of_table in forbidding[1:]:
            values = np.intersect1d(values, values_of_table, assume_unique=True)
        # One value stays even if none is allowed, because a domain must not be empty.
        values = values if len(values) else np.zeros(1, dtype=np.int64)
        return None if len(values) == variable.size else (Merged(variable, values), 1)
    dense = [table for table in tables if table.rows is None]
    values = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *allowing]))
    if len(values) >= variable.size - 1 or len(dense) > 1 or any(len(table.scope) > 1 for table in dense):
        return None
    if dense:
        return _merged_by_weights(model, variable, values, dense[0], purpose)
    number = variable.size - len(values)
    is_counted = purpose.counts or purpose.counts_best
    merged = Merged(variable, values, first_gap(values), multiplicity=number if is_counted else 1)
    return merged, number if purpose.sums else 1


def _merged_by_weights(
    model: Model, variable: Variable, values: NDArray[np.int64], table: Table, purpose: Purpose
) -> tuple[Merged, float]:
    """Return the result of ``_merged`` for a variable with a dense table over itself alone."""
    is_other = np.ones(variable.size, dtype=bool)
    is_other[values] = False
    columns = np.flatnonzero(is_other)
    weights = table.values[columns]
    best = weights.min() if model.sense == "min-cost" else weights.max()
    representative = int(columns[(weights == best).argmax()])
    if best == forbidden_value(model.sense, weights.dtype):
        # One value stays, because a domain must not be empty.
        return Merged(variable, values if len(values) else columns[:1]), 1
    if purpose.sums:
        merged = Merged(variable, values, representative, table.values)
        return merged, float((weights / best).sum())
    number = 1
    if purpose.counts:
        number = int(np.count_nonzero(weights != forbidden_value(model.sense, weights.dtype)))
    elif purpose.counts_best:
        number = int(np.count_nonzero(weights == best))
    return Merged(variable, values, representative, multiplicity=number), 1


def first_gap(sorted_numbers: NDArray[np.int64]) -> int:
    """Return the least non-negative number that is missing among sorted numbers."""
    gaps = np.flatnonzero(sorted_numbers != np.arange(len(sorted_numbers)))
    return int(gaps[0]) if len(gaps) else len(sorted_numbers)


def _restricted(table: Table, merged: Mapping[int, Merged]) -> Table:
    """Return a table restricted to the remaining values of its variables."""
    if table.rows is None:
        values = table.values
        for axis, v in enumerate(table.scope):
            if v in merged:
                values = values.take(merged[v].indices, axis=axis)
        return Table(table.scope, values)
    sizes, rows = list(table.sizes), table.rows.copy()
    is_kept = np.ones(len(rows), dtype=bool)
    for axis, v in enumerate(table.scope):
        if v in merged:
            values = merged[v].values
            positions = np.minimum(np.searchsorted(values, rows[:, axis]), max(0, len(values) - 1))
            is_kept &= values[positions] == rows[:, axis] if len(values) else False
            sizes[axis], rows[:, axis] = len(merged[v].indices), positions
    return Table(table.scope, table.values[is_kept], sizes=sizes, rows=rows[is_kept], default=table.default)
