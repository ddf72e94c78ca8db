"""Symbolic elimination in plain Python: the oracle of the compiled trees and mini-buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from elimina.planning.tree import Clique, Node, Tree


class Item(NamedTuple):
    """A factor in a bucket, or (``factor`` -1) the message of a child."""

    scope: frozenset[int]
    factor: int
    child: int


Divide = Callable[[int, Sequence[Item]], Sequence[Sequence[int]]]
"""Function of a variable's place and its bucket's items; returns mini-buckets, each the places of its items."""


def bucket_tree(
    scopes: Sequence[Sequence[int]],
    order: Sequence[int],
    kept: Sequence[int] = (),
    ibound: int | None = None,
    divide: Divide | None = None,
) -> Tree:
    """Eliminate symbolically (Dechter 1999): each scope goes to the bucket of its earliest variable.

    With an ``ibound``, each bucket is divided into mini-buckets, each a node of its own whose message has at most so
    many variables (Dechter and Rish 2003), or no more than its largest table leaves.

    Args:
        scopes: Non-empty scopes; every variable of theirs occurs in the order or is kept.
        order: Variables in elimination order.
        kept: Variables that are not eliminated; the roots' separators consist of them. A scope of nothing else goes to
            no bucket.
        ibound: The most variables of a message; None: buckets stay whole.
        divide: Function that partitions a bucket, called for each variable in turn; None: each table, the largest
            first, joins the mini-bucket that it adds the fewest variables to.
    """
    position = {v: i for i, v in enumerate((*order, *kept))}
    placed: list[list[Item]] = [[] for _ in position]
    for number, scope in enumerate(scopes):
        placed[min(position[v] for v in scope)].append(Item(frozenset(scope), number, -1))
    nodes: list[Node] = []
    parents: list[int] = []
    for i, variable in enumerate(order):
        parts = by_scope(placed[i], ibound) if divide is None else divide(i, placed[i])
        for part in ([placed[i][place] for place in places] for places in parts):
            union = frozenset[int]().union(*(item.scope for item in part)) - {variable}
            separator = tuple(sorted(union, key=position.__getitem__))
            factors = tuple(item.factor for item in part if item.factor >= 0)
            children = tuple(item.child for item in part if item.child >= 0)
            for child in children:
                parents[child] = len(nodes)
            if separator and position[separator[0]] < len(order):
                placed[position[separator[0]]].append(Item(union, -1, len(nodes)))
            nodes.append(Node(variable, separator, -1, factors, children))
            parents.append(-1)
    return Tree(tuple(order), tuple(node._replace(parent=parent) for node, parent in zip(nodes, parents, strict=True)))


def by_scope(items: Sequence[Item], ibound: int | None) -> list[list[int]]:
    """Divide a bucket: each table, the largest first, joins the mini-bucket that it adds the fewest variables to."""
    if ibound is None or len(items) < 2:
        return [list(range(len(items)))]
    parts: list[list[int]] = []
    unions: list[frozenset[int]] = []
    for number in sorted(range(len(items)), key=lambda number: -len(items[number].scope)):
        scope = items[number].scope
        grown = [(len(scope - union), n) for n, union in enumerate(unions)]
        fitting = [(more, n) for more, n in grown if not more or len(unions[n]) + more <= ibound + 1]
        if fitting:
            n = min(fitting)[1]
            parts[n].append(number)
            unions[n] |= scope
        else:
            parts.append([number])
            unions.append(scope)
    return [sorted(part) for part in parts]


def junction_tree(tree: Tree) -> tuple[Clique, ...]:
    """Contract a bucket tree to its maximal cliques; children come before parents.

    A bucket's clique is part of a child's exactly if the child's separator is as large as it (Blair and Peyton, 1993,
    "An introduction to chordal graphs and clique trees"), so the result has the running intersection property.
    """
    clique_of: list[int] = []
    scopes: list[tuple[int, ...]] = []
    tops: list[int] = []
    for number, node in enumerate(tree.nodes):
        full = len(node.separator) + 1
        # The last one: the middle of the tree is eliminated last.
        holder = next((c for c in reversed(node.children) if len(tree.nodes[c].separator) == full), None)
        if holder is None:
            clique_of.append(len(scopes))
            scopes.append((node.variable, *node.separator))
            tops.append(number)
        else:
            clique_of.append(clique_of[holder])
            tops[clique_of[holder]] = number
    by_top = sorted(range(len(scopes)), key=tops.__getitem__)
    place = {clique: i for i, clique in enumerate(by_top)}
    cliques = []
    for clique in by_top:
        top = tree.nodes[tops[clique]]
        parent = place[clique_of[top.parent]] if top.parent >= 0 else -1
        cliques.append(Clique(scopes[clique], top.separator, parent))
    return tuple(cliques)


def central_order(tree: Tree, sizes: Sequence[int]) -> tuple[int, ...]:
    """An elimination order of the same triangulation whose junction tree is rooted for the fewest levels.

    Any clique can be the root of a junction tree; what is not shared with the parent is then eliminated leaves first,
    variables of many values first.

    Args:
        tree: A bucket tree.
        sizes: Number of values of each variable of the model.
    """
    cliques = junction_tree(tree)
    near: list[list[int]] = [[] for _ in cliques]
    for number, clique in enumerate(cliques):
        if clique.parent >= 0:
            near[number].append(clique.parent)
            near[clique.parent].append(number)
    order: list[int] = []
    for number, clique in enumerate(cliques):
        if clique.parent < 0:
            order += _leaves_first(cliques, near, _middle(near, number), sizes)
    return tuple(order)


def finishes_subtrees(edges: Sequence[tuple[int, int]], order: Sequence[int]) -> bool:
    """Return whether an order of a forest's variables, leaves first, finishes each subtree before the next one.

    Args:
        edges: Pairs of variables that share a factor.
        order: Order along which each variable has at most one neighbour left.
    """
    place = {v: i for i, v in enumerate(order)}
    parents = [-1] * len(order)
    for edge in edges:
        one, other = sorted(map(place.__getitem__, edge))
        assert parents[one] < 0
        parents[one] = other
    first, size = list(range(len(order))), [1] * len(order)
    for number, parent in enumerate(parents):
        if parent >= 0:
            first[parent] = min(first[parent], first[number])
            size[parent] += size[number]
    return all(number - begin + 1 == count for number, (begin, count) in enumerate(zip(first, size, strict=True)))


def _walk(near: Sequence[Sequence[int]], root: int) -> tuple[list[int], dict[int, int]]:
    """Nodes by distance from the root, and each one's neighbour on the way there."""
    towards = {root: -1}
    reached = [root]
    for number in reached:
        for other in near[number]:
            if other not in towards:
                towards[other] = number
                reached.append(other)
    return reached, towards


def _middle(near: Sequence[Sequence[int]], start: int) -> int:
    """The middle of a longest path."""
    end = _walk(near, start)[0][-1]
    reached, towards = _walk(near, end)
    path = [reached[-1]]
    while towards[path[-1]] >= 0:
        path.append(towards[path[-1]])
    return path[len(path) // 2]


def _leaves_first(
    cliques: Sequence[Clique], near: Sequence[Sequence[int]], root: int, sizes: Sequence[int]
) -> list[int]:
    reached, towards = _walk(near, root)
    order: list[int] = []
    for number in reversed(reached):
        above = set(cliques[towards[number]].scope) if towards[number] >= 0 else set()
        order += sorted((v for v in cliques[number].scope if v not in above), key=lambda v: (-sizes[v], v))
    return order
