"""Models from and for other Python packages, which are imported only to make their objects.

Tested with pgmpy 1.1 and pyAgrum 3.3. A tensor of pyAgrum has its variables' axes in the reverse order of their names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError, UnsupportedError
from elimina.io import convert_sense
from elimina.io.network import Conditional, conditional_tables, is_network
from elimina.model.model import Model
from elimina.model.states import State, native
from elimina.model.table import Table
from elimina.model.variable import Variable, listed_states


def imported(package: str, module: str) -> Any:
    """Import a module of another package.

    Raises:
        InputError: The package is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this needs the package {package} ({error}); install it: pip install {package}") from error


def states_of(model: Model) -> list[list[State]]:
    """Return the states of each variable."""
    return [listed_states(v) for v in model.variables]


def factors_of(model: Model) -> list[Conditional]:
    """Return scopes and arrays of the factors, none of them empty: the first one takes in all constants.

    Raises:
        InputError: The constant is beyond the range of a double, there is no variable to put it on, or a factor is
            too large to be written out.
    """
    tables = list(conditional_tables(model))
    try:
        scale = math.exp(model.constant)
    except OverflowError:
        scale = math.inf
    if scale == math.inf or (scale == 0 and model.constant > -math.inf):
        raise InputError(f"the model's constant {model.constant} has no exponential in a double; subtract it first")
    scale *= math.prod(float(values) for scope, values in tables if not scope)
    tables = [(scope, values) for scope, values in tables if scope]
    if scale == 1:
        return tables
    if not model.variables:
        raise InputError("a model without variables cannot be handed over")
    if not tables:
        return [((0,), np.full(model.sizes[0], scale))]
    (scope, values), *rest = tables
    return [(scope, values * scale), *rest]


def arranged(values: NDArray[np.float64], scope: Sequence[Any], wanted: Sequence[Any]) -> NDArray[np.float64]:
    """Return the array with the axes of ``scope`` in another order."""
    return np.transpose(values, [scope.index(v) for v in wanted])


def from_pgmpy(network: Any, *, check: bool = True) -> Model:
    """Build a model from a discrete Bayesian network, Markov network, factor graph or junction tree of pgmpy.

    Variables are in the order of the nodes (then of the factors); names that are not strings become their ``str``.
    States that are str, int or bool (also of NumPy) stay what they are, others become their ``str``. A factor that
    lists a variable's states in another order than its first factor is rearranged.

    Args:
        network: An object of pgmpy.
        check: See ``Model``.

    Raises:
        InputError: It is none of these, a row of a distribution does not sum to 1, a variable has no distribution or
            factor, or factors disagree on a variable's states.
        UnsupportedError: A distribution is not given by a table, or the network is dynamic.
    """
    factors = _pgmpy_factors(network)
    states = _pgmpy_states(factors)
    nodes = list(network.nodes())
    if hasattr(network, "get_cpds"):
        _check_one_each(nodes, [factor.variables[0] for factor in factors])
    if not hasattr(network, "get_factor_nodes"):
        _check_have_states(nodes, states)
    order = [v for v in nodes if v in states]
    order += [v for v in states if v not in order]
    variables = [Variable(str(v), len(states[v]), list(map(_state, states[v]))) for v in order]
    index = {v: i for i, v in enumerate(order)}
    # The first variable (the child, if there is one) goes to the end.
    scopes = [[index[v] for v in (*f.variables[1:], *f.variables[:1])] for f in factors]
    tables = [Table(scope, _values(f, states)) for scope, f in zip(scopes, factors, strict=True)]
    if not hasattr(network, "get_cpds"):
        return Model(variables, tables, sense="probability")
    return Model(variables, tables, sense="probability", children=[t.scope[-1] for t in tables], check=check)


def pgmpy_states(network: Any) -> dict[Any, list[Any]]:
    """Return the variables of a network of pgmpy and their states, both as pgmpy has them.

    Raises:
        InputError: As ``from_pgmpy``.
        UnsupportedError: Likewise.
    """
    return _pgmpy_states(_pgmpy_factors(network))


