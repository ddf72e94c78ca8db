"""Costs moved between the tables of a model until its constant alone is a strong bound.

Passes of sequential reweighted message passing on the tables (Kolmogorov 2015, "A new look at reweighted message
passing"), which are shifts along single variables as in FGLP (Ihler, Flerova, Dechter and Otten 2012) and soft arc
consistency. Every assignment keeps its total, so whatever bounds the shifted model bounds the model.

Costs moved between clusters: the joined tables of mini-buckets, along the messages that they send.

Join-graph linear programming (Ihler, Flerova, Dechter and Otten 2012, "Join-graph based cost-shifting schemes",
algorithm JGLP): each pass takes messages up the tree of mini-buckets, which leaves a bound in its roots, and hands
shares of what came together down again. No pass lowers the bound, whose first value is that of plain mini-buckets.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import FORBIDDEN_COST, shift_costs
from elimina.inference.choose import host_memory
from elimina.inference.content import partition_by_content
from elimina.inference.encode import distances
from elimina.inference.options import Options
from elimina.inference.ordering import elimination_order
from elimina.inference.scales import widened
from elimina.inference.shares import can_copy, cells_of
from elimina.model import Model
from elimina.planning.machine import SHIFTED_CELL_SECONDS, SHIFTED_CLUSTER_SECONDS
from elimina.planning.planner import cost_bound
from elimina.planning.prepare import Problem, allowed_ranges, prepare
from elimina.table import FORBIDDEN, Table
from elimina.tree import Node, Partition, bucket_tree

Floats = NDArray[np.float64]
_Runs = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


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
        self._buckets = [tuple(numbers) for _, numbers in buckets]

    @property
    def cells(self) -> int:
        """Cells of all clusters' tables."""
        return sum(math.prod(self._sizes[v] for v in cluster.scope) for cluster in self.clusters)

    @property
    def pass_seconds(self) -> float:
        """Estimated time of a pass."""
        return SHIFTED_CELL_SECONDS * self.cells + SHIFTED_CLUSTER_SECONDS * len(self.clusters)

    def join(self, cluster: Cluster, tables: Sequence[tuple[Sequence[int], NDArray[Any]]]) -> Floats:
        """Add the cluster's tables.

        Args:
            cluster: One of this graph.
            tables: Scope and costs of each table of the model, infinite where something is forbidden.
        """
        joined = np.zeros([self._sizes[v] for v in cluster.scope])
        for member in cluster.members:
            scope, costs = tables[member]
            axes = sorted(range(len(scope)), key=lambda axis: self._position[scope[axis]])
            shape = [self._sizes[v] if v in scope else 1 for v in cluster.scope]
            joined += costs.transpose(axes).reshape(shape)
        return joined

    def shift(self, tables: Sequence[Floats], seconds: float, least_gain: float) -> float:
        """Move costs until a pass gains too little; every assignment keeps its total, with the constant.

        Args:
            tables: Tables of the clusters, which are changed.
            seconds: After which no further pass is begun.
            least_gain: Least gain of the constant in a pass; a pass with less is the last one.

        Returns:
            The constant, which was 0: a lower bound, for what stays in the tables is not negative. Infinity: nothing is
            allowed.
        """
        until = time.monotonic() + seconds
        constant = self._collect(tables, levelled=False)
        while math.isfinite(constant):
            self._hand_down(tables)
            gained = self._collect(tables, levelled=True)
            constant += gained
            if gained < least_gain or time.monotonic() > until:
                break
        return constant

    def _collect(self, tables: Sequence[Floats], levelled: bool) -> float:
        """Move every cluster's message to its parent; return the gain of the bound, the sum at the roots."""
        constant = 0.0
        for bucket in self._buckets:
            if levelled and len(bucket) > 1:
                self._level([tables[number] for number in bucket], [self.clusters[number] for number in bucket])
            for number in bucket:
                message = tables[number].min(axis=0)
                tables[number] -= _finite(message)
                node = self._nodes[number]
                if node.parent >= 0:
                    _add(tables[node.parent], self._runs(node.parent, node), message)
                else:
                    constant += float(message)
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


Array = NDArray[Any]

_MOST_TOTAL = 2**48
"""Largest total that the core can add up."""

LONGEST_SHIFT = 10.0
"""Seconds after which no further pass is begun by default."""

_PARTS = 1000
_HEADROOM = 2**27
"""Division of an integer cost that are shifted, if sums of them stay below the other number."""

_LEAST_PASSES = 4
"""Passes over clusters that the time has to suffice for."""

LEAST_GAIN = 1e-5
"""A pass that raises the bound by less of the tables' spread is the last one."""


