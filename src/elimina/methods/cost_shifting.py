"""Cost shifting between the tables of a model, until the model's constant alone is a strong bound.

The passes are those of sequential reweighted message passing (Kolmogorov 2015, "A new look at reweighted message
passing"). They shift costs along single variables, as do FGLP (Ihler, Flerova, Dechter and Otten 2012) and soft arc
consistency. The total of every assignment stays the same, so a bound for the shifted model is valid for the original
one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import FORBIDDEN_COST, shift_costs
from elimina.backends.device_group import devices_of
from elimina.methods.join_graph import JoinGraph
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import GPU_CLUSTER_SECONDS
from elimina.planning.number_type import cost_bound
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.problem.preparation import Problem, allowed_ranges, prepare
from elimina.running.content_partition import partition_by_content
from elimina.running.encoding import distances, largest_of, tables_of
from elimina.running.host import backend_of, host_memory
from elimina.running.memory_shares import can_copy, cells_of
from elimina.running.rounding import widened

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice

Array = NDArray[Any]

_MAX_TOTAL = 2**48
"""Largest total that the core can add."""

_MAX_SPREAD = 2.0**900
"""Largest total of float costs that are shifted: sums of shifted costs then stay within the range of floats."""

MAX_SHIFT_SECONDS = 10.0
"""Default time in seconds after which no further pass is begun."""

_COSTS_PER_UNIT = 1000
_HEADROOM = 2**27
"""Limit on sums of integer costs in the core's units. It determines the number of units in a cost of 1."""

_MIN_PASSES = 4
"""Costs are shifted between clusters only if the time suffices for at least this number of passes."""

MIN_SHIFT_GAIN = 1e-5
"""Gain of a pass, as a share of the tables' spread, above which another one is begun."""


