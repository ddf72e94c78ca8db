"""Passes of the plain planner over a tree, and bounds on tuples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from elimina.planning.record import MAX_OPERANDS
from elimina.planning.step import JOIN
from elimina.planning.tree import Tree
from tests.reference.planner import Bucket, ProtoStep, Read

_MOST_ALIKE = 8


class _Target(NamedTuple):
    """Something that a bucket sends away: the kept scope, the child's own message, and the child (-1: a marginal)."""

    keep: frozenset[int]
    own: tuple[Read, ...]
    child: int
    marginal: int | tuple[int, ...] = -1


class Passes:
    """Appends the steps of the passes over a tree, the one towards the roots first.

    Args:
        tree: A bucket tree over the scopes.
        scopes: The prepared factors' scopes, sorted by elimination order, kept variables last.
        sizes: Domain size of every variable of the model.
        kept: Variables that are not eliminated; they are axes of every answer that depends on them.
        operands: Tables that a step may read.

    Attributes:
        steps: Every message is written before it is read.
    """

    def __init__(
        self,
        tree: Tree,
        scopes: Sequence[tuple[int, ...]],
        sizes: Sequence[int],
        kept: Sequence[int] = (),
        operands: int = MAX_OPERANDS,
    ) -> None:
        self.steps: list[ProtoStep] = []
        self._tree, self._scopes, self._sizes, self._operands = tree, scopes, sizes, operands
        self._kept = frozenset(kept)
        self._position = {v: i for i, v in enumerate((*tree.order, *kept))}
        self._upward: list[Read] = []
        self._downward: dict[int, list[Read]] = {}
        self._marginals: dict[int | tuple[int, ...], int] = {}
        for node in tree.nodes:
            reads = [Read(f, -1, scopes[f]) for f in node.factors] + [self._upward[c] for c in node.children]
            self._upward.append(self._eliminate(node.variable, node.separator, reads))

    def roots(self) -> list[Read]:
        """Steps for the rest of each component, over kept variables."""
        return [message for message, node in zip(self._upward, self._tree.nodes, strict=True) if node.parent < 0]

    def join_roots(self) -> int:
        """The step of the joint table of all kept variables."""
        reads = [Read(f, -1, scope) for f, scope in enumerate(self._scopes) if self._kept.issuperset(scope)]
        return self._eliminate(JOIN, self._sorted(self._kept), [*reads, *self.roots()]).source

    def outward(
        self, wanted: Collection[int], families: Collection[tuple[int, ...]] = ()
    ) -> dict[int | tuple[int, ...], int]:
        """Append the pass from the roots as far as the marginals need it; the step of each variable's and family's."""
        at_separator, at_bucket = self._sites(wanted)
        targets: dict[int, list[_Target]] = {}
        for number in sorted(at_bucket):
            variable = self._tree.order[number]
            targets[number] = [_Target(frozenset((variable,)), (), -1, variable)]
        for family in families:
            number = min(self._position[v] for v in family)
            targets.setdefault(number, []).append(_Target(frozenset(family), (), -1, family))
        receivers = self._receivers({*at_separator.values(), *targets})
        for number in range(len(self._tree.nodes) - 1, -1, -1):
            self._send(number, receivers, targets.get(number, []))
        for v, number in at_separator.items():
            self._marginals[v] = self._marginal(frozenset((v,)), [self._upward[number], *self._downward[number]])
        return self._marginals

    def _cells(self, scope: Iterable[int]) -> int:
        return math.prod(self._sizes[v] for v in scope)

    def _sites(self, wanted: Collection[int]) -> tuple[dict[int, int], set[int]]:
        """Place of each marginal: the smallest separator with the variable, or the variable's own bucket."""
        best: dict[int, tuple[int, int]] = {}
        for number, node in enumerate(self._tree.nodes):
            cells = self._cells(node.separator)
            for v in set(node.separator) - self._kept:
                if v not in best or (cells, number) < best[v]:
                    best[v] = cells, number
        wanted_nodes = {self._position[v] for v in wanted}
        at_separator = {v: best[v][1] for v in wanted if v in best}
        at_bucket = {number for number in wanted_nodes if self._tree.order[number] not in best}
        return at_separator, at_bucket

    def _receivers(self, needed: set[int]) -> set[int]:
        """Nodes that must hear from their parents."""
        found: set[int] = set()
        for number in needed:
            while number not in found and self._tree.nodes[number].parent >= 0:
                found.add(number)
                number = self._tree.nodes[number].parent
        return found

    def _send(self, number: int, receivers: set[int], own: Sequence[_Target]) -> None:
        node = self._tree.nodes[number]
        common = [Read(f, -1, self._scopes[f]) for f in node.factors] + self._downward.get(number, [])
        targets = []
        for child in sorted(node.children, key=lambda c: self._tree.nodes[c].separator):
            message = self._upward[child]
            if child in receivers:
                targets.append(_Target(frozenset(message.scope), (message,), child))
            else:
                common.append(message)
        targets += own
        if targets:
            self._distribute(common, targets)

    def _distribute(self, common: list[Read], targets: list[_Target]) -> None:
        """Send each target everything but its own message: halves hear of each other as a whole."""
        if len(targets) == 1:
            if targets[0].child < 0:
                self._marginals[targets[0].marginal] = self._marginal(targets[0].keep, common)
            else:
                self._downward[targets[0].child] = self._contract(common, targets[0].keep, whole=True)
            return
        middle = len(targets) // 2
        for near, far in ((targets[:middle], targets[middle:]), (targets[middle:], targets[:middle])):
            known = [*common, *(read for target in far for read in target.own)]
            if len(near) > 1:
                known = self._contract(known, frozenset().union(*(target.keep for target in near)), whole=False)
            self._distribute(known, near)

    def _marginal(self, scope: frozenset[int], reads: list[Read]) -> int:
        """A step of its own, since what is read off must not be a factor or a message."""
        before = len(self.steps)
        found = self._contract(reads, scope, whole=True)
        if len(self.steps) == before or not scope.issubset(found[0].scope):
            axes = self._sorted(scope.union(*(read.scope for read in found)))
            return self._eliminate(JOIN, axes, found).source
        return found[0].source

    def _contract(self, reads: list[Read], keep: frozenset[int], *, whole: bool) -> list[Read]:
        """Eliminate what is not kept, cheapest bucket first; ``whole``: leave at most one table."""
        live = list(reads)
        gone = set().union(*(read.scope for read in live)) - keep - self._kept
        while gone:
            # Variables that the same tables read meet in one union.
            met = {v: tuple(i for i, read in enumerate(live) if v in read.scope) for v in gone}
            unions = {tables: set().union(*(live[i].scope for i in tables)) for tables in set(met.values())}
            cells = {tables: self._cells(union) for tables, union in unions.items()}
            variable = min(gone, key=lambda v: (cells[met[v]], -self._sizes[v], self._position[v]))
            gone.remove(variable)
            union = unions[met[variable]] - {variable}
            chosen: list[Read] = []
            rest: list[Read] = []
            for read in live:
                joins = variable in read.scope or (whole and not gone and union.issuperset(read.scope))
                (chosen if joins else rest).append(read)
            live = rest
            live.append(self._eliminate(variable, self._sorted(union), chosen))
        if not whole:
            return self._join_alike(live)
        if len(live) > 1:
            union = set().union(*(read.scope for read in live))
            live = [self._eliminate(JOIN, self._sorted(union), live)]
        return live

    def _join_alike(self, reads: list[Read]) -> list[Read]:
        """Join tables of one scope if they are many, for each of several targets would read them all."""
        if len(reads) <= _MOST_ALIKE:
            return reads
        by_scope: dict[tuple[int, ...], list[Read]] = {}
        for read in reads:
            by_scope.setdefault(read.scope, []).append(read)
        result: list[Read] = []
        for scope, alike in by_scope.items():
            result += [self._eliminate(JOIN, scope, alike)] if len(alike) > _MOST_ALIKE else alike
        return result

    def _sorted(self, scope: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(scope, key=self._position.__getitem__))

    def _eliminate(self, variable: int, axes: tuple[int, ...], reads: list[Read]) -> Read:
        bucket = Bucket(variable, axes, self._sizes, self._position, self.steps)
        return bucket.eliminate(reads, self._operands)


