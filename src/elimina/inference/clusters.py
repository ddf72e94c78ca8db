"""Mini-buckets by the contents of tables; costs moved between their joined tables, along the messages that they send.

Join-graph linear programming (Ihler, Flerova, Dechter and Otten 2012, "Join-graph based cost-shifting schemes",
algorithm JGLP): each pass takes messages up the tree of mini-buckets, which leaves a bound in its roots, and hands
shares of what came together down again. No pass lowers the bound, whose first value is that of plain mini-buckets.

The tables are arrays of NumPy, or of a GPU that NumPy's functions work on. There the passes of large clusters take
milliseconds, so the constant alone becomes a strong bound.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import FORBIDDEN_COST, Stopped, count_path, stopped
from elimina._core import partition_by_content as partition
from elimina.display import count_text
from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.inference.beam import Found, beam_searches
from elimina.inference.choose import host_memory
from elimina.inference.encode import Distances, distances, tables_of
from elimina.inference.options import Options
from elimina.planning.machine import (
    COMPARED_PAIR_SECONDS,
    JOINED_CELL_SECONDS,
    PARTITIONED_BUCKET_SECONDS,
    PLANNED_BUCKET_SECONDS,
    SHIFTED_CELL_SECONDS,
    SHIFTED_CLUSTER_SECONDS,
)
from elimina.planning.prepare import Problem
from elimina.result import Result
from elimina.tree import Node, Partition, bucket_tree

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice
    from elimina.inference.shifting import Original
    from elimina.inference.strategy import Budget

logger = logging.getLogger("elimina")

Floats = NDArray[np.float64]
"""Tables in units: arrays of NumPy, or of a GPU."""

_Runs = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


_MOST_JOINED_CELLS = 2**28
"""Most cells of all joined tables of a partition together."""

_JOINED_CELL_BYTES = 32
"""Bytes per cell of joined tables, their sources and targets, and their messages."""


def partition_by_content(
    problem: Problem, order: Sequence[int], ibound: int, memory: int, seconds: float, threads: int
) -> Partition | None:
    """Divide each bucket by the tables' values; None where that takes too much, or nothing is allowed.

    Content-based greedy partitions (Rollon and Dechter 2010, "New mini-bucket partitioning heuristics for bounding the
    probability of evidence", section 4), with costs for probabilities: tables that gain most from a joint message are
    joined. The messages have to be known for it, so they are made here, on the host, before the plan; what the plan
    keeps is which table goes where.

    Args:
        problem: Problem of the task ``mpe``.
        order: The free variables in elimination order.
        ibound: The most variables of a message.
        memory: Bytes that it may take.
        seconds: Estimated time that it may take, besides a part of what the plan takes.
        threads: Number of CPU threads that compare tables.

    Raises:
        Stopped: The call is to end.
    """
    sizes = problem.model.sizes
    position = {v: i for i, v in enumerate(order)}
    scopes = [tuple(sorted(group.scope, key=position.__getitem__)) for group in problem.groups]
    nodes = bucket_tree(scopes, order, ibound=ibound).nodes
    cells = sum(sizes[node.variable] * math.prod(sizes[v] for v in node.separator) for node in nodes)
    tables = Counter[int]()
    for node in nodes:
        tables[node.variable] += len(node.factors) + len(node.children)
    pairs = sum(number * number for number in tables.values())
    needed = JOINED_CELL_SECONDS * cells + COMPARED_PAIR_SECONDS * pairs + PARTITIONED_BUCKET_SECONDS * len(nodes)
    if cells > min(_MOST_JOINED_CELLS, memory // _JOINED_CELL_BYTES) or needed > seconds + PLANNED_BUCKET_SECONDS * len(
        nodes
    ):
        return None
    known = distances(problem, FORBIDDEN_COST)
    if not known.possible:
        return None
    costs = []
    for group, table in zip(problem.groups, tables_of(problem, known.costs), strict=True):
        axes = sorted(range(len(group.scope)), key=lambda axis: position[group.scope[axis]])
        costs.append(np.where(table < FORBIDDEN_COST, table, math.inf).astype(np.float64).transpose(axes).ravel())
    # What is forbidden costs more than anything that is not.
    most = 1.0 + sum(float(table.max(initial=0, where=np.isfinite(table))) for table in costs)
    places = [[position[v] for v in scope] for scope in scopes]
    return partition([sizes[v] for v in order], places, costs, ibound, most, threads)


class Cluster(NamedTuple):
    """Tables that a mini-bucket joins.

    Attributes:
        scope: The variable, and its message's variables, earliest eliminated first.
        members: Indices of the scopes that are part of it.
    """

    scope: tuple[int, ...]
    members: tuple[int, ...]


class JoinGraph:
    """Clusters of mini-buckets and their tables, in units: whole numbers, and infinity where something is forbidden.

    Args:
        sizes: Number of values of each variable of the model.
        scopes: Scopes of the tables; every variable of theirs occurs in the order.
        order: Variables in elimination order.
        ibound: The most variables of a message.
        partition: The mini-buckets of each bucket; None: by scopes.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        scopes: Sequence[Sequence[int]],
        order: Sequence[int],
        ibound: int,
        partition: Partition | None = None,
    ) -> None:
        self._nodes = bucket_tree(scopes, order, ibound=ibound, partition=partition).nodes
        self._position = {v: i for i, v in enumerate(order)}
        self._sizes = sizes
        self.clusters = tuple(Cluster((node.variable, *node.separator), node.factors) for node in self._nodes)
        buckets = itertools.groupby(range(len(self._nodes)), key=lambda number: self._nodes[number].variable)
        self.buckets = [tuple(numbers) for _, numbers in buckets]

    @property
    def cells(self) -> int:
        """Cells of all clusters' tables."""
        return sum(math.prod(self._sizes[v] for v in cluster.scope) for cluster in self.clusters)

    @property
    def pass_seconds(self) -> float:
        """Estimated time of a pass."""
        return SHIFTED_CELL_SECONDS * self.cells + SHIFTED_CLUSTER_SECONDS * len(self.clusters)

    def join(self, cluster: Cluster, tables: Sequence[tuple[Sequence[int], NDArray[Any]]], arrays: Any = np) -> Floats:
        """Add the cluster's tables.

        Args:
            cluster: One of this graph.
            tables: Scope and costs of each table of the model, infinite where something is forbidden.
            arrays: The tables' library: NumPy or CuPy.
        """
        joined: Floats = arrays.zeros([self._sizes[v] for v in cluster.scope])
        for member in cluster.members:
            scope, costs = tables[member]
            axes = sorted(range(len(scope)), key=lambda axis: self._position[scope[axis]])
            shape = [self._sizes[v] if v in scope else 1 for v in cluster.scope]
            joined += costs.transpose(axes).reshape(shape)
        return joined

    def shift(
        self,
        tables: Sequence[Floats],
        seconds: float,
        least_gain: float,
        card: CudaDevice | None = None,
        tell: Callable[[float], None] = lambda constant: None,
    ) -> float:
        """Move costs until a pass gains too little; every assignment keeps its total, with the constant.

        Args:
            tables: Tables of the clusters, which are changed.
            seconds: After which no further pass is begun.
            least_gain: Least gain of the constant in a pass; a pass with less is the last one.
            card: The GPU of the tables; None: they are NumPy's.
            tell: Called with the constant after each pass.

        Returns:
            The constant, which was 0: a lower bound, for what stays in the tables is not negative. Infinity: nothing is
            allowed.

        Raises:
            Stopped: The work is to end.
        """
        until = time.monotonic() + seconds
        constant, gained = float(self.collect(tables)), math.inf
        tell(constant)
        again: Callable[[], Any] = functools.partial(self.move, tables)
        for number in itertools.count():
            if not math.isfinite(constant) or gained < least_gain or (number and time.monotonic() > until):
                return constant
            if stopped():
                raise Stopped
            if number == 1 and card is not None:
                # The first pass has compiled the kernels.
                again = card.recorded(again)
            gained = float(again())
            constant += gained
            tell(constant)
        return constant

    def move(self, tables: Sequence[Floats]) -> Any:
        """Hand costs down, and collect them again; return the gain of the bound, a number or an array without axes."""
        self._hand_down(tables)
        return self.collect(tables, levelled=True)

    def collect(self, tables: Sequence[Floats], levelled: bool = False) -> Any:
        """Move every cluster's message to its parent; return the gain of the bound, the sum at the roots."""
        constant: Any = 0.0
        for bucket in self.buckets:
            if levelled and len(bucket) > 1:
                self._level([tables[number] for number in bucket], [self.clusters[number] for number in bucket])
            for number in bucket:
                message = tables[number].min(axis=0)
                tables[number] -= _finite(message)
                node = self._nodes[number]
                if node.parent >= 0:
                    _add(tables[node.parent], self._runs(node.parent, node), message)
                else:
                    constant = constant + message
        return constant

    def _level(self, tables: Sequence[Floats], clusters: Sequence[Cluster]) -> None:
        """Equalise the least costs of a variable's clusters for each assignment of the variables that all share."""
        common = set(clusters[0].scope).intersection(*(cluster.scope for cluster in clusters[1:]))
        runs = [_merge([(self._sizes[v], v in common) for v in cluster.scope]) for cluster in clusters]
        least = [_least(table, run) for table, run in zip(tables, runs, strict=True)]
        total = sum(least[1:], least[0])
        share = np.floor(_finite(total) / len(tables))
        rest = _finite(total) - share * len(tables)
        for number, (table, run) in enumerate(zip(tables, runs, strict=True)):
            moved = share - _finite(least[number]) + (0.0 if number else rest)
            _add(table, run, np.where(np.isinf(total), np.inf, moved))

    def _hand_down(self, tables: Sequence[Floats]) -> None:
        """Distribute every parent's costs among its children, which have given all that they had."""
        waiting = [len(node.children) for node in self._nodes]
        for number in reversed(range(len(self._nodes))):
            node = self._nodes[number]
            if node.parent < 0:
                continue
            runs = self._runs(node.parent, node)
            share = np.floor(_least(tables[node.parent], runs) / waiting[node.parent])
            waiting[node.parent] -= 1
            _add(tables[node.parent], runs, -_finite(share))
            tables[number] += share.reshape(tables[number].shape[1:])

    def _runs(self, parent: int, child: Node) -> _Runs:
        """Return the parent's axes, as a child's message has them."""
        return _merge([(self._sizes[v], v in child.separator) for v in self.clusters[parent].scope])


