"""Branch and bound with soft local consistency: at every node, costs are shifted to a constant, the lower bound.

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
"""Largest upper bound of a search in the core's units, so that sums of the core stay in range."""

_CELL_BYTES = 16
"""Bytes of a cell in the core: 64 bits, and a second copy with the other variable fastest."""

_MAX_COST_SCALE = 2.0**60
"""Largest number of units of a float cost of 1."""

_BOUND_TOLERANCE = 5e-10
"""Relative step between float costs: solutions that are better by less are not searched for."""

_SLACK = 1e-6
"""Float costs below this share of the upper bound are not shifted."""

_MIN_GAIN_SHARE = 0.01
"""Passes of cost shifting end once a pass raises the bound by less than this share: the search does not profit from
further ones, of which there can be hundreds (warehouse location)."""


class ConsistencyState(NamedTuple):
    """State after a time budget, in the model's units.

    Attributes:
        bound: Bound on all assignments that are better than the best known one.
        chosen: The value of each variable of the model in the best assignment found; None if there is none.
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
        sign: -1 where totals are maximised, else 1.
        offset: The total, times the sign, where the core's cost is 0.
        unit: Cost in the core of a cost of 1; an int if costs are integers.
    """

    sign: int
    offset: int | float
    unit: int | float

    def total(self, cost: int) -> int | float:
        """Turn a cost of the core into a bound in the model's units; integer costs are rounded up to the next one."""
        if isinstance(self.unit, int):
            return self.sign * (self.offset - -cost // self.unit)
        distance = cost / self.unit
        return self.sign * widened(self.offset + distance, self.offset, distance)

    def cost(self, total: int | float) -> int:
        """Turn a total of the model into a cost of the core, rounded down and limited to the core's range."""
        distance = self.sign * total - self.offset
        return math.floor(min(max(0, distance * self.unit), 2 * MAX_TOTAL_COST))


class CoreCosts(NamedTuple):
    """Costs as the core reads them.

    Attributes:
        units: Units of the costs.
        costs: Costs of the cells of all groups, one group after another, int64.
        spread: Largest sum of allowed costs, or the cost of a known assignment.
        top: Upper bound: the search accepts only cheaper assignments.
        step: Least difference between costs that matters.
    """

    units: CoreUnits
    costs: NDArray[np.int64]
    spread: int | float
    top: int
    step: int


def core_costs_of(
    problem: Problem, total: int | float | None, is_found: bool, is_shifted: bool, memory: int
) -> CoreCosts | None:
    """Return a problem's costs as the core reads them.

    The result is None if no variable is free, costs or their copies are too large, or everything is forbidden.

    Args:
        problem: Problem of the task ``mpe``.
        total: Total that some assignment reaches; None if none is known.
        is_found: True if the search accepts only better assignments.
        is_shifted: True if costs will be shifted, for which integer costs get smaller units.
        memory: Bytes that copies of the costs may take.
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
            # The upper bound is raised by its rounding error, so that it excludes no solution.
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
    """Return equivalent costs whose constant is a strong bound; if it is not below the top, no solution is.

    Args:
        network: Domain sizes, starts of the scopes, their variables, and the costs of all cells.
        constant: Constant cost.
        spread: Largest sum of allowed costs, of which a pass has to gain a share.
        top: Upper bound on the costs of solutions.
        seconds: Seconds after which no further pass is begun.
    """
    gain = max(1, int(MIN_SHIFT_GAIN * spread))
    return shift_costs(*network, constant, top, seconds, gain, _gains_enough())


def slack_of(problem: Problem, top: int) -> int:
    """Return the cost below which a search with the upper bound ``top`` shifts nothing more."""
    return 0 if problem.model.is_integer else int(_SLACK * top)


class SoftConsistency:
    """A search that resumes after each time budget.

    Attributes:
        units: Units of the core's costs.
        bytes: Bytes of the tables.
        nodes: Nodes searched.
        setup: Seconds until the root was consistent.
        seconds: Seconds searched.
        is_done: True if no better solution exists.
        rest: Estimated remaining seconds of the search, at the pace of the last turn; infinity if it made no progress.
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
        """Return a search with a consistent root; None if tables or costs are too large, or forbid everything.

        Args:
            problem: Problem of the task ``mpe``.
            order: The problem's free variables in elimination order.
            total: Total that some assignment reaches; None if none is known.
            is_found: True if the search accepts only better solutions.
            threads: Largest number of CPU threads.
            memory: Bytes that the search may take.
            shift_seconds: Seconds after which no further pass of cost shifting is begun; 0: costs are not shifted.
        """
        begun = time.monotonic()
        core_costs = core_costs_of(problem, total, is_found, shift_seconds > 0, memory)
        if core_costs is None:
            return None
        units, spread, top, step = core_costs.units, core_costs.spread, core_costs.top, core_costs.step
        number = {v: n for n, v in enumerate(problem.free)}
        reduction = Reduction(*problem.network, core_costs.costs, [number[v] for v in order])
        # The core has copies of the costs from here on.
        del core_costs
        number_of = {v: n for n, v in enumerate(reduction.kept)}
        rest = reduction.rest
        # A packing forbids pairs of values. Cliques of these pairs bound better than shifts, which would hide them.
        if shift_seconds > 0 and not reduction.is_packing:
            network = rest.sizes, rest.starts, rest.members, rest.costs
            shifted = shifted_costs(network, rest.constant, spread, top, shift_seconds)
            if shifted.constant < top:
                rest = shifted
        core = ConsistencySearch(
            rest.sizes,
            rest.starts,
            rest.members,
            rest.costs,
            [number_of[number[v]] for v in order if number[v] in number_of],
            rest.constant,
            top,
            step,
            slack_of(problem, top),
            threads_within(problem, threads, memory),
        )
        return SoftConsistency(problem, core, reduction, units, begun)

    @property
    def bound(self) -> int | float:
        """The bound in the model's units."""
        return self.units.total(self.core.bound)

    def add_incumbent(self, total: int | float, chosen: Sequence[int]) -> None:
        """Search only for assignments that are better than this total."""
        free = self.problem.free
        self.core.update_incumbent(self.units.cost(total), [chosen[free[n]] for n in self.reduction.kept])

    def run(
        self, seconds: float, nodes: float, memory: int, poll: Callable[[int | float, list[int] | None, int], bool]
    ) -> ConsistencyState:
        """Search for one turn, and return the state after it.

        Args:
            seconds: Time after which the turn ends.
            nodes: Number of nodes after which the turn ends.
            memory: Approximate bytes that open nodes may take.
            poll: Called now and then with the bound, the best assignment found if it is new (else None), and the turn's
                nodes; if it returns False, the turn ends.
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
        """Return a value for each variable of the model, given those that the core searches for."""
        return self.problem.complete(self.problem.free, self.reduction.extend(values))


def _gains_enough() -> Callable[..., bool]:
    """Return a predicate of the bound after a pass: true if the pass has raised it enough."""
    before = 0

    def report(bound: int, *_: object) -> bool:
        nonlocal before
        gained, before = bound - before, bound
        return gained >= _MIN_GAIN_SHARE * bound

    return report


def _units(problem: Problem, spread: float, total: int | float | None, is_shifted: bool) -> tuple[int | float, int]:
    """Return the unit of a cost, and the least difference between costs that matters."""
    if problem.model.is_integer:
        unit_count = parts_of(problem) if is_shifted else 1
        return unit_count, unit_count
    unit = min(_MAX_COST_SCALE, 2.0 ** math.floor(math.log2((MAX_TOTAL_COST // 2) / max(spread, 1e-9))))
    return unit, max(1, int(min(MAX_TOTAL_COST, _BOUND_TOLERANCE * max(1.0, abs(total or 0.0)) * unit)))


def _in_units(distances: Array, unit: int | float, limit: float, top: int) -> NDArray[np.int64]:
    """Return costs in the core's units, rounded down; costs of ``top`` or more become forbidden."""
    costs = np.full(distances.size, FORBIDDEN_COST)
    for start in range(0, distances.size, BLOCK_CELLS):
        block = distances[start : start + BLOCK_CELLS]
        # A cost that overflows becomes infinite, and so exceeds the top.
        with np.errstate(over="ignore"):
            scaled = np.floor(np.where(block < limit, block, 0) * unit)
        is_kept = (block < limit) & (scaled < top)
        np.copyto(costs[start : start + BLOCK_CELLS], scaled, where=is_kept, casting="unsafe")
    return costs
