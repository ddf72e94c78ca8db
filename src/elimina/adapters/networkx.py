"""Graphs of networkx: of models, and models from graphs with tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from elimina.errors import InputError
from elimina.io.peers import imported
from elimina.model import Model, Variable
from elimina.table import Table
from elimina.viz.graph import edges_of


def to_networkx(model: Model) -> Any:
    """Return a model's graph: a ``DiGraph`` of a Bayesian network, else a ``Graph`` of the pairs that share a factor.

    Nodes are the variables' names, with the attributes ``states`` and, in a Bayesian network, ``parents`` and ``table``
    (an axis for each parent in this order, the variable's own last).

    Raises:
        InputError: networkx is not installed.
    """
    networkx = imported("networkx", "networkx")
    names = [v.name for v in model.variables]
    graph = networkx.Graph() if model.children is None else networkx.DiGraph()
    graph.add_nodes_from((v.name, {"states": list(v.all_states)}) for v in model.variables)
    graph.add_edges_from((names[a], names[b]) for a, b in edges_of(model))
    for factor, child in zip(model.factors, model.children or [], strict=False):
        parents = [v for v in factor.scope if v != child]
        values = np.moveaxis(factor.dense(), factor.scope.index(child), -1)
        graph.nodes[names[child]].update(parents=[names[v] for v in parents], table=values)
    return graph


def from_networkx(graph: Any) -> Model:
    """Build a model from a graph with tables.

    Args:
        graph: A ``DiGraph`` whose nodes have the attributes ``states`` and ``table`` (and ``parents``, the order of the
            table's axes, by default that of the edges): a Bayesian network. Or a ``Graph`` whose nodes have ``states``,
            and whose nodes and edges may have ``costs``: costs to be minimised, an axis for each node of an edge in the
            order of the model's variables.

    Raises:
        InputError: A node has no states or no table, or a table does not fit.
    """
    index = {node: number for number, node in enumerate(graph.nodes)}
    lacking = next((node for node in graph.nodes if "states" not in graph.nodes[node]), None)
    if lacking is not None:
        raise InputError(f"node {lacking!r} has no attribute 'states'")
    variables = [Variable(str(v), len(data["states"]), list(data["states"])) for v, data in graph.nodes.items()]
    if not graph.is_directed():
        tables = [Table([index[v]], data["costs"]) for v, data in graph.nodes.items() if "costs" in data]
        for u, v, data in graph.edges(data=True):
            if "costs" in data:
                tables.append(Table(sorted((index[u], index[v])), data["costs"]))
        return Model(variables, tables)
    factors = []
    for node, data in graph.nodes.items():
        if "table" not in data:
            raise InputError(f"node {node!r} has no attribute 'table'")
        parents = data.get("parents", list(graph.predecessors(node)))
        factors.append(Table([*(index[p] for p in parents), index[node]], data["table"]))
    return Model(variables, factors, sense="probability", children=range(len(variables)))
