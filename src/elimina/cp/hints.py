"""Hints: values of variables that a search tries first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from elimina.arguments import wrong_type
from elimina.cp.expressions import Condition, Expression, ExpressionModel
from elimina.cp.operands import MAX_INTEGER, whole
from elimina.cp.solution import Solution
from elimina.cp.views import View, ViewRows
from elimina.errors import InputError

Hints = dict[View, int]
"""Hinted values, in the order in which the variables are decided."""


class HintedModel(ExpressionModel, Protocol):
    """The methods of a constraint model for reading hints."""

    def __getitem__(self, name: str) -> Expression:
        """Return the variable with this name."""

    def variable_of(self, x: Expression | Condition) -> Expression:
        """Return a view of one variable that equals an operand."""


def read_hints(model: HintedModel, values: object) -> Hints:
    """Return the hints of a solution, or of a mapping from variables, expressions, conditions or names to values.

    Raises:
        InputError: A value is not a whole number within 2^52, or a variable is not of the model.
        TypeError: ``values`` is neither a solution nor a mapping.
    """
    if isinstance(values, Solution):
        return {View(var, 1, 0): value for var, value in values.numbered(model).items()}
    if not isinstance(values, Mapping):
        raise wrong_type("values", values, "a mapping from variables or names to values, or a solution")
    hints: Hints = {}
    for key, number in values.items():
        value = whole(number, f"the hinted value of {key}")
        if abs(value) > MAX_INTEGER:
            raise InputError(f"the hinted value of {key} is {value}, beyond 2^52: hint a value that it can have")
        if not isinstance(key, str | Expression | Condition):
            raise InputError(f"a hint is for a variable, an expression, a condition or a name, not {key!r}")
        x = model.variable_of(model[key] if isinstance(key, str) else key)
        for var, factor in x.terms.items():
            hints[View(var, factor, x.constant)] = value
    return hints


def hint_rows(hints: Hints) -> tuple[ViewRows, ViewRows] | None:
    """Return hints in the core's form: views and values; None if there are none."""
    if not hints:
        return None
    return np.array(list(hints), dtype=np.int64), np.array(list(hints.values()), dtype=np.int64)
