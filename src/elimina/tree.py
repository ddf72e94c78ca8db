"""Trees of buckets: which factors meet where, and what each node sends to its parent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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
        order: The variables in elimination order.
        nodes: One node for each variable of the order.
    """

    order: tuple[int, ...]
    nodes: tuple[Node, ...]

    @property
    def width(self) -> int:
        """Induced width: the largest number of variables in a separator."""
        return max((len(node.separator) for node in self.nodes), default=0)

    def postorder(self) -> list[int]:
        """Nodes such that each subtree is finished before the next begins: few messages are alive at a time."""
        result: list[int] = []
        stack = [number for number, node in enumerate(self.nodes) if node.parent < 0]
        while stack:
            number = stack.pop()
            result.append(number)
            stack.extend(self.nodes[number].children)
        return result[::-1]


def bucket_tree(scopes: Sequence[Sequence[int]], order: Sequence[int]) -> Tree:
    """Eliminate symbolically (Dechter 1999): each scope goes to the bucket of its earliest variable.

    Args:
        scopes: Non-empty scopes; every variable of theirs occurs in the order.
        order: Variables in elimination order.
    """
    position = {v: i for i, v in enumerate(order)}
    placed: list[list[int]] = [[] for _ in order]
    children: list[list[int]] = [[] for _ in order]
    for number, scope in enumerate(scopes):
        placed[min(position[v] for v in scope)].append(number)
    nodes = []
    for i, variable in enumerate(order):
        union: set[int] = set()
        for number in placed[i]:
            union.update(scopes[number])
        for child in children[i]:
            union.update(nodes[child].separator)
        union.discard(variable)
        separator = tuple(sorted(union, key=position.__getitem__))
        parent = position[separator[0]] if separator else -1
        if parent >= 0:
            children[parent].append(i)
        nodes.append(Node(variable, separator, parent, tuple(placed[i]), tuple(children[i])))
    return Tree(tuple(order), tuple(nodes))
