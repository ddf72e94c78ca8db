"""A slow, plain planner: from a tree to steps and their places; the oracle of the compiled one."""

from __future__ import annotations

import functools
import math
import operator
from collections import deque
from collections.abc import Container, Iterable, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from elimina._core import Arena
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.step import JOIN, MATCHING, FactorLayout, Operand, Step
from elimina.planning.tree import Tree
from tests.reference.tiles import HOPELESS_WORK, SMALL_WORK, Tile, choose_tile, classify, table_strides

_JOIN_GAIN = 4
"""Ratio of the bucket to the common scope of two streamed tables from which they are joined."""

PACK_WORK = 1 << 27
"""Combinations of a bucket from which its A and B tables are worth a step of their own."""

PACK_GAIN = 900
"""Ratio of the bucket to such a step."""


class Read(NamedTuple):
    """A table to be read: a prepared factor or an earlier step's output; ``scope`` is in elimination order."""

    factor: int
    source: int
    scope: tuple[int, ...]


class ProtoStep(NamedTuple):
    """A step before memory is laid out: ``axes`` are the output's variables, slow to fast.

    ``rows`` is the position of the first axis of the output's rows; None: where ``row_axes`` puts it. A moment
    matching reads the marginals of all mini-buckets, and its tile's ``tables_a`` are those before its own. ``weight``:
    see ``Step``.
    """

    variable: int
    domain: int
    axes: tuple[int, ...]
    reads: tuple[Read, ...]
    tile: Tile
    rows: int | None
    weight: float = 1.0


def build_steps(
    tree: Tree,
    nodes: Sequence[int],
    scopes: Sequence[tuple[int, ...]],
    sizes: Sequence[int],
    operands: int = MAX_OPERANDS,
    matched: bool = False,
    weights: Sequence[float] | None = None,
) -> tuple[list[ProtoStep], dict[int, int]]:
    """Return the steps for the tree's nodes, and the one that writes each node's message.

    Args:
        tree: A bucket tree over the scopes.
        nodes: All node numbers, children before parents: the sequence of the steps.
        scopes: The prepared factors' scopes, sorted by elimination order.
        sizes: Domain size of every variable of the model.
        operands: Tables that a step may read.
        matched: True if mini-buckets of a variable, which follow each other then, get moment matching before they are
            eliminated.
        weights: Weights of each node's elimination (``tree.node_weights``); None: 1.
    """
    steps: list[ProtoStep] = []
    written: dict[int, int] = {}
    position = {v: i for i, v in enumerate(tree.order)}
    for _, group in groupby(nodes, key=lambda number: tree.nodes[number].variable):
        parts: list[tuple[Bucket, list[Read]]] = []
        numbers = list(group)
        for number in numbers:
            node = tree.nodes[number]
            reads = [Read(f, -1, scopes[f]) for f in node.factors]
            reads += [Read(-1, written[child], tree.nodes[child].separator) for child in node.children]
            weight = 1.0 if weights is None else weights[number]
            parts.append((Bucket(node.variable, node.separator, sizes, position, steps, weight), reads))
        if matched and len(parts) > 1:
            _level(parts, operands)
        for number, (bucket, reads) in zip(numbers, parts, strict=True):
            written[number] = bucket.eliminate(reads, operands).source
    return steps, written


def shares(weights: Sequence[float]) -> list[float]:
    """Return weights normalised to sum to 1; equal weights where all are 0."""
    # As the core adds: from Python 3.12 on, `sum` rounds less.
    total = functools.reduce(operator.add, weights, 0.0)
    return [weight / total for weight in weights] if total else [1 / len(weights)] * len(weights)


