"""The run of a plan: its device, deadline and listener; figures, advice and checks that all methods share."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from elimina.backends import Backend
from elimina.display import bytes_text, count_text, seconds_text
from elimina.errors import InternalError, TimeLimitError
from elimina.inference.checkpoint import Checkpoint, State
from elimina.planning.plan import Plan
from elimina.planning.prepare import Problem
from elimina.planning.program import Program, pack
from elimina.result import Result
from elimina.tasks import described

Progress = Callable[[float], None]


class Execution(NamedTuple):
    """A plan on a backend, with a deadline and a listener.

    Attributes:
        part: The number of this run, and of all, for the report of progress.
        checkpoint: Checkpoint that keeps the state.
        share: The slices that are run, as places in the sequence in which all would run; None: all of them.
        known: Known part of the state before it begins.
        learn: Called with what slices say of the answer so far.
    """

    problem: Problem
    plan: Plan
    backend: Backend
    progress: Progress | None = None
    deadline: float | None = None
    part: tuple[int, int] = (0, 1)
    checkpoint: Checkpoint | None = None
    share: range | None = None
    known: State | None = None
    learn: Callable[[Result], None] | None = None

    def program(self, semiring: str | None = None) -> Program:
        """Pack the plan; see ``planning.program.pack``."""
        return pack(self.plan, len(self.problem.model.variables), semiring)

    def places(self, count: int) -> range:
        """Return the slices that are run, of so many: see ``share``."""
        return range(count) if self.share is None else self.share

    def check_deadline(self, reached: str) -> None:
        """Keep the time limit.

        Raises:
            TimeLimitError: The deadline passed.
        """
        if self.deadline is not None and time.monotonic() > self.deadline:
            if self.plan.minibuckets is not None:
                advice = "allow more time, or a smaller i-bound (--ibound)"
            else:
                advice = "elimination has no answer before it ends; allow more time, or use another order or device"
            raise TimeLimitError(f"the time limit passed with {reached}: {advice}")

    @property
    def state(self) -> State:
        """State from before; ``done`` is the number of slices that have run, in all sweeps."""
        known = self.known or {} if self.checkpoint is None else self.checkpoint.state
        return {"done": 0, **{key: value for key, value in known.items() if key != "steps"}}

    def save(self, state: State) -> None:
        """Save the present state, if there is a checkpoint."""
        if self.checkpoint is not None:
            self.checkpoint.save(state)

    def report(self, share: float) -> None:
        """Pass on the share of this run that is done.

        Raises:
            TimeLimitError: The deadline passed.
        """
        share = (self.part[0] + share) / self.part[1]
        self.check_deadline(f"{share:.0%} of the elimination done")
        if self.progress is not None:
            self.progress(share)


LONG_SECONDS = 60.0
"""Estimated time of a plan from which advice is given."""

_SMALLEST = 2
"""Memory of the smallest mini-buckets, relative to the factors."""

_NAMES_SHOWN = 5

_NO_MACHINE = 2**50
"""Bytes of a plan from which more memory or a larger disk is not advised."""


def statistics(execution: Execution, clock: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures of a run for ``Result.stats``; the clock has seconds by phase."""
    plan = execution.plan
    slicing = plan.slicing
    sliced = {} if slicing is None else {"slices": slicing.number, "sliced": list(slicing.names)}
    if plan.shards is not None:
        sliced = {"cards": plan.shards.cards, "bytes_between_cards": plan.shards.moved * plan.itemsize}
    return {
        "induced_width": plan.width,
        "largest_table": plan.largest_table,
        "total_cells": plan.work,
        "peak_bytes": plan.peak_bytes,
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": execution.backend.name,
        "dtype": plan.dtype,
        **sliced,
    }


def advice_on(plan: Plan) -> str | None:
    """Return the advice on a plan that does not fit or takes long; None for other plans."""
    if plan.fits and plan.seconds < LONG_SECONDS:
        return None
    if plan.minibuckets is not None:
        return "a smaller i-bound (--ibound)" if plan.minibuckets.ibound > 1 else _what_helps(plan)
    if described(plan.task).is_optimum:
        return (
            "solve it with a time limit (elimina solve --time-limit): search keeps both bounds and the best assignment"
        )
    if described(plan.task).has_bounds:
        return "bound the answer with mini-buckets (elimina solve --method mbe)"
    return _what_helps(plan.whole)


