"""Exact bucket elimination (Dechter 1999): the run of a plan for an optimum, a partition function, or a count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from elimina.planning.plan import Form, Plan
from elimina.planning.segment_form import Segments
from elimina.problem.semirings import SEMIRINGS, Answer
from elimina.result import Result
from elimina.running.advice import check_fits
from elimina.running.execution import Execution, statistics

Run = Callable[[Execution, dict[str, float]], Result]
"""Function that runs a plan, and adds the seconds of its phases to a clock."""

_ANSWERS: dict[Answer, tuple[str, str]] = {
    "optimum": ("elimina.methods.optimum", "optimum"),
    "sum": ("elimina.methods.partition_function", "partition"),
    "count": ("elimina.methods.counting", "count"),
}
"""Module and function that run a plan, by the kind of its semiring's answer; modules are imported on first use."""

_RUNS: dict[type[Form], tuple[str, str]] = {Segments: ("elimina.methods.segments", "optimum_in_segments")}
"""Module and function that run a plan of a special form, instead of those in ``_ANSWERS``. They make further plans."""


def eliminate(execution: Execution, seconds: Mapping[str, float]) -> Result:
    """Answer the plan's task.

    Args:
        execution: Execution of the plan.
        seconds: Time spent so far by phase, for the result's statistics.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
        InternalError: The model gives the assignment another value than the plan.
    """
    plan = execution.plan
    check_fits(plan)
    clock = dict(seconds)
    resumed = _resumed(execution)
    try:
        answer = _run_of(plan)(execution, clock)
    finally:
        if execution.checkpoint is not None:
            execution.checkpoint.flush()
    return answer.replace(task=plan.task, stats={**statistics(execution, clock), **answer.stats, **resumed})


def _run_of(plan: Plan) -> Run:
    """Return the function that runs a plan."""
    module, function = _RUNS.get(type(plan.form)) or _ANSWERS[SEMIRINGS[plan.semiring].answer]
    run: Run = getattr(import_module(module), function)
    return run


def _resumed(execution: Execution) -> dict[str, int]:
    """Return the numbers of slices, and of steps of the next slice, that a checkpoint contains; empty without one."""
    if execution.checkpoint is None:
        return {}
    steps = execution.checkpoint.steps.get("done", 0)
    return {"resumed_slices": execution.state["done"], "resumed_steps": steps}
