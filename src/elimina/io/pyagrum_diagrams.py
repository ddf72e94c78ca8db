"""Influence diagrams of pyAgrum."""

from __future__ import annotations

from typing import Any

import numpy as np

from elimina.errors import InputError
from elimina.io.pyagrum_networks import network_title, stored_values, table_of_tensor, variable_of_node
from elimina.model.decision_network import DiagramParts
from elimina.model.table import Table


def diagram_from_pyagrum(diagram: Any) -> DiagramParts:
    """Return the parts of an InfluenceDiagram of pyAgrum, its variables in the order of their node ids.

    Raises:
        InputError: ``diagram`` is something else.
        UnsupportedError: pyAgrum's array of a table differs from the table's cells.
    """
    if not hasattr(diagram, "isDecisionNode"):
        raise InputError(
            f"expected an InfluenceDiagram of pyAgrum, got an object of type {type(diagram).__name__}; "
            "elimina.from_pyagrum converts networks"
        )
    nodes = sorted(diagram.nodes())
    of_variables = [v for v in nodes if not diagram.isUtilityNode(v)]
    variables = [variable_of_node(diagram, v) for v in of_variables]
    index = {v.name: i for i, v in enumerate(variables)}
    tables = [table_of_tensor(diagram.cpt(v), index) for v in of_variables if diagram.isChanceNode(v)]
    names = {v: diagram.variable(v).name() for v in nodes}
    decisions = {
        names[v]: [names[parent] for parent in sorted(diagram.parents(v))]
        for v in of_variables
        if diagram.isDecisionNode(v)
    }
    utilities = {}
    for v in nodes:
        if diagram.isUtilityNode(v):
            tensor = diagram.utility(v)
            # The utility's own axis has a single state, and is dropped.
            scope = [index[name] for name in reversed(list(tensor.names)[1:])]
            utilities[names[v]] = Table(scope, np.asarray(stored_values(tensor))[..., 0])
    children = [table.scope[-1] for table in tables]
    return DiagramParts(variables, tables, children, decisions, utilities, False, network_title(diagram))