class Bounds:
    """Appends the steps of both passes.

    Attributes:
        up: Tables that bound the message of each node of the tree.
        down: Tables that bound the rest of the problem outside the subtree of each node but the roots.
    """

    def __init__(
        self, tree: Tree, scopes: Sequence[tuple[int, ...]], sizes: Sequence[int], operands: int, cells: int
    ) -> None:
        self.steps: list[ProtoStep] = []
        self._sizes, self._operands, self._cells = sizes, operands, cells
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
        """Each table, the largest first, joins the part whose cells it multiplies least, if that stays small."""
        parts: list[list[int]] = []
        unions: list[frozenset[int]] = []
        for number in sorted(range(len(reads)), key=lambda number: -self._weight(reads[number].scope)):
            scope = frozenset(reads[number].scope)
            fits = []
            for at, union in enumerate(unions):
                more = self._weight(scope - union)
                if not more or self._weight(union) + more <= round(65536 * math.log2(self._cells)):
                    fits.append((more, at))
            if fits:
                _, at = min(fits)
                parts[at].append(number)
                unions[at] |= scope
            else:
                parts.append([number])
                unions.append(scope)
        return [[reads[number] for number in sorted(part)] for part in parts]

    def _weight(self, scope: Iterable[int]) -> int:
        return sum(round(65536 * math.log2(self._sizes[v])) for v in scope)

    def _sorted(self, scope: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(scope, key=self._position.__getitem__))
