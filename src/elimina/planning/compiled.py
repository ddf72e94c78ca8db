"""Calls of the compiled planner (``core/plan``), and the data with which it plans single cases."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina._core import CasePlanner, PlannedLayout, PlannedSteps
from elimina.planning.estimate import Machine
from elimina.planning.plan import Plan
from elimina.planning.program import Program


def case_planner(plan: Plan, program: Program, sizes: Sequence[int], least: NDArray[np.float64]) -> CasePlanner:
    """Return a planner of cases that run on a plan's factors, in the part of its arena where its own messages would be.

    Args:
        plan: Plan of the task ``mar`` without kept variables.
        program: Packed program of the plan.
        sizes: Domain size of every variable of the model.
        least: Base-2 logarithm of the smallest positive value of each factor, rounded down; infinity if there is none.
    """
    factors = plan.factors
    asked = [(output.scope[0], plan.steps[output.step].out_offset) for output in plan.outputs if output.scope]
    first, last = program.zone
    return CasePlanner(
        _words(sizes),
        _words([0, *itertools.accumulate(len(factor.scope) for factor in factors)]),
        _words([v for factor in factors for v in factor.scope]),
        _words([stride for factor in factors for stride in factor.strides]),
        _words([factor.offset for factor in factors]),
        least,
        _words([v for v, _ in asked]),
        _words([offset - first for _, offset in asked]),
        max(last, plan.factor_cells),
        plan.arena_cells,
    )


def _words(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def place_steps(
    steps: PlannedSteps,
    itemsize: int,
    keep: bool,
    machine: Machine,
    levels: Sequence[int] = (),
    runs: Sequence[int] = (1,),
    most_words: int = 1 << 62,
) -> PlannedLayout:
    """Lay the steps' tables out in memory.

    Args:
        steps: Steps of a plan.
        itemsize: Bytes of a cell.
        keep: True if outputs stay after they have been read.
        machine: Device whose cost model estimates the time.
        levels: Level of each step, ascending (``Slicing.levels``); empty: all are 0.
        runs: Number of runs of the steps of each level.
        most_words: Words of records; a layout that needs more has figures alone.
    """
    own, times = np.array(levels, dtype=np.int32), np.array(runs, dtype=np.float64)
    return steps.place(itemsize, keep, own, times, machine.bandwidth, machine.combinations, machine.step, most_words)
