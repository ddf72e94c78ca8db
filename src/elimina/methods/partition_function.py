"""Partition function from running a plan, slice by slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from elimina.result import Result
from elimina.running.execution import Execution, statistics
from elimina.running.scaled import ScaledNumber, ScaledSum, partition_result
from elimina.running.scales import Scales, roots
from elimina.running.sweep import Sweep

if TYPE_CHECKING:
    from elimina.running.checkpoint import State


def partition(execution: Execution, clock: dict[str, float]) -> Result:
    """Sum over all assignments, slice by slice; slices that may have underflowed run again in logarithms."""
    plan = execution.plan
    scales = Scales(plan)
    sweep = Sweep(execution, clock)
    numbers = execution.slice_numbers(sweep.count)
    # ``done``: number of finished slices, including repeated ones; ``sum``: their sum; ``again``: positions of the
    # slices to repeat in logarithms.
    state: State = {"sum": (0, []), "again": [], **execution.state}
    total, done = ScaledSum(*state["sum"]), state["done"]
    # After an interrupt between a slice and the update of ``done``, the slice runs again.
    again = [position for position in state["again"] if position < done]

    def save() -> None:
        execution.save({"sum": total.state, "again": again, "done": done})

    sweep.done = min(done, len(numbers))
    for slice_ in filter(None, sweep.run(numbers[sweep.done :])):
        if slice_.run is not None:
            if slice_.encoded.exact and not scales.may_underflow(slice_.encoded.ranges, slice_.run.peaks):
                total.add(scales.sum_of(slice_.run).times(slice_.encoded.factor))
            else:
                again.append(done)
        done += 1
        save()
        if execution.report_bounds is not None and plan.form.variables:
            stats = statistics(execution, {})
            execution.report_bounds(Result("bounded", "pr", None, total.total.log10, None, stats=stats))
    del sweep
    remaining = [numbers[position] for position in again[done - len(numbers) :]]
    # Skip an empty sweep: encoding alone takes time.
    for slice_ in filter(None, Sweep(execution, clock, "log-sum-exp").run(remaining) if remaining else ()):
        done += 1
        if slice_.run is not None:
            log = slice_.encoded.offset + math.fsum(roots(plan, slice_.run))
            total.add(ScaledNumber.from_log2(log / math.log(2)))
        save()
    return partition_result(total.total)
