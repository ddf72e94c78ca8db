"""From a tree to steps: one for each bucket, and joins where they are cheaper than one wide aggregation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elimina.planning.tile import HOPELESS_WORK, SMALL_WORK, Tile, choose_tile
from elimina.tree import Tree

MAX_OPERANDS = 16
"""Tables that one step reads at most."""

_JOIN_GAIN = 4


class Read(NamedTuple):
    """A table to be read: a prepared factor or an earlier step's output; ``scope`` is in elimination order."""

    factor: int
    source: int
    scope: tuple[int, ...]


class ProtoStep(NamedTuple):
    """A step before memory is laid out: ``axes`` are the output's variables, earliest eliminated first."""

    variable: int
    domain: int
    axes: tuple[int, ...]
    reads: tuple[Read, ...]
    tile: Tile


def build_steps(
    tree: Tree,
    nodes: Sequence[int],
    scopes: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    operands: int = MAX_OPERANDS,
) -> list[ProtoStep]:
    """Return the steps for the tree's nodes, in the given sequence of nodes (children before parents).

    Args:
        tree: A bucket tree over the scopes.
        nodes: All node numbers.
        scopes: The prepared factors' scopes, sorted by elimination order.
        sizes: Domain size of every variable of the model.
        operands: Tables that a step may read.
    """
    steps: list[ProtoStep] = []
    written: dict[int, int] = {}
    position = {v: i for i, v in enumerate(tree.order)}
    for number in nodes:
        node = tree.nodes[number]
        reads = [Read(f, -1, scopes[f]) for f in node.factors]
        reads += [Read(-1, written[child], tree.nodes[child].separator) for child in node.children]
        bucket = Bucket(node.variable, node.separator, sizes, position, steps)
        written[number] = bucket.eliminate(reads, operands).source
    return steps


class Bucket:
    """Appends the steps of one bucket, or (``variable`` -1) of a join."""

    def __init__(
        self,
        variable: int,
        separator: tuple[int, ...],
        sizes: Sequence[int],
        position: dict[int, int],
        steps: list[ProtoStep],
    ) -> None:
        self.variable, self.separator, self.sizes, self.position, self.steps = (
            variable,
            separator,
            sizes,
            position,
            steps,
        )
        self.work = (sizes[variable] if variable >= 0 else 1) * self.cells(separator)

    def eliminate(self, reads: Sequence[Read], operands: int) -> Read:
        """Append what turns the tables into the bucket's message; no step reads more than so many operands."""
        left = list(reads)
        self.limit_operands(left, operands)
        self.join_streamed(left)
        return Read(-1, self.add(self.variable, self.separator, left), self.separator)

    def cells(self, scope: Iterable[int]) -> int:
        return math.prod(self.sizes[v] for v in scope)

    def tile(self, variable: int, axes: tuple[int, ...], reads: Sequence[Read]) -> Tile:
        axis = {v: i for i, v in enumerate(axes)}
        members = [frozenset(axis[v] for v in read.scope if v != variable) for read in reads]
        return choose_tile(self.sizes[variable] if variable >= 0 else 1, [self.sizes[v] for v in axes], members)

    def add(self, variable: int, axes: tuple[int, ...], reads: Sequence[Read]) -> int:
        tile = self.tile(variable, axes, reads)
        ordered = tuple(reads[t] for t in (*tile.tables_a, *tile.tables_b, *tile.streamed))
        self.steps.append(ProtoStep(variable, self.sizes[variable] if variable >= 0 else 1, axes, ordered, tile))
        return len(self.steps) - 1

    def join(self, reads: list[Read], chosen: Sequence[Read]) -> None:
        """Replace the chosen tables by their join."""
        union = set().union(*(read.scope for read in chosen))
        axes = tuple(sorted(union, key=self.position.__getitem__))
        for read in chosen:
            reads.remove(read)
        reads.append(Read(-1, self.add(-1, axes, chosen), axes))

    def limit_operands(self, reads: list[Read], most: int) -> None:
        """Join small tables, those with the smallest common scope first, until a step can read all."""
        while len(reads) > most:
            if self.work > HOPELESS_WORK:
                self.join(reads, reads[:most])
                continue
            reads.sort(key=lambda read: (self.cells(read.scope), read.scope))
            chosen, union = [reads[0]], set(reads[0].scope)
            others = reads[1:]
            while len(chosen) < most and len(reads) - len(chosen) >= most:
                best = min(others, key=lambda read: self.cells(union.union(read.scope)))
                others.remove(best)
                chosen.append(best)
                union.update(best.scope)
            self.join(reads, chosen)

    def join_streamed(self, reads: list[Read]) -> None:
        """Join pairs of streamed tables whose common scope is much smaller than the bucket's."""
        while SMALL_WORK <= self.work <= HOPELESS_WORK:
            tile = self.tile(self.variable, self.separator, reads)
            streamed = [reads[t] for t in tile.streamed]
            pairs = [
                (self.cells({*one.scope, *other.scope}), i, j)
                for j, other in enumerate(streamed)
                for i, one in enumerate(streamed[:j])
            ]
            if not pairs:
                return
            cells, i, j = min(pairs)
            if cells * _JOIN_GAIN > self.work:
                return
            self.join(reads, [streamed[i], streamed[j]])
