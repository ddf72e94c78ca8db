"""Models as graphs of networkx, and graphs with tables as models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.table import CLOSE, Sense, Table, forbidden_value
from elimina.model.variable import Variable, listed_states
from elimina.system import import_package
from elimina.viz.graph import edges_of

_MODEL_ATTRIBUTES = ("sense", "constant", "upper_bound", "decimals", "name")
"""Attributes of a model that its graph has, too."""

_LEFT_OUT = "factors_left_out"
"""Attribute of a graph that does not hold its model's factors: the reason."""

_MAX_CELLS = 10_000_000
"""Largest number of cells of a table that a graph holds."""


def to_networkx(model: Model) -> Any:
    """Return a model's graph: a ``DiGraph`` of a Bayesian network, else a ``Graph`` of the pairs that share a factor.

    Nodes are the variables' names, with the attributes ``states`` and, in a Bayesian network, ``parents`` and ``table``
    (an axis for each parent in this order, the variable's own last). In other models, nodes and edges have the
    attribute ``costs`` (for ``probability``, products of factors), an axis for each variable in the order of the model,
    and the graph has it for factors without variables. A graph cannot hold factors over more than two variables, or
    tables of more than 10^7 cells; it then has no costs, and ``from_networkx`` refuses it.

    The graph has the model's ``sense``, ``constant``, ``upper_bound``, ``decimals`` and ``name`` as attributes.

    Raises:
        TypeError: ``model`` is something else.
        InputError: networkx is not installed.
    """
    if not isinstance(model, Model):
        raise arguments.wrong_type("model", model, "a Model")
    networkx = import_package("networkx", "networkx")
    names = [v.name for v in model.variables]
    graph = networkx.Graph() if model.children is None else networkx.DiGraph()
    graph.add_nodes_from((v.name, {"states": listed_states(v)}) for v in model.variables)
    graph.add_edges_from((names[a], names[b]) for a, b in edges_of(model))
    for factor, child in zip(model.factors, model.children or [], strict=False):
        parents = [v for v in factor.scope if v != child]
        values = np.moveaxis(factor.dense(), factor.scope.index(child), -1)
        graph.nodes[names[child]].update(parents=[names[v] for v in parents], table=values)
    graph.graph.update({name: getattr(model, name) for name in _MODEL_ATTRIBUTES})
    if model.children is None:
        _write_costs(model, graph, names)
    return graph


def _write_costs(model: Model, graph: Any, names: Sequence[str]) -> None:
    """Write the factors to the nodes and edges of a graph, or the reason why it does not hold them."""
    for factor in model.factors:
        if len(factor.scope) > 2 or factor.cells > _MAX_CELLS:
            size = f"{len(factor.scope):,} variables" if len(factor.scope) > 2 else f"{factor.cells:,} cells"
            graph.graph[_LEFT_OUT] = f"a factor of its model has {size}"
            return
    tables: dict[tuple[int, ...], NDArray[Any]] = {}
    for factor in model.factors:
        scope = tuple(sorted(factor.scope))
        values = factor.dense().transpose([factor.scope.index(v) for v in scope])
        tables[scope] = _joined(tables[scope], values, model.sense) if scope in tables else values
    for scope, values in tables.items():
        nodes = tuple(names[v] for v in scope)
        holder = graph.edges[nodes] if len(nodes) == 2 else graph.nodes[nodes[0]] if nodes else graph.graph
        holder["costs"] = values.copy()


def _joined(first: NDArray[Any], second: NDArray[Any], sense: Sense) -> NDArray[Any]:
    """Return one table for two of the same shape: their sum, or the product of probabilities.

    Raises:
        InputError: Integer costs are too large to be added.
    """
    if sense == "probability":
        product: NDArray[Any] = first * second
        return product
    dtype = np.int64 if first.dtype.kind == second.dtype.kind == "i" else np.float64
    is_forbidden = np.zeros(first.shape, dtype=bool)
    total = np.zeros(first.shape, dtype=dtype)
    for values in (first, second):
        is_lost = values == forbidden_value(sense, values.dtype)
        is_forbidden |= is_lost
        kept = np.where(is_lost, 0, values)
        if dtype == np.int64 and int(np.abs(total).max(initial=0)) + int(np.abs(kept).max(initial=0)) >= CLOSE:
            raise InputError("factors over the same variables have costs that are too large to be added")
        total = total + kept
    return np.where(is_forbidden, forbidden_value(sense, dtype), total)


