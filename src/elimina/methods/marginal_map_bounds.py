"""Bounds on marginal MAP by weighted mini-buckets with optimised weights and cost shifts.

A maximum is the limit of weighted sums as the weight tends to 0, so small weights give a smooth upper bound (Liu and
Ihler 2013, "Variational algorithms for marginal MAP").
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from elimina.methods.bound_optimisation import CELL_SECONDS, MEMORY_SHARE, improve_bounds
from elimina.methods.bounded_side import BoundedSide
from elimina.methods.factor_logarithms import FactorLogarithms
from elimina.methods.mini_bucket_tree import MiniBucketTree, largest_tree
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.problem.preparation import Problem, restrict
from elimina.result import Result

_TOTALS = (0.5, 0.05)
"""Sums of the weights of a maximised variable, used one after another. A small sum gives a close bound on the maximum,
which is hard to optimise without the result for a larger sum."""

_RUNG_SHARES = (0.2, 1.0)
"""Shares of the remaining time for the first, smaller i-bound and for the second one."""

_STEPS = 100
"""The time for an i-bound must suffice for this number of evaluations, added up over all sums of weights."""

_ASSIGNMENT_SHARE = 0.4
"""Share of an i-bound's time for computing the sum that belongs to an assignment."""

_STALLED_STEPS, _STALLED_GAIN = 10, 1e-2
"""The optimisation for a sum of weights ends if this number of steps together gains less than the second number (in the
natural logarithm)."""


def improve_marginal_map(
    joint: Problem, order: Sequence[int], options: CheckedOptions, memory_bytes: int, deadline: float
) -> Iterator[Result]:
    """Yield improving bounds on marginal MAP, and assignments of the query.

    Args:
        joint: Problem of the task ``pr`` with variables to maximise.
        order: The free variables in elimination order; the maximised ones come last.
        options: Options with the seed of orders.
        memory_bytes: Memory limit of tables and parameters, in bytes.
        deadline: Deadline by ``time.monotonic``.
    """
    logarithms = FactorLogarithms.of(joint, order)
    if -math.inf in logarithms.constants:
        yield Result("infeasible", "mmap")
        return
    ibound = 0
    for share in _RUNG_SHARES:
        seconds = share * max(0.0, deadline - time.monotonic())
        cells = (1 - _ASSIGNMENT_SHARE) * seconds / (_STEPS * CELL_SECONDS)
        tree = largest_tree(joint, order, ibound + 1, int(MEMORY_SHARE * memory_bytes), cells, sides=1)
        if tree is None:
            return
        ibound = tree.ibound
        end = time.monotonic() + (1 - _ASSIGNMENT_SHARE) * seconds
        upper, assigned = _bound_from_above(joint, tree, logarithms, options.seed, end)
        stats = tree.statistics
        if upper == -math.inf:
            yield Result("infeasible", "mmap", stats=stats)
            return
        yield Result("bounded", "mmap", None, None, upper, stats=stats)
        values = {v: value for v, value in zip(order, assigned, strict=True) if v in joint.maximised}
        conditioned = restrict(joint, values)
        end = time.monotonic() + _ASSIGNMENT_SHARE * seconds
        lower = -math.inf
        for bounds in improve_bounds(conditioned, replace(options, order="auto"), memory_bytes, end):
            lower = bounds.lower
            if time.monotonic() >= end:
                break
        if lower > -math.inf:
            variables = joint.model.variables
            assignment = {variables[v].name: variables[v].state(value) for v, value in values.items()}
            yield Result("bounded", "mmap", None, min(lower, upper), upper, assignment, stats=stats)
        if not tree.divided.any() or time.monotonic() >= deadline:
            return


def _bound_from_above(
    joint: Problem, tree: MiniBucketTree, logarithms: FactorLogarithms, seed: int, end: float
) -> tuple[float, Sequence[int]]:
    """Return the best upper bound, and values decoded from its messages in elimination order; none if the sum is 0."""
    side = BoundedSide(tree, logarithms, "upper", joint.maximised)
    for number, total in enumerate(_TOTALS, 1):
        side.temper(total)
        until = time.monotonic() + (end - time.monotonic()) * number / len(_TOTALS)
        bounds: list[float] = []
        for bound in side.improve():
            bounds.append(bound)
            is_stalled = len(bounds) > _STALLED_STEPS and bounds[-1 - _STALLED_STEPS] - bound < _STALLED_GAIN
            if is_stalled or time.monotonic() >= until:
                break
    side.temper(0.0)
    upper = side.bound
    if upper == -math.inf:
        return upper, ()
    values: list[int] = np.asarray(side.assignments(seed)[0]).tolist()
    return upper, values
