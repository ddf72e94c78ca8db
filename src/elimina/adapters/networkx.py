"""Models as graphs of networkx, and graphs with tables as models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from elimina import arguments
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable, listed_states
from elimina.system import import_package
from elimina.viz.graph import edges_of


def to_networkx(model: Model) -> Any:
    """Return a model's graph: a ``DiGraph`` of a Bayesian network, else a ``Graph`` of the pairs that share a factor.

    Nodes are the variables' names, with the attributes ``states`` and, in a Bayesian network, ``parents`` and ``table``
    (an axis for each parent in this order, the variable's own last).

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
    return graph


def from_networkx(graph: Any) -> Model:
    """Build a model from a graph with tables.

    Args:
        graph: A ``DiGraph`` is a Bayesian network: its nodes have the attributes ``states`` and ``table``, and may have
            ``parents``, the order of the table's axes, by default that of the edges. A ``Graph`` has nodes with
            ``states``, and nodes and edges that may have ``costs`` to be minimised; an edge's array has an axis for
            each of its nodes, in the order of the model's variables.

    Raises:
        TypeError: ``graph`` is something else.
        InputError: A node has no states or no table, a table does not fit, or parents form a cycle.
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
        costs = [(f"node {v!r}", [index[v]], data) for v, data in graph.nodes.items()]
        costs += [(f"edge {(u, v)!r}", sorted((index[u], index[v])), data) for u, v, data in graph.edges(data=True)]
        tables = [_table(where, variables, scope, data["costs"]) for where, scope, data in costs if "costs" in data]
        return Model(variables, tables)
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
    return Model(variables, factors, sense="probability", children=range(len(variables)))


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
