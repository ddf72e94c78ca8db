"""Calls of the compiled planner (``core/plan``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina._core import PlannedLayout, PlannedSteps
from elimina.planning.estimate import Machine


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
