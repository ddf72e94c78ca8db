"""What the writers of distributed problems share: the cost functions with names, and values as words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.dcop.formats.build import check_listed
from elimina.errors import InputError
from elimina.model import Model, forbidden_value
from elimina.table import FORBIDDEN, Table

WORST = "infinity"


def constant_of(model: Model) -> int | float:
    """What is added to every assignment's cost: the constant and the functions of no variables."""
    return model.score([0] * len(model.variables)) if not model.variables else _constant(model)


def _constant(model: Model) -> int | float:
    empty = Model((), [f for f in model.factors if not f.scope], sense=model.sense, constant=model.constant)
    return empty.score([])


def functions(model: Model, *, with_constant: bool) -> Iterator[tuple[str, Table]]:
    """Yield the functions of at least one variable with names, "c0" and so on.

    Args:
        model: The model.
        with_constant: Whether the constant, where it is not 0, becomes a function of the first variable.

    Raises:
        InputError: There is a constant but no variable.
    """
    number = 0
    for factor in model.factors:
        if factor.scope:
            yield f"c{number}", factor
            number += 1
    constant = constant_of(model)
    if constant and (with_constant or math.isinf(constant)):
        if not model.variables:
            raise InputError(f"the problem has the constant cost {constant} but no variable; the format cannot hold it")
        whole = isinstance(constant, int) and abs(constant) < FORBIDDEN
        size = model.variables[0].size
        yield f"c{number}", Table((0,), np.full(size, constant, dtype=np.int64 if whole else np.float64))


def listed(name: str, table: Table) -> tuple[NDArray[np.int32], NDArray[Any], int | float]:
    """The tuples of a table that differ from the cost that is listed last, their costs, and that cost.

    Raises:
        MemoryLimitError: The table is full and too large to be listed.
    """
    if table.rows is not None:
        assert table.default is not None
        return table.rows, table.values, table.default
    check_listed(table.cells, name)
    distinct, counts = np.unique(table.values, return_counts=True)
    default = distinct[np.argmax(counts)]
    places = np.argwhere(table.values != default)
    return places.astype(np.int32), table.values[tuple(places.T)], default.item()


def is_worst(cost: float, model: Model) -> bool:
    """Whether a cost says that an assignment is forbidden."""
    return cost == forbidden_value(model.sense, np.int64 if isinstance(cost, int) else np.float64)


def is_integer_word(label: str) -> bool:
    """Whether a name is how an integer is written."""
    digits = label.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) <= 18 and str(int(label)) == label
