"""Trees of buckets over groups of tables: the factors of each node, and its message to its parent."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np

from elimina._core import PlannedTree
from elimina.model.table import Scopes
from elimina.problem.unpacked import rows_of


class Node(NamedTuple):
    """A node of a tree.

    Attributes:
        variable: The eliminated variable.
        separator: The variables of the message to the parent, in elimination order.
        parent: Index of the node that receives the message; -1 for a root.
        factors: Indices of the scopes in the node's bucket.
        children: Nodes that send their messages to this node.
    """

    variable: int
    separator: tuple[int, ...]
    parent: int
    factors: tuple[int, ...]
    children: tuple[int, ...]


class Tree(NamedTuple):
    """Nodes in elimination order: children come before parents.

    Attributes:
        order: The eliminated variables in elimination order.
        nodes: One node for each variable of the order; in a mini-bucket tree, one for each mini-bucket.
    """

    order: tuple[int, ...]
    nodes: tuple[Node, ...]

    @property
    def width(self) -> int:
        """Induced width: the largest number of variables in a separator."""
        return max((len(node.separator) for node in self.nodes), default=0)


Partition = Sequence[Sequence[Sequence[int]]]
"""Mini-buckets of each variable of an order; each lists positions of tables: factors first, then messages."""


def plan_tree(
    scopes: Collection[Sequence[int]] | Scopes,
    sizes: Sequence[int],
    order: Sequence[int],
    kept: Sequence[int] = (),
    ibound: int | None = None,
    partition: Partition | None = None,
) -> PlannedTree:
    """Eliminate symbolically (Dechter 1999): each scope goes to the bucket of its earliest variable.

    With an ``ibound``, each bucket is partitioned into mini-buckets (Dechter and Rish 2003). Each is a separate node,
    and its message has at most ``ibound`` variables, or those of its largest table if they are more.

    Args:
        scopes: Non-empty scopes; each of their variables is in the order or kept.
        sizes: Domain size of every variable of the model.
        order: Variables in elimination order.
        kept: Variables that are not eliminated; they make up the separators of the roots. A scope of kept variables
            only belongs to no bucket.
        ibound: Largest number of variables of a message; None: buckets are not partitioned.
        partition: Mini-buckets of each bucket; None: buckets are partitioned by scopes.
    """
    starts, members = scopes if isinstance(scopes, Scopes) else Scopes.of(scopes)
    order_array, kept_array = (np.fromiter(variables, np.int32, len(variables)) for variables in (order, kept))
    members_of_steps = members.astype(np.int32)
    return PlannedTree(
        np.fromiter(sizes, np.int64, len(sizes)), starts, members_of_steps, order_array, kept_array, ibound, partition
    )


def tree_of(planned: PlannedTree) -> Tree:
    """Return a compiled tree as named tuples."""
    columns = (rows_of(planned.separators), planned.parents.tolist(), rows_of(planned.factors))
    nodes = zip(planned.variables.tolist(), *columns, rows_of(planned.children), strict=True)
    return Tree(tuple(planned.order), tuple(itertools.starmap(Node, nodes)))


def bucket_tree(
    scopes: Collection[Sequence[int]],
    order: Sequence[int],
    kept: Sequence[int] = (),
    ibound: int | None = None,
    partition: Partition | None = None,
) -> Tree:
    """Return the tree of ``plan_tree`` as named tuples."""
    unknown = [1] * (1 + max(itertools.chain(order, kept), default=-1))
    return tree_of(plan_tree(scopes, unknown, order, kept, ibound, partition))


class Clique(NamedTuple):
    """A maximal clique of a triangulated graph, as a node of a junction tree.

    Attributes:
        scope: Variables of the clique in elimination order.
        separator: Variables shared with the parent.
        parent: Index of the parent clique; -1 for a root.
    """

    scope: tuple[int, ...]
    separator: tuple[int, ...]
    parent: int


def junction_tree(planned: PlannedTree) -> tuple[Clique, ...]:
    """Contract a bucket tree to its maximal cliques; children come before parents."""
    cliques = planned.cliques()
    scopes, separators, parents = cliques.scopes, cliques.separators, cliques.parents
    return tuple(map(Clique, rows_of(scopes), rows_of(separators), parents.tolist()))


_NEGATIVE_WEIGHT = 2.0
"""Sum of the absolute values of a bucket's negative weights, for lower bounds. This value gives nearly the best bounds
that rounding allows."""

Bound = Literal["upper", "lower"]
"""Sides of the bounds on a sum."""


def node_weights(tree: Tree, bound: Bound, zeros: Sequence[bool], maximised: Collection[int] = ()) -> list[float]:
    """Return the weight of each node's elimination, for bounds on sums by Hölder's inequality.

    For positive weights w_r of the parts of a bucket that add up to 1::

        sum_x prod_r f_r(x) <= prod_r (sum_x f_r(x)^(1 / w_r))^w_r

    If one weight is positive (and then above 1) and the others are negative, the right side is a lower bound. A weight
    of 0 is the limit: the largest value (Liu and Ihler 2011, "Bounding the partition function using Hölder's
    inequality").

    In upper bounds, weights are proportional to the parts' numbers of variables. A lower bound is 0 where a part of
    negative weight is 0, so the positive weight goes to a part that may be 0: of several, to the one with most
    variables.

    Args:
        tree: A bucket tree.
        bound: Side of the bound.
        zeros: Flag of each factor: True if it contains a 0.
        maximised: Variables that are maximised instead of summed over (upper bounds only).
    """
    weights = [1.0] * len(tree.nodes)
    may_be_zero = [False] * len(tree.nodes)
    for variable, group in groupby(range(len(tree.nodes)), key=lambda number: tree.nodes[number].variable):
        members_of_group = list(group)
        for number in members_of_group:
            node = tree.nodes[number]
            may_be_zero[number] = any(zeros[f] for f in node.factors) or any(may_be_zero[c] for c in node.children)
        variables = {number: 1 + len(tree.nodes[number].separator) for number in members_of_group}
        first = max(members_of_group, key=lambda number: (may_be_zero[number], variables[number]))
        for number in members_of_group:
            if variable in maximised:
                weights[number] = 0.0
            elif bound == "upper":
                weights[number] = variables[number] / sum(variables.values())
            elif len(members_of_group) > 1:
                weights[number] = (
                    1 + _NEGATIVE_WEIGHT if number == first else -_NEGATIVE_WEIGHT / (len(members_of_group) - 1)
                )
    return weights
