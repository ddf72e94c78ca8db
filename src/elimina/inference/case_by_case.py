"""Posteriors of one case after another: for what is observed leaves little of the network."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina.inference.answer import Answer
from elimina.inference.choose import Planned
from elimina.inference.propagator import Propagator
from elimina.io.cases import Codes
from elimina.planning.case_plans import case_planner
from elimina.planning.machine import (
    CASE_COMBINATIONS,
    CASE_SECONDS,
    CASE_STEP_SECONDS,
    OWN_ORDER_SHARE,
    OWN_PLAN_SECONDS,
    OWN_STEP_SECONDS,
)
from elimina.planning.plan import Plan
from elimina.planning.program import pack

if TYPE_CHECKING:
    from elimina._core import CasePlanner

Floats = NDArray[np.float64]

_SAMPLE = 64
"""Cases that an estimate looks at."""


class CaseByCase:
    """Answers each case alone, on the steps of one plan: a variable that is observed is left out of their tables.

    Args:
        planned: A plan without cases, for the CPU.
        columns: The variables that some case may observe.
    """

    def __init__(self, planned: Planned, columns: tuple[int, ...]) -> None:
        self.planned, self.columns = planned, columns
        self._asked = [output.scope[0] for output in planned.plan.outputs if output.scope]

    def least_seconds(self, values: Codes) -> float:
        """Return a lower bound on the seconds of a case on one thread, known at once."""
        return CASE_STEP_SECONDS * len(self.planned.plan.steps)

    def seconds(self, values: Codes) -> float:
        """Estimated time of a case on one thread."""
        sample = _sample(values)
        free = np.ones((len(sample), len(self.planned.problem.model.variables)))
        free[:, list(self.columns)] = sample < 0
        logs, factors = _work(self.planned.plan, free.shape[1])
        work = np.exp(free @ logs.T) @ factors
        return float(work.mean() / CASE_COMBINATIONS) + self.least_seconds(values)

    def sequence(self, values: Codes) -> NDArray[np.intp]:
        """Return the order in which cases are best run."""
        return np.arange(len(values))

    def run(self, own: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        """Answer cases on a thread's own propagators, which are made when first needed.

        Returns:
            Variable -> posteriors, shape ``(cases, size)``, and the natural logarithms of the evidence's probabilities.
        """
        answer, sound = self._answer(own, values)
        tables, sums = answer.vectors(), np.broadcast_to(answer.log_sum, len(values)).copy()
        if not sound.all():
            again, right = self._unsound(own, values[~sound])
            sums[~sound] = right
            for v, table in zip(self._asked, tables, strict=True):
                table[~sound] = again[v]
        return dict(zip(self._asked, tables, strict=True)), sums

    def _answer(self, own: dict[str, Propagator], values: Codes) -> tuple[Answer, NDArray[np.bool_]]:
        return self._propagator(own, "sum-product").run_cases(self.columns, values)

    def _unsound(self, own: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        """Answer cases again where products may have left the dtype's range."""
        answer, _ = self._propagator(own, "log-sum-exp").run_cases(self.columns, values)
        return dict(zip(self._asked, answer.vectors(), strict=True)), np.broadcast_to(answer.log_sum, len(values))

    def _propagator(self, own: dict[str, Propagator], semiring: str) -> Propagator:
        name = f"case by case, {semiring}"
        if name not in own:
            own[name] = Propagator(self.planned, semiring)
        return own[name]


class PlannedCases(CaseByCase):
    """Answers each case alone, on a plan of its own; on those of the one plan where its own one is too large."""

    def least_seconds(self, values: Codes) -> float:
        """Return a lower bound on the seconds of a case on one thread, known at once: two steps for each variable."""
        return 2 * OWN_STEP_SECONDS * (len(self.planned.plan.order) - float((values >= 0).sum(axis=1).mean()))

    def seconds(self, values: Codes) -> float:
        """Estimated time of a case on one thread."""
        given = np.full(len(self.planned.problem.model.variables), -1, dtype=np.int32)
        found = []
        for row in _sample(values):
            given[list(self.columns)] = row
            found.append(self._planner.measure(given))
        fits = [plan for plan in found if plan is not None]
        if len(fits) < len(found):
            return self._help.seconds(values)
        work, steps = np.mean(fits, axis=0)
        plans = (_patterns(values).max() + 1) / len(values)
        run = work / CASE_COMBINATIONS * (1 + OWN_ORDER_SHARE * plans)
        return float(run + (OWN_STEP_SECONDS + OWN_PLAN_SECONDS * plans) * steps + CASE_SECONDS)

    def sequence(self, values: Codes) -> NDArray[np.intp]:
        """Return the cases so that those which observe the same variables follow each other, and share a plan."""
        return np.argsort(_patterns(values), kind="stable")

    def _answer(self, own: dict[str, Propagator], values: Codes) -> tuple[Answer, NDArray[np.bool_]]:
        return self._propagator(own, "sum-product").run_planned_cases(self.columns, values)

    def _unsound(self, own: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        return self._help.run(own, values)

    @property
    def _help(self) -> CaseByCase:
        return CaseByCase(self.planned, self.columns)

    @functools.cached_property
    def _planner(self) -> CasePlanner:
        plan, model = self.planned.plan, self.planned.problem.model
        return case_planner(plan, pack(plan, len(model.variables)), model.sizes, np.zeros(len(plan.factors)))


def _sample(values: Codes) -> Codes:
    return values[:: max(1, len(values) // _SAMPLE)]


def _patterns(values: Codes) -> NDArray[np.intp]:
    """Return a number for each case: the same for cases that observe the same columns."""
    if not values.shape[1]:
        return np.zeros(len(values), dtype=np.intp)
    numbers: NDArray[np.intp] = np.unique(np.packbits(values >= 0, axis=1), axis=0, return_inverse=True)[1]
    return numbers.reshape(-1)


def _work(plan: Plan, variables: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of the sizes of each step's variables, and the cost of one combination of their values."""
    logs = np.zeros((len(plan.steps), variables))
    for row, step in zip(logs, plan.steps, strict=True):
        _set_logs(row, (*step.axes, step.variable), (*step.sizes, step.domain))
    streamed = [len(step.operands) - step.tables_a - step.tables_b for step in plan.steps]
    return logs, 1 + 0.5 * np.array(streamed)


def _set_logs(row: NDArray[np.float64], variables: Sequence[int], sizes: Sequence[int]) -> None:
    for v, size in zip(variables, sizes, strict=True):
        if v >= 0:
            row[v] = np.log(size)