class ShiftedTables(NamedTuple):
    """A problem whose costs were shifted.

    Attributes:
        problem: Problem of costs to minimise over the same variables. An assignment's total is ``scale`` times that of
            the original problem, negated if that is maximised.
        scale: Factor of the totals: an int if costs are integers, otherwise 1.0.
        sign: 1, or -1 if the original's totals are maximised.
        slack: Largest change of an assignment's total by rounding, if costs are floats.
    """

    problem: Problem
    scale: int | float
    sign: int
    slack: float = 0.0

    def original(self, bound: int | float) -> int | float:
        """Turn a bound on this problem's totals into a bound for the original problem; integers are rounded inwards."""
        if isinstance(self.scale, int):
            return self.total(bound)
        return self.sign * (widened(bound, self.problem.model.constant) - self.slack)

    def total(self, total: int | float) -> int | float:
        """Turn an assignment's total in this problem into its total in the original one."""
        if isinstance(total, int) and isinstance(self.scale, int):
            return self.sign * -(-total // self.scale)
        return self.sign * total / self.scale

    def shifted(self, total: int | float) -> int | float:
        """Turn an assignment's total in the original problem into its total in this one."""
        return self.sign * total * self.scale


class ShiftedProblem(NamedTuple):
    """A problem, and the problem after cost shifting (None if costs were not shifted)."""

    problem: Problem
    shifted: ShiftedTables | None

    @property
    def moved(self) -> Problem:
        """The problem to run: the shifted one, or the original one if costs were not shifted."""
        return self.problem if self.shifted is None else self.shifted.problem

    def bound(self, bound: int | float) -> int | float:
        """Turn a bound on totals of ``moved`` into a bound on totals of ``problem``."""
        return bound if self.shifted is None else self.shifted.original(bound)

    def total(self, total: int | float) -> int | float:
        """Turn an assignment's total in ``moved`` into its total in ``problem``."""
        return total if self.shifted is None else self.shifted.total(total)

    def moved_total(self, total: int | float) -> int | float:
        """Turn an assignment's total in ``problem`` into its total in ``moved``."""
        return total if self.shifted is None else self.shifted.shifted(total)


def shift_tables(problem: Problem, options: CheckedOptions, seconds: float) -> ShiftedProblem:
    """Shift costs between tables if this is requested and possible.

    Args:
        problem: Problem of the task ``mpe``.
        options: Options of the shifts, including the memory limit.
        seconds: Time after which no further pass is begun.
    """
    return ShiftedProblem(problem, shift(problem, seconds, host_memory(options)) if options.shifts_tables else None)


def shift_all(problem: Problem, options: CheckedOptions, seconds: float) -> tuple[ShiftedProblem, CheckedOptions]:
    """Shift costs between tables and between clusters, as requested and possible.

    Args:
        problem: Problem of the task ``mpe``.
        options: Options with an i-bound.
        seconds: Time after which no further pass is begun, separately for tables and for clusters.

    Returns:
        The problem to run, and its options. If clusters were requested, the options contain their order.
    """
    original = shift_tables(problem, options, seconds)
    if original.shifted is None or not options.shifts_clusters or options.ibound == "auto":
        return original, options
    order = elimination_order(original.moved, options)
    return shift_clusters(original, options, order, seconds), replace(options, order=order)


def shift_clusters(
    original: ShiftedProblem, options: CheckedOptions, order: Sequence[int], seconds: float
) -> ShiftedProblem:
    """Join the tables of each mini-bucket to a cluster, and shift costs between clusters if time and memory suffice.

    Args:
        original: Problem whose costs were shifted between tables.
        options: Options with an i-bound, which limits the variables of a cluster's message, and the memory limit.
        order: The problem's free variables in elimination order.
        seconds: Time after which no further pass is begun.
    """
    assert original.shifted is not None
    assert options.ibound not in (None, "auto")
    problem = original.shifted.problem
    ibound, memory = int(options.ibound), host_memory(options)
    partition = None
    if options.partition != "scope":
        partition = partition_by_content(problem, order, ibound, memory, seconds, options.host_threads)
    graph = JoinGraph(problem.model.sizes, [group.scope for group in problem.groups], order, ibound, partition)
    gpu = cast("CudaDevice", devices_of(backend_of(options))[0]) if options.needs_gpu else None
    least = _MIN_PASSES * graph.pass_seconds if gpu is None else GPU_CLUSTER_SECONDS * len(graph.clusters)
    # Clusters that do not fit are not made smaller, because the mini-buckets of the run would then be smaller too.
    if not can_copy(graph.cells, len(graph.clusters), memory) or least > seconds:
        return original
    result = _shifted_in(graph, problem, seconds, gpu)
    if result is None:
        return original
    problem, slack = result
    slack += original.shifted.slack
    return original._replace(shifted=original.shifted._replace(problem=problem, slack=slack))


def _shifted_in(
    graph: JoinGraph, problem: Problem, seconds: float, gpu: CudaDevice | None
) -> tuple[Problem, float] | None:
    """Join tables to clusters, and shift costs between the clusters.

    Returns:
        The problem of the clusters' tables, and the largest change of a total by rounding; None if no assignment is
        allowed, or costs are too large.
    """
    model = problem.model
    cost_distances = distances(problem, FORBIDDEN_COST)
    if not cost_distances.possible:
        return None
    costs = cost_distances.costs
    group_tables = tables_of(problem, np.where(costs < FORBIDDEN_COST, costs, math.inf) if model.is_integer else costs)
    spread = sum(float(table.max(initial=0, where=table < math.inf)) for table in group_tables)
    unit = 1.0 if model.is_integer else _unit(spread)
    # Costs in units are whole numbers in floats, which are exact up to 2^53. Earlier shifts may have raised the
    # sum of the tables' largest costs.
    if spread > _MAX_SPREAD or spread * unit > _MAX_TOTAL:
        return None
    tables = [(group.scope, table) for group, table in zip(problem.groups, group_tables, strict=True)]
    exact = [graph.join(cluster, tables) for cluster in graph.clusters]
    moved = [np.rint(table * unit) for table in exact]
    least_gain = max(1.0, MIN_SHIFT_GAIN * spread * unit)
    if gpu is None:
        constant = graph.shift(moved, seconds, least_gain)
    else:
        with gpu.arrays() as arrays:
            device_tables = [arrays.asarray(table) for table in moved]
            constant = graph.shift(device_tables, seconds, least_gain, gpu)
            moved = [arrays.asnumpy(table) for table in device_tables]
    if math.isinf(constant):
        return None
    factors = []
    for cluster, table, cells in zip(graph.clusters, exact, moved, strict=True):
        is_allowed = np.isfinite(cells)
        if model.is_integer:
            moved_costs: Array = np.where(is_allowed, np.where(is_allowed, cells, 0.0).astype(np.int64), FORBIDDEN)
        else:
            moved_costs = np.full(cells.shape, np.inf)
            moved_costs[is_allowed] = table[is_allowed] + (cells[is_allowed] - np.rint(table[is_allowed] * unit)) / unit
        factors.append(Table(cluster.scope, moved_costs))
    total = cost_distances.offset + (int(constant) if model.is_integer else constant / unit)
    joined = Model(model.variables, factors, sense="min-cost", constant=total, upper_bound=model.upper_bound)
    slack = 0.0 if model.is_integer else -widened(0.0, cost_distances.offset, constant / unit)
    return prepare(joined, "mpe", problem.fixed), slack


def _unit(spread: float) -> float:
    """Return the number of units in a cost of 1, a power of two, for costs that add up to ``spread``."""
    return float(2.0 ** math.floor(math.log2(_MAX_TOTAL / max(spread, 1.0))))


def parts_of(problem: Problem) -> int:
    """Return the number of units in an integer cost of 1, for cost shifting."""
    return max(1, min(_COSTS_PER_UNIT, _HEADROOM // cost_bound(problem)))


def shift(problem: Problem, seconds: float, memory: int) -> ShiftedTables | None:
    """Shift costs between tables; return None if tables or costs are too large, or no assignment is allowed.

    Args:
        problem: Problem of the task ``mpe``.
        seconds: Time after which no further pass is begun.
        memory: Memory limit of the shifts, in bytes.
    """
    model = problem.model
    if not can_copy(cells_of(problem), len(problem.groups), memory):
        return None
    cost_distances = distances(problem, FORBIDDEN_COST)
    limit = FORBIDDEN_COST if model.is_integer else math.inf
    if model.is_integer:
        # The ranges of single tables are added, because a sum of tables over one scope may exceed the largest cost of
        # the core.
        ranges = filter(None, allowed_ranges(problem.tables, model.sense))
        spread = sum(high - low for low, high in ranges)
    else:
        spread = sum(largest_of(problem, np.where(cost_distances.costs < limit, cost_distances.costs, 0)))
    scale: int | float = parts_of(problem) if model.is_integer else 1.0
    unit = scale if model.is_integer else _unit(spread)
    if not cost_distances.possible or spread > _MAX_SPREAD or spread * unit > _MAX_TOTAL:
        return None
    unit_costs = _in_units(cost_distances.costs, unit, limit)
    gain = max(1, int(MIN_SHIFT_GAIN * spread * unit))
    core_costs = shift_costs(*problem.network, unit_costs, 0, FORBIDDEN_COST, seconds, gain, lambda *_: None)
    factors = _tables(problem, cost_distances.costs, unit_costs, core_costs.costs, unit)
    bound = core_costs.constant
    constant = scale * cost_distances.offset + bound if model.is_integer else cost_distances.offset + bound / unit
    sign = model.sign
    worst = None if model.upper_bound is None else sign * scale * model.upper_bound
    shifted = Model(model.variables, factors, sense="min-cost", constant=constant, upper_bound=worst)
    slack = 0.0 if model.is_integer else -widened(0.0, cost_distances.offset, bound / unit)
    return ShiftedTables(prepare(shifted, "mpe", problem.fixed), scale, sign, slack)


def _in_units(distances: Array, unit: float, limit: float) -> Array:
    """Return the distances in the core's units, rounded; distances of at least ``limit`` become ``FORBIDDEN_COST``."""
    costs = np.full(distances.shape, FORBIDDEN_COST)
    np.copyto(costs, np.rint(distances * unit), where=distances < limit, casting="unsafe")
    return costs


def _tables(problem: Problem, exact: Array, rounded: Array, shifted: Array, unit: float) -> list[Table]:
    """Return the shifted factors, including the remainders of floats rounded to units.

    Args:
        problem: Problem of the task ``mpe``.
        exact: Distances for each cell of the problem's groups, one group after another.
        rounded: The same distances in the core's units.
        shifted: Shifted costs: those of the groups over several variables, in the same sequence, then those of each
            free variable.
        unit: Number of the core's units in a cost of 1.
    """
    sizes, scopes = problem.model.sizes, [group.scope for group in problem.groups]
    shapes = [tuple([sizes[v] for v in scope]) for scope in scopes]
    starts = list(itertools.accumulate(map(math.prod, shapes), initial=0))
    wide = [number for number, scope in enumerate(scopes) if len(scope) > 1]
    lone = {scope[0]: number for number, scope in enumerate(scopes) if len(scope) == 1}
    # Position of each shifted cell in ``exact``; -1 for variables without their own table.
    cell_ranges = [np.arange(starts[number], starts[number + 1]) for number in wide]
    cell_ranges += [
        np.arange(starts[lone[v]], starts[lone[v] + 1]) if v in lone else np.full(sizes[v], -1) for v in problem.free
    ]
    source = np.concatenate(cell_ranges) if cell_ranges else np.empty(0, dtype=np.int64)
    if exact.dtype.kind == "i":
        costs: Array = np.where(shifted >= FORBIDDEN_COST, FORBIDDEN, shifted)
    else:
        before, units = (np.where(source < 0, 0, np.append(cells, 0)[source]) for cells in (exact, rounded))
        with np.errstate(invalid="ignore"):
            costs = np.where(shifted >= FORBIDDEN_COST, np.inf, before + (shifted - units) / unit)
    kept = [(scopes[number], shapes[number]) for number in wide] + [((v,), (sizes[v],)) for v in problem.free]
    ends = itertools.accumulate((math.prod(shape) for _, shape in kept), initial=0)
    return [
        Table(scope, costs[start:end].reshape(shape))
        for (scope, shape), (start, end) in zip(kept, itertools.pairwise(ends), strict=True)
    ]