def from_networkx(graph: Any) -> Model:
    """Build a model from a graph with tables.

    Args:
        graph: A ``DiGraph`` is a Bayesian network: its nodes have the attributes ``states`` and ``table``, and may have
            ``parents``, the order of the table's axes, by default that of the edges. A ``Graph`` has nodes with
            ``states``, and nodes and edges that may have ``costs`` to be minimised; an edge's array has an axis for
            each of its nodes, in the order of the model's variables. The graph may have the attributes ``sense``,
            ``constant``, ``upper_bound``, ``decimals`` and ``name`` of a model (of a network, the constant and the
            name), and ``costs`` that apply to all assignments.

    Raises:
        TypeError: ``graph`` or one of its attributes is something else.
        InputError: A node has no states or no table, a table does not fit, parents form a cycle, an attribute is
            invalid, or the graph comes from ``to_networkx`` and does not hold the model's factors.
    """
    networkx = import_package("networkx", "networkx")
    if not isinstance(graph, networkx.Graph):
        raise arguments.wrong_type("graph", graph, "a graph of networkx")
    index = {node: number for number, node in enumerate(graph.nodes)}
    lacking = next((node for node in graph.nodes if "states" not in graph.nodes[node]), None)
    if lacking is not None:
        raise InputError(f"node {lacking!r} has no attribute 'states'")
    states = {v: _listed(v, "states", labels) for v, labels in graph.nodes(data="states")}
    variables = [Variable(str(v), len(labels), labels) for v, labels in states.items()]
    if not graph.is_directed():
        if _LEFT_OUT in graph.graph:
            raise InputError(
                f"the graph does not hold the costs of its model: {graph.graph[_LEFT_OUT]}, and a graph holds those of "
                "nodes and edges; write the model to a file instead (elimina.write)"
            )
        costs: list[tuple[str, list[int], Any]] = [("the graph", [], graph.graph)]
        costs += [(f"node {v!r}", [index[v]], data) for v, data in graph.nodes.items()]
        costs += [(f"edge {(u, v)!r}", sorted((index[u], index[v])), data) for u, v, data in graph.edges(data=True)]
        tables = [_table(where, variables, scope, data["costs"]) for where, scope, data in costs if "costs" in data]
        attributes = {name: graph.graph[name] for name in _MODEL_ATTRIBUTES if name in graph.graph}
        decimals = attributes.pop("decimals", None)
        model = Model(variables, tables, **attributes)
        model.decimals = None if decimals is None else arguments.integer("decimals", decimals, 0)
        return model
    factors = []
    for node, data in graph.nodes.items():
        if "table" not in data:
            raise InputError(f"node {node!r} has no attribute 'table'")
        parents = _listed(node, "parents", data.get("parents", list(graph.predecessors(node))))
        unknown = next((p for p in parents if p not in index), None)
        if unknown is not None:
            raise InputError(f"node {node!r} has the parent {unknown!r}, which the graph does not have")
        scope = [*(index[p] for p in parents), index[node]]
        factors.append(_table(f"node {node!r}", variables, scope, data["table"]))
    constant, name = graph.graph.get("constant", 0), graph.graph.get("name", "")
    children = range(len(variables))
    return Model(variables, factors, sense="probability", constant=constant, children=children, name=name)


def _table(where: str, variables: Sequence[Variable], scope: Sequence[int], values: Any) -> Table:
    """Make the table of a node or an edge; ``where`` names the node or edge in errors."""
    try:
        table = Table(scope, values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    expected_sizes = tuple(variables[v].size for v in scope)
    if table.sizes != expected_sizes:
        raise InputError(f"{where} has a table of the shape {table.sizes}; the numbers of states are {expected_sizes}")
    return table


def _listed(node: Any, attribute: str, value: Any) -> list[Any]:
    if isinstance(value, str | set | frozenset) or not isinstance(value, Iterable):
        raise InputError(f"the attribute {attribute!r} of node {node!r} is {arguments.shown(value)}; give a list")
    return list(value)
