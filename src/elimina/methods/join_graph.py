"""Join graphs of mini-buckets: clusters of joined tables that shift costs to each other by messages.

Join-graph linear programming (Ihler, Flerova, Dechter and Otten 2012, "Join-graph based cost-shifting schemes",
algorithm JGLP). Messages move costs up the tree of mini-buckets, and the roots add them up to a bound. Each further
pass first distributes the costs down the tree again. The first bound is that of plain mini-buckets, and no pass worsens
it.

The tables are arrays of NumPy, or arrays on a GPU that NumPy's functions accept.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import FORBIDDEN_COST, Stopped, stopped
from elimina.errors import UnsupportedError
from elimina.planning.machine import SHIFTED_CELL_SECONDS, SHIFTED_CLUSTER_SECONDS
from elimina.planning.tree import Node, Partition, bucket_tree
from elimina.problem.preparation import Problem
from elimina.running.encoding import CostDistances, tables_of

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice

Floats = NDArray[np.float64]
"""Array of NumPy or CuPy; costs are whole numbers of units."""

_Runs = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


class Cluster(NamedTuple):
    """Tables that a mini-bucket joins.

    Attributes:
        scope: The eliminated variable, then the variables of its message in elimination order.
        members: Indices of the joined tables.
    """

    scope: tuple[int, ...]
    members: tuple[int, ...]


class JoinGraph:
    """Clusters of mini-buckets; their tables hold costs in whole units, and infinity in forbidden cells.

    Args:
        sizes: Number of values of each variable of the model.
        scopes: Scopes of the tables; the order contains all of their variables.
        order: Variables in elimination order.
        ibound: Largest number of variables of a message.
        partition: Mini-buckets of each bucket; None: buckets are partitioned by scopes.
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
        """Return the sum of a cluster's tables.

        Args:
            cluster: A cluster of this graph.
            tables: Scope and costs of each table of the model; costs of forbidden cells are infinite.
            arrays: Library of the tables: NumPy or CuPy.
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
        gpu: CudaDevice | None = None,
        report: Callable[[float], None] = lambda constant: None,
    ) -> float:
        """Shift costs until a pass gains too little; the total of each assignment, constant included, does not change.

        Args:
            tables: Tables of the clusters, changed in place.
            seconds: Time after which no further pass is begun.
            least_gain: Least gain of the constant in a pass; a pass with less is the last one.
            gpu: GPU that holds the tables; None if they are NumPy's.
            report: Called with the constant after each pass.

        Returns:
            The constant that was shifted out of the tables: a lower bound, because the remaining costs are not
            negative. Infinity if all assignments are forbidden.

        Raises:
            Stopped: The call was stopped.
        """
        until = time.monotonic() + seconds
        constant, gained = float(self.pass_up(tables)), math.inf
        report(constant)
        next_pass: Callable[[], Any] = functools.partial(self.pass_down_and_up, tables)
        for number in itertools.count():
            if not math.isfinite(constant) or gained < least_gain or (number and time.monotonic() > until):
                return constant
            if stopped():
                raise Stopped
            if number == 1 and gpu is not None:
                # The first pass compiles the kernels, so a pass is recorded as a graph only after it.
                next_pass = gpu.recorded(next_pass)
            gained = float(next_pass())
            constant += gained
            report(constant)
        return constant

    def pass_down_and_up(self, tables: Sequence[Floats]) -> Any:
        """Run a downward and an upward pass; return the gain of the bound as a number or a zero-dimensional array."""
        self._pass_down(tables)
        return self.pass_up(tables, matched=True)

    def pass_up(self, tables: Sequence[Floats], matched: bool = False) -> Any:
        """Move every cluster's message to its parent; return the gain of the bound: the sum of the roots' messages.

        With ``matched``, the costs of each variable's clusters are first equalised.
        """
        constant: Any = 0.0
        for bucket in self.buckets:
            if matched and len(bucket) > 1:
                self._match_costs([tables[number] for number in bucket], [self.clusters[number] for number in bucket])
            for number in bucket:
                message = tables[number].min(axis=0)
                tables[number] -= _finite(message)
                node = self._nodes[number]
                if node.parent >= 0:
                    _add(tables[node.parent], self._runs(node.parent, node), message)
                else:
                    constant = constant + message
        return constant

    def _match_costs(self, tables: Sequence[Floats], clusters: Sequence[Cluster]) -> None:
        """Equalise the minimal costs of a variable's clusters for each assignment of their common variables."""
        common = set(clusters[0].scope).intersection(*(cluster.scope for cluster in clusters[1:]))
        runs = [_merge([(self._sizes[v], v in common) for v in cluster.scope]) for cluster in clusters]
        least = [_least(table, run) for table, run in zip(tables, runs, strict=True)]
        total = sum(least[1:], least[0])
        share = np.floor(_finite(total) / len(tables))
        rest = _finite(total) - share * len(tables)
        for number, (table, run) in enumerate(zip(tables, runs, strict=True)):
            moved = share - _finite(least[number]) + (0.0 if number else rest)
            _add(table, run, np.where(np.isinf(total), np.inf, moved))

    def _pass_down(self, tables: Sequence[Floats]) -> None:
        """Distribute each parent's costs evenly among its children."""
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
        """Return a parent's axes; neighbouring axes are merged if a child's message keeps all or none of them."""
        return _merge([(self._sizes[v], v in child.separator) for v in self.clusters[parent].scope])


