"""Networks of pgmpy as models, and models as networks of pgmpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError, UnsupportedError
from elimina.io.factor_arrays import factors_of, states_of
from elimina.io.network import conditional_tables, is_network
from elimina.model.model import Model
from elimina.model.senses import convert_sense
from elimina.model.states import State, native
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.system import import_package


@arguments.with_checked_keywords()
def from_pgmpy(network: Any, *, check: bool = True) -> Model:
    """Build a model from a discrete Bayesian network, Markov network, factor graph or junction tree of pgmpy.

    Variables are in the order of the nodes (then of the factors); names that are not strings become their ``str``.
    States of type str, int or bool (also of NumPy) are kept, others become their ``str``. Factors are rearranged to the
    order of states in the first factor of each variable.

    Args:
        network: An object of pgmpy.
        check: See ``Model``.

    Raises:
        InputError: ``network`` is none of these, a row of a distribution does not sum to 1, a variable has no
            distribution or factor, or factors disagree on a variable's states.
        UnsupportedError: A distribution is not given by a table, or the network is dynamic.

    Examples:
        >>> import elimina
        >>> network = elimina.to_pgmpy(elimina.read("examples/pump.bif"))
        >>> elimina.from_pgmpy(network).variables[0].states
        ('dry', 'wet')
    """
    factors = _factors(network)
    states = states_of_factors(factors)
    nodes = list(network.nodes())
    if hasattr(network, "get_cpds"):
        _check_one_each(nodes, [factor.variables[0] for factor in factors])
    if not hasattr(network, "get_factor_nodes"):
        _check_have_states(nodes, states)
    order = [v for v in nodes if v in states]
    order += [v for v in states if v not in order]
    variables = [Variable(str(v), len(states[v]), list(map(native_state, states[v]))) for v in order]
    index = {v: i for i, v in enumerate(order)}
    # The first variable, which is the child if there is one, moves to the end.
    scopes = [[index[v] for v in (*f.variables[1:], *f.variables[:1])] for f in factors]
    tables = [Table(scope, factor_values(f, states)) for scope, f in zip(scopes, factors, strict=True)]
    if not hasattr(network, "get_cpds"):
        return Model(variables, tables, sense="probability")
    return Model(variables, tables, sense="probability", children=[t.scope[-1] for t in tables], check=check)


def node_states(network: Any) -> dict[Any, list[Any]]:
    """Return the variables of a network of pgmpy, each with its states, without conversion.

    Raises:
        InputError: ``network`` is something else.
        UnsupportedError: A distribution is not given by a table, or the network is dynamic.
    """
    return states_of_factors(_factors(network))


def _factors(network: Any) -> list[Any]:
    if hasattr(network, "get_interface_nodes"):
        raise UnsupportedError(
            "a dynamic Bayesian network has no fixed number of variables: convert it by "
            "elimina.DynamicModel.from_pgmpy(network), whose method unroll(n) returns the model of n slices"
        )
    if hasattr(network, "get_cpds"):
        factors = list(network.get_cpds())
    elif hasattr(network, "get_factors"):
        factors = list(network.get_factors())
    else:
        raise InputError(f"expected a network of pgmpy, got an object of type {type(network).__name__}")
    for factor in factors:
        if not hasattr(factor, "state_names") or not hasattr(factor, "values"):
            raise UnsupportedError(f"{factor!r} is not a table; elimina handles discrete tables only")
    return factors


def states_of_factors(factors: Sequence[Any]) -> dict[Any, list[Any]]:
    """Return the states of each variable in the order of its distribution or, without one, of its first factor."""
    states: dict[Any, list[Any]] = {}
    for factor in factors:
        states.setdefault(factor.variables[0], list(factor.state_names[factor.variables[0]]))
    for factor in factors:
        for v in factor.variables:
            states.setdefault(v, list(factor.state_names[v]))
    return states


def native_state(state: Any) -> State:
    """Return a state of pgmpy as a str, an int or a bool."""
    plain = native(state)
    return plain if isinstance(plain, str | int) else str(state)


def _check_one_each(nodes: list[Any], children: list[Any]) -> None:
    missing = [v for v in nodes if v not in children]
    if missing or len(children) != len(nodes):
        culprit = missing[0] if missing else next(v for i, v in enumerate(children) if v in children[:i])
        raise InputError(f"expected one conditional distribution of node {culprit!r}, found {children.count(culprit)}")


def _check_have_states(nodes: list[Any], states: Mapping[Any, list[Any]]) -> None:
    """Check that each node is a variable of a factor, or a cluster of variables."""
    for node in nodes:
        is_cluster = isinstance(node, tuple) and all(v in states for v in node)
        if node not in states and not is_cluster:
            raise InputError(f"node {node!r} is in no factor, so its states are unknown: add a factor or drop the node")


def factor_values(factor: Any, states: Mapping[Any, list[Any]]) -> NDArray[np.float64]:
    """Return the values of a factor, each axis in the order of its variable's states, the first axis moved to the end.

    Raises:
        InputError: The factor has other states than these.
    """
    values = np.asarray(factor.values, dtype=np.float64)
    for axis, v in enumerate(factor.variables):
        factor_states = list(factor.state_names[v])
        if factor_states == states[v]:
            continue
        if len(factor_states) != len(states[v]) or any(s not in factor_states for s in states[v]):
            raise InputError(f"variable {v!r} has the states {states[v]} in one factor and {factor_states} in another")
        values = np.take(values, [factor_states.index(s) for s in states[v]], axis=axis)
    return np.moveaxis(values, 0, -1) if values.ndim else values


@arguments.with_checked_keywords()
def to_pgmpy(model: Model) -> Any:
    """Build pgmpy's network of a model: Bayesian if each variable has one conditional distribution, else a Markov one.

    Costs become probabilities as by ``convert_sense``. A model with a constant becomes a Markov network, and the
    constant is multiplied into the first factor. Values are copied as they are, so pgmpy's ``check_model`` may refuse
    rows that do not sum to 1.

    Raises:
        InputError: pgmpy is not installed, or a factor or the constant is too large to be written out.

    Examples:
        >>> import elimina
        >>> network = elimina.to_pgmpy(elimina.read("examples/pump.bif"))
        >>> len(network.nodes())
        12
    """
    models, factors = import_package("pgmpy", "pgmpy.models"), import_package("pgmpy", "pgmpy.factors.discrete")
    model = convert_sense(model, "probability")
    names = [v.name for v in model.variables]
    states = dict(zip(names, states_of(model), strict=True))
    if not is_network(model):
        return _markov(model, models, factors, names, states)
    network = getattr(models, "DiscreteBayesianNetwork", None) or models.BayesianNetwork
    result = network()
    result.add_nodes_from(names)
    for scope, values in conditional_tables(model):
        *parents, child = (names[v] for v in scope)
        result.add_edges_from([(parent, child) for parent in parents])
        rows = np.moveaxis(values, -1, 0).reshape(values.shape[-1], -1)
        scope_states = {v: states[v] for v in (child, *parents)}
        sizes = values.shape[:-1]
        result.add_cpds(
            factors.TabularCPD(child, len(rows), rows, parents or None, sizes or None, state_names=scope_states)
        )
    return result


def _markov(model: Model, models: Any, factors: Any, names: list[str], states: dict[str, list[State]]) -> Any:
    result = (getattr(models, "DiscreteMarkovNetwork", None) or models.MarkovNetwork)()
    result.add_nodes_from(names)
    for scope, values in factors_of(model):
        scope_names = [names[v] for v in scope]
        result.add_edges_from([(u, v) for i, v in enumerate(scope_names) for u in scope_names[:i]])
        result.add_factors(
            factors.DiscreteFactor(scope_names, values.shape, values, state_names={v: states[v] for v in scope_names})
        )
    return result