class Shifted(NamedTuple):
    """A problem whose costs were shifted.

    Attributes:
        problem: One of costs to be minimised, over the same variables. An assignment's total is ``scale`` times that of
            the original problem, negated where that is maximised.
        scale: An int if costs are integers, else 1.0.
        sign: -1 where the original's totals are maximised.
        slack: Largest change of an assignment's total by rounding, where costs are floats.
    """

    problem: Problem
    scale: int | float
    sign: int
    slack: float = 0.0

    def original(self, bound: int | float) -> int | float:
        """Return a bound on this problem's totals as one on the original's, rounded to the next total of integers."""
        if isinstance(self.scale, int):
            return self.total(bound)
        return self.sign * (widened(bound, self.problem.model.constant) - self.slack)

    def total(self, total: int | float) -> int | float:
        """Return an assignment's total here as its total in the original problem."""
        if isinstance(total, int) and isinstance(self.scale, int):
            return self.sign * -(-total // self.scale)
        return self.sign * total / self.scale

    def shifted(self, total: int | float) -> int | float:
        """Return a total of the original problem as one of this."""
        return self.sign * total * self.scale


class Original(NamedTuple):
    """A problem, and the problem after cost shifting, if its costs were shifted."""

    problem: Problem
    shifted: Shifted | None

    @property
    def moved(self) -> Problem:
        """The problem to run."""
        return self.problem if self.shifted is None else self.shifted.problem

    def bound(self, bound: int | float) -> int | float:
        """Return a bound on totals of the problem that is run as one on this one's."""
        return bound if self.shifted is None else self.shifted.original(bound)

    def total(self, total: int | float) -> int | float:
        """Return an assignment's total there as its total here."""
        return total if self.shifted is None else self.shifted.total(total)

    def moved_total(self, total: int | float) -> int | float:
        """Return an assignment's total here as its total there."""
        return total if self.shifted is None else self.shifted.shifted(total)


def shift_tables(problem: Problem, options: Options, seconds: float) -> Original:
    """Shift costs between tables if that is asked for and possible.

    Args:
        problem: Problem of the task ``mpe``.
        options: Options of the shifts, with the memory that they may take.
        seconds: After which no further pass is begun.
    """
    return Original(problem, shift(problem, seconds, host_memory(options)) if options.shifts_tables else None)


def shift_all(problem: Problem, options: Options, seconds: float) -> tuple[Original, Options]:
    """Shift costs between tables and between clusters, whichever is asked for and possible.

    Args:
        problem: Problem of the task ``mpe``.
        options: Options with an i-bound.
        seconds: After which no further pass of either is begun.

    Returns:
        The problem to run, and how: in the clusters' order, if there are any.
    """
    original = shift_tables(problem, options, seconds)
    if original.shifted is None or not options.shifts_clusters or options.ibound == "auto":
        return original, options
    order = elimination_order(original.moved, options)
    return shift_clusters(original, options, order, seconds), options._replace(order=order)


def shift_clusters(original: Original, options: Options, order: Sequence[int], seconds: float) -> Original:
    """Join tables to clusters of mini-buckets, and shift costs between these, if time and memory suffice.

    Args:
        original: Problem whose costs were shifted between tables.
        options: With the most variables of a cluster's message, and the memory that it may take.
        order: Its free variables in elimination order.
        seconds: After which no further pass is begun.
    """
    assert original.shifted is not None
    assert options.ibound not in (None, "auto")
    problem = original.shifted.problem
    ibound, memory = int(options.ibound), host_memory(options)
    partition = None
    if options.partition != "scope":
        partition = partition_by_content(problem, order, ibound, memory, seconds)
    graph = JoinGraph(problem.model.sizes, [group.scope for group in problem.groups], order, ibound, partition)
    # Smaller clusters than those of the run would stand in the way of its mini-buckets.
    if not can_copy(graph.cells, len(graph.clusters), memory) or _LEAST_PASSES * graph.pass_seconds > seconds:
        return original
    found = _shifted_in(graph, problem, seconds)
    if found is None:
        return original
    problem, slack = found
    slack += original.shifted.slack
    return original._replace(shifted=original.shifted._replace(problem=problem, slack=slack))


def _shifted_in(graph: JoinGraph, problem: Problem, seconds: float) -> tuple[Problem, float] | None:
    """Return the problem with the clusters' tables, and its slack; None if all is forbidden, or costs are too large."""
    model = problem.model
    known = distances(problem, FORBIDDEN_COST)
    if not known.possible:
        return None
    given = [np.where(t < FORBIDDEN_COST, t, math.inf) if model.is_integer else t for t in known.tables]
    spread = sum(float(table.max(initial=0, where=table < math.inf)) for table in given)
    unit = 1.0 if model.is_integer or math.isinf(spread) else _unit(spread)
    # Whole numbers in floats: shifts between tables may have moved maxima apart.
    if spread * unit > _MOST_TOTAL:
        return None
    tables = [(group.scope, table) for group, table in zip(problem.groups, given, strict=True)]
    exact = [graph.join(cluster, tables) for cluster in graph.clusters]
    moved = [np.rint(table * unit) for table in exact]
    constant = graph.shift(moved, seconds, max(1.0, LEAST_GAIN * spread * unit))
    if math.isinf(constant):
        return None
    factors = []
    for cluster, table, found in zip(graph.clusters, exact, moved, strict=True):
        is_allowed = np.isfinite(found)
        if model.is_integer:
            costs: Array = np.where(is_allowed, np.where(is_allowed, found, 0.0).astype(np.int64), FORBIDDEN)
        else:
            costs = np.full(found.shape, np.inf)
            costs[is_allowed] = table[is_allowed] + (found[is_allowed] - np.rint(table[is_allowed] * unit)) / unit
        factors.append(Table(cluster.scope, costs))
    total = known.offset + (int(constant) if model.is_integer else constant / unit)
    joined = Model(model.variables, factors, sense="min-cost", constant=total, upper_bound=model.upper_bound)
    slack = 0.0 if model.is_integer else -widened(0.0, known.offset, constant / unit)
    return prepare(joined, "mpe", problem.fixed), slack


def _unit(spread: float) -> float:
    """Division of one that costs are counted in: a power of two."""
    return float(2.0 ** math.floor(math.log2(_MOST_TOTAL / max(spread, 1.0))))


def parts_of(problem: Problem) -> int:
    """Return the parts of an integer cost of 1 that are shifted."""
    return max(1, min(_PARTS, _HEADROOM // cost_bound(problem)))


def shift(problem: Problem, seconds: float, memory: int) -> Shifted | None:
    """Shift costs between tables; None if these are too large for it, or forbid everything.

    Args:
        problem: Problem of the task ``mpe``.
        seconds: After which no further pass is begun.
        memory: Bytes that it may take.
    """
    model = problem.model
    if not can_copy(cells_of(problem), len(problem.groups), memory):
        return None
    known = distances(problem, FORBIDDEN_COST)
    limit = FORBIDDEN_COST if model.is_integer else math.inf
    if model.is_integer:
        # Of tables one by one: their sums may not fit the core's costs.
        ranges = filter(None, allowed_ranges(problem.tables, model.sense))
        spread = sum(high - low for low, high in ranges)
    else:
        spread = sum(float(table.max(initial=0, where=table < limit)) for table in known.tables)
    scale: int | float = parts_of(problem) if model.is_integer else 1.0
    unit = scale if model.is_integer or math.isinf(spread) else _unit(spread)
    if not known.possible or not spread * unit <= _MOST_TOTAL:
        return None
    given = [_in_units(table, unit, limit) for table in known.tables]
    bound, found = shift_costs(
        *problem.network,
        [table.reshape(-1) for table in given],
        FORBIDDEN_COST,
        seconds,
        max(1, int(LEAST_GAIN * spread * unit)),
        lambda *_: None,
    )
    factors = _tables(problem, known.tables, given, found, unit)
    constant = scale * known.offset + bound if model.is_integer else known.offset + bound / unit
    sign = model.sign
    worst = None if model.upper_bound is None else sign * scale * model.upper_bound
    shifted = Model(model.variables, factors, sense="min-cost", constant=constant, upper_bound=worst)
    slack = 0.0 if model.is_integer else -widened(0.0, known.offset, bound / unit)
    return Shifted(prepare(shifted, "mpe", problem.fixed), scale, sign, slack)


def _in_units(table: Array, unit: float, limit: float) -> Array:
    """Return the distances in the core's units."""
    costs = np.full(table.shape, FORBIDDEN_COST)
    np.copyto(costs, np.rint(table * unit), where=table < limit, casting="unsafe")
    return costs


def _tables(
    problem: Problem,
    known: Sequence[Array],
    given: Sequence[Array],
    found: Sequence[tuple[list[int], Array]],
    unit: float,
) -> list[Table]:
    """Return the shifted factors, including the remainders of floats that were rounded to units."""
    pairs = list(zip(problem.groups, known, given, strict=True))
    wide = [pair for pair in pairs if len(pair[0].scope) > 1]
    narrow = {pair[0].scope[0]: pair for pair in pairs if len(pair[0].scope) == 1}
    dtype = np.int64 if problem.model.is_integer else np.float64
    factors = []
    for number, (scope, costs) in enumerate(found):
        if number < len(wide):
            group, exact, rounded = wide[number]
            factors.append(_table(group.scope, costs.reshape(exact.shape), exact, rounded, unit))
            continue
        variable = problem.free[scope[0]]
        none = np.zeros(len(costs), dtype=dtype)
        _, exact, rounded = narrow.get(variable, (None, none, none))
        factors.append(_table((variable,), costs, exact, rounded, unit))
    return factors


def _table(scope: Sequence[int], costs: Array, exact: Array, rounded: Array, unit: float) -> Table:
    """Return a shifted table; floats are the sum of the old values and the shifts."""
    if exact.dtype.kind == "i":
        return Table(scope, np.where(costs >= FORBIDDEN_COST, FORBIDDEN, costs))
    with np.errstate(invalid="ignore"):
        return Table(scope, np.where(costs >= FORBIDDEN_COST, np.inf, exact + (costs - rounded) / unit))
