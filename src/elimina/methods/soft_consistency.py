"""Branch and bound with soft local consistency: each node shifts costs to a constant, which is the lower bound.

The consistency is EDAC* (S. de Givry, F. Heras, M. Zytnicki, J. Larrosa, "Existential arc consistency: getting closer
to full arc consistency in weighted CSPs", IJCAI 2005). The search is hybrid best-first (D. Allouche, S. de Givry,
G. Katsirelos, T. Schiex, M. Zytnicki, "Anytime hybrid best-first search with tree decomposition for weighted CSP",
CP 2015).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import FORBIDDEN_COST, ConsistencySearch, CostArrays, Reduction, shift_costs
from elimina.methods.cost_shifting import MIN_SHIFT_GAIN, parts_of
from elimina.model.table import BLOCK_CELLS
from elimina.problem.preparation import Problem
from elimina.running.encoding import distances, largest_of
from elimina.running.memory_shares import can_copy, cells_of, threads_within
from elimina.running.rounding import widened

Array = NDArray[Any]

MAX_TOTAL_COST = 2**48
"""Largest upper bound of a search, in the core's units: sums in the core then stay in range."""

_CELL_BYTES = 16
"""Bytes of a cell in the core: 8 bytes in each of two copies, one for each order of a pair's variables."""

_MAX_COST_SCALE = 2.0**60
"""Largest number of units that make up a float cost of 1."""

_BOUND_TOLERANCE = 5e-10
"""Relative step between float costs: the search does not look for smaller improvements."""

_SLACK = 1e-6
"""Share of the upper bound below which float costs are not shifted."""

_MIN_GAIN_SHARE = 0.01
"""A pass of cost shifting is followed by another one only if it raises the bound by at least this share of the new
bound. Hundreds of passes with smaller gains are possible (warehouse location), but the search does not profit from
them."""


class ConsistencyState(NamedTuple):
    """State after a time budget, in the model's units.

    Attributes:
        bound: Bound on all assignments that are better than the incumbent.
        chosen: Value of each variable of the model in the incumbent; None: no incumbent.
        nodes: Nodes searched in this time budget.
        interrupted: True if the user interrupted the search.
    """

    bound: int | float
    chosen: list[int] | None
    nodes: int
    interrupted: bool


