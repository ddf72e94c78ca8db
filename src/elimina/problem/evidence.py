"""Application of evidence to a model: observed values, and likelihoods as factors or leaves."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError, UnsupportedError
from elimina.model.model import Model, variable_indices
from elimina.model.states import Evidence
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.option_names import option
from elimina.problem.merging import BEST, COUNT, COUNT_BEST, SUM, Merged, Purpose
from elimina.problem.observations import evidence_of
from elimina.problem.rewriting import is_rewritten, with_small_tables
from elimina.problem.semirings import SEMIRINGS
from elimina.problem.tasks import Task, described

Array = NDArray[Any]

_MIN_EXPONENT = -1000
"""Least exponent of two in a leaf's probabilities, which keeps them normal floats of full precision."""


class Observed(NamedTuple):
    """A model and its observations.

    Attributes:
        model: The caller's model, or a copy with likelihoods as factors or leaves, and possibly with smaller tables.
        values: Observed variable or leaf -> value index.
        merged: Variables with fewer values than in the caller's model, because equivalent ones are merged.
    """

    model: Model
    values: dict[int, int]
    merged: Mapping[int, Merged] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class LogWeights:
    """Natural logarithms of weights that may be too small for floats; minus infinity for 0."""

    logs: NDArray[np.float64]


def weights_of(variable: Variable, observation: int | Array) -> Array:
    """Return a weight for each state, as bool if the variable is observed.

    Args:
        variable: Variable of the evidence.
        observation: Index of the observed state, or likelihoods.
    """
    if not isinstance(observation, int):
        return observation
    observed = np.zeros(variable.size, dtype=bool)
    observed[observation] = True
    return observed


def with_leaves(model: Model, evidence: Mapping[int, int | Array]) -> Observed:
    """Turn likelihoods into observations of new variables (virtual evidence: Pearl 1988, section 2.2.2).

    The new variables are leaves after the model's variables. Each has a distribution given the variable with the
    likelihoods, so a Bayesian network stays a Bayesian network, and irrelevant variables can still be left out. If the
    ratio of likelihoods is too small for a float, the product of the probabilities of several leaves represents it.

    Args:
        model: A probability model.
        evidence: Variable -> index of its state, or likelihoods. A single positive likelihood makes its state observed.
    """
    variables, factors = list(model.variables), list(model.factors)
    children = None if model.children is None else list(model.children)
    values: dict[int, int] = {}
    names = {variable.name for variable in variables}
    constant = float(model.constant)
    for v, observation in evidence.items():
        weight = weights_of(model.variables[v], observation)
        high = float(weight.max())
        constant += math.log(high) if high > 0 else 0.0
        if np.count_nonzero(weight) == 1:
            values[v] = int(weight.argmax())
            continue
        for share in _shares(weight):
            leaf = len(variables)
            variables.append(Variable(_unused(names, variables[v].name), 2))
            factors.append(Table([v, leaf], np.stack([1 - share, share], axis=1)))
            values[leaf] = 1
            if children is not None:
                children.append(leaf)
    if len(variables) > len(model.variables) or constant != model.constant:
        model = Model(
            variables, factors, sense=model.sense, constant=constant, children=children, name=model.name, check=False
        )
    return Observed(model, values)


def with_factors(model: Model, evidence: Mapping[int, int | Array]) -> Observed:
    """Turn likelihoods into factors; a single positive likelihood also makes its state observed."""
    weights = {v: weights_of(model.variables[v], observation) for v, observation in evidence.items()}
    values = {v: int(w.argmax()) for v, w in weights.items() if np.count_nonzero(w) == 1}
    soft = [Table([v], w) for v, w in weights.items() if v not in values or w.max() != 1]
    if soft:
        model = Model(model.variables, [*model.factors, *soft], sense=model.sense, constant=model.constant)
    return Observed(model, values)


def _shares(weight: Array) -> Iterator[Array]:
    """Yield arrays of numbers from 0 to 1 whose exact product is the weights divided by the largest one."""
    high = float(weight.max())
    if high == 0:
        yield weight
        return
    mantissas, exponents = np.frexp(weight)
    mantissa, exponent = math.frexp(high)
    remaining = np.where(weight > 0, exponents - exponent, 0)
    quotients = mantissas / mantissa
    # Each quotient is below 2. Where it is above 1, it is multiplied by a negative power of two, so the yielded
    # numbers are at most 1.
    step = np.maximum(remaining, _MIN_EXPONENT)
    yield np.ldexp(quotients, step)
    while (remaining := remaining - step).any():
        step = np.maximum(remaining, _MIN_EXPONENT)
        yield np.ldexp(np.ones(len(weight)), step)


def _unused(names: set[str], name: str) -> str:
    """Return an unused name for a leaf, and reserve it."""
    name = f"likelihood of {name}"
    while name in names:
        name += "'"
    names.add(name)
    return name


