"""Choice of steps that eliminate several variables at once."""

from __future__ import annotations

from elimina.planning.plan import Plan
from elimina.planning.planner import Conditioning, Elimination, kept_plan, make_plan

MIN_FUSED_CELLS = 1 << 20
"""Least number of cells of a plan's largest table for which fused steps are tried (``core/plan/fusion.cpp``)."""

MIN_FUSED_SECONDS = 0.01
"""Least estimated seconds of a plan for which fused steps are tried, because planning them takes 1 or 2 ms."""

MAX_FUSED_TIME_SHARE = 1.4
"""Largest estimated time of a plan with fused steps, relative to one without. It is above 1, because the estimate
counts all pairs of an output cell and eliminated values alike, although the pairs of one cell share operands; measured
on grids and cliques (``bench/fused.py``).
"""


def with_fused_steps(elimination: Elimination, plan: Plan) -> Plan:
    """Return a plan whose steps may eliminate several variables, if it fits and its estimated time is short enough.

    Otherwise, return the given plan. Plans that are small, sparse, or not completely in the device's memory are not
    changed.

    Args:
        elimination: Problem, device and dtype of the plan.
        plan: Plan of any form.
    """
    machine = elimination.machine
    seconds = plan.seconds - machine.start
    is_small = plan.largest_table < MIN_FUSED_CELLS or seconds < MIN_FUSED_SECONDS
    if is_small or not plan.fits or plan.sparse is not None or not plan.form.is_resident or plan.form.is_replanned:
        return plan
    fused = elimination._replace(order=plan.order, memory=plan.memory_limit, is_hasty=False, runs_once=False)
    if plan.is_plain:
        alternative = kept_plan(fused, single=plan)
    else:
        alternative = make_plan(fused, Conditioning(plan.form.variables, plan.whole), single=plan)
    is_gain = alternative.fits and alternative.seconds - machine.start <= MAX_FUSED_TIME_SHARE * seconds
    return alternative if is_gain else plan