def _merge(axes: Sequence[tuple[int, bool]]) -> _Runs:
    """Merge neighbouring axes that are all kept or all dropped.

    Return the merged sizes, the sizes of a message, and the dropped axes.
    """
    merged: list[tuple[int, bool]] = []
    for kept, run in itertools.groupby(axes, key=lambda axis: axis[1]):
        merged.append((math.prod(size for size, _ in run), kept))
    reduced_axes = tuple(axis for axis, (_, kept) in enumerate(merged) if not kept)
    return tuple(size for size, _ in merged), tuple(size if kept else 1 for size, kept in merged), reduced_axes


def _least(table: Floats, runs: _Runs) -> Floats:
    whole, _, reduced_axes = runs
    least: Floats = table.reshape(whole).min(axis=reduced_axes)
    return least.reshape(-1)


def _add(table: Floats, runs: _Runs, message: Floats) -> None:
    whole, reduced, _ = runs
    view = table.reshape(whole)
    view += message.reshape(reduced)


def _finite(message: Floats) -> Floats:
    """Replace infinity by 0 in a message that will be subtracted: forbidden cells then stay infinite."""
    return np.where(np.isinf(message), 0.0, message)


_MAX_TOTAL = 2.0**48
"""Largest total in units: sums up to it are exact in floating point."""

_MIN_CLUSTER_CELLS, _CLUSTER_GROWTH = 1 << 21, 8
"""Limit on the cells of the first graph on a GPU, and the factor by which the limit grows for later graphs."""

MIN_PASS_GAIN = 1e-8
"""Least gain of a pass on a GPU, relative to the sum of the tables' largest costs: a smaller gain ends the passes."""

BEAM_SHARE, BEAM_STEP_SECONDS = 0.4, 1e-3
"""Share of a graph's time for beam search, and seconds that a beam search takes for each variable."""


class ClusterUnits(NamedTuple):
    """Tables of a problem whose costs are rounded down to whole numbers of units.

    Attributes:
        tables: Scope and costs of each table; costs of forbidden cells are infinite.
        offset: Constant cost, which is not part of the tables.
        unit: Number of units that make up a cost of 1.
        spread: Sum of the tables' largest costs, in units.
    """

    tables: list[tuple[tuple[int, ...], Floats]]
    offset: int | float
    unit: float
    spread: float


def in_units(problem: Problem, distances: CostDistances) -> ClusterUnits:
    """Return a problem's tables with costs in units.

    Raises:
        UnsupportedError: The sum of the costs exceeds the exact range of floats.
    """
    costs = [
        np.where(table < FORBIDDEN_COST, table, math.inf).astype(np.float64)
        for table in tables_of(problem, distances.costs)
    ]
    spread = sum(float(table.max(initial=0, where=table < math.inf)) for table in costs)
    unit = 1.0
    if not problem.model.is_integer and math.isfinite(spread):
        unit = 2.0 ** math.floor(math.log2(_MAX_TOTAL / max(spread, 1.0)))
    if not spread * unit <= _MAX_TOTAL:
        raise UnsupportedError(f"costs add up to {spread:.3g}, more than clusters on a GPU take")
    scopes = [group.scope for group in problem.groups]
    tables = [(scope, np.floor(table * unit)) for scope, table in zip(scopes, costs, strict=True)]
    return ClusterUnits(tables, distances.offset, unit, spread * unit)


def rungs(problem: Problem, order: Sequence[int], max_cells: int) -> Iterator[int]:
    """Yield the i-bounds of graphs of growing size, up to ``max_cells``; none if i-bound 1 already exceeds it."""
    sizes, scopes = problem.model.sizes, [group.scope for group in problem.groups]
    last, limit = 0, _MIN_CLUSTER_CELLS
    for ibound in range(1, max(2, len(order))):
        cells = JoinGraph(sizes, scopes, order, ibound).cells
        if cells > min(limit, max_cells) and last:
            yield last
        while cells > limit:
            limit *= _CLUSTER_GROWTH
        last = ibound
        if cells > max_cells:
            return
    if last:
        yield last
