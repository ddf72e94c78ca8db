"""Lower bounds on what a step on rows does not know: the rest of the problem, by mini-buckets over the same tree.

Mini-bucket tree elimination (R. Mateescu, R. Dechter, K. Kask, "Tree approximation for belief updating", AAAI 2002):
one pass towards the roots bounds each bucket's message from below, one back bounds all that is outside its subtree. A
row whose value and bounds together are forbidden can be no part of a solution (function filtering: M. Sanchez,
J. Larrosa, P. Meseguer, "Improving tree decomposition methods with function filtering", IJCAI 2005).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from elimina.planning.plan import JOIN, FactorLayout, Operand, Plan, Step
from elimina.planning.planner import place
from elimina.planning.structure import MAX_OPERANDS, Bucket, ProtoStep, Read
from elimina.tree import Tree, bucket_tree

CELLS = 1 << 12
"""Of a mini-bucket's message at most, if its tables are no larger: what larger ones drop besides does not pay."""


class Place(NamedTuple):
    """A table of an arena.

    Attributes:
        offset: Where it starts, in elements.
        scope: Its variables.
        sizes: Their numbers of values.
        strides: Elements between two values of each.
    """

    offset: int
    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Outside(NamedTuple):
    """A program over a plan's factors, and where its answers lie.

    Attributes:
        steps: Their arena begins with the plan's factors.
        arena_cells: Elements of that arena.
        factors: Where the plan's factors lie.
        own: For each step of the plan, tables that bound its output from below, all together.
        rest: For each step of the plan, tables that bound what neither it nor its subtree has; but for other trees.
        trees: For each tree, the numbers that bound it.
        tree_of: For each step of the plan, the number of its tree.
    """

    steps: tuple[Step, ...]
    arena_cells: int
    factors: tuple[Place, ...]
    own: tuple[tuple[Place, ...], ...]
    rest: tuple[tuple[Place, ...], ...]
    trees: tuple[tuple[Place, ...], ...]
    tree_of: tuple[int, ...]


