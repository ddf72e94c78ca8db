"""Parameters of a Bayesian network from counts of its families (a family is a variable with its parents)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError
from elimina.io.cases import Cases, Codes
from elimina.model.model import Model, variable_indices
from elimina.model.table import Table

Floats = NDArray[np.float64]

_HASH_SEED = 0
"""Seed of the hash weights for rows. Rows with equal hashes are compared, so answers do not depend on the seed."""


class Families(NamedTuple):
    """The families of a Bayesian network, some of which may share a table.

    Attributes:
        model: A Bayesian network in which each variable has a factor.
        scopes: Variables of each family.
        child_axes: Position of the child in each scope.
        leaders: Number of the first family with the same table, for each family.
    """

    model: Model
    scopes: tuple[tuple[int, ...], ...]
    child_axes: tuple[int, ...]
    leaders: tuple[int, ...]

    @staticmethod
    def of(model: Model, tied: Iterable[Iterable[str | int]] = ()) -> Families:
        """Return the families of a network.

        Args:
            model: A Bayesian network.
            tied: Groups of variables whose families share a table.

        Raises:
            InputError: The model is not a Bayesian network, a variable is unknown or named twice, or the tables of a
                group have different shapes.
            TypeError: ``tied`` or a group is not a sequence.
        """
        if model.children is None or len(set(model.children)) < len(model.variables):
            raise InputError(
                "parameters are fitted to a Bayesian network, and a variable of this model has no distribution: name "
                "a network, or the parents of each variable"
            )
        number = {child: n for n, child in enumerate(model.children)}
        leaders = list(range(len(model.factors)))
        grouped: set[int] = set()
        accepted = "groups of variables, such as [['a', 'b'], ['c', 'd']]"
        if isinstance(tied, Mapping):
            raise arguments.wrong_type("tied", tied, accepted)
        for group in arguments.elements("tied", tied, accepted):
            children = variable_indices(model, group, "a group of tied")
            for child in children:
                if child in grouped:
                    raise InputError(f"tied names variable {model.variables[child].name!r} twice: write it once")
                grouped.add(child)
                _check_shapes(model, number[children[0]], number[child])
                leaders[number[child]] = min(number[other] for other in children)
        scopes = tuple(tuple(factor.scope) for factor in model.factors)
        axes = tuple(scope.index(child) for scope, child in zip(scopes, model.children, strict=True))
        return Families(model, scopes, axes, tuple(leaders))

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """Shape of each table."""
        return [tuple(factor.sizes) for factor in self.model.factors]

    def with_tables(self, tables: Sequence[Floats]) -> Model:
        """Return the network with these tables instead of its own, one for each factor."""
        model = self.model
        factors = [Table(scope, table) for scope, table in zip(self.scopes, tables, strict=True)]
        return Model(model.variables, factors, sense="probability", children=model.children, name=model.name)

    def tables_of(self, counts: Sequence[Floats], fallback: Sequence[Floats] | None = None) -> list[Floats]:
        """Return distributions proportional to counts.

        Args:
            counts: Counts of each family, including pseudo-counts.
            fallback: Tables whose rows are used for parents' states without counts; None: uniform distributions.
        """
        summed: dict[int, Floats] = {}
        for number, leader in enumerate(self.leaders):
            summed[leader] = summed[leader] + counts[number] if leader in summed else counts[number]
        tables = {}
        for leader, total in summed.items():
            axis = self.child_axes[leader]
            sums = total.sum(axis=axis, keepdims=True)
            other = 1 / total.shape[axis] if fallback is None else fallback[leader]
            tables[leader] = np.where(sums > 0, total / np.where(sums > 0, sums, 1), other)
        return [tables[leader] for leader in self.leaders]


def _check_shapes(model: Model, *numbers: int) -> None:
    """Reject tied families whose tables differ in shape or in the axis of the child."""
    children = [(model.children or ())[number] for number in numbers]
    first, second = (model.factors[number] for number in numbers)
    axes = first.scope.index(children[0]), second.scope.index(children[1])
    if (first.sizes, axes[0]) != (second.sizes, axes[1]):
        names = [model.variables[child].name for child in children]
        raise InputError(
            f"the families of {names[0]!r} and {names[1]!r} cannot be tied: their tables have the shapes "
            f"{tuple(first.sizes)} and {tuple(second.sizes)}, with the variable on axis {axes[0]} and {axes[1]}"
        )


def prior_counts(prior: float | Mapping[str, Any], families: Families) -> list[Floats]:
    """Return the pseudo-counts of each family.

    Args:
        prior: Pseudo-count of each cell of all tables; or variable -> pseudo-counts of its table, a number or an array
            of the table's shape. Variables that are left out then have pseudo-counts of 0.
        families: Families of the network.

    Raises:
        TypeError: A pseudo-count is not a number.
        InputError: A pseudo-count is negative or not finite, an array has another shape, or a variable is unknown.
    """
    model, sizes = families.model, families.sizes
    number = {child: n for n, child in enumerate(model.children or ())}
    if isinstance(prior, Mapping):
        counts = [np.zeros(shape) for shape in sizes]
        for name, pseudo_counts in prior.items():
            n = number[model.index(name)]
            counts[n] = _pseudo_counts(f"prior of {model[name].name!r}", pseudo_counts, sizes[n])
        return counts
    pseudo_count = arguments.number("prior", prior, "a number, or a mapping from variables to pseudo-counts")
    # Tied families share one prior, so only the first of them gets pseudo-counts.
    return [
        _pseudo_counts("prior", pseudo_count if families.leaders[n] == n else 0.0, shape)
        for n, shape in enumerate(sizes)
    ]


def _pseudo_counts(title: str, counts: Any, shape: tuple[int, ...]) -> Floats:
    """Return the pseudo-counts of a table from a number or an array.

    Raises:
        InputError: A pseudo-count is negative or not finite, or the array has another shape.
        TypeError: The pseudo-counts are neither a number nor an array.
    """
    if not isinstance(counts, np.ndarray | list | tuple):
        counts = arguments.real(title, counts, "a number, or an array of the table's shape")
    try:
        table = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise arguments.wrong_type(title, counts, "a number, or an array of the table's shape") from None
    except OverflowError:
        raise InputError(f"the {title} is {arguments.shown(counts)}, which is out of the range of a float") from None
    if table.shape not in ((), shape):
        raise InputError(f"the {title} has the shape {table.shape}; the table has the shape {shape}")
    is_valid = np.isfinite(table) & (table >= 0)
    if not is_valid.all():
        raise InputError(f"the {title} is {table[~is_valid].flat[0]}; pseudo-counts must be finite and not negative")
    return np.broadcast_to(table, shape).astype(np.float64)


class WeightedRows(NamedTuple):
    """Distinct rows with their numbers of occurrences.

    Attributes:
        values: int32 array of shape ``(rows, variables)``: indices of the states, -1 for missing cells.
        weights: Number of occurrences of each row.
        first: Number of the first occurrence of each row in the frame.
    """

    values: Codes
    weights: Floats
    first: NDArray[np.intp]

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """True for each row without a missing cell."""
        whole: NDArray[np.bool_] = np.all(self.values >= 0, axis=1)
        return whole

    def chosen(self, which: NDArray[np.bool_]) -> WeightedRows:
        """Return the rows for which the mask ``which`` is true."""
        return WeightedRows(self.values[which], self.weights[which], self.first[which])


def weighted_rows(cases: Cases, variables: int) -> WeightedRows:
    """Return the distinct rows of a frame, with a column for each variable of the model.

    Args:
        cases: Rows of the frame.
        variables: Number of variables.
    """
    values = np.full((len(cases.values), variables), -1, dtype=np.int32)
    values[:, list(cases.columns)] = cases.values
    weights = np.random.default_rng(_HASH_SEED).integers(1, 1 << 63, variables, dtype=np.uint64)
    hashes = np.zeros(len(values), dtype=np.uint64)
    for column, weight in zip(values.T, weights, strict=True):
        hashes += column.astype(np.uint64) * weight
    _, first, inverse, counts = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    if not np.array_equal(values[first[inverse.reshape(-1)]], values):
        _, first, counts = np.unique(values, axis=0, return_index=True, return_counts=True)
    return WeightedRows(values[first], counts.astype(np.float64), first)


def counts_of(rows: WeightedRows, families: Families) -> list[Floats]:
    """Return the counts of each family's combinations of states; rows with missing cells in a family are skipped."""
    counts = []
    for scope, shape in zip(families.scopes, families.sizes, strict=True):
        values = rows.values[:, list(scope)]
        is_whole = (values >= 0).all(axis=1)
        cells = np.ravel_multi_index(tuple(values[is_whole].T), shape)
        counted: Floats = np.bincount(cells, rows.weights[is_whole], math.prod(shape)).astype(np.float64)
        counts.append(counted.reshape(shape))
    return counts


def log_likelihood_of(counts: Sequence[Floats], tables: Sequence[Floats]) -> float:
    """Return the sum of counts times the logarithms of the probabilities; cells with count 0 are skipped."""
    total = 0.0
    for count, table in zip(counts, tables, strict=True):
        occurs = count > 0
        with np.errstate(divide="ignore"):
            total += float((count[occurs] * np.log(table[occurs])).sum())
    return total