def _pgmpy_factors(network: Any) -> list[Any]:
    if hasattr(network, "get_interface_nodes"):
        raise UnsupportedError(
            "a dynamic Bayesian network has no fixed number of variables: pass the network of its first two time "
            "slices, network.get_constant_bn(), or a network that you unrolled"
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


def _pgmpy_states(factors: Sequence[Any]) -> dict[Any, list[Any]]:
    states: dict[Any, list[Any]] = {}
    for factor in factors:
        states.setdefault(factor.variables[0], list(factor.state_names[factor.variables[0]]))
    for factor in factors:
        for v in factor.variables:
            states.setdefault(v, list(factor.state_names[v]))
    return states


def _state(state: Any) -> State:
    known = native(state)
    return known if isinstance(known, str | int) else str(state)


def _check_one_each(nodes: list[Any], children: list[Any]) -> None:
    missing = [v for v in nodes if v not in children]
    if missing or len(children) != len(nodes):
        culprit = missing[0] if missing else next(v for i, v in enumerate(children) if v in children[:i])
        raise InputError(f"node {culprit!r} needs one conditional distribution, it has {children.count(culprit)}")


def _check_have_states(nodes: list[Any], states: Mapping[Any, list[Any]]) -> None:
    """Check that each node is a variable of a factor, or a cluster of variables."""
    for node in nodes:
        is_cluster = isinstance(node, tuple) and all(v in states for v in node)
        if node not in states and not is_cluster:
            raise InputError(f"node {node!r} is in no factor, so its states are unknown: add a factor or drop the node")


def _values(factor: Any, states: dict[Any, list[Any]]) -> NDArray[np.float64]:
    values = np.asarray(factor.values, dtype=np.float64)
    for axis, v in enumerate(factor.variables):
        own = list(factor.state_names[v])
        if own == states[v]:
            continue
        if len(own) != len(states[v]) or any(s not in own for s in states[v]):
            raise InputError(f"variable {v!r} has the states {states[v]} in one factor and {own} in another")
        values = np.take(values, [own.index(s) for s in states[v]], axis=axis)
    return np.moveaxis(values, 0, -1) if values.ndim else values


def to_pgmpy(model: Model) -> Any:
    """Build pgmpy's network of a model: Bayesian if each variable has one conditional distribution, else a Markov one.

    Costs become probabilities as by ``convert_sense``; a constant is multiplied into the first factor. Values are
    copied as they are, so pgmpy's ``check_model`` may refuse rows that do not sum to 1.

    Raises:
        InputError: pgmpy is not installed, or a factor or the constant is too large to be written out.
    """
    models, factors = imported("pgmpy", "pgmpy.models"), imported("pgmpy", "pgmpy.factors.discrete")
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
        own = {v: states[v] for v in (child, *parents)}
        sizes = values.shape[:-1]
        result.add_cpds(factors.TabularCPD(child, len(rows), rows, parents or None, sizes or None, state_names=own))
    return result


def _markov(model: Model, models: Any, factors: Any, names: list[str], states: dict[str, list[State]]) -> Any:
    result = (getattr(models, "DiscreteMarkovNetwork", None) or models.MarkovNetwork)()
    result.add_nodes_from(names)
    for scope, values in factors_of(model):
        own = [names[v] for v in scope]
        result.add_edges_from([(u, v) for i, v in enumerate(own) for u in own[:i]])
        result.add_factors(factors.DiscreteFactor(own, values.shape, values, state_names={v: states[v] for v in own}))
    return result


def from_pyagrum(network: Any, *, check: bool = True) -> Model:
    """Build a model from a BayesNet or MarkovRandomField of pyAgrum, its variables in the order of their node ids.

    The states of an IntegerVariable or a RangeVariable are int, those of other variables are their labels.

    Args:
        network: An object of pyAgrum.
        check: See ``Model``.

    Raises:
        InputError: It is neither, or a row of a distribution does not sum to 1.
        UnsupportedError: It is an influence diagram.
    """
    if hasattr(network, "utility"):
        raise UnsupportedError("an influence diagram has decisions and utilities; elimina handles chance nodes only")
    if not hasattr(network, "cpt") and not hasattr(network, "factor"):
        raise InputError(
            f"expected a network of pyAgrum, a BayesNet or a MarkovRandomField, got an object of type "
            f"{type(network).__name__}"
        )
    nodes = sorted(network.nodes())
    found = [network.variable(v) for v in nodes]
    variables = [Variable(v.name(), len(v.labels()), _states(v)) for v in found]
    index = {v.name: i for i, v in enumerate(variables)}
    if hasattr(network, "cpt"):
        tables = [_table(network.cpt(v), index) for v in nodes]
        children = [t.scope[-1] for t in tables]
        return Model(variables, tables, sense="probability", children=children, name=_title(network), check=check)
    tables = [_table(network.factor(scope), index) for scope in network.factors()]
    return Model(variables, tables, sense="probability", name=_title(network))


def _states(variable: Any) -> list[State]:
    gum = imported("pyagrum", "pyagrum")
    is_integer = variable.varType() in (gum.VarType_INTEGER, gum.VarType_RANGE)
    return [int(label) if is_integer else label for label in variable.labels()]


def _title(network: Any) -> str:
    return str(network.propertyWithDefault("name", ""))


def _table(tensor: Any, index: dict[str, int]) -> Table:
    names = list(tensor.names)
    scope = [*names[1:], *names[:1]]
    return Table([index[v] for v in scope], arranged(_stored_values(tensor), names[::-1], scope))


def _stored_values(tensor: Any) -> NDArray[np.float64]:
    """Return the values of a tensor of pyAgrum, the axis of its last variable first.

    NoisyOR, MAX and the like compute each cell when it is asked for. They have no buffer, and ``toarray`` returns
    memory that was never written; so they are copied to a tensor with one.

    Raises:
        UnsupportedError: pyAgrum's array differs from the tensor's cells.
    """
    gum = imported("pyagrum", "pyagrum")
    stored = tensor
    try:
        tensor.as_nparray()
    except RuntimeError:
        stored = gum.Tensor()
        for variable in tensor.variablesSequence():
            stored.add(variable)
        stored.fillWith(tensor)
    values = np.asarray(stored.toarray(), dtype=np.float64)
    cell = gum.Instantiation(tensor)
    for number in {0, values.size // 2, values.size * 2 // 3, values.size - 1}:
        place = np.unravel_index(number, values.shape)
        for axis, state in enumerate(reversed(place)):
            cell.chgVal(axis, int(state))
        if not np.array_equal(values[place], tensor.get(cell), equal_nan=True):
            raise UnsupportedError(
                f"the array of pyAgrum's tensor over {tensor.names} differs from its cells: it has {values[place]} "
                f"for {tensor.get(cell)} at {cell}; save the network as .bifxml, and read that file"
            )
    return values


def to_pyagrum(model: Model) -> Any:
    """Build pyAgrum's network of a model: a BayesNet if it is a Bayesian network, else a MarkovRandomField.

    A Bayesian network has one conditional distribution for each variable and no cycle of parents. Costs become
    probabilities as by ``convert_sense``. A Markov random field has one factor for a set of variables, so those over
    the same ones are multiplied, and a constant is multiplied into the first.

    A variable whose states are int becomes a RangeVariable or an IntegerVariable, which has its states in increasing
    order; another one becomes a LabelizedVariable, with states that are bool as ``True`` and ``False``.

    Raises:
        InputError: pyAgrum is not installed, or a factor or the constant is too large to be written out.
    """
    gum = imported("pyagrum", "pyagrum")
    model = _with_increasing_states(convert_sense(model, "probability"))
    bayes = is_network(model)
    result = gum.BayesNet() if bayes else gum.MarkovRandomField()
    if model.name:
        result.setProperty("name", model.name)
    names = [v.name for v in model.variables]
    for name, states in zip(names, states_of(model), strict=True):
        result.add(_variable(gum, name, states))
    if bayes:
        for scope, values in conditional_tables(model):
            *parents, child = (names[v] for v in scope)
            for parent in parents:
                result.addArc(parent, child)
            _fill(result.cpt(child), [*parents, child], values)
        return result
    for own, values in _merged(model, names).items():
        _fill(result.addFactor(own), own, values)
    return result


def _is_integer(states: Sequence[State]) -> bool:
    return all(isinstance(state, int) and not isinstance(state, bool) for state in states)


def _variable(gum: Any, name: str, states: Sequence[State]) -> Any:
    if not _is_integer(states):
        return gum.LabelizedVariable(name, name, list(map(str, states)))
    if list(states) == list(range(int(states[0]), int(states[0]) + len(states))):
        return gum.RangeVariable(name, name, states[0], states[-1])
    return gum.IntegerVariable(name, name, list(states))


def _with_increasing_states(model: Model) -> Model:
    """Sort the states of variables whose states are int."""
    orders: dict[int, list[int]] = {}
    variables = list(model.variables)
    for v, states in enumerate(states_of(model)):
        order = sorted(range(len(states)), key=states.__getitem__) if _is_integer(states) else []
        if order != sorted(order):
            orders[v] = order
            variables[v] = Variable(variables[v].name, len(states), [states[x] for x in order])
    if not orders:
        return model
    tables = []
    for factor in model.factors:
        values = factor.dense()
        for axis, v in enumerate(factor.scope):
            values = np.take(values, orders[v], axis=axis) if v in orders else values
        tables.append(Table(factor.scope, values))
    return Model(
        variables, tables, sense=model.sense, constant=model.constant, children=model.children, name=model.name
    )


def _merged(model: Model, names: list[str]) -> dict[tuple[str, ...], NDArray[np.float64]]:
    """Return the factors, with those over the same variables multiplied."""
    merged: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for scope, values in factors_of(model):
        key = tuple(sorted(scope))
        factor = arranged(values, scope, key)
        merged[key] = merged[key] * factor if key in merged else factor
    return {tuple(names[v] for v in key): values for key, values in merged.items()}


def _fill(tensor: Any, scope: list[str] | tuple[str, ...], values: NDArray[np.float64]) -> None:
    tensor.fillWith(arranged(values, scope, tensor.names[::-1]).ravel().tolist())
