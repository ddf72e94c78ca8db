"""A textbook filter of AllDifferent."""

from __future__ import annotations

import networkx as nx


def textbook(given: list[list[int]]) -> list[list[int]] | None:
    """Régin (AAAI 1994): a maximum matching, strongly connected components, and what free values reach."""
    graph = nx.Graph((("x", i), ("v", value)) for i, values in enumerate(given) for value in values)
    matching = nx.bipartite.hopcroft_karp_matching(graph, [("x", i) for i in range(len(given))])
    if any(("x", i) not in matching for i in range(len(given))):
        return None
    residual = nx.DiGraph()
    for i, values in enumerate(given):
        for value in values:
            x, v = ("x", i), ("v", value)
            residual.add_edge(v, x) if matching[x] == v else residual.add_edge(x, v)
    for node in list(residual):
        if node[0] == "v":
            residual.add_edge(*((("t",), node) if node in matching else (node, ("t",))))
    component = {node: k for k, nodes in enumerate(nx.strongly_connected_components(residual)) for node in nodes}
    return [
        [v for v in values if matching["x", i] == ("v", v) or component["x", i] == component["v", v]]
        for i, values in enumerate(given)
    ]
