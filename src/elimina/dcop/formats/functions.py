"""Common part of the writers of distributed problems: cost functions with names, and values as words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.dcop.formats.build import check_listed
from elimina.errors import InputError
from elimina.model import Model, forbidden_value
from elimina.states import texts_of
from elimina.table import FORBIDDEN, Table


def constant_of(model: Model) -> int | float:
    """Return the cost that every assignment has: the constant and the functions without variables."""
    empty = Model((), [f for f in model.factors if not f.scope], sense=model.sense, constant=model.constant)
    return empty.score([])


def functions(model: Model, *, with_constant: bool) -> Iterator[tuple[str, Table]]:
    """Yield the functions of at least one variable with names, "c0" and so on.

    Args:
        model: The model.
        with_constant: True if the constant, where it is not 0, becomes a function of the first variable.

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


def listed(name: str, table: Table, model: Model) -> tuple[list[str], list[int | float], int | float]:
    """List the tuples of a table that do not have its default cost.

    Returns:
        The tuples, as values with blanks between them; their costs; the default. A dense table's default
        is its most frequent cost.

    Raises:
        MemoryLimitError: The table is dense and too large to be listed.
    """
    words = [texts_of(model.variables[v]) for v in table.scope]
    if table.rows is not None:
        assert table.default is not None
        return _joined(words, table.rows), table.values.tolist(), table.default
    check_listed(table.cells, name)
    default: int | float = Counter(table.values.ravel().tolist()).most_common(1)[0][0]
    places = table.values != default
    return _joined(words, np.argwhere(places)), table.values[places].tolist(), default


def _joined(words: Sequence[Sequence[str]], rows: NDArray[Any]) -> list[str]:
    columns = [[axis[x] for x in column] for axis, column in zip(words, rows.T.tolist(), strict=True)]
    return list(map(" ".join, zip(*columns, strict=True)))


def is_worst(cost: float, model: Model) -> bool:
    """Return whether a cost says that an assignment is forbidden."""
    return cost == forbidden_value(model.sense, np.int64 if isinstance(cost, int) else np.float64)
