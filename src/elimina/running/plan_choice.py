"""Choice of a plan: the order, the device, and the form (``plan_forms``), on one device or several."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence

from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import DeviceGroup, devices_of, gpu_count, reach_each_other
from elimina.backends.gpu_start import is_cupy_installed, outlasts_gpu_start
from elimina.backends.protocols import Backend
from elimina.backends.registry import find_cuda, get_backend, with_other_gpus
from elimina.errors import DeviceError
from elimina.planning.machine import cuda_machine, machine_of
from elimina.planning.options import Options
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import RESIDENT, Plan
from elimina.planning.planner import MIN_INCUMBENT_SECONDS, Conditioning, Elimination, make_plan
from elimina.planning.shards import make_shards
from elimina.planning.slicing import make_finer_plan
from elimina.planning.sparse import make_sparse_plan
from elimina.problem.preparation import Problem
from elimina.problem.semirings import INTEGERS
from elimina.running.fused_steps import with_fused_steps
from elimina.running.host import backend_of, elimination_on, limits_of
from elimina.running.mini_bucket_plans import bound_side, bounding_plan
from elimina.running.plan_forms import FormRow, fitting_plan, shared_seconds, try_forms
from elimina.running.planned_problem import PlannedProblem, PlanRecipe
from elimina.running.sparse_plans import sparse_plan

MIN_SHARED_PLAN_SECONDS = 0.3
"""Estimated seconds of a plan on one GPU from which a plan for several is made."""

MIN_SHARDED_PLAN_SECONDS = 1.0
"""Estimated seconds of a plan on one GPU from which dividing it among the GPUs is tried; trying takes a while."""

MAX_SHARED_TIME_SHARE = 0.85
"""Share of one GPU's time that several may take at most: estimates are not exact."""

SLICES_EACH = (1, 4, 16)
"""Slices for each GPU that are tried: more of them end at more nearly the same time."""


def plan_problem(
    problem: Problem,
    options: Options,
    rough: Order | None = None,
    order: Sequence[int] | None = None,
    runs: int = 1,
    refinements: int = 0,
) -> PlannedProblem:
    """Find an order, and plan on the requested device, or (``auto``) on the faster one.

    Args:
        problem: Problem to plan.
        options: Planning options.
        rough: See ``elimination_order``.
        order: Elimination order, if it is known.
        runs: See ``elimination_order``.
        refinements: See ``plan_forms.fitting_plan``.

    Raises:
        InputError: The order or the dtype does not fit the problem.
        DeviceError: The device is missing or cannot be used.
    """
    started = time.perf_counter()
    order = elimination_order(problem, options, rough, runs) if order is None else order
    ordered = time.perf_counter()
    backend = backend_of(options)
    # If a GPU may do the work, the CPU's plan may only be for comparison; a slow one is made again.
    is_small = rough is not None and rough.seconds_at(CELLS_PER_SECOND) < MIN_INCUMBENT_SECONDS
    is_hasty = options.chooses_device and (is_small or is_cupy_installed())
    plan = _plan_for(backend, problem, order, options, refinements, is_hasty, runs == 1)
    if options.chooses_device and (not plan.fits or outlasts_gpu_start(plan.seconds)):
        cuda = find_cuda()
        if cuda is not None:
            on_cuda = _plan_for(cuda, problem, order, options, refinements)
            if on_cuda.fits and (on_cuda.seconds < plan.seconds or not plan.fits):
                backend, plan = cuda, on_cuda
    is_slow = not plan.fits or plan.seconds > MIN_INCUMBENT_SECONDS
    if is_hasty and is_slow and isinstance(backend, CpuBackend) and plan.dtype in INTEGERS[1:]:
        plan = _plan_for(backend, problem, order, options, refinements)
    if not isinstance(backend, CpuBackend):
        backend, plan = _shared_out(backend, problem, order, options, plan)
    return PlannedProblem(problem, plan, backend, {"order": ordered - started, "plan": time.perf_counter() - ordered})


def _plan_for(
    backend: Backend,
    problem: Problem,
    order: Sequence[int],
    options: Options,
    refinements: int = 0,
    is_hasty: bool = False,
    runs_once: bool = False,
) -> Plan:
    """Return the exact plan on a device, or mini-buckets where an i-bound is asked for."""
    elimination = elimination_on(backend, problem, order, options)._replace(is_hasty=is_hasty, runs_once=runs_once)
    if options.ibound is not None:
        return bounding_plan(elimination, options, bound_side(problem))
    return fitting_plan(backend, elimination, options, refinements)


def _shared_out(
    backend: Backend, problem: Problem, order: Sequence[int], options: Options, plan: Plan
) -> tuple[Backend, Plan]:
    """Return all permitted GPUs and a plan in slices for them, if they are expected to be faster together."""
    start = cuda_machine().start if options.chooses_device else 0.0
    if plan.fits and plan.seconds - backend.machine.start < MIN_SHARED_PLAN_SECONDS + start:
        return backend, plan
    if plan.minibuckets is not None:
        # Bounds from above and from below, where there are both, are independent.
        if bound_side(problem) is None:
            return backend, plan
        return with_other_gpus(backend, plan.peak_bytes) if options.chooses_device else backend, plan
    # The gain is known before other GPUs are opened, which takes a while.
    count = gpu_count(backend) if options.chooses_device else len(devices_of(backend))
    shared = shared_plan(backend, count, problem, options, plan)
    most = MAX_SHARED_TIME_SHARE * shared_seconds(plan, backend, 1) if plan.fits else math.inf
    if shared is plan or start + shared_seconds(shared, backend, count) >= most:
        return backend, plan
    gpus = with_other_gpus(backend, shared.peak_bytes) if options.chooses_device else backend
    # Some of them may have no memory left.
    count = len(devices_of(gpus))
    is_gain = start + shared_seconds(shared, gpus, count) < most
    return (gpus, shared) if is_gain and shared.form.gpus <= count else (backend, plan)