def outside(plan: Plan, sizes: Sequence[int]) -> Outside:
    """Plan the bounds of a plan's steps.

    Args:
        plan: Exact, for the optimum of integer costs (``min-sum``).
        sizes: Domain size of every variable of the model.
    """
    scopes = [factor.scope for factor in plan.factors]
    tree = bucket_tree(scopes, plan.order)
    most = int(np.iinfo(plan.dtype).max // max(1, int(plan.forbidden)))
    bounds = _Bounds(tree, scopes, sizes, min(MAX_OPERANDS, most))
    members = [factor.members for factor in plan.factors]
    proto = bounds.steps
    _, steps, _, arena_cells = place(sizes, scopes, members, proto, plan.itemsize, range(len(proto)))
    where = _Places(plan.factors, steps)
    nodes = {node.variable: number for number, node in enumerate(tree.nodes)}
    own: list[tuple[Place, ...]] = []
    for step in plan.steps:
        if step.variable == JOIN:
            own.append(tuple(table for operand in step.operands for table in where.under(operand, own)))
        else:
            own.append(where.all(bounds.up[nodes[step.variable]]))
    roots = [number for number, node in enumerate(tree.nodes) if node.parent < 0]
    tree_number = {root: number for number, root in enumerate(roots)}
    root_of = [0] * len(tree.nodes)
    for number in range(len(tree.nodes) - 1, -1, -1):
        parent = tree.nodes[number].parent
        root_of[number] = tree_number[number] if parent < 0 else root_of[parent]
    rest: list[tuple[Place, ...]] = [()] * len(plan.steps)
    tree_of = [0] * len(plan.steps)
    for number in range(len(plan.steps) - 1, -1, -1):
        step = plan.steps[number]
        if step.variable == JOIN:
            reader = step.readers[0]
            others = (operand for operand in plan.steps[reader].operands if operand.source != number)
            rest[number] = rest[reader] + tuple(table for other in others for table in where.under(other, own))
            tree_of[number] = tree_of[reader]
            continue
        node = nodes[step.variable]
        rest[number] = where.all(bounds.down.get(node, ()))
        tree_of[number] = root_of[node]
    trees = tuple(where.all(bounds.up[root]) for root in roots)
    factors = tuple(where.factor(number) for number in range(len(plan.factors)))
    return Outside(steps, arena_cells, factors, tuple(own), tuple(rest), trees, tuple(tree_of))


class _Places:
    """Where the tables of both programs lie."""

    def __init__(self, factors: Sequence[FactorLayout], steps: Sequence[Step]) -> None:
        self._factors, self._steps = factors, steps

    def all(self, reads: Iterable[Read]) -> tuple[Place, ...]:
        return tuple(self.factor(r.factor) if r.source < 0 else self._message(r.source) for r in reads)

    def under(self, operand: Operand, own: Sequence[tuple[Place, ...]]) -> tuple[Place, ...]:
        """What bounds a table that a step of the plan reads."""
        return (self.factor(operand.factor),) if operand.source < 0 else own[operand.source]

    def factor(self, number: int) -> Place:
        factor = self._factors[number]
        return Place(factor.offset, factor.scope, factor.sizes, factor.strides)

    def _message(self, number: int) -> Place:
        step = self._steps[number]
        return Place(step.out_offset, step.axes, step.sizes, step.out_strides)


class _Bounds:
    """Appends the steps of both passes.

    Attributes:
        up: For each node of the tree, tables that bound its message.
        down: For each node but the roots, tables that bound what is outside its subtree.
    """

    def __init__(self, tree: Tree, scopes: Sequence[tuple[int, ...]], sizes: Sequence[int], operands: int) -> None:
        self.steps: list[ProtoStep] = []
        self._sizes, self._operands = sizes, operands
        self._position = {v: i for i, v in enumerate(tree.order)}
        self.up: list[list[Read]] = []
        self.down: dict[int, list[Read]] = {}
        factors = [[Read(f, -1, scopes[f]) for f in node.factors] for node in tree.nodes]
        for node, own in zip(tree.nodes, factors, strict=True):
            reads = [*own, *(read for child in node.children for read in self.up[child])]
            self.up.append(self._eliminate(reads, node.variable))
        for number in range(len(tree.nodes) - 1, -1, -1):
            node = tree.nodes[number]
            known = factors[number] + self.down.get(number, [])
            for child in node.children:
                others = (read for other in node.children if other != child for read in self.up[other])
                self.down[child] = self._leave([*known, *others], tree.nodes[child].separator)

    def _leave(self, reads: list[Read], keep: Collection[int]) -> list[Read]:
        """Eliminate all variables but some, the earliest first; what is left, in few tables."""
        for variable in self._sorted(set().union(*(read.scope for read in reads)).difference(keep)):
            reads = self._eliminate(reads, variable)
        packed = []
        for part in self._mini_buckets(reads):
            if len(part) > 1:
                scope = self._sorted(set().union(*(read.scope for read in part)))
                part = [Bucket(JOIN, scope, self._sizes, self._position, self.steps).eliminate(part, self._operands)]
            packed += part
        return packed

    def _eliminate(self, reads: Sequence[Read], variable: int) -> list[Read]:
        left = [read for read in reads if variable not in read.scope]
        for part in self._mini_buckets([read for read in reads if variable in read.scope]):
            scope = self._sorted(set().union(*(read.scope for read in part)).difference((variable,)))
            bucket = Bucket(variable, scope, self._sizes, self._position, self.steps)
            left.append(bucket.eliminate(part, self._operands))
        return left

    def _mini_buckets(self, reads: Sequence[Read]) -> list[list[Read]]:
        """Each table, the largest first, joins the part that it shares most cells with, if that stays small."""
        parts: list[list[Read]] = []
        unions: list[frozenset[int]] = []
        for read in sorted(reads, key=lambda read: -self._count(read.scope)):
            best = -1.0, -1
            for number, union in enumerate(unions):
                both = self._count(union.union(read.scope))
                if both <= max(CELLS, self._count(union)):
                    best = max(best, (self._count(union) * self._count(read.scope) / both, -number))
            if best[0] < 0:
                parts.append([read])
                unions.append(frozenset(read.scope))
            else:
                parts[-best[1]].append(read)
                unions[-best[1]] = unions[-best[1]].union(read.scope)
        return parts

    def _count(self, scope: Iterable[int]) -> int:
        return math.prod(self._sizes[v] for v in scope)

    def _sorted(self, scope: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(scope, key=self._position.__getitem__))
