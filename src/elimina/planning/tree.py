"""Trees of buckets over groups of tables: the factors of each node, and the message to its parent."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedTree
from elimina.model.table import Scopes
from elimina.system import cached_property

Item = TypeVar("Item")


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
    along, rest = (np.fromiter(variables, np.int32, len(variables)) for variables in (order, kept))
    places = members.astype(np.int32)
    return PlannedTree(np.fromiter(sizes, np.int64, len(sizes)), starts, places, along, rest, ibound, partition)


def tree_of(planned: PlannedTree) -> Tree:
    """Return a compiled tree as named tuples."""
    columns = (rows_of(planned.separators), planned.parents.tolist(), rows_of(planned.factors))
    nodes = zip(planned.variables.tolist(), *columns, rows_of(planned.children), strict=True)
    return Tree(tuple(planned.order), tuple(itertools.starmap(Node, nodes)))


def rows_of(lists: tuple[NDArray[np.int64], NDArray[np.integer[Any]]]) -> list[tuple[int, ...]]:
    """Return the lists that the core encodes as starts and items."""
    items = lists[1].tolist()
    return [tuple(items[a:b]) for a, b in itertools.pairwise(lists[0].tolist())]


class Group(NamedTuple):
    """Tables that are joined while they are copied into the arena, because one scope contains the others."""

    scope: tuple[int, ...]
    members: tuple[int, ...]


class Unpacked(Sequence[Item]):
    """A sequence over arrays, whose items are made when somebody looks at them: a million take longer than a plan."""

    @property
    @abstractmethod
    def _unpacked(self) -> tuple[Item, ...]:
        """The items, made once."""

    @overload
    def __getitem__(self, number: int) -> Item: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, number: int | slice) -> Item | tuple[Item, ...]:
        return self._unpacked[number]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._unpacked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._unpacked == tuple(other)

    def __hash__(self) -> int:
        return hash(self._unpacked)


class TableGroups(Unpacked[Group]):
    """Groups over arrays.

    Args:
        scopes: Scopes of the groups.
        starts: Start of each group's members, and the end of the last one's.
        members: Tables of the groups, int32.
    """

    def __init__(self, scopes: Scopes, starts: NDArray[np.int64], members: NDArray[np.int32]) -> None:
        self.scopes, self.starts, self.members = scopes, starts, members

    @staticmethod
    def of(groups: Iterable[Group]) -> TableGroups:
        """Return groups over arrays."""
        given = tuple(groups)
        starts, members = Scopes.of([group.members for group in given])
        return TableGroups(Scopes.of([group.scope for group in given]), starts, members.astype(np.int32))

    def __len__(self) -> int:
        return len(self.starts) - 1

    # By the arrays: plans that are kept are looked up by their groups in every call.
    def __eq__(self, other: object) -> bool:
        return self._bytes == other._bytes if isinstance(other, TableGroups) else super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self._bytes)

    def cells(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Return the number of cells of each group's table, from the domain sizes of all variables."""
        starts, members = self.scopes
        own = np.array(sizes, dtype=np.float64)[members]
        return np.multiply.reduceat(own, starts[:-1]) if len(self) else own

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """The variables of all groups, ascending."""
        return tuple(np.flatnonzero(np.bincount(self.scopes.members)).tolist())

    @cached_property
    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(np.asarray(a, dtype=np.int64).tobytes() for a in (*self.scopes, self.starts, self.members))

    @cached_property
    def _unpacked(self) -> tuple[Group, ...]:
        return tuple(map(Group, rows_of(self.scopes), rows_of((self.starts, self.members))))


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


_NEGATIVE = 2.0
"""Weight of all other mini-buckets of a bucket together, in bounds from below: nearly the best that rounding allows."""


Bound = Literal["upper", "lower"]
"""Sides of the bounds on a sum."""


def node_weights(tree: Tree, bound: Bound, zeros: Sequence[bool], maximised: Collection[int] = ()) -> list[float]:
    """Return the weight of each node's elimination, for bounds on sums by Hölder's inequality.

    For positive weights w_r of a bucket's parts that add up to 1, the sum over x of the product of f_r(x) is at most
    that of (sum over x of f_r(x)^(1 / w_r))^w_r; it is at least that if one weight is positive (above 1, then) and the
    others are negative. A weight of 0 is the limit: the largest value (Liu and Ihler 2011, "Bounding the partition
    function using Hölder's inequality").

    In upper bounds it is in proportion to a part's variables. Lower bounds are 0 wherever a part of negative weight is,
    so the positive weight goes to a part that may be; then to the one of most variables.

    Args:
        tree: A bucket tree.
        bound: Side of the bound.
        zeros: True if each factor has a value of 0.
        maximised: Variables that are not summed over (upper bounds only).
    """
    weights = [1.0] * len(tree.nodes)
    may_be_zero = [False] * len(tree.nodes)
    for variable, group in groupby(range(len(tree.nodes)), key=lambda number: tree.nodes[number].variable):
        parts = list(group)
        for number in parts:
            node = tree.nodes[number]
            may_be_zero[number] = any(zeros[f] for f in node.factors) or any(may_be_zero[c] for c in node.children)
        variables = {number: 1 + len(tree.nodes[number].separator) for number in parts}
        first = max(parts, key=lambda number: (may_be_zero[number], variables[number]))
        for number in parts:
            if variable in maximised:
                weights[number] = 0.0
            elif bound == "upper":
                weights[number] = variables[number] / sum(variables.values())
            elif len(parts) > 1:
                weights[number] = 1 + _NEGATIVE if number == first else -_NEGATIVE / (len(parts) - 1)
    return weights