class SharedSearch:
    """A search for a plan that several devices share.

    Args:
        backend: The devices.
        count: Number of them.
        problem: Problem of the plan.
        options: Planning options.
        plan: The plan on one of them.

    Attributes:
        plans: Plans made so far, each within the memory of one device.
    """

    def __init__(self, backend: Backend, count: int, problem: Problem, options: Options, plan: Plan) -> None:
        self.backend, self.count, self.plan = backend, count, plan
        self.machine, self.memory = limits_of(backend, options)
        limit = min(plan.memory_limit, self.memory)
        self.plans = [plan._replace(memory_limit=limit)] if plan.fits else []
        # Slices are taken from the variables of the order, and those that were conditioned on before.
        order = (*plan.order, *plan.form.variables)
        self.elimination = Elimination(problem, order, self.machine, limit, options.dtype)
        self.max_slices = options.max_slices

    @property
    def may_have_shards(self) -> bool:
        """True if the devices reach each other's memory, and the plan takes long."""
        is_slow = not self.plan.fits or self.plan.seconds - self.machine.start > MIN_SHARDED_PLAN_SECONDS
        return is_slow and reach_each_other(self.backend, self.count)

    @property
    def may_have_slices(self) -> bool:
        """True if the plan may be cut into slices that the devices share."""
        return self.plan.fits and self.plan.form.is_resident and self.max_slices > 0

    def shards(self) -> Plan | None:
        """Return a plan whose tables are divided among the devices."""
        return make_shards(self.plan.whole._replace(form=RESIDENT), self.machine, self.count, self.memory)

    def slices(self, times: int) -> Plan:
        """Return a plan in so many slices for each device."""
        return make_finer_plan(self.elimination, self.plans[0], self.count * times)


SHARED_FORMS: tuple[FormRow[SharedSearch], ...] = (
    FormRow("shards", lambda search: search.may_have_shards, SharedSearch.shards),
    *(
        FormRow("slices", lambda search: search.may_have_slices, functools.partial(SharedSearch.slices, times=times))
        for times in SLICES_EACH
    ),
)
"""The forms on several devices, besides the one on one of them."""


def shared_plan(backend: Backend, count: int, problem: Problem, options: Options, plan: Plan) -> Plan:
    """Return a plan that ``count`` devices finish first, which may be the plan itself.

    They share slices, or all of them compute parts of one plan's tables.
    """
    if count == 1 or plan.sparse is not None or not problem.described.merges_slices or options.ibound is not None:
        return plan
    search = SharedSearch(backend, count, problem, options, plan)
    try_forms(SHARED_FORMS, search)
    allowed = [shared for shared in search.plans if shared.fits and shared.form.slices <= max(1, search.max_slices)]
    return min(allowed, key=lambda shared: shared_seconds(shared, backend, count), default=plan)


def without_lost_devices(planned: PlannedProblem, options: Options) -> PlannedProblem | None:
    """Return a plan for the remaining devices of a divided plan; None if none remains."""
    left = [device for device in devices_of(planned.backend) if _is_usable(device)]
    if not left:
        return None
    backend = left[0] if len(left) == 1 else DeviceGroup(left)
    plan = _plan_for(backend, planned.problem, planned.plan.order, options)
    return planned._replace(plan=plan, backend=backend) if plan.fits else None


def _is_usable(device: Backend) -> bool:
    try:
        device.memory()
    except DeviceError:
        return False
    return True


def plan_again(problem: Problem, choice: PlanRecipe, options: Options) -> PlannedProblem:
    """Make a plan again; it does not fit if less memory is left now than it needs.

    Raises:
        InputError: The dtype does not fit the problem.
        DeviceError: The device is missing or cannot be used.
    """
    started = time.perf_counter()
    backend = backend_of(options) if options.needs_gpu else get_backend(choice.device, options.threads)
    machine = machine_of(choice.device, choice.threads)
    elimination = Elimination(problem, choice.unsliced, machine, choice.memory, options.dtype)
    plan = make_plan(elimination)
    if options.tables == "sparse":
        plan = sparse_plan(elimination, options, plan) or plan
    if choice.sliced:
        dtype = plan.dtype if options.tables == "sparse" else options.dtype
        sliced = elimination._replace(order=choice.order, dtype=dtype)
        plan = make_plan(sliced, Conditioning(choice.sliced, plan))
        if options.tables == "sparse":
            plan = make_sparse_plan(plan, problem, machine, whole=True) or plan
    plan = with_fused_steps(elimination, plan)
    if options.room is None:
        plan = plan._replace(memory_limit=min(choice.memory, backend.memory()))
    return PlannedProblem(problem, plan, backend, {"order": 0.0, "plan": time.perf_counter() - started})


def plan_on(backend: Backend, problem: Problem, order: Sequence[int], options: Options) -> Plan:
    """Plan for one backend, without slices."""
    return make_plan(elimination_on(backend, problem, order, options))
