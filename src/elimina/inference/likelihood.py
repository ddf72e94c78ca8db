"""Soft evidence, as observations of leaves that were not in the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.model import Model, Variable
from elimina.table import Table

Array = NDArray[Any]


_LOWEST = -1000
"""Power of two from which on a leaf's probabilities are: normal floats, with digits to spare."""


class Observed(NamedTuple):
    """A model and what is observed in it: variable index -> value index."""

    model: Model
    values: dict[int, int]


def weights_of(variable: Variable, known: int | Array) -> Array:
    """Return one weight for each state; bool if the variable is observed.

    Args:
        variable: Variable of the evidence.
        known: Index of the observed state, or likelihoods.
    """
    if not isinstance(known, int):
        return known
    observed = np.zeros(variable.size, dtype=bool)
    observed[known] = True
    return observed


def with_leaves(model: Model, weights: Mapping[int, Array]) -> Observed:
    """Turn likelihoods into observations of new variables (virtual evidence: Pearl 1988, section 2.2.2).

    The new variables come after the model's own. Each has its distribution given the variable that the likelihoods are
    about, so a network stays one, and what evidence makes irrelevant can be left out as ever. Likelihoods whose ratio
    is too small for a probability are the product of several leaves' probabilities.

    Args:
        model: A probability model.
        weights: Variable -> one non-negative weight for each value; with one positive weight it is an observation.
    """
    variables, factors = list(model.variables), list(model.factors)
    children = None if model.children is None else list(model.children)
    values: dict[int, int] = {}
    taken = {variable.name for variable in variables}
    constant = float(model.constant)
    for v, weight in weights.items():
        high = float(weight.max())
        constant += math.log(high) if high > 0 else 0.0
        if np.count_nonzero(weight) == 1:
            values[v] = int(weight.argmax())
            continue
        for share in _shares(weight):
            leaf = len(variables)
            variables.append(Variable(_unused(taken, variables[v].name), 2))
            factors.append(Table([v, leaf], np.stack([1 - share, share], axis=1)))
            values[leaf] = 1
            if children is not None:
                children.append(leaf)
    if len(variables) > len(model.variables) or constant != model.constant:
        model = Model(
            variables, factors, sense=model.sense, constant=constant, children=children, name=model.name, check=False
        )
    return Observed(model, values)


def with_factors(model: Model, weights: Mapping[int, Array]) -> Observed:
    """Turn likelihoods into factors, which every task takes; what has one positive weight is observed besides."""
    values = {v: int(w.argmax()) for v, w in weights.items() if np.count_nonzero(w) == 1}
    soft = [Table([v], w) for v, w in weights.items() if v not in values or w.max() != 1]
    if soft:
        model = Model(model.variables, [*model.factors, *soft], sense=model.sense, constant=model.constant)
    return Observed(model, values)


def _shares(weight: Array) -> Iterator[Array]:
    """Yield factors of weights over the largest one: each from 0 to 1, none of them too small for its digits."""
    high = float(weight.max())
    if high == 0:
        yield weight
        return
    mantissas, exponents = np.frexp(weight)
    own, exponent = math.frexp(high)
    left = np.where(weight > 0, exponents - exponent, 0)
    quotients = mantissas / own
    # A quotient above 1 comes with a lower exponent.
    part = np.maximum(left, _LOWEST)
    yield np.ldexp(quotients, part)
    while (left := left - part).any():
        part = np.maximum(left, _LOWEST)
        yield np.ldexp(np.ones(len(weight)), part)


def _unused(taken: set[str], name: str) -> str:
    """Return a name for a leaf, and take it."""
    name = f"likelihood of {name}"
    while name in taken:
        name += "'"
    taken.add(name)
    return name
