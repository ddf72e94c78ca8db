"""A problem with its plan and backend, and data from which the plan can be made again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elimina.backends.protocols import Backend
from elimina.planning.plan import Plan
from elimina.problem.preparation import Problem


class PlannedProblem(NamedTuple):
    """A problem, its plan, the plan's backend, and the seconds of planning by phase."""

    problem: Problem
    plan: Plan
    backend: Backend
    seconds: dict[str, float]


class PlanRecipe(NamedTuple):
    """Data from which another process can make a plan again.

    Attributes:
        device: ``cpu`` or ``cuda``, without a number, because a resumed run may have other GPUs.
        threads: Number of CPU threads in the cost model.
        memory: Memory limit of the plan, in bytes.
        order: Elimination order of the plan.
        sliced: Conditioned variables.
        unsliced: Elimination order of the plan without slices.
    """

    device: str
    threads: int
    memory: int
    order: Sequence[int]
    sliced: Sequence[int]
    unsliced: Sequence[int]


def recipe_of(planned: PlannedProblem) -> PlanRecipe:
    """Return the recipe of a plan."""
    plan = planned.plan
    return PlanRecipe(
        plan.device, planned.backend.threads, plan.memory_limit, plan.order, plan.form.variables, plan.whole.order
    )
