"""The problem of a batch of cases."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np

from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.problem.preparation import Problem, children_without, prepare, relevant_factors, with_units


def prepare_batch(
    model: Model,
    observed: Collection[int],
    query: Collection[int] | None,
    cases: int,
    families: Sequence[tuple[int, ...]] = (),
) -> Problem:
    """Prepare the posteriors of many cases at once: the number of the case becomes a variable of the problem.

    Each variable that a case may observe gets a factor of ones over itself and the case's number. A run fills it with
    the observations of all cases.

    Args:
        model: A probability model in which each variable is in a factor.
        observed: The variables that the cases may observe.
        query: Variables of the marginals; None: all. Variables that affect neither the marginals nor the probability of
            the evidence are left out.
        cases: Number of cases; 1: the problem has no variable for the case's number.
        families: Scopes of additional joint marginals. Each is part of a factor's scope, and has several variables,
            none of them with a single state.

    Raises:
        InputError: The model has costs.
    """
    sizes = model.sizes
    if query is not None and model.children is not None:
        kept = relevant_factors(model, model.children, {*observed, *query, *itertools.chain(*families)}, None)
        left_out = children_without(model, kept)
        # A variable may lose its last factor without being left out. It still multiplies the sum by its number of
        # values, so it gets a factor of ones.
        model = with_units(
            Model(model.variables, [model.factors[f] for f in kept], constant=model.constant, sense=model.sense),
            left_out,
        )
    factors = list(model.factors)
    number = len(sizes)
    free = [v for v in sorted({v for table in factors for v in table.scope}) if sizes[v] > 1]
    wanted = tuple(v for v in free if query is None or v in query)
    if cases == 1:
        single = Model(model.variables, factors, sense=model.sense, constant=model.constant)
        return prepare(single, "mar", {})._replace(free=tuple(free), wanted=wanted, families=tuple(families))
    factors += [Table([v, number], np.ones((sizes[v], cases))) for v in observed if sizes[v] > 1]
    names = {v.name for v in model.variables}
    case = Variable(next(name for n in range(number + 1) if (name := f"case {n}") not in names), cases)
    batch = Model([*model.variables, case], factors, sense=model.sense, constant=model.constant)
    prepared = prepare(batch, "mar", {})
    return prepared._replace(free=tuple(free), kept=(number,), wanted=wanted, families=tuple(families))
