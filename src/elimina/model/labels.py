"""Labels of data frames and series, and the table cells that belong to each label.

pandas sorts rows and columns by their labels, so the order of the cells need not be the order of the states. This
module does not import pandas: a table with labels is recognised by its index.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError

_PLAIN_TYPES = frozenset({list, tuple, int, float, np.ndarray})
"""Types of elements without labels, as in most lists."""

_LABELS_SHOWN = 8
"""Largest number of labels in an error."""


class LabelledAxis(NamedTuple):
    """One level of the rows' or the columns' labels.

    Attributes:
        name: Name of the level; None if it has none.
        labels: The different labels, in the order of their first appearance.
        codes: Index into ``labels`` for each row or column.
    """

    name: Any
    labels: list[Any]
    codes: NDArray[np.intp]


class LabelledTable(NamedTuple):
    """The labels and cells of a pandas Series or DataFrame.

    Attributes:
        rows: Levels of the rows' labels.
        columns: Levels of the columns' labels; empty for a Series.
        values: The cells, of shape (rows, columns).
    """

    rows: list[LabelledAxis]
    columns: list[LabelledAxis]
    values: NDArray[Any]

    @property
    def axes(self) -> list[LabelledAxis]:
        """All levels, those of the rows first."""
        return [*self.rows, *self.columns]


def labelled_table(what: str, values: Any) -> LabelledTable | None:
    """Return a Series or DataFrame with its labels; None for values without labels.

    Args:
        what: Noun for the values in errors.
        values: An array, a list, a Series or a DataFrame.

    Raises:
        InputError: The values are a frame whose rows have no labels, or a list of rows with labels.
    """
    if isinstance(values, np.ndarray):
        return None
    if isinstance(values, list | tuple):
        if len(values) and type(values[0]) not in _PLAIN_TYPES and _has_index(values[0]):
            raise InputError(
                f"{what} are a list of {type(values[0]).__name__} objects, whose labels would be lost: give one "
                "DataFrame, or arrays in the order of the states (to_numpy())"
            )
        return None
    if _has_index(values):
        columns = _levels(values.columns) if hasattr(values, "columns") else []
        cells = np.asarray(values.to_numpy())
        return LabelledTable(_levels(values.index), columns, cells.reshape(len(cells), -1))
    if hasattr(values, "columns"):
        raise InputError(
            f"{what} are a {type(values).__module__.partition('.')[0]} {type(values).__name__}, whose rows have no "
            "labels to compare with states: give an array in the order of the states (to_numpy()), or a pandas "
            "DataFrame with an index"
        )
    return None


def _has_index(values: Any) -> bool:
    return hasattr(getattr(values, "index", None), "nlevels")


def _levels(index: Any) -> list[LabelledAxis]:
    levels = []
    for level, name in enumerate(index.names):
        codes, labels = index.get_level_values(level).factorize(use_na_sentinel=False)
        levels.append(LabelledAxis(name, labels.tolist(), np.asarray(codes)))
    return levels


def are_positions(labels: Sequence[Any]) -> bool:
    """Return whether labels are 0, 1, 2, ... in this order, as pandas gives them to rows without labels."""
    return all(type(label) is int and label == position for position, label in enumerate(labels))


def without_labels(what: str, values: Any) -> Any:
    """Return the array of a Series or DataFrame without labels, other values unchanged.

    Args:
        what: Noun for the values in errors.
        values: Values for a function that has no states to compare labels with.

    Raises:
        InputError: The values have labels other than 0, 1, 2, ..., or named axes, or ``labelled_table`` refuses them.
    """
    table = labelled_table(what, values)
    if table is None:
        return values
    for axis in table.axes:
        if axis.name is not None or not are_positions(axis.labels) or len(axis.labels) < len(axis.codes):
            name = "" if axis.name is None else f" of {axis.name!r}"
            raise InputError(
                f"{what} have the labels {listed(axis.labels)}{name}, and no states to compare them with: "
                "Model.from_arrays aligns labels with states, and to_numpy() drops them"
            )
    return values.to_numpy()


def listed(labels: Iterable[Any]) -> str:
    """Return labels as errors list them."""
    texts = [arguments.shown(label) for label in itertools.islice(labels, _LABELS_SHOWN + 1)]
    return ", ".join(texts[:_LABELS_SHOWN]) + (", ..." if len(texts) > _LABELS_SHOWN else "")