def _merge(axes: Sequence[tuple[int, bool]]) -> _Runs:
    """Neighbouring axes that are kept, or that are not, as one: sizes, those of a message, and the axes it lacks."""
    merged: list[tuple[int, bool]] = []
    for kept, run in itertools.groupby(axes, key=lambda axis: axis[1]):
        merged.append((math.prod(size for size, _ in run), kept))
    left = tuple(axis for axis, (_, kept) in enumerate(merged) if not kept)
    return tuple(size for size, _ in merged), tuple(size if kept else 1 for size, kept in merged), left


def _least(table: Floats, runs: _Runs) -> Floats:
    whole, _, left = runs
    least: Floats = table.reshape(whole).min(axis=left)
    return least.reshape(-1)


def _add(table: Floats, runs: _Runs, message: Floats) -> None:
    whole, part, _ = runs
    view = table.reshape(whole)
    view += message.reshape(part)


def _finite(message: Floats) -> Floats:
    """Forbidden cells stay forbidden: nothing is subtracted."""
    return np.where(np.isinf(message), 0.0, message)


_MOST_TOTAL = 2.0**48
"""Largest total in units: sums of them are exact in floats."""

_LEAST_CELLS, _MORE_CELLS = 1 << 21, 8
"""Cells of the first graph on a GPU; times as many that the next one may have."""

