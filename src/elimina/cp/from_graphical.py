"""Constraint models of graphical models: a cost function for each table."""

from __future__ import annotations

import math

import numpy as np

from elimina.arguments import wrong_type
from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.errors import InputError
from elimina.io import convert_sense, integer_costs
from elimina.model import model as graphical
from elimina.model.table import FORBIDDEN, Table

_MAX_CELLS = 1 << 22


def from_graphical(model: graphical.Model) -> Model:
    """Build a constraint model from a graphical model: see `Model.from_model`."""
    if not isinstance(model, graphical.Model):
        raise wrong_type("model", model, "an elimina.Model")
    if model.sense == "probability":
        raise InputError("a model of probabilities has no costs to add up: convert it by elimina.io.convert_sense")
    costs, decimals = integer_costs(convert_sense(model, "min-cost"))
    if decimals:
        raise InputError(f"the costs have {decimals} decimals: multiply them by 10^{decimals}")
    result = Model()
    xs = [result.int_var(0, v.size - 1, v.name) for v in costs.variables]
    total = result.expression(round(costs.constant))
    for number, factor in enumerate(costs.factors):
        total = total + _cost_of(result, xs, number, factor)
    if costs.upper_bound is not None:
        result.add(total <= math.ceil(costs.upper_bound) - 1)
    result.search(xs)
    if not total.terms and not total.constant:
        return result
    if model.sense == "min-cost":
        result.minimize(total)
    else:
        result.maximize(-total)
    return result


def _cost_of(model: Model, xs: list[Expression], number: int, factor: Table) -> Expression:
    scope = [xs[v] for v in factor.scope]
    if factor.rows is not None and factor.default == FORBIDDEN:
        return model.add_cost_rows(scope, factor.rows.astype(np.int64), factor.values)
    if factor.cells > _MAX_CELLS:
        names = ", ".join(map(str, scope))
        raise InputError(f"factor {number} over ({names}) has {factor.cells:,} cells, more than {_MAX_CELLS:,}")
    return model.add_cost(scope, np.asarray(factor.dense()))