def does_not_fit(plan: Plan) -> str:
    """Return the error of a plan that does not fit: its needs, and the options that help."""
    whole = plan.whole
    tiers = [(whole.device, whole.peak_bytes, whole.memory_limit)]
    tiers += [(tier, whole.bytes.get(tier, 0), limit) for tier, limit in whole.limits]
    lacking = [tier for tier in tiers if tier[1] > tier[2]] or tiers[:1]
    needs = ", ".join(f"{bytes_text(size)} on {tier} and may use {bytes_text(limit)}" for tier, size, limit in lacking)
    return (
        f"the plan needs {needs} "
        f"(induced width {whole.width}, largest table {count_text(whole.largest_table)} cells, {whole.dtype}); "
        f"{_what_helps(whole)}{_slices_needed(plan)}{_bounds_instead(plan)}{_tuples_instead(plan)}"
    )


def _what_helps(plan: Plan) -> str:
    if plan.has_large_factors:
        size = bytes_text(plan.factor_cells * plan.itemsize)
        return f"the model's own tables take {size} of that: more memory (--memory) or evidence would help"
    smaller = "a better order (--order, a longer --order-time, another --seed) or evidence would help"
    if plan.peak_bytes > _NO_MACHINE:
        return f"no machine has that much: {smaller}"
    # Rows have no place in a file.
    is_possible = plan.scratch is None and plan.minibuckets is None and plan.sparse is None
    files = ", a directory on a large disk (--scratch)" if is_possible else ""
    return f"more memory (--memory){files}, {smaller}"


def _bounds_instead(plan: Plan) -> str:
    """Return the advice to take mini-buckets, or smaller ones, where that is possible."""
    whole = plan.whole
    if whole.sparse is not None or whole.has_large_factors:
        return ""
    if whole.minibuckets is not None:
        return "; a smaller i-bound (--ibound) takes less" if whole.minibuckets.ibound > 1 else ""
    if not described(whole.task).has_bounds or _SMALLEST * whole.factor_cells * whole.itemsize > whole.memory_limit:
        return ""
    others = " without --slices and --scratch" if plan.slicing is not None or whole.scratch is not None else ""
    return f"; mini-buckets bound the answer in less memory (--method mbe{others})"


def _tuples_instead(plan: Plan) -> str:
    advice = "; elimination on sparse tables would fit (--method eliminate --tables sparse)"
    return advice if plan.fits_sparse else ""


def _slices_needed(plan: Plan) -> str:
    slicing = plan.slicing
    if slicing is None:
        return ""
    names = ", ".join(slicing.names[:_NAMES_SHOWN]) + (", ..." if len(slicing.names) > _NAMES_SHOWN else "")
    return (
        f"; fixing {len(slicing.names)} variables ({names}) would do it in {count_text(slicing.number)} slices of "
        f"{bytes_text(plan.peak_bytes)}, estimated at {seconds_text(plan.seconds)}, which --slices {slicing.number} "
        "allows"
    )


def partition_result(log10_z: float) -> Result:
    """Return the answer to the task ``pr``."""
    if log10_z == -math.inf:
        return Result("infeasible", "pr", 0.0, log10_z=log10_z)
    value = 10.0**log10_z if -307 < log10_z < 308 else None
    return Result("exact", "pr", value, log10_z=log10_z)


def check_value(
    dtype: str, value: int | float, score: int | float, terms: Sequence[int | float], slack: float = 0.0
) -> None:
    """Check that the assignment's value on the original model is the value that elimination found.

    Args:
        dtype: It was computed in.
        value: Value that elimination found.
        score: Value of the assignment.
        terms: Terms of the score, for the tolerance of floats.
        slack: Largest rounding error besides.

    Raises:
        InternalError: They differ.
    """
    tolerance = slack
    if not dtype.startswith("int"):
        tolerance += (64 + len(terms)) * float(np.finfo(dtype).eps) * max(math.fsum(map(abs, terms)), 1.0)
    if not abs(value - score) <= tolerance:
        raise InternalError(
            f"elimination found the optimum {value!r}, its assignment is worth {score!r} on the model; "
            "please report this"
        )
