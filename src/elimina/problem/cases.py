"""Problems of several cases at once: the number of the case is a variable."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.model.model import Model
from elimina.model.table import Table, Tables
from elimina.model.variable import Variable
from elimina.problem.preparation import Problem, children_without, grouped, prepare, relevant_factors, with_units


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
    batch = _with_case_number(model, cases, factors)
    prepared = prepare(batch, "mar", {})
    return prepared._replace(free=tuple(free), kept=(number,), wanted=wanted, families=tuple(families))


def condition_on_each(problem: Problem, assignments: Sequence[Mapping[int, int]]) -> Problem:
    """Condition on several assignments at once: the result's sum is the total of the sums given each assignment.

    The number of the assignment is the last variable of the result.

    Args:
        problem: Problem of the task ``pr``.
        assignments: Values of the same free variables, each of which is in a table.
    """
    number = len(problem.model.variables)
    conditioned = {v: np.array([values[v] for values in assignments]) for v in assignments[0]}
    tables = Tables([_stacked(table, conditioned, number) for table in problem.tables])
    return problem._replace(
        model=_with_case_number(problem.model, len(assignments), tables),
        fixed={**problem.fixed, **assignments[0]},
        free=(*(v for v in problem.free if v not in conditioned), number),
        tables=tables,
        groups=grouped(tables),
        constants=tuple(i for i, table in enumerate(tables) if not table.scope),
    )


def _stacked(table: Table, conditioned: Mapping[int, NDArray[np.int64]], number: int) -> Table:
    """Return a table given each assignment, with the variable ``number`` for the number of the assignment.

    Args:
        table: Any table; it is returned itself if its scope has none of the conditioned variables.
        conditioned: Variable -> its value in each assignment.
        number: The variable for the number of the assignment.
    """
    if conditioned.keys().isdisjoint(table.scope):
        return table
    chosen = [axis for axis, v in enumerate(table.scope) if v in conditioned]
    others = [axis for axis, v in enumerate(table.scope) if v not in conditioned]
    values = [conditioned[table.scope[axis]] for axis in chosen]
    scope = [number, *(table.scope[axis] for axis in others)]
    if table.rows is None:
        return Table(scope, table.values.transpose(chosen + others)[tuple(values)])
    cases, rows = (table.rows[:, chosen] == np.stack(values, axis=-1)[:, None]).all(axis=2).nonzero()
    return Table(
        scope,
        table.values[rows],
        sizes=[len(values[0]), *(table.sizes[axis] for axis in others)],
        rows=np.column_stack([cases, table.rows[rows][:, others]]),
        default=table.default,
    )


def _with_case_number(model: Model, cases: int, factors: Sequence[Table]) -> Model:
    """Return the model with other factors, and with a further variable for the number of the case."""
    names = {v.name for v in model.variables}
    case = Variable(next(name for n in range(len(names) + 1) if (name := f"case {n}") not in names), cases)
    return Model([*model.variables, case], factors, sense=model.sense, constant=model.constant)
