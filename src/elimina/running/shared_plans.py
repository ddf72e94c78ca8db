"""Plans for several devices, which share slices or the tables of one plan."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from elimina.backends.device_group import devices_of, gpu_count, reach_each_other
from elimina.backends.protocols import Backend
from elimina.backends.registry import with_other_gpus
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cuda_machine
from elimina.planning.plan import RESIDENT, Plan
from elimina.planning.planner import Elimination
from elimina.planning.shards import make_shards
from elimina.planning.slicing import make_finer_plan
from elimina.problem.preparation import Problem
from elimina.running.form_search import FormRow, shared_seconds, try_forms
from elimina.running.host import limits_of
from elimina.running.mini_bucket_plans import bound_side

MIN_SHARED_PLAN_SECONDS = 0.3
"""Least estimated seconds of a plan on one GPU for which plans on several are tried."""

MIN_SHARDED_PLAN_SECONDS = 1.0
"""Least estimated seconds of a plan on one GPU for which its tables are divided among several: planning takes long."""

MAX_SHARED_TIME_SHARE = 0.85
"""Largest estimated time of several GPUs, relative to that of one GPU: below 1, because estimates are not exact."""

SLICES_EACH = (1, 4, 16)
"""Numbers of slices per GPU that are tried: with more slices, the GPUs finish at more similar times."""


def shared_out(
    backend: Backend, problem: Problem, order: Sequence[int], options: CheckedOptions, plan: Plan
) -> tuple[Backend, Plan]:
    """Return all permitted GPUs and their plan if they should be faster; otherwise the given backend and plan."""
    start = cuda_machine().start if options.chooses_device else 0.0
    if plan.fits and plan.seconds - backend.machine.start < MIN_SHARED_PLAN_SECONDS + start:
        return backend, plan
    if plan.minibuckets is not None:
        # Two GPUs can compute the lower and the upper bound of a sum at the same time; an optimum has only one bound.
        if bound_side(problem) is None:
            return backend, plan
        return with_other_gpus(backend, plan.peak_bytes) if options.chooses_device else backend, plan
    # The gain is estimated first, because opening other GPUs takes a while.
    count = gpu_count(backend) if options.chooses_device else len(devices_of(backend))
    shared = shared_plan(backend, count, problem, options, plan)
    max_seconds = MAX_SHARED_TIME_SHARE * shared_seconds(plan, backend, 1) if plan.fits else math.inf
    if shared is plan or start + shared_seconds(shared, backend, count) >= max_seconds:
        return backend, plan
    gpus = with_other_gpus(backend, shared.peak_bytes) if options.chooses_device else backend
    # GPUs without free memory are left out, so the gain is estimated again.
    count = len(devices_of(gpus))
    is_gain = start + shared_seconds(shared, gpus, count) < max_seconds
    return (gpus, shared) if is_gain and shared.form.gpus <= count else (backend, plan)


class SharedSearch:
    """A search for a plan for several devices.

    Args:
        backend: The devices.
        count: Number of devices.
        problem: Problem of the plan.
        options: Planning options.
        plan: The plan on one device.

    Attributes:
        plans: Plans so far, with the memory limit of one device; the first is the given plan if it fits.
    """

    def __init__(self, backend: Backend, count: int, problem: Problem, options: CheckedOptions, plan: Plan) -> None:
        self.backend, self.count, self.plan = backend, count, plan
        self.machine, self.memory = limits_of(backend, options)
        limit = min(plan.memory_limit, self.memory)
        self.plans = [plan._replace(memory_limit=limit)] if plan.fits else []
        # Finer slices may condition on further variables of the order.
        order = (*plan.order, *plan.form.variables)
        self.elimination = Elimination(problem, order, self.machine, limit, options.dtype)
        self.max_slices = options.max_slices

    @property
    def may_have_shards(self) -> bool:
        """True if the devices can read each other's memory, and the plan takes long or does not fit."""
        is_slow = not self.plan.fits or self.plan.seconds - self.machine.start > MIN_SHARDED_PLAN_SECONDS
        return is_slow and reach_each_other(self.backend, self.count)

    @property
    def may_have_slices(self) -> bool:
        """True if the plan can be divided into slices, which the devices share."""
        return self.plan.fits and self.plan.form.is_resident and self.max_slices > 0

    def shards(self) -> Plan | None:
        """Return a plan with tables that are divided among the devices; None if impossible or not worthwhile."""
        return make_shards(self.plan.whole._replace(form=RESIDENT), self.machine, self.count, self.memory)

    def slices(self, times: int) -> Plan:
        """Return a plan with ``times`` slices for each device, as far as possible: see ``make_finer_plan``."""
        return make_finer_plan(self.elimination, self.plans[0], self.count * times)


SHARED_FORMS: tuple[FormRow[SharedSearch], ...] = (
    FormRow("shards", lambda search: search.may_have_shards, SharedSearch.shards),
    *(
        FormRow("slices", lambda search: search.may_have_slices, functools.partial(SharedSearch.slices, times=times))
        for times in SLICES_EACH
    ),
)
"""The forms on several devices, in addition to the plan on one device."""


def shared_plan(backend: Backend, count: int, problem: Problem, options: CheckedOptions, plan: Plan) -> Plan:
    """Return the fastest plan on ``count`` devices, possibly the given one.

    The devices share slices, or each of them computes a part of every large table of one plan.
    """
    if count == 1 or plan.sparse is not None or not problem.described.merges_slices or options.ibound is not None:
        return plan
    search = SharedSearch(backend, count, problem, options, plan)
    try_forms(SHARED_FORMS, search)
    allowed = [shared for shared in search.plans if shared.fits and shared.form.slices <= max(1, search.max_slices)]
    return min(allowed, key=lambda shared: shared_seconds(shared, backend, count), default=plan)
