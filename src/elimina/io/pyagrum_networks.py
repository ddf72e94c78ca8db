"""Networks of pyAgrum as models, and models as networks of pyAgrum.

A tensor of pyAgrum has its variables' axes in the reverse order of their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError, UnsupportedError
from elimina.io.factor_arrays import arranged, factors_of, states_of
from elimina.io.network import conditional_tables, is_network
from elimina.model.model import Model
from elimina.model.senses import convert_sense
from elimina.model.states import State
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.system import import_package


@arguments.with_checked_keywords()
def from_pyagrum(network: Any, *, check: bool = True) -> Model:
    """Build a model from a BayesNet or MarkovRandomField of pyAgrum, its variables in the order of their node ids.

    The states of an IntegerVariable or a RangeVariable are int, those of other variables are their labels.

    Args:
        network: An object of pyAgrum.
        check: See ``Model``.

    Raises:
        InputError: ``network`` is neither, or a row of a distribution does not sum to 1.
        UnsupportedError: ``network`` is an influence diagram, or pyAgrum's array of a table differs from the cells.

    Examples:
        >>> import elimina
        >>> network = elimina.to_pyagrum(elimina.read("examples/pump.bif"))
        >>> elimina.from_pyagrum(network).variables[0].states
        ('dry', 'wet')
    """
    if hasattr(network, "utility"):
        raise UnsupportedError(
            "an influence diagram has decisions and utilities: convert it by elimina.InfluenceDiagram.from_pyagrum"
        )
    if not hasattr(network, "cpt") and not hasattr(network, "factor"):
        raise InputError(
            f"expected a network of pyAgrum, a BayesNet or a MarkovRandomField, got an object of type "
            f"{type(network).__name__}"
        )
    nodes = sorted(network.nodes())
    variables = [variable_of_node(network, v) for v in nodes]
    index = {v.name: i for i, v in enumerate(variables)}
    if hasattr(network, "cpt"):
        tables = [table_of_tensor(network.cpt(v), index) for v in nodes]
        children = [t.scope[-1] for t in tables]
        return Model(
            variables, tables, sense="probability", children=children, name=network_title(network), check=check
        )
    tables = [table_of_tensor(network.factor(scope), index) for scope in network.factors()]
    return Model(variables, tables, sense="probability", name=network_title(network))


def variable_of_node(network: Any, node: int) -> Variable:
    """Return the variable of a node of a network of pyAgrum."""
    variable = network.variable(node)
    return Variable(variable.name(), len(variable.labels()), _states(variable))


def _states(variable: Any) -> list[State]:
    gum = import_package("pyagrum", "pyagrum")
    is_integer = variable.varType() in (gum.VarType_INTEGER, gum.VarType_RANGE)
    return [int(label) if is_integer else label for label in variable.labels()]


def network_title(network: Any) -> str:
    """Return the name of a network of pyAgrum; empty if it has none."""
    return str(network.propertyWithDefault("name", ""))


def table_of_tensor(tensor: Any, index: dict[str, int]) -> Table:
    """Return the distribution in a tensor of pyAgrum, the axis of its first variable last."""
    names = list(tensor.names)
    scope = [*names[1:], *names[:1]]
    return Table([index[v] for v in scope], arranged(stored_values(tensor), names[::-1], scope))


def stored_values(tensor: Any) -> NDArray[np.float64]:
    """Return the values of a tensor of pyAgrum, the axis of its last variable first.

    NoisyOR, MAX and the like compute cells on demand. They have no buffer, and ``toarray`` returns uninitialised
    memory, so they are copied to a tensor with a buffer.

    Raises:
        UnsupportedError: pyAgrum's array differs from the tensor's cells.
    """
    gum = import_package("pyagrum", "pyagrum")
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
        index = np.unravel_index(number, values.shape)
        for axis, state in enumerate(reversed(index)):
            cell.chgVal(axis, int(state))
        if not np.array_equal(values[index], tensor.get(cell), equal_nan=True):
            raise UnsupportedError(
                f"the array of pyAgrum's tensor over {tensor.names} differs from its cells: it has {values[index]} "
                f"for {tensor.get(cell)} at {cell}; save the network as .bifxml, and read that file"
            )
    return values


@arguments.with_checked_keywords()
def to_pyagrum(model: Model) -> Any:
    """Build pyAgrum's network of a model: a BayesNet if it is a Bayesian network, else a MarkovRandomField.

    A Bayesian network has one conditional distribution for each variable, no cycle of parents, and no constant. Costs
    become probabilities as by ``convert_sense``. A Markov random field has one factor for each set of variables, so
    factors over the same set are multiplied; a constant is multiplied into the first factor.

    A variable with int states becomes a RangeVariable or an IntegerVariable, with its states in increasing order. Any
    other becomes a LabelizedVariable; bool states are written as ``True`` and ``False``.

    Raises:
        InputError: pyAgrum is not installed, or a factor or the constant is too large to be written out.

    Examples:
        >>> import elimina
        >>> network = elimina.to_pyagrum(elimina.read("examples/pump.bif"))
        >>> network.size()
        12
    """
    gum = import_package("pyagrum", "pyagrum")
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
    for factor_scope, values in _merged(model, names).items():
        _fill(result.addFactor(factor_scope), factor_scope, values)
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
    """Return a model in which integer states are in increasing order."""
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
    """Return the factors by the names of their variables; those over the same variables are multiplied."""
    merged: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for scope, values in factors_of(model):
        key = tuple(sorted(scope))
        factor = arranged(values, scope, key)
        merged[key] = merged[key] * factor if key in merged else factor
    return {tuple(names[v] for v in key): values for key, values in merged.items()}


def _fill(tensor: Any, scope: list[str] | tuple[str, ...], values: NDArray[np.float64]) -> None:
    tensor.fillWith(arranged(values, scope, tensor.names[::-1]).ravel().tolist())
