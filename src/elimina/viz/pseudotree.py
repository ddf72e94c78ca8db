"""Diagram of a pseudo-tree: edges of the tree are solid, back edges are dashed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from elimina.number_texts import counted
from elimina.planning.tree import Tree
from elimina.viz.diagram import Diagram, Edge


def back_edges(tree: Tree, scopes: Sequence[Sequence[int]]) -> list[Edge]:
    """Return the pairs that share a cost function and are not child and parent, the lower node first.

    Args:
        tree: A pseudo-tree over all variables of the scopes, one node for each.
        scopes: Scopes of the cost functions.
    """
    number = {node.variable: n for n, node in enumerate(tree.nodes)}
    pairs = {tuple(sorted((number[u], number[v]))) for scope in scopes for u, v in combinations(scope, 2)}
    return sorted((low, high) for low, high in pairs if tree.nodes[low].parent != high)


def pseudotree_diagram(
    tree: Tree, scopes: Sequence[Sequence[int]], names: Sequence[str], max_back_edges: int | None = None
) -> Diagram:
    """Return the diagram of a pseudo-tree, with the tree's nodes in reverse order.

    Args:
        tree: A pseudo-tree with one node for each variable.
        scopes: Scopes of the cost functions; each lies on a path to a root.
        names: Names of the variables.
        max_back_edges: Largest number of back edges to draw; None for all.
    """
    count = len(tree.nodes)
    # Nodes are reversed, because parents come first in a diagram, and last in an elimination order.
    parents = [count - 1 - node.parent if node.parent >= 0 else -1 for node in reversed(tree.nodes)]
    levels = [0] * count
    for node, parent in enumerate(parents):
        levels[node] = levels[parent] + 1 if parent >= 0 else 0
    links = [(parent, node) for node, parent in enumerate(parents) if parent >= 0]
    back = [(count - 1 - low, count - 1 - high) for low, high in back_edges(tree, scopes)]
    drawn = back[:max_back_edges]
    left_out = len(back) - len(drawn)
    further = counted(len(back), "back edge")
    figures = f"{counted(count, 'variable')}, depth {max(levels) + 1}, width {tree.width}, {further}"
    return Diagram(
        "agents",
        "Pseudo-tree",
        f"{figures} (dotted)" if back else figures,
        [names[node.variable] for node in reversed(tree.nodes)],
        [*links, *drawn],
        parents=parents,
        dashed=frozenset(range(len(links), len(links) + len(drawn))),
        remarks=[f"{left_out:,} back edges are left out"] if left_out else [],
    )
