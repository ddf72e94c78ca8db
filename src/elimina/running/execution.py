"""The run of a plan, with its device, deadline, listener and statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from elimina.backends.protocols import Backend
from elimina.errors import TimeLimitError
from elimina.option_names import option
from elimina.planning.plan import Plan
from elimina.planning.program import Program, pack
from elimina.problem.preparation import Problem
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.running.checkpoint import Checkpoint, State

Progress = Callable[[float], None]


class Execution(NamedTuple):
    """A problem's plan on a backend, with a deadline and a listener.

    Attributes:
        part: Number of this run, and number of all runs, for progress reports.
        checkpoint: Checkpoint that stores the state.
        share: The slices to run, as positions in the sequence of all slices; None: all slices.
        start_state: Initial state if there is no checkpoint.
        report_bounds: Function to call with the bounds on the answer from the slices so far.
    """

    problem: Problem
    plan: Plan
    backend: Backend
    progress: Progress | None = None
    deadline: float | None = None
    part: tuple[int, int] = (0, 1)
    checkpoint: Checkpoint | None = None
    share: range | None = None
    start_state: State | None = None
    report_bounds: Callable[[Result], None] | None = None

    def program(self, semiring: str | None = None) -> Program:
        """Return the plan packed for the backend, in its own semiring or in another one."""
        return pack(self.plan, len(self.problem.model.variables), semiring)

    def slice_numbers(self, count: int) -> range:
        """Return the numbers of the slices to run, of ``count`` slices: see ``share``."""
        return range(count) if self.share is None else self.share

    def check_deadline(self, reached: str) -> None:
        """Check that the deadline has not passed; ``reached``: progress so far, for the error text.

        Raises:
            TimeLimitError: The deadline has passed.
        """
        if self.deadline is not None and time.monotonic() > self.deadline:
            advice = "elimination has no answer before it ends; allow more time, or use another order or device"
            if self.plan.minibuckets is not None:
                advice = f"allow more time, or a smaller i-bound ({option('ibound')})"
            raise TimeLimitError(f"the time limit passed with {reached}: {advice}")

    @property
    def state(self) -> State:
        """State to resume from; its item ``done`` is the number of slices that have run in all sweeps."""
        state = self.start_state or {} if self.checkpoint is None else self.checkpoint.state
        return {"done": 0, **{key: value for key, value in state.items() if key != "steps"}}

    def save(self, state: State) -> None:
        """Store a state if there is a checkpoint."""
        if self.checkpoint is not None:
            self.checkpoint.save(state)

    def report(self, share: float) -> None:
        """Report the finished share of all runs to the listener; ``share``: finished share of this run.

        Raises:
            TimeLimitError: The deadline has passed.
        """
        share = (self.part[0] + share) / self.part[1]
        self.check_deadline(f"{share:.0%} of the elimination done")
        if self.progress is not None:
            self.progress(share)


def statistics(execution: Execution, clock: Mapping[str, float]) -> dict[str, Any]:
    """Return a run's entries of ``Result.stats``; the clock has seconds by phase."""
    plan = execution.plan
    return {
        "induced_width": plan.width,
        "largest_table": plan.largest_table,
        "total_cells": plan.work,
        "peak_bytes": plan.peak_bytes,
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": execution.backend.name,
        "dtype": plan.dtype,
        **plan.form.statistics(plan),
    }
