"""Common parts of the exchange of models with other Python packages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.io.convert import convert_sense
from elimina.io.network import Conditional
from elimina.io.uai import conditional_tables
from elimina.model import Model
from elimina.states import State


def imported(package: str, module: str) -> Any:
    """Import a module of another package.

    Raises:
        InputError: The package is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this needs the package {package} ({error}); install it: pip install {package}") from error


def as_probabilities(model: Model) -> Model:
    """Return the model with probabilities instead of costs."""
    return convert_sense(model, "probability")


def states_of(model: Model) -> list[list[State]]:
    """Return the states of each variable."""
    return [[v.state(x) for x in range(v.size)] for v in model.variables]


def factors_of(model: Model) -> list[Conditional]:
    """Return scopes and arrays of the factors, none of them empty: the first one takes in all constants.

    Raises:
        InputError: The constant is beyond the range of a double, there is no variable to put it on, or a factor is
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
        raise InputError("a model without variables cannot be handed over")
    if not tables:
        return [((0,), np.full(model.sizes[0], scale))]
    (scope, values), *rest = tables
    return [(scope, values * scale), *rest]


def arranged(values: NDArray[np.float64], scope: Sequence[Any], wanted: Sequence[Any]) -> NDArray[np.float64]:
    """Return the array with its axes, those of ``scope``, in another order."""
    return np.transpose(values, [scope.index(v) for v in wanted])