def _level(parts: Sequence[tuple[Bucket, list[Read]]], operands: int) -> None:
    """Give each mini-bucket one more table, so that all agree on the best cost for each value of what they share.

    What a mini-bucket has above the mean of all there goes to the others (moment matching: Ihler, Flerova, Dechter and
    Otten 2012, "Join-graph based cost-shifting schemes", section 3.2). Where mini-buckets have weights, marginals of
    their powers are to agree, so each gets its weight's share of the marginals' product (Liu and Ihler 2011).
    """
    one = parts[0][0]
    shared = set(one.separator).intersection(*(bucket.separator for bucket, _ in parts))
    axes = tuple(sorted({one.variable, *shared}, key=one.position.__getitem__))
    groups = -(-len(parts) // operands)
    for group in range(groups):
        some = parts[group::groups]
        bests = [bucket.project(reads, axes, operands) for bucket, reads in some]
        for (_, reads), table in zip(
            some, one.level(bests, shares([bucket.weight for bucket, _ in some])), strict=True
        ):
            reads.append(table)


class Bucket:
    """Appends the steps of one bucket, or (``variable`` ``JOIN``) of a join."""

    def __init__(
        self,
        variable: int,
        separator: tuple[int, ...],
        sizes: Sequence[int],
        position: dict[int, int],
        steps: list[ProtoStep],
        weight: float = 1.0,
    ) -> None:
        self.variable, self.separator, self.sizes, self.position, self.steps = (
            variable,
            separator,
            sizes,
            position,
            steps,
        )
        self.weight = weight
        self.work = (sizes[variable] if variable >= 0 else 1) * self.cells(separator)

    def eliminate(self, reads: Sequence[Read], operands: int) -> Read:
        """Append what turns the tables into the bucket's message; no step reads more than so many operands."""
        left = list(reads)
        self.limit_operands(left, operands)
        tile = self.join_streamed(left)
        if self.variable >= 0 and not tile.streamed and PACK_WORK <= self.work <= HOPELESS_WORK:
            self.pack_sides(left, tile)
            tile = classify(tile.outer, tile.mid, tile.lo, _members(self.separator, left))
        number = self.add(self.variable, self.separator, left, tile, weight=self.weight)
        return Read(-1, number, self.separator)

    def project(self, reads: Sequence[Read], axes: tuple[int, ...], operands: int) -> Read:
        """Append what eliminates all variables but these, the earliest first."""
        scope = (self.variable, *self.separator)
        left = list(reads)
        for v in [v for v in scope if v not in axes]:
            scope = tuple(u for u in scope if u != v)
            left = [Bucket(v, scope, self.sizes, self.position, self.steps, self.weight).eliminate(left, operands)]
        if len(left) > 1 or left[0].scope != axes:
            self.join(left, list(left), axes)
        return left[0]

    def cells(self, scope: Iterable[int]) -> int:
        """Cells of a table over these variables."""
        return math.prod(self.sizes[v] for v in scope)

    def tile(self, variable: int, axes: tuple[int, ...], reads: Sequence[Read], rows: int | None = None) -> Tile:
        """Choose the split of a step."""
        domain = self.sizes[variable] if variable >= 0 else 1
        return choose_tile(domain, [self.sizes[v] for v in axes], _members(axes, reads), rows)

    def add(
        self,
        variable: int,
        axes: tuple[int, ...],
        reads: Sequence[Read],
        tile: Tile,
        rows: int | None = None,
        weight: float = 1.0,
    ) -> int:
        """Append a step; return its number."""
        ordered = tuple(reads[t] for t in (*tile.tables_a, *tile.tables_b, *tile.streamed))
        domain = self.sizes[variable] if variable >= 0 else 1
        self.steps.append(ProtoStep(variable, domain, axes, ordered, tile, rows, weight))
        return len(self.steps) - 1

    def join(
        self, reads: list[Read], chosen: Sequence[Read], axes: tuple[int, ...] = (), rows: int | None = None
    ) -> None:
        """Replace the chosen tables by their join, whose axes are in elimination order if none are given."""
        union = set().union(*(read.scope for read in chosen))
        axes = axes or tuple(sorted(union, key=self.position.__getitem__))
        for read in chosen:
            reads.remove(read)
        reads.append(Read(-1, self.add(JOIN, axes, chosen, self.tile(JOIN, axes, chosen, rows), rows), axes))

    def level(self, marginals: Sequence[Read], parts: Sequence[float]) -> list[Read]:
        """Append what evens out mini-buckets of this bucket: for each of them one more table, which add up to nothing.

        Args:
            marginals: Marginals of each mini-bucket, over one scope that all of them have: what its tables leave when
                everything else is eliminated. ``MAX_OPERANDS`` at most.
            parts: The share of each one in the marginals' sum.
        """
        scope = marginals[0].scope
        everything = tuple(range(len(marginals)))
        tiles = [Tile(tuple(range(len(scope))), (), (), everything[:n], (), everything[n:]) for n in everything]
        pairs = zip(tiles, parts, strict=True)
        return [Read(-1, self.add(MATCHING, scope, marginals, tile, weight=part), scope) for tile, part in pairs]

    def limit_operands(self, reads: list[Read], most: int) -> None:
        """Join small tables, those with the smallest common scope first, until a step can read all."""
        if len(reads) > most and self.work <= HOPELESS_WORK:
            self.join_equal(reads, most)
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

    def join_equal(self, reads: list[Read], most: int) -> None:
        """Join tables of the same scope, small ones first, as far as need be: the search would, one table at a time."""
        left = len(reads)
        by_scope: dict[tuple[int, ...], deque[Read]] = {}
        for read in reads:
            by_scope.setdefault(read.scope, deque()).append(read)
        for scope in sorted(by_scope, key=lambda scope: (self.cells(scope), scope)):
            same = by_scope[scope]
            while len(same) > 1 and left > most:
                chosen = [same.popleft() for _ in range(min(len(same), most, left - most + 1))]
                joined = list(chosen)
                self.join(joined, chosen)
                same.extend(joined)
                left -= len(chosen) - 1
        reads[:] = chain.from_iterable(by_scope.values())

    def join_streamed(self, reads: list[Read]) -> Tile:
        """Join pairs of streamed tables whose common scope is much smaller than the bucket's; return the split then."""
        while True:
            tile = self.tile(self.variable, self.separator, reads)
            if not SMALL_WORK <= self.work <= HOPELESS_WORK:
                return tile
            streamed = [reads[t] for t in tile.streamed]
            pairs = [
                (self.cells({*one.scope, *other.scope}), i, j)
                for j, other in enumerate(streamed)
                for i, one in enumerate(streamed[:j])
            ]
            if not pairs:
                return tile
            cells, i, j = min(pairs)
            if cells * _JOIN_GAIN > self.work:
                return tile
            self.join(reads, [streamed[i], streamed[j]])

    def pack_sides(self, reads: list[Read], tile: Tile) -> None:
        """Join the tables of A, and those of B, to matrices [variable][cell] where that is cheap beside the bucket.

        Tables that have the same outer axes are joined, or all of a side. Outer axes that no B table has are mid ones
        for A. A single table is laid out again if its cells do not follow each other.
        """
        outer, lo = ([self.separator[a] for a in axes] for axes in (tile.outer, tile.lo))
        a_tables, b_tables = ([reads[t] for t in tables] for tables in (tile.tables_a, tile.tables_b))
        kept = [v for v in outer if any(v in read.scope for read in b_tables)]
        mid = [v for v in outer if v not in kept] + [self.separator[a] for a in tile.mid]
        for tables, cells in ((a_tables, mid), (b_tables, lo)):
            groups: dict[tuple[int, ...], list[Read]] = {}
            for read in tables:
                groups.setdefault(tuple(v for v in kept if v in read.scope), []).append(read)
            union = tuple(v for v in kept if any(v in read.scope for read in tables))
            if len(groups) > 1 and self.is_cheap(union, cells):
                groups = {union: tables}
            for key, group in groups.items():
                if self.is_cheap(key, cells) and (len(group) > 1 or not self.is_packed(group[0], key, cells)):
                    self.join(reads, group, (self.variable, *key, *cells), 1 + len(key))

    def is_cheap(self, key: Sequence[int], cells: Sequence[int]) -> bool:
        """Return whether making a table over these variables and the bucket's own costs little beside the bucket."""
        return self.cells((self.variable, *key, *cells)) * PACK_GAIN <= self.work

    def is_packed(self, read: Read, key: Sequence[int], cells: Sequence[int]) -> bool:
        """Return whether the table is a matrix with rows of these cells, that start at words of some length."""
        inner = [v for v in read.scope if v != self.variable and v not in key]
        if not inner:
            return True
        strides = dict(zip(read.scope, table_strides([self.sizes[v] for v in read.scope], 1)[0], strict=True))
        along = [strides.get(v, 0) for v in cells if self.sizes[v] > 1]
        wanted = [self.cells(cells[i + 1 :]) for i, v in enumerate(cells) if self.sizes[v] > 1]
        return along == wanted and all(strides.get(v, 0) % 4 == 0 for v in (self.variable, *key))


def _members(axes: Sequence[int], reads: Sequence[Read]) -> list[frozenset[int]]:
    axis = {v: i for i, v in enumerate(axes)}
    return [frozenset(axis[v] for v in read.scope if v in axis) for read in reads]


def place(
    sizes: Sequence[int],
    scopes: Sequence[tuple[int, ...]],
    members: Sequence[tuple[int, ...]],
    proto: Sequence[ProtoStep],
    itemsize: int,
    stays: Container[int],
    levels: Sequence[int] | None = None,
) -> tuple[tuple[FactorLayout, ...], tuple[Step, ...], int, int]:
    """Give every table its place in the arena; return factors, steps, and the cells of the factors and of everything.

    Args:
        sizes: Domain size of every variable.
        scopes: Scopes of the factors, earliest eliminated variable first.
        members: Tables joined to each factor.
        proto: The steps.
        itemsize: Bytes of a cell.
        stays: The steps whose outputs stay when they have been read; others make room for later ones.
        levels: Levels of the steps, ascending: a message that a step of a higher level reads stays, too. None: all are
            0.
    """
    arena = Arena(itemsize)
    factors = []
    for scope, group in zip(scopes, members, strict=True):
        shape = tuple(sizes[v] for v in scope)
        strides, span = table_strides(shape, itemsize)
        factors.append(FactorLayout(group, scope, shape, strides, arena.allocate(span), span))
    arena.seal()
    factor_cells = arena.height
    readers: list[list[int]] = [[] for _ in proto]
    for number, step in enumerate(proto):
        for source in {read.source for read in step.reads if read.source >= 0}:
            readers[source].append(number)
    spans = [table_strides([sizes[v] for v in step.axes], itemsize, step.rows) for step in proto]
    # What is read off in the end comes first, so that it can be copied as one piece.
    outputs = {number: arena.allocate(spans[number][1]) for number in range(len(proto)) if not readers[number]}
    steps: list[Step] = []
    for number, step in enumerate(proto):
        strides, span = spans[number]
        offset = outputs[number] if number in outputs else arena.allocate(span)
        by_variable = dict(zip(step.axes, strides, strict=True))
        steps.append(_step(step, offset, by_variable, span, readers[number], sizes, factors, steps))
        for source in {read.source for read in step.reads if read.source >= 0}:
            again = levels is not None and levels[readers[source][-1]] > levels[source]
            if readers[source][-1] == number and not again and source not in stays:
                arena.give_back(steps[source].out_offset, steps[source].out_span)
    return tuple(factors), tuple(steps), factor_cells, arena.height


def _step(
    proto: ProtoStep,
    offset: int,
    out_strides: dict[int, int],
    span: int,
    readers: Sequence[int],
    sizes: Sequence[int],
    factors: Sequence[FactorLayout],
    steps: Sequence[Step],
) -> Step:
    tile = proto.tile
    axes = tuple(proto.axes[a] for a in (*tile.outer, *tile.mid, *tile.lo))
    operands = []
    for read in proto.reads:
        if read.source >= 0:
            source = steps[read.source]
            at, strides = source.out_offset, dict(zip(source.axes, source.out_strides, strict=True))
        else:
            factor = factors[read.factor]
            at, strides = factor.offset, dict(zip(factor.scope, factor.strides, strict=True))
        operands.append(
            Operand(
                read.factor,
                read.source,
                at,
                strides.get(proto.variable, 0),
                tuple(strides.get(v, 0) for v in axes),
                math.prod(sizes[v] for v in read.scope),
            )
        )
    return Step(
        variable=proto.variable,
        domain=proto.domain,
        axes=axes,
        sizes=tuple(sizes[v] for v in axes),
        out_strides=tuple(out_strides[v] for v in axes),
        outer=len(tile.outer),
        mid=len(tile.mid),
        operands=tuple(operands),
        tables_a=len(tile.tables_a),
        tables_b=len(tile.tables_b),
        out_offset=offset,
        out_span=span,
        readers=tuple(readers),
        weight=proto.weight,
    )
