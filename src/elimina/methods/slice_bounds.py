"""Bounds on the slices of a plan, by which most slices can be skipped.

One mini-bucket elimination (Dechter and Rish 2003) bounds all slices: the conditioned variables are not eliminated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import devices_of
from elimina.errors import MemoryLimitError
from elimina.methods.search_state import SearchLimits
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cpu_machine
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.number_type import cost_bound
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination
from elimina.planning.slice_form import Slicing
from elimina.problem.preparation import Problem, allowed_ranges
from elimina.result import optimistic_bound
from elimina.running.encoding import encode
from elimina.running.execution import Execution
from elimina.running.kept_tables import kept_tables

if TYPE_CHECKING:
    from elimina.methods.cost_shifting import ShiftedProblem

MIN_BOUNDED_PLAN_SECONDS = 1.0
"""Estimated seconds of all slices below which bounds are not worth their time."""

MAX_BOUNDED_SLICES = 1 << 16
_MAX_BOUND_SECONDS = 10.0
_BOUND_TIME_SHARE = 0.1

_MAX_OFFSET = 2**62
"""Largest absolute value of the constant cost that all slices share: its sums with other costs fit 64 bits."""

_ROUNDING = 1e-9
"""Rounding error of sums of floats, relative to the largest costs."""


class SliceBounds(NamedTuple):
    """Lower bounds on slices, as costs to minimise.

    Attributes:
        costs: Lower bound on the total of each slice, negated where totals are maximised; the largest number of the
            dtype where no assignment is allowed.
        slack: Rounding error of a bound.
    """

    costs: NDArray[Any]
    slack: float

    def is_hopeless(self, number: int, best: int | float) -> bool:
        """Return whether no assignment of a slice is better than ``best``, which is negated if totals are maximised."""
        return bool(self.costs[number].item() >= best + self.slack)

    def sequence(self, sizes: Sequence[int]) -> list[int]:
        """Return a sequence of all slices in which promising ones come early and the first variables change seldom.

        Args:
            sizes: Domain sizes of the conditioned variables, the slowest one first.
        """
        costs = self.costs.reshape(sizes)
        keys: list[NDArray[np.generic]] = []
        for axis in range(len(sizes)):
            best = costs.min(axis=tuple(range(axis + 1, len(sizes))), keepdims=True)
            number = np.arange(sizes[axis]).reshape([-1 if a == axis else 1 for a in range(len(sizes))])
            keys += [np.broadcast_to(key, sizes).reshape(-1) for key in (best, number)]
        numbers: list[int] = np.lexsort(keys[::-1]).tolist()
        return numbers


def bound_slices(execution: Execution) -> tuple[SliceBounds, list[int] | None] | None:
    """Bound all slices, and find a first assignment by greedy decoding and local search.

    Args:
        execution: Execution of a plan in slices, for the task ``mpe``.

    Returns:
        The bounds, and a value for each variable of the model (None if no assignment was found). The result is None if
        the slices are too many, too quick to profit from bounds, or too large for mini-buckets, or if integer costs are
        too large.
    """
    # Imported here because most calls need no search, and its modules load more slowly than a small problem runs.
    from elimina.methods.and_or_search import MAX_COST_SUM, searched_optimum
    from elimina.methods.cost_shifting import shift_tables

    problem, plan = execution.problem, execution.plan
    slicing = plan.form
    if (
        not isinstance(slicing, Slicing)
        or slicing.slices > MAX_BOUNDED_SLICES
        or plan.seconds < MIN_BOUNDED_PLAN_SECONDS
    ):
        return None
    if problem.model.is_integer and cost_bound(problem) > MAX_COST_SUM:
        return None
    backend = CpuBackend(execution.backend.threads)
    memory = plan.memory_limit if plan.on_host else backend.memory()
    order = (*plan.order, *slicing.variables)
    options = CheckedOptions("cpu", memory, order, threads=backend.threads)
    # All devices wait for the bounds, so the limit is a share of the plan's time on each device.
    seconds = min(_MAX_BOUND_SECONDS, _BOUND_TIME_SHARE * plan.seconds / len(devices_of(execution.backend)))
    original = shift_tables(problem, options, seconds)
    bounding = _bounding_plan(original.moved, plan, slicing, backend, memory, seconds)
    if not bounding.fits:
        return None
    costs = _costs(original, bounding, slicing, backend)
    if costs is None:
        return None
    slack = 0.0 if problem.model.is_integer else _ROUNDING * _spread(problem)
    try:
        first = searched_optimum(
            problem, options, SearchLimits(execution.deadline, nodes=0, rounds=1), original=original
        )
    except MemoryLimitError:
        return SliceBounds(costs, slack), None
    sign = problem.model.sign
    bound = optimistic_bound(first, sign)
    if bound is not None:
        costs = np.maximum(costs, sign * bound)
    chosen = None if first.assignment is None else problem.model.indices_of(first.assignment)
    return SliceBounds(costs, slack), chosen


def _spread(problem: Problem) -> float:
    """Return the sum of the tables' largest absolute costs, but at least 1."""
    logs = problem.model.sense == "probability"
    total = abs(float(problem.model.constant))
    for ends in filter(None, allowed_ranges(problem.tables, problem.model.sense)):
        total += max(abs(math.log(end) if logs else end) for end in ends)
    return max(1.0, total)


def _bounding_plan(
    problem: Problem, plan: Plan, slicing: Slicing, backend: CpuBackend, memory: int, seconds: float
) -> Plan:
    """Return a plan of mini-buckets that does not eliminate the conditioned variables."""
    kept = problem._replace(free=plan.order, kept=slicing.variables)
    machine = cpu_machine(backend.threads)
    return make_bounded_plan(Elimination(kept, plan.order, machine, memory), "auto", matched=False, seconds=seconds)


def _costs(original: ShiftedProblem, plan: Plan, slicing: Slicing, backend: CpuBackend) -> NDArray[Any] | None:
    """Return the bounds of all slices from one run; None if they exceed the range of integers."""
    problem = original.moved
    encoded = encode(problem, plan, threads=backend.threads)
    is_integer = problem.model.is_integer
    dtype = np.dtype(np.int64 if is_integer else np.float64)
    worst = np.iinfo(np.int64).max if is_integer else math.inf
    if is_integer and abs(int(encoded.offset)) > _MAX_OFFSET:
        return None
    if encoded.impossible:
        return np.full(slicing.slices, worst, dtype=dtype)
    sign = problem.model.sign
    # Encoded integers are always costs to minimise, regardless of the model's sense.
    direction = 1 if is_integer else sign
    total: NDArray[Any] = np.zeros(slicing.sizes, dtype=dtype)
    for scope, cells in kept_tables(Execution(problem, plan, backend), encoded.arena):
        axes = [scope.index(v) for v in slicing.variables if v in scope]
        shape = [size if v in scope else 1 for v, size in zip(slicing.variables, slicing.sizes, strict=True)]
        total = total + direction * cells.astype(dtype).transpose(axes).reshape(shape)
        if is_integer:
            total = np.minimum(total, int(plan.forbidden))
    costs: NDArray[Any] = total.reshape(-1) + sign * (int(encoded.offset) if is_integer else encoded.offset)
    if original.shifted is not None:
        scale = original.shifted.scale
        costs = -(-costs // int(scale)) if is_integer else costs / scale
    return np.where(total.reshape(-1) >= plan.forbidden, worst, costs) if is_integer else costs
