"""A problem with its plan and backend, and the data from which the plan can be made again."""

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
    """Data from which a plan can be made again, in another process.

    Attributes:
        device: ``cpu`` or ``cuda``, without a number, because a resumed run may have other GPUs.
        threads: Number of CPU threads, as the cost model sees it.
        memory: Bytes that the plan may use.
        order: The order of the plan.
        sliced: Variables on which the plan conditions.
        unsliced: The order of the plan without slices.
    """

    device: str
    threads: int
    memory: int
    order: Sequence[int]
    sliced: Sequence[int]
    unsliced: Sequence[int]


def recipe_of(planned: PlannedProblem) -> PlanRecipe:
    """Return the data that a plan was made from."""
    plan = planned.plan
    return PlanRecipe(
        plan.device, planned.backend.threads, plan.memory_limit, plan.order, plan.form.variables, plan.whole.order
    )