def indices_asked(model: Model, task: Task, query: Sequence[str | int] | None) -> tuple[int, ...] | None:
    """Return the indices of the query's variables; None: all.

    Raises:
        InputError: The task does not support a query, or requires one; or the query contains an unknown variable.
    """
    if query is not None and not described(task).takes_query:
        is_map = described(task).is_optimum and model.sense == "probability"
        alternative = ", or take mmap, the best states of some variables" if is_map else ""
        raise InputError(f"a query is for the tasks mar and mmap: leave it out for {task}{alternative}")
    indices = None if query is None else tuple(dict.fromkeys(variable_indices(model, query, "query")))
    if described(task).keeps_query and not indices:
        raise InputError(
            f"the task {task} needs a query: name the variables whose most probable states are wanted "
            f"({option('query', ['A', 'B'])})"
        )
    return indices


def known_total(model: Model, upper_bound: float | None) -> int | float | None:
    """Return the cost of a known solution, rounded to the better integer if costs are integers; None if unknown.

    Raises:
        UnsupportedError: The model has probabilities.
    """
    if upper_bound is None:
        return None
    if model.sense == "probability":
        raise UnsupportedError(
            f"the upper bound {upper_bound} is for costs, and this model has probabilities: leave it out, or "
            f"give the known assignment as a hint ({option('hint')})"
        )
    if not model.is_integer:
        return float(upper_bound)
    return math.floor(upper_bound) if model.sign == 1 else math.ceil(upper_bound)


def observe(model: Model, task: Task, evidence: Evidence, asked: Sequence[int] | None = None) -> Observed:
    """Return the model with its evidence; large listed tables and domains are made smaller if the task permits.

    Args:
        model: Model, as in ``elimina.solve``.
        task: Task, as in ``elimina.solve``.
        evidence: Evidence, as in ``elimina.solve``.
        asked: Variables of the query.
    """
    observed = with_evidence(model, task, evidence)
    properties = described(task)
    is_free = SEMIRINGS[properties.semiring].is_additive and not (properties.is_sum and model.sense != "probability")
    if not is_free or properties.lists_assignments or not is_rewritten(observed.model):
        return observed
    maximised = asked or () if properties.keeps_query else ()
    return Observed(*with_small_tables(observed.model, observed.values, _purpose(task), maximised))


def _purpose(task: Task) -> Purpose:
    """Return a task's use of the values of eliminated variables."""
    properties = described(task)
    if properties.is_optimum:
        return BEST
    if properties.is_sum:
        return SUM
    return COUNT_BEST if properties.is_beyond_optimum else COUNT


def _defining_tables(model: Model, rewritten: Model) -> dict[int, list[Table]]:
    """Return, for each auxiliary variable of ``observe``, the listed tables in which it is the last variable."""
    tables: dict[int, list[Table]] = {v: [] for v in range(len(model.variables), len(rewritten.variables))}
    for table in rewritten.factors if tables else ():
        if table.rows is not None and table.scope[-1] in tables:
            tables[table.scope[-1]].append(table)
    return tables


def _last_values(table: Table, values: Mapping[int, int]) -> Array:
    """Return the values of a listed table's last variable in the tuples with the given values of other variables."""
    assert table.rows is not None
    is_there = (table.rows[:, :-1] == [values[v] for v in table.scope[:-1]]).all(axis=1)
    last: Array = table.rows[is_there, -1]
    return last


def values_there(model: Model, assignment: Mapping[int, int], rewritten: Model) -> dict[int, int]:
    """Translate values of a model's variables to the rewritten model from ``observe``.

    An auxiliary variable gets a value if all other variables of its tables have values.
    """
    values = {}
    for v, value in assignment.items():
        variable, other_variable = model.variables[v], rewritten.variables[v]
        other_value = value if variable.size == other_variable.size else other_variable.find(variable.state(value))
        # The last value represents the merged values.
        values[v] = other_variable.size - 1 if other_value is None else other_value
    for v, tables in _defining_tables(model, rewritten).items():
        if all(values.keys() >= set(table.scope[:-1]) for table in tables):
            allowed = [_last_values(table, values) for table in tables]
            common = functools.reduce(np.intersect1d, allowed)
            values[v] = int(common[0]) if len(common) else 0
    return values


def with_evidence(model: Model, task: Task, evidence: Evidence) -> Observed:
    """Return the model with its evidence; variables keep all their values.

    Likelihoods become factors or, for sums, leaves.

    Raises:
        InputError: The evidence is invalid, or contains likelihoods that the task or the model does not support.
    """
    observations = evidence_of(model, evidence)
    soft = [v for v, observation in observations.items() if not isinstance(observation, int)]
    if not soft:
        return Observed(
            model, {v: observation for v, observation in observations.items() if isinstance(observation, int)}
        )
    target = described(task).soft_evidence
    if model.sense != "probability" or target is None:
        name = model.variables[soft[0]].name
        reason = f"the task {task}" if target is None else f"a model with costs ({model.sense})"
        raise InputError(f"the evidence about variable {name!r} is an array of likelihoods, which {reason} cannot take")
    return with_factors(model, observations) if target == "factors" else with_leaves(model, observations)
