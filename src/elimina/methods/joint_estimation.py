"""Estimates of joint distributions, as the marginal of a single variable whose states are the joint states.

Each table over one of the queried variables becomes a table over the joint variable (Koller and Friedman 2009,
"Probabilistic Graphical Models", section 11.3.5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError
from elimina.methods.posterior_estimation import posteriors_within
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.number_texts import bytes_text, counted
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.evidence import Observed
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result
from elimina.running.estimate_memory import FLOAT_BYTES
from elimina.running.host import host_memory

_TABLES_SHARE = 0.25
"""Share of the memory for the tables of the joint variable; methods make copies of them."""


def estimated_joint(
    model: Model, evidence: Mapping[int, int], variables: Sequence[int], options: CheckedOptions, seconds: float
) -> tuple[NDArray[np.float64], Result]:
    """Return the joint posterior of variables, and the result of the whole estimation.

    An observed variable has an axis of length 1. The posterior is 0 if the evidence is impossible.

    Args:
        model: A probability model.
        evidence: Variable index -> value index.
        variables: The variables, in the sequence of the axes.
        options: Planning options, including the memory limit.
        seconds: Time limit of the estimates, in seconds.

    Raises:
        MemoryLimitError: The tables of the joint variable do not fit.
    """
    problem = prepare(model, "joint", evidence, tuple(variables))
    shape = [model.variables[v].size if v in problem.kept else 1 for v in variables]
    joined = _joined(problem, _TABLES_SHARE * host_memory(options))
    last = len(joined.variables) - 1
    result = posteriors_within(Observed(joined, {}), [last], options, seconds)
    if result.status == "infeasible":
        return np.zeros(shape), result
    (shares,) = result.marginals.values()
    return np.fromiter(shares.values(), dtype=np.float64, count=len(shares)).reshape(shape), result


def _joined(problem: Problem, memory_bytes: float) -> Model:
    """Return a model whose last variable represents the queried ones.

    Args:
        problem: Problem of a joint distribution.
        memory_bytes: Memory limit of the tables of the model, in bytes.

    Raises:
        MemoryLimitError: The tables exceed the limit.
    """
    sizes, kept = problem.model.sizes, problem.kept
    states = math.prod(sizes[v] for v in kept)
    cells = [
        math.prod(sizes[v] for v in table.scope if v not in kept) * (states if set(kept) & set(table.scope) else 1)
        for table in problem.tables
    ]
    needed = FLOAT_BYTES * max(sum(cells), states)
    if needed > memory_bytes:
        raise MemoryLimitError(
            f"an estimate of the joint distribution of {counted(len(kept), 'variable')} with "
            f"{counted(states, 'state')} takes "
            f"{bytes_text(needed)}, and {bytes_text(int(memory_bytes))} may be used: ask for fewer variables, or give "
            "more memory"
        )
    number_of = {v: number for number, v in enumerate(problem.free)}
    joint = len(number_of)
    values = dict(zip(kept, np.unravel_index(np.arange(states), [sizes[v] for v in kept]), strict=True)) if kept else {}
    tables = []
    for table in problem.tables:
        asked = [v for v in table.scope if v in values]
        others = [v for v in table.scope if v not in values]
        scope = [number_of[v] for v in others]
        cells_of_table = table.dense()
        if asked:
            axes = [table.scope.index(v) for v in (*asked, *others)]
            cells_of_table = cells_of_table.transpose(axes)[tuple(values[v] for v in asked)]
            scope = [joint, *scope]
        tables.append(Table(scope, cells_of_table))
    variables = [problem.model.variables[v] for v in problem.free]
    names = {variable.name for variable in variables}
    name = "joint"
    while name in names:
        name += "'"
    return Model([*variables, Variable(name, max(1, states))], tables, sense="probability")
