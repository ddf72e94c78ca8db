"""Optima in segments of the bucket tree, for plans whose messages do not fit into memory at the same time.

Decoding an optimum needs all messages, while a run without decoding needs few of them at a time. A run therefore stores
only the messages next to its root, and decodes the variables there. Given their values, the remaining problem splits
into subtrees, which are smaller, independent problems: further runs decode them in the same way. The root is in the
middle of its tree, so that subtrees are at most half as deep. Hirschberg (1975, "A linear space algorithm for computing
maximal common subsequences") aligns sequences in this way.
"""

from __future__ import annotations

import math
import time

from elimina._core import count_path
from elimina.backends.device_group import devices_of
from elimina.errors import InternalError
from elimina.methods.optimum import checked_optimum, decode_value
from elimina.planning.plan import Plan
from elimina.planning.segment_form import Segments
from elimina.problem.preparation import Problem
from elimina.problem.semirings import SEMIRINGS
from elimina.result import Result
from elimina.running.advice import check_fits
from elimina.running.execution import Execution
from elimina.running.rounding import rounding
from elimina.running.scales import roots
from elimina.running.segment_plan import SegmentLimits, SegmentProblems, decoded_variables, segment_plan
from elimina.running.sweep import Slice, Sweep


def optimum_in_segments(execution: Execution, clock: dict[str, float]) -> Result:
    """Find an optimum with a plan in segments.

    Args:
        execution: Execution of an optimum.
        clock: Seconds by phase; the seconds of all runs are added.

    Raises:
        MemoryLimitError: A segment does not fit.
        TimeLimitError: The deadline passed.
        InternalError: The model gives the assignment another value than the plan.
    """
    problem, whole, form = execution.problem, execution.plan.whole, execution.plan.form
    assert isinstance(form, Segments)
    started = time.perf_counter()
    count_path("segments")
    backend = devices_of(execution.backend)[0]
    limits = SegmentLimits.of(backend.machine, execution.plan, form)
    is_rounded = not whole.dtype.startswith("int") and SEMIRINGS[whole.semiring].is_additive
    problems, values = SegmentProblems(problem), dict[int, int]()
    best: int | float | None = None
    slacks: list[float] = []
    done = 0
    for order in form.orders:
        part = problems.given(values, order) if values else problem
        plan = segment_plan(limits, whole, part, order)
        check_fits(plan)
        slice_ = _run(execution, part, plan, done)
        done += plan.work
        ends = [] if slice_.run is None else roots(plan, slice_.run)
        value = None if slice_.run is None else decode_value(part, plan, slice_.encoded, ends)
        if value is None or slice_.run is None or slice_.run.assignment is None:
            if values:
                raise InternalError("a segment has no solution although the whole has one; please report this")
            break
        # The first run finds the optimum of the whole problem; later runs only decode further variables.
        best = value if best is None else best
        slacks.append(rounding(part, plan, math.fsum(ends), slice_.encoded.constants) if is_rounded else 0.0)
        assignment = slice_.run.assignment
        values.update((v, int(assignment[v])) for v in decoded_variables(plan))
    clock["run"] = time.perf_counter() - started
    if best is None:
        return Result("infeasible", whole.task)
    least = problem.model.sign * best - slacks[0]
    return checked_optimum(problem, whole, best, problem.complete(values, values.values()), least, math.fsum(slacks))


def _run(execution: Execution, part: Problem, plan: Plan, done: int) -> Slice:
    """Run the plan of a segment; ``done`` is the work of the previous segments, for the reported progress."""

    def report(share: float) -> None:
        execution.report(min(1.0, (done + share * plan.work) / max(1, execution.plan.work)))

    # Unpacking exhausts the generator, which closes its session.
    (slice_,) = Sweep(Execution(part, plan, devices_of(execution.backend)[0], report), {}).run([0])
    assert slice_ is not None
    return slice_