class CoreUnits(NamedTuple):
    """Units of the core's costs.

    Attributes:
        sign: -1 if totals are maximised, otherwise 1.
        offset: The total, times the sign, that corresponds to the core's cost 0.
        unit: The core's cost for a cost of 1; an int if costs are integers.
    """

    sign: int
    offset: int | float
    unit: int | float

    def total(self, cost: int) -> int | float:
        """Turn a cost of the core into a bound in the model's units; integer costs are rounded up."""
        if isinstance(self.unit, int):
            return self.sign * (self.offset - -cost // self.unit)
        distance = cost / self.unit
        return self.sign * widened(self.offset + distance, self.offset, distance)

    def cost(self, total: int | float) -> int:
        """Turn a total of the model into a cost of the core, rounded down and clipped to the core's range."""
        distance = self.sign * total - self.offset
        return math.floor(min(max(0, distance * self.unit), 2 * MAX_TOTAL_COST))


class CoreCosts(NamedTuple):
    """Costs as the core reads them.

    Attributes:
        units: Units of the costs.
        costs: Costs of the cells of all groups, one group after another, int64.
        spread: Largest sum of allowed costs, or the cost of a known assignment if it is smaller.
        top: Upper bound: the search accepts only cheaper assignments.
        step: Least significant difference between costs.
    """

    units: CoreUnits
    costs: NDArray[np.int64]
    spread: int | float
    top: int
    step: int


def core_costs_of(
    problem: Problem, total: int | float | None, is_found: bool, is_shifted: bool, memory: int
) -> CoreCosts | None:
    """Convert a problem's costs to the form that the core reads.

    The result is None if no variable is free, the costs or their copies are too large, or no assignment is allowed.

    Args:
        problem: Problem of the task ``mpe``.
        total: Total of a known assignment; None: no assignment is known.
        is_found: True if the search accepts only assignments better than ``total``.
        is_shifted: True if costs will be shifted, which requires smaller units for integer costs.
        memory: Memory limit of copies of the costs, in bytes.
    """
    model = problem.model
    if not can_copy(cells_of(problem), len(problem.groups), memory) or not problem.free:
        return None
    cost_distances = distances(problem, FORBIDDEN_COST)
    if not cost_distances.possible:
        return None
    sign, flat, offset = model.sign, cost_distances.costs, cost_distances.offset
    limit = FORBIDDEN_COST if model.is_integer else math.inf
    spread = sum(largest_of(problem, np.where(flat < limit, flat, 0)))
    if total is not None:
        spread = min(spread, max(0, sign * total - offset))
    if math.isinf(spread):
        return None
    unit, step = _units(problem, spread, total, is_shifted)
    top = int(spread * unit) + 1
    if model.upper_bound is not None:
        worst = sign * model.upper_bound
        distance = worst - offset
        if not model.is_integer:
            # The upper bound is raised by its rounding error, so that it does not exclude solutions.
            distance -= widened(0.0, worst, offset)
        top = top if distance * unit >= top else math.ceil(max(0, distance * unit))
    if total is not None and is_found:
        top = min(top, max(0, int(spread * unit) - step + 1))
    if top > MAX_TOTAL_COST:
        return None
    return CoreCosts(CoreUnits(sign, offset, unit), _in_units(flat, unit, limit, top), spread * unit, top, step)


def shifted_costs(
    network: tuple[Sequence[int], Array, Array, Array], constant: int, spread: float, top: int, seconds: float
) -> CostArrays:
    """Return equivalent costs with a large constant; if the constant reaches ``top``, there is no solution.

    Args:
        network: Domain sizes, starts of the scopes, their variables, and the costs of all cells.
        constant: Constant cost.
        spread: Largest sum of allowed costs; a pass has to gain a share of it.
        top: Upper bound on the costs of solutions.
        seconds: Time after which no further pass is begun, in seconds.
    """
    gain = max(1, int(MIN_SHIFT_GAIN * spread))
    return shift_costs(*network, constant, top, seconds, gain, _gains_enough())


def slack_of(problem: Problem, top: int) -> int:
    """Return the cost below which a search with the upper bound ``top`` does not shift costs."""
    return 0 if problem.model.is_integer else int(_SLACK * top)


class SoftConsistency:
    """A search that can be resumed.

    Attributes:
        units: Units of the core's costs.
        bytes: Bytes of the tables.
        nodes: Nodes searched.
        setup: Seconds for making the root consistent.
        seconds: Seconds searched.
        is_done: True if no better solution exists.
        rest: Estimated remaining seconds at the pace of the latest turn; infinity if it made no progress.
    """

    def __init__(
        self, problem: Problem, core: ConsistencySearch, reduction: Reduction, units: CoreUnits, begun: float
    ) -> None:
        self.problem, self.core, self.reduction, self.units = problem, core, reduction, units
        self.bytes = _CELL_BYTES * cells_of(problem)
        self.setup = time.monotonic() - begun
        self.nodes, self.seconds, self.is_done, self.rest = 0, 0.0, False, math.inf

    @staticmethod
    def of(
        problem: Problem,
        order: Sequence[int],
        total: int | float | None,
        is_found: bool,
        threads: int,
        memory: int,
        shift_seconds: float = 0.0,
    ) -> SoftConsistency | None:
        """Return a search with a consistent root; None if tables or costs are too large, or no assignment is allowed.

        Args:
            problem: Problem of the task ``mpe``.
            order: The problem's free variables in elimination order.
            total: Total of a known assignment; None: no assignment is known.
            is_found: True if the search accepts only assignments better than ``total``.
            threads: Largest number of CPU threads.
            memory: Memory limit of the search, in bytes.
            shift_seconds: Seconds after which no further pass of cost shifting is begun; 0: costs are not shifted.
        """
        begun = time.monotonic()
        core_costs = core_costs_of(problem, total, is_found, shift_seconds > 0, memory)
        if core_costs is None:
            return None
        units, spread, top, step = core_costs.units, core_costs.spread, core_costs.top, core_costs.step
        number = {v: n for n, v in enumerate(problem.free)}
        reduction = Reduction(*problem.network, core_costs.costs, [number[v] for v in order])
        # The core has its own copies of the costs.
        del core_costs
        number_of = {v: n for n, v in enumerate(reduction.kept)}
        reduced = reduction.rest
        # On packings, cliques of forbidden pairs give better bounds than cost shifting, which would hide the pairs.
        if shift_seconds > 0 and not reduction.is_packing:
            network = reduced.sizes, reduced.starts, reduced.members, reduced.costs
            shifted = shifted_costs(network, reduced.constant, spread, top, shift_seconds)
            if shifted.constant < top:
                reduced = shifted
        core = ConsistencySearch(
            reduced.sizes,
            reduced.starts,
            reduced.members,
            reduced.costs,
            [number_of[number[v]] for v in order if number[v] in number_of],
            reduced.constant,
            top,
            step,
            slack_of(problem, top),
            threads_within(problem, threads, memory),
        )
        return SoftConsistency(problem, core, reduction, units, begun)

    @property
    def bound(self) -> int | float:
        """The lower bound in the model's units; an upper bound if totals are maximised."""
        return self.units.total(self.core.bound)

    def add_incumbent(self, total: int | float, chosen: Sequence[int]) -> None:
        """Restrict the search to assignments that are better than this one."""
        free = self.problem.free
        self.core.update_incumbent(self.units.cost(total), [chosen[free[n]] for n in self.reduction.kept])

    def run(
        self, seconds: float, nodes: float, memory: int, poll: Callable[[int | float, list[int] | None, int], bool]
    ) -> ConsistencyState:
        """Search for one turn, and return the resulting state.

        Args:
            seconds: Time limit of the turn, in seconds.
            nodes: Limit on the number of nodes in the turn.
            memory: Approximate memory limit of open nodes, in bytes.
            poll: Called repeatedly with the bound, the new incumbent (None if there is no new one), and the turn's
                number of nodes; the turn ends if it returns False.
        """

        def report(lower: int, best: int, count: int, value: list[int] | None) -> bool:
            outcome = None if value is None else self._whole(value)
            return poll(self.units.total(lower), outcome, count - self.nodes)

        begun, before = time.monotonic(), self.core.progress
        outcome = self.core.run(seconds, self.nodes + nodes, memory, report)
        seconds, gained = time.monotonic() - begun, self.core.progress - before
        self.seconds += seconds
        self.rest = (1 - self.core.progress) * seconds / gained if gained > 0 else math.inf
        chosen = self._whole(outcome["value"]) if outcome["value"] else None
        count, self.nodes = outcome["nodes"] - self.nodes, outcome["nodes"]
        self.is_done = outcome["done"]
        return ConsistencyState(self.bound, chosen, count, outcome["interrupted"])

    def _whole(self, values: Sequence[int]) -> list[int]:
        """Extend the values of the core's variables to a value for each variable of the model."""
        return self.problem.complete(self.problem.free, self.reduction.extend(values))


def _gains_enough() -> Callable[..., bool]:
    """Return a predicate that is true if a pass has raised the bound enough."""
    before = 0

    def report(bound: int, *_: object) -> bool:
        nonlocal before
        gained, before = bound - before, bound
        return gained >= _MIN_GAIN_SHARE * bound

    return report


def _units(problem: Problem, spread: float, total: int | float | None, is_shifted: bool) -> tuple[int | float, int]:
    """Return the unit of a cost, and the least significant difference between costs."""
    if problem.model.is_integer:
        unit_count = parts_of(problem) if is_shifted else 1
        return unit_count, unit_count
    unit = min(_MAX_COST_SCALE, 2.0 ** math.floor(math.log2((MAX_TOTAL_COST // 2) / max(spread, 1e-9))))
    return unit, max(1, int(min(MAX_TOTAL_COST, _BOUND_TOLERANCE * max(1.0, abs(total or 0.0)) * unit)))


def _in_units(distances: Array, unit: int | float, limit: float, top: int) -> NDArray[np.int64]:
    """Return costs in the core's units, rounded down; costs of at least ``top`` become forbidden."""
    costs = np.full(distances.size, FORBIDDEN_COST)
    for start in range(0, distances.size, BLOCK_CELLS):
        block = distances[start : start + BLOCK_CELLS]
        # A cost that overflows becomes infinite, and is therefore forbidden.
        with np.errstate(over="ignore"):
            scaled = np.floor(np.where(block < limit, block, 0) * unit)
        is_kept = (block < limit) & (scaled < top)
        np.copyto(costs[start : start + BLOCK_CELLS], scaled, where=is_kept, casting="unsafe")
    return costs