_BYTES = 24
"""Bytes of a GPU for each cell: the table, and what a pass derives from it."""

_LEAST_GAIN = 1e-8
"""A pass there that raises the bound by less of the tables' spread is the last one."""

_BEAM_SHARE, _BEAM_STEP_SECONDS = 0.4, 1e-3
"""Share of a graph's time that is left to this search, and the seconds that a variable takes it."""

_TOLD_SECONDS = 0.05
"""Seconds between two bounds that are told."""


class _Units(NamedTuple):
    """Tables of a problem in units: whole numbers, none more than the costs.

    Attributes:
        tables: Scope and costs of each, infinite where something is forbidden.
        offset: Cost that the tables leave out.
        unit: Units of a cost of 1.
        spread: Sum of the tables' largest costs, in units.
    """

    tables: list[tuple[tuple[int, ...], Floats]]
    offset: int | float
    unit: float
    spread: float


def _in_units(problem: Problem, known: Distances) -> _Units:
    """Return a problem's tables in units."""
    costs = [
        np.where(table < FORBIDDEN_COST, table, math.inf).astype(np.float64)
        for table in tables_of(problem, known.costs)
    ]
    spread = sum(float(table.max(initial=0, where=table < math.inf)) for table in costs)
    unit = 1.0
    if not problem.model.is_integer and math.isfinite(spread):
        unit = 2.0 ** math.floor(math.log2(_MOST_TOTAL / max(spread, 1.0)))
    if not spread * unit <= _MOST_TOTAL:
        raise UnsupportedError(f"costs add up to {spread:.3g}, more than clusters on a GPU take")
    scopes = [group.scope for group in problem.groups]
    tables = [(scope, np.floor(table * unit)) for scope, table in zip(scopes, costs, strict=True)]
    return _Units(tables, known.offset, unit, spread * unit)


