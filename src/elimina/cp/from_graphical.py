"""Conversion of graphical models to constraint models: each table becomes a cost function."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from elimina.arguments import wrong_type
from elimina.cp.expressions import Expression
from elimina.cp.global_constraints import GlobalConstraints
from elimina.errors import InputError
from elimina.model import model as graphical
from elimina.model.senses import convert_sense, integer_costs
from elimina.model.table import FORBIDDEN, Table
from elimina.number_texts import counted

_MAX_CELLS = 1 << 22


class CostFunctions(NamedTuple):
    """Cost functions of a graphical model, as posted to a constraint model.

    Attributes:
        variables: Variables of the constraint model, in the graphical model's order.
        total: Sum of the costs, to be minimised.
        max_total: Largest total that the graphical model's upper bound allows; None if there is no bound.
    """

    variables: list[Expression]
    total: Expression
    max_total: int | None


def add_costs(target: GlobalConstraints, model: graphical.Model) -> CostFunctions:
    """Add the variables and cost functions of a graphical model to a constraint model.

    Raises:
        TypeError: ``model`` is not a graphical model.
        InputError: The model is one of probabilities, a cost has decimals, or a function has too many cells.
    """
    if not isinstance(model, graphical.Model):
        raise wrong_type("model", model, "an elimina.Model")
    if model.sense == "probability":
        raise InputError("a model of probabilities has no costs to add up: convert it by elimina.io.convert_sense")
    costs, decimals = integer_costs(convert_sense(model, "min-cost"))
    if decimals:
        raise InputError(f"the costs have {counted(decimals, 'decimal')}: multiply them by 10^{decimals}")
    xs = [target.int_var(0, v.size - 1, v.name) for v in costs.variables]
    total = target.expression(round(costs.constant))
    for number, factor in enumerate(costs.factors):
        total = total + _cost_of(target, xs, number, factor)
    return CostFunctions(xs, total, None if costs.upper_bound is None else math.ceil(costs.upper_bound) - 1)


def _cost_of(target: GlobalConstraints, xs: list[Expression], number: int, factor: Table) -> Expression:
    scope = [xs[v] for v in factor.scope]
    if factor.rows is not None and factor.default == FORBIDDEN:
        return target.add_cost_rows(scope, factor.rows.astype(np.int64), factor.values)
    if factor.cells > _MAX_CELLS:
        names = ", ".join(map(str, scope))
        raise InputError(
            f"factor {number} over ({names}) has {counted(factor.cells, 'cell')}, more than {_MAX_CELLS:,}"
        )
    return target.add_cost(scope, np.asarray(factor.dense()))
