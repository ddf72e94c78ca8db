"""Posteriors of one case after another on one plan: for what is observed leaves little of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.inference.choose import Planned
from elimina.inference.propagator import Propagator
from elimina.io.cases import Codes
from elimina.planning.plan import Plan

Floats = NDArray[np.float64]

_SAMPLE = 64
"""Cases that the estimate looks at."""

_STEP_SECONDS = 6e-7
_COMBINATIONS = 3e9
"""Of a step, and in a second: the tables of one case stay in a core's cache."""


class CaseByCase(NamedTuple):
    """A way to answer a batch.

    A variable that a case observes is left out of the tables (``SlicingSession``); each case runs alone.

    Attributes:
        planned: A plan without cases, for the CPU.
        columns: The variables that some case may observe.
    """

    planned: Planned
    columns: tuple[int, ...]

    def seconds(self, values: Codes) -> float:
        """Estimated time of a case on one thread."""
        sample = values[:: max(1, len(values) // _SAMPLE)]
        free = np.ones((len(sample), len(self.planned.problem.model.variables)))
        free[:, list(self.columns)] = sample < 0
        logs, factors = _work(self.planned.plan, free.shape[1])
        work = np.exp(free @ logs.T) @ factors
        return float(work.mean() / _COMBINATIONS + _STEP_SECONDS * len(self.planned.plan.steps))

    def run(self, own: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        """Answer cases on a thread's own propagators, which are made when first needed.

        Returns:
            Variable -> posteriors, shape ``(cases, size)``, and the natural logarithms of the evidence's probabilities.
        """
        answer, sound = self._propagator(own, "sum-product").run_cases(self.columns, values)
        assert answer.log_sum is not None
        tables, sums = answer.vectors(), np.broadcast_to(answer.log_sum, len(values)).copy()
        if not sound.all():
            again, _ = self._propagator(own, "log-sum-exp").run_cases(self.columns, values[~sound])
            sums[~sound] = again.log_sum
            for table, right in zip(tables, again.vectors(), strict=True):
                table[~sound] = right
        asked = [output.scope[0] for output in self.planned.plan.outputs if output.scope]
        return dict(zip(asked, tables, strict=True)), sums

    def _propagator(self, own: dict[str, Propagator], semiring: str) -> Propagator:
        name = f"case by case, {semiring}"
        if name not in own:
            own[name] = Propagator(self.planned, semiring)
        return own[name]


def _work(plan: Plan, variables: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the sizes of each step's variables, and what one combination of their values costs."""
    logs = np.zeros((len(plan.steps), variables))
    for row, step in zip(logs, plan.steps, strict=True):
        _set_logs(row, (*step.axes, step.variable), (*step.sizes, step.domain))
    streamed = [len(step.operands) - step.tables_a - step.tables_b for step in plan.steps]
    return logs, 1 + 0.5 * np.array(streamed)


def _set_logs(row: NDArray[np.float64], variables: Sequence[int], sizes: Sequence[int]) -> None:
    for v, size in zip(variables, sizes, strict=True):
        if v >= 0:
            row[v] = np.log(size)
