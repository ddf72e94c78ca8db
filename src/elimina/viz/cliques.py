"""From a bucket tree to the junction tree of its maximal cliques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class CliqueTree(NamedTuple):
    """A junction tree (a forest where the model falls apart).

    Attributes:
        scopes: The cliques; none is part of another.
        parents: Index of each clique's parent; -1 for a root.
    """

    scopes: tuple[frozenset[int], ...]
    parents: tuple[int, ...]


def cliques(scopes: Sequence[frozenset[int]], parents: Sequence[int]) -> CliqueTree:
    """Contract the edges of which one end is part of the other.

    The running intersection property makes these edges enough: no clique that is left is part of another one.

    Args:
        scopes: The variables of each node, the eliminated one included.
        parents: Each node's parent, which has a higher index; -1 for a root.
    """
    leader = list(range(len(scopes)))
    largest = list(scopes)
    for node, parent in enumerate(parents):
        if parent < 0:
            continue
        mine, other = _find(leader, node), _find(leader, parent)
        if largest[mine] <= largest[other] or largest[other] <= largest[mine]:
            largest[other] = max(largest[mine], largest[other], key=len)
            leader[mine] = other
    kept = [node for node in range(len(scopes)) if leader[node] == node]
    place = {node: i for i, node in enumerate(kept)}
    return CliqueTree(
        tuple(largest[node] for node in kept),
        tuple(place[_find(leader, parents[node])] if parents[node] >= 0 else -1 for node in kept),
    )


def _find(leader: list[int], node: int) -> int:
    while leader[node] != node:
        leader[node] = leader[leader[node]]
        node = leader[node]
    return node


def rooted_at_centres(tree: CliqueTree) -> CliqueTree:
    """Root each tree where it has the fewest levels, and drop nothing else."""
    neighbours: list[list[int]] = [[] for _ in tree.scopes]
    for node, parent in enumerate(tree.parents):
        if parent >= 0:
            neighbours[node].append(parent)
            neighbours[parent].append(node)
    parents = [-1] * len(tree.scopes)
    for node, parent in enumerate(tree.parents):
        if parent < 0:
            end = _walk(neighbours, node)[0][-1]
            order, before = _walk(neighbours, end)
            path = [order[-1]]
            while before[path[-1]] >= 0:
                path.append(before[path[-1]])
            order, before = _walk(neighbours, path[len(path) // 2])
            for visited in order:
                parents[visited] = before[visited]
    return CliqueTree(tree.scopes, tuple(parents))


def _walk(neighbours: Sequence[Sequence[int]], start: int) -> tuple[list[int], dict[int, int]]:
    """Nodes by distance from the start, and what each was reached from."""
    before = {start: -1}
    order = [start]
    for node in order:
        for other in neighbours[node]:
            if other not in before:
                before[other] = node
                order.append(other)
    return order, before
