"""Trees of buckets: the factors of each node, and the message to its parent."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedTree
from elimina.scopes import Scopes


class Node(NamedTuple):
    """A node of a tree.

    Attributes:
        variable: The variable eliminated here.
        separator: The variables of the message to the parent, earliest eliminated first.
        parent: Index of the node that receives the message; -1 for a root.
        factors: Indices of the scopes that are first needed here.
        children: Nodes whose messages arrive here.
    """

    variable: int
    separator: tuple[int, ...]
    parent: int
    factors: tuple[int, ...]
    children: tuple[int, ...]


class Tree(NamedTuple):
    """Nodes in elimination order, so that children come before parents.

    Attributes:
        order: The eliminated variables in order.
        nodes: One node for each variable of the order; in a mini-bucket tree one for each mini-bucket.
    """

    order: tuple[int, ...]
    nodes: tuple[Node, ...]

    @property
    def width(self) -> int:
        """Induced width: the largest number of variables in a separator."""
        return max((len(node.separator) for node in self.nodes), default=0)

    def postorder(self) -> list[int]:
        """Return the nodes such that each subtree is finished before the next begins, so that few messages coexist."""
        result: list[int] = []
        stack = [number for number, node in enumerate(self.nodes) if node.parent < 0]
        while stack:
            number = stack.pop()
            result.append(number)
            stack.extend(self.nodes[number].children)
        return result[::-1]


Partition = Sequence[Sequence[Sequence[int]]]
"""Mini-buckets of each variable of an order: places of tables, factors first, then messages."""


def plan_tree(
    scopes: Collection[Sequence[int]] | Scopes,
    sizes: Sequence[int],
    order: Sequence[int],
    kept: Sequence[int] = (),
    ibound: int | None = None,
    partition: Partition | None = None,
) -> PlannedTree:
    """Eliminate symbolically (Dechter 1999): each scope goes to the bucket of its earliest variable.

    With an ``ibound``, each bucket is divided into mini-buckets, each a node of its own whose message has at most so
    many variables (Dechter and Rish 2003), or no more than its largest table leaves.

    Args:
        scopes: Non-empty scopes; every variable of theirs occurs in the order or is kept.
        sizes: Domain size of every variable of the model.
        order: Variables in elimination order.
        kept: Variables that are not eliminated; the roots' separators consist of them. A scope of nothing else goes to
            no bucket.
        ibound: Largest number of variables of a message; None: buckets stay whole.
        partition: Mini-buckets of each bucket; None: by scopes.
    """
    starts, members = scopes if isinstance(scopes, Scopes) else Scopes.of(scopes)
    along, rest = np.array(order, dtype=np.int32), np.array(kept, dtype=np.int32)
    places = members.astype(np.int32)
    return PlannedTree(np.array(sizes, dtype=np.int64), starts, places, along, rest, ibound, partition)


def tree_of(planned: PlannedTree, order: Sequence[int]) -> Tree:
    """Return a compiled tree as named tuples."""
    columns = (rows_of(planned.separators), planned.parents.tolist(), rows_of(planned.factors))
    nodes = zip(planned.variables.tolist(), *columns, rows_of(planned.children), strict=True)
    return Tree(tuple(order), tuple(itertools.starmap(Node, nodes)))


def rows_of(lists: tuple[NDArray[np.int64], NDArray[np.int32]]) -> list[tuple[int, ...]]:
    """Return the lists that the core encodes as starts and items."""
    items = lists[1].tolist()
    return [tuple(items[a:b]) for a, b in itertools.pairwise(lists[0].tolist())]


def bucket_tree(
    scopes: Collection[Sequence[int]],
    order: Sequence[int],
    kept: Sequence[int] = (),
    ibound: int | None = None,
    partition: Partition | None = None,
) -> Tree:
    """Return the tree of ``plan_tree`` as named tuples."""
    unknown = [1] * (1 + max(itertools.chain(order, kept), default=-1))
    return tree_of(plan_tree(scopes, unknown, order, kept, ibound, partition), order)


class Clique(NamedTuple):
    """A maximal clique of a triangulated graph, as a node of a junction tree.

    Attributes:
        scope: Its variables, earliest eliminated first.
        separator: Those shared with the parent.
        parent: Index of the parent clique; -1 for a root.
    """

    scope: tuple[int, ...]
    separator: tuple[int, ...]
    parent: int


def junction_tree(planned: PlannedTree) -> tuple[Clique, ...]:
    """Contract a bucket tree to its maximal cliques; children come before parents."""
    scopes, separators, parents = planned.cliques()
    return tuple(map(Clique, rows_of(scopes), rows_of(separators), parents.tolist()))