class _Learnt:
    """Bounds and assignment that clusters on a GPU have found.

    Attributes:
        bound: Largest lower bound, in units.
        found: Result of the bounds.
    """

    def __init__(self, original: Original, units: _Units, budget: Budget, device: str) -> None:
        self.bound, self.found = -math.inf, Result("bounded", "mpe")
        self._original, self._units, self._budget, self._device = original, units, budget, device
        self._least, self._told = math.inf, -math.inf
        self._chosen: list[int] | None = None

    def tell(self, constant: float) -> None:
        """Learn the constant of a pass, unless another one was told just before."""
        now = time.monotonic()
        if now > self._told + _TOLD_SECONDS:
            self.learn(constant)
            self._told = now

    def learn(self, bound: float, end: Found | None = None, constant: float = 0.0) -> None:
        """Take a lower bound, and the assignment of a search in tables besides a constant, if they are better."""
        from elimina.inference.minibucket import result_between

        is_better = end is not None and constant + end.cost < self._least
        if bound <= self.bound and not is_better:
            return
        self.bound = max(self.bound, bound)
        problem, units = self._original.moved, self._units
        if end is not None and is_better:
            self._least = constant + end.cost
            self._chosen = problem.complete(end.values, end.values.values())
        total = None
        if self.bound < math.inf:
            whole = int(self.bound) if problem.model.is_integer else self.bound / units.unit
            total = self._original.bound(units.offset + whole)
        found = result_between(self._original.problem.model, total, self._chosen)
        self.found = found.replace(stats={"method": "search", "device": self._device})
        self._budget.learn(self.found)


def bounds_on_card(
    original: Original, order: Sequence[int], options: Options, card: CudaDevice, budget: Budget
) -> Result:
    """Bound an optimum by passes over clusters on a GPU: larger and larger ones, each for a part of the time.

    Beam searches in the tables of each end with assignments, and better bounds.

    Args:
        original: Problem of the task ``mpe``, and what it is after its costs were shifted between tables.
        order: The free variables in elimination order.
        options: The partition of buckets, and the memory of the GPU.
        card: The GPU.
        budget: Time, and the listener for each better bound.

    Raises:
        UnsupportedError: Costs are too far apart, or were not shifted between tables.
        MemoryLimitError: Not even small clusters fit.
        DeviceError: The device failed or is out of memory.
    """
    problem = original.moved
    count_path("cuda-clusters")
    if original.shifted is None:
        raise UnsupportedError("costs cannot be shifted")
    units = _in_units(problem, distances(problem, FORBIDDEN_COST))
    learnt = _Learnt(original, units, budget, card.name)
    most = (card.memory() if options.room is None else min(options.room, card.memory())) // _BYTES
    ibounds = list(_rungs(problem, order, most))
    for number, ibound in enumerate(ibounds):
        # Each has twice the time of the one before.
        seconds = budget.seconds / (2 ** (len(ibounds) - number) - 1)
        until = time.monotonic() + seconds
        partition = None
        if options.partition != "scope":
            memory, threads = host_memory(options), options.host_threads
            partition = partition_by_content(problem, order, ibound, memory, seconds / 2, threads)
        graph = JoinGraph(problem.model.sizes, [scope for scope, _ in units.tables], order, ibound, partition)
        if graph.cells > most:
            break
        logger.info("clusters of i-bound %d on a GPU: %s cells", ibound, count_text(graph.cells))
        _shift_and_search(graph, units, card, until, learnt, (most - graph.cells) * _BYTES)
        # A graph that took twice its time is the last one: others may use the GPU. The first one compiles kernels.
        is_late = number > 0 and time.monotonic() > until + seconds
        if learnt.found.status != "bounded" or is_late:
            break
    if learnt.bound == -math.inf:
        raise MemoryLimitError("clusters of two variables do not fit the GPU")
    return learnt.found


def _shift_and_search(
    graph: JoinGraph, units: _Units, card: CudaDevice, until: float, learnt: _Learnt, room: int
) -> None:
    """Bound an optimum by one graph of clusters, and search in its tables within so many bytes besides them."""
    began = time.monotonic()
    left = until - began
    # A search is worth it if it has time for all variables.
    is_searched = _BEAM_SHARE * left > _BEAM_STEP_SECONDS * len(graph.buckets)
    with card.arrays() as arrays:
        uploaded = [(scope, arrays.asarray(table)) for scope, table in units.tables]
        tables = [graph.join(cluster, uploaded, arrays) for cluster in graph.clusters]
        shifted = began + (1.0 - _BEAM_SHARE if is_searched else 1.0) * left - time.monotonic()
        constant = graph.shift(tables, shifted, max(1.0, _LEAST_GAIN * units.spread), card, learnt.tell)
        learnt.learn(constant)
        if is_searched and constant < math.inf:
            for end in beam_searches(graph, tables, until, arrays, room):
                learnt.learn(constant + end.bound, end, constant)


def _rungs(problem: Problem, order: Sequence[int], most: int) -> Iterator[int]:
    """Yield i-bounds of graphs with more and more cells, up to so many."""
    sizes, scopes = problem.model.sizes, [group.scope for group in problem.groups]
    last, limit = 0, _LEAST_CELLS
    for ibound in range(1, max(2, len(order))):
        cells = JoinGraph(sizes, scopes, order, ibound).cells
        if cells > min(limit, most) and last:
            yield last
        while cells > limit:
            limit *= _MORE_CELLS
        last = ibound
        if cells > most:
            return
    if last:
        yield last
