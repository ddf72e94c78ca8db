"""toulbar2's unconstrained quadratic pseudo-Boolean problems (QPBO), read only.

Files begin with two numbers: variables, negative if their values are 1 and -1 instead of 0 and 1; and terms, negative
if the sum is maximised. Then a term on each line: ``i j W``, variables from 1 on and a coefficient. The objective is
``x' W x`` of the symmetric matrix W: a term of two variables counts twice. States are 0 and 1, or 1 and -1 in this
order. Source: the description that comes with toulbar2, "Quadratic pseudo-Boolean optimization format".
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from elimina._core import Text, TextError
from elimina.io.clauses import variable_names
from elimina.io.codecs import Codec
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import MAX_STATES, Variable

_MIN_BYTES_PER_TERM = 6
"""Bytes of the shortest term: three digits and their separators."""

_MAX_COEFFICIENT = 2.0**52
"""Largest integer coefficient that is exact."""


def parse_terms(text: Text) -> Model:
    """Read a model; it has integer costs if all coefficients are integers."""
    variables, terms = text.integer("a number of variables"), text.integer("a number of terms")
    text.need(3 * min(abs(terms), MAX_STATES), "a number of a term")
    names = variable_names(abs(variables), _MIN_BYTES_PER_TERM * abs(terms))
    states = (0, 1) if variables >= 0 else (1, -1)
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for _ in range(abs(terms)):
        pair = sorted(text.integer("a variable of a term") for _ in range(2))
        if not 1 <= pair[0] <= pair[1] <= abs(variables):
            raise TextError(f"expected variables from 1 to {abs(variables)} in a term, found {pair[0]} and {pair[1]}")
        weight = text.real("a coefficient")
        if not math.isfinite(weight):
            raise TextError(f"expected a finite coefficient, found {weight}")
        sums[pair[0] - 1, pair[1] - 1] += weight if pair[0] == pair[1] else 2 * weight
    is_integer = all(weight.is_integer() and abs(weight) <= _MAX_COEFFICIENT for weight in sums.values())
    values = np.array(states, dtype=np.int64 if is_integer else np.float64)
    tables = []
    for (i, j), weight in sums.items():
        factor = int(weight) if is_integer else weight
        tables.append(Table([i], factor * values**2) if i == j else Table([i, j], factor * np.outer(values, values)))
    named = [Variable(name, 2, None if variables >= 0 else states) for name in names]
    return Model(named, tables, sense="min-cost" if terms >= 0 else "max-cost")


CODEC = Codec(("min-cost", "max-cost"), Text, parse_terms)
