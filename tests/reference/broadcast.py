"""The joint table by NumPy broadcasting: the oracle for models with some 10^5 assignments."""

from __future__ import annotations

import numpy as np

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table


def aligned(table: Table, variables: int) -> np.ndarray:
    """A table's values with one axis for each variable of the model."""
    order = np.argsort(table.scope)
    shape = [1] * variables
    for v, size in zip(table.scope, table.sizes, strict=True):
        shape[v] = size
    return table.dense().transpose(order).reshape(shape)


def costs(model: Model) -> np.ndarray:
    """The objective of every assignment of a min-cost model; exact int64 with FORBIDDEN for integers."""
    total = np.full(model.sizes, model.constant)
    forbidden = np.zeros(model.sizes, dtype=bool)
    for factor in model.factors:
        values = aligned(factor, len(model.sizes))
        if values.dtype.kind == "i":
            forbidden |= values == FORBIDDEN
            values = np.where(values == FORBIDDEN, 0, values)
        total = total + values
    return np.where(forbidden, FORBIDDEN, total) if total.dtype.kind == "i" else total


def products(model: Model) -> np.ndarray:
    """The product of the factors for every assignment."""
    total = np.ones(model.sizes)
    for factor in model.factors:
        total = total * aligned(factor, len(model.sizes))
    return total
