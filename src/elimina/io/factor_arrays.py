"""Factors and states of a model as data for other packages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.io.network import Conditional, conditional_tables
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.variable import listed_states


def states_of(model: Model) -> list[list[State]]:
    """Return the states of each variable."""
    return [listed_states(v) for v in model.variables]


def factors_of(model: Model) -> list[Conditional]:
    """Return scopes and arrays of the factors. Constants are multiplied into the first factor, so no scope is empty.

    Raises:
        InputError: The constant is beyond the range of a double, there is no variable to attach it to, or a factor is
            too large to be written out.
    """
    tables = list(conditional_tables(model))
    try:
        scale = math.exp(model.constant)
    except OverflowError:
        scale = math.inf
    if scale == math.inf or (scale == 0 and model.constant > -math.inf):
        raise InputError(f"the model's constant {model.constant} has no exponential in a double; subtract it first")
    scale *= math.prod(float(values) for scope, values in tables if not scope)
    tables = [(scope, values) for scope, values in tables if scope]
    if scale == 1:
        return tables
    if not model.variables:
        raise InputError("cannot convert a model without variables")
    if not tables:
        return [((0,), np.full(model.sizes[0], scale))]
    (scope, values), *later_tables = tables
    return [(scope, values * scale), *later_tables]


def arranged(values: NDArray[np.float64], scope: Sequence[Any], target_scope: Sequence[Any]) -> NDArray[np.float64]:
    """Return an array over ``scope`` with its axes in the order of ``target_scope``."""
    return np.transpose(values, [scope.index(v) for v in target_scope])
