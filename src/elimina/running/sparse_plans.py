"""Plans on sparse tables: checks whether they may be faster, and slices if there are too many tuples."""

from __future__ import annotations

import numpy as np

from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import Machine
from elimina.planning.number_type import cost_bound
from elimina.planning.options import replace
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.slicing import make_sliced_sparse_plan
from elimina.planning.sparse import make_sparse_plan, reason_for_dense, tuples_cannot_pay
from elimina.problem.preparation import Problem

MIN_SPARSE_PLAN_SECONDS = 0.1
"""Sparse tables are considered if dense ones take at least this long, not counting the minimum times of steps."""

MIN_WRITING_SECONDS = 0.05
"""Sparse tables are also considered if expanding listed tables takes at least this long."""

SLICE_REFINEMENT_FACTOR = 16
"""Factor by which the expected number of tuples grows after each run in which they exceeded the memory."""


def sparse_plan(elimination: Elimination, options: CheckedOptions, dense: Plan, refinements: int = 0) -> Plan | None:
    """Return a plan with steps on sparse tables; None if they save nothing.

    Args:
        elimination: Elimination to plan.
        options: Planning options.
        dense: Plan on dense tables, in one run.
        refinements: Number of times that tuples exceeded the memory.

    Raises:
        UnsupportedError: Sparse tables are requested, but not supported.
    """
    problem = elimination.problem
    if dense.dtype == "int16" and elimination.dtype is None:
        wide = MAX_OPERANDS * cost_bound(problem) > np.iinfo(np.int32).max
        dense = make_plan(elimination._replace(dtype="int64" if wide else "int32", is_hasty=False, runs_once=False))
    whole, times = options.tables == "sparse", SLICE_REFINEMENT_FACTOR**refinements
    return make_sparse_plan(dense, problem, elimination.machine, whole, times)


def may_pay(elimination: Elimination, dense: Plan, writing_seconds: float) -> bool:
    """Return whether steps on sparse tables may be faster than dense ones, without planning the steps.

    Args:
        elimination: Elimination to plan.
        dense: Plan on dense tables, in one run.
        writing_seconds: Estimated seconds for expanding tables that list their tuples.
    """
    cells = elimination.machine.cell_seconds(dense.seconds, len(dense.steps))
    is_quick = dense.fits and cells < MIN_SPARSE_PLAN_SECONDS and writing_seconds < MIN_WRITING_SECONDS
    return not is_quick and not tuples_cannot_pay(dense, elimination.problem, elimination.machine)


def sparse_plan_in_fine_slices(
    machine: Machine, problem: Problem, options: CheckedOptions, plan: Plan, room: int, times: float = 1.0
) -> Plan:
    """Return a plan with enough slices for the expected tuples to fit; the given plan if it takes too many slices.

    Args:
        machine: Cost model of the device.
        problem: Problem of the plan.
        options: Planning options, which limit the number of slices.
        plan: Plan without slices.
        room: Memory limit in bytes.
        times: Factor by which the expected number of tuples exceeds the number for independent tables.
    """
    max_slices = options.max_slices if problem.described.merges_slices else 0
    return make_sliced_sparse_plan(problem, machine, plan, room, max_slices, times) or plan if max_slices else plan


def with_sparse_fit(elimination: Elimination, options: CheckedOptions, plan: Plan) -> Plan:
    """Return a dense plan; if it does not fit, ``shortfall`` states whether an exact plan on sparse tables fits."""
    if plan.fits or reason_for_dense(elimination.problem) is not None:
        return plan
    exact = elimination._replace(memory=plan.memory_limit, is_hasty=False, runs_once=False)
    sparse = sparse_plan(exact, replace(options, tables="auto", ibound=None), make_plan(exact))
    return plan._replace(shortfall=plan.shortfall._replace(fits_sparse=sparse is not None and sparse.fits))
