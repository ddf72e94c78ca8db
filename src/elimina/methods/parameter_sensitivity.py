"""Sensitivity of a posterior to the parameters of a network.

If a parameter changes and the other parameters of its row change in proportion, a posterior is a quotient of two linear
functions of the parameter (Castillo, Gutiérrez and Hadi 1997; Darwiche 2003, "A Differential Approach to Inference in
Bayesian Networks"). The coefficients of both functions follow from the posteriors of the families (each variable with
its parents), with and without the query as evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.display import with_types_as_written
from elimina.model.model import Model
from elimina.model.row_table import RowTable
from elimina.model.states import State

Floats = NDArray[np.float64]


@with_types_as_written
class Sensitivity(NamedTuple):
    """Sensitivity of the query's posterior to a parameter.

    As a function of the parameter's value t, the posterior is ``(a * t + b) / (c * t + d)``.

    Attributes:
        variable: Variable whose distribution contains the parameter.
        state: State whose probability is the parameter.
        parents: States of the parents: name -> state.
        value: Value of the parameter.
        derivative: Derivative of the posterior with respect to the parameter.
        a: Coefficient of the parameter in the numerator.
        b: Constant of the numerator.
        c: Coefficient of the parameter in the denominator.
        d: Constant of the denominator.
    """

    variable: str
    state: State
    parents: dict[str, State]
    value: float
    derivative: float
    a: float
    b: float
    c: float
    d: float

    @property
    def name(self) -> str:
        """Parameter as text: ``P(Pump=failed | Power=off)``."""
        parents = ", ".join(f"{name}={state}" for name, state in self.parents.items())
        return f"P({self.variable}={self.state}{' | ' if parents else ''}{parents})"

    def at(self, value: float) -> float:
        """Return the posterior of the query for another value of the parameter, from 0 to 1.

        The result is NaN if the change makes the evidence impossible.
        """
        likelihood = self.c * value + self.d
        return min(1.0, max(0.0, (self.a * value + self.b) / likelihood)) if likelihood > 0 else float("nan")

    def ends(self, change: float) -> tuple[float, float]:
        """Return the posteriors if the parameter decreases and increases (at most to 1) by a share ``change``."""
        return self.at(self.value * (1 - change)), self.at(min(1.0, self.value * (1 + change)))


class Sensitivities(RowTable[Sensitivity]):
    """Sensitivities to all parameters, the largest derivative first.

    Attributes:
        query: Event of the posterior: name -> state.
        posterior: Probability of the query given the evidence.
    """

    fields = Sensitivity._fields

    def __init__(self, rows: Sequence[Sensitivity], query: dict[str, State], posterior: float) -> None:
        # Derivatives are rounded before sorting, because those of both states of a binary variable differ only by
        # rounding.
        super().__init__(sorted(rows, key=lambda row: -float(f"{abs(row.derivative):.9e}")))
        self.query, self.posterior = query, posterior

    @property
    def event(self) -> str:
        """Query as text: ``P(Bearing=worn)``."""
        return f"P({', '.join(f'{name}={state}' for name, state in self.query.items())})"

    def _figures(self) -> list[tuple[str, str]]:
        return [("query", f"{self.event} = {self.posterior:.6g}, given the evidence")]


def parameter_sensitivities(
    model: Model,
    query: Mapping[int, int],
    posterior: float,
    families: Mapping[tuple[str, ...], Floats],
    rounding: float,
) -> Sensitivities:
    """Return the sensitivities to all parameters that are neither 0 nor the only positive parameter of their row.

    Args:
        model: A Bayesian network.
        query: Event of the posterior: variable index -> value index.
        posterior: Probability of the query given the evidence.
        families: Names of each factor's scope -> joint posteriors of the scope in two cases: given the evidence, and
            given the evidence and the query (zeros if the query has probability 0).
        rounding: Relative difference at which derivatives count as equal.
    """
    rows: list[Sensitivity] = []
    for number, factor in enumerate(model.factors):
        family, with_query = families[tuple(model.variables[v].name for v in factor.scope)]
        rows += _of_factor(model, number, family, posterior * with_query, posterior, rounding)
    states = {model.variables[v].name: model.variables[v].state(x) for v, x in query.items()}
    return Sensitivities(rows, states, posterior)


def _of_factor(
    model: Model, number: int, family: Floats, event: Floats, posterior: float, rounding: float
) -> Iterator[Sensitivity]:
    """Yield the sensitivities to the parameters of a factor.

    Args:
        model: A Bayesian network.
        number: Number of the factor.
        family: Joint posterior of the factor's scope.
        event: Joint posterior of the scope and the query.
        posterior: Posterior of the query.
        rounding: Relative difference at which derivatives count as equal.
    """
    assert model.children is not None
    factor, child = model.factors[number], model.children[number]
    axis = factor.scope.index(child)
    values, family, event = (np.moveaxis(table, axis, -1) for table in (factor.dense(), family, event))
    others = 1 - np.eye(values.shape[-1])
    free = (values > 0) & (values @ others > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        likelihood = family / values - (family @ others) / (values @ others)
        joint = event / values - (event @ others) / (values @ others)
        size = event / values + (event @ others) / (values @ others) + posterior * np.abs(likelihood)
    derivatives = joint - posterior * likelihood
    derivatives[np.abs(derivatives) <= rounding * size] = 0.0
    variable = model.variables[child]
    parents = [model.variables[v] for v in factor.scope if v != child]
    for cell in np.argwhere(free).tolist():
        *parent_states, state = cell
        index = tuple(cell)
        value, a, c = float(values[index]), float(joint[index]), float(likelihood[index])
        yield Sensitivity(
            variable.name,
            variable.state(state),
            {parent.name: parent.state(x) for parent, x in zip(parents, parent_states, strict=True)},
            value,
            float(derivatives[index]),
            a,
            posterior - a * value,
            c,
            1 - c * value,
        )
