"""Choice of a plan: its order, its device or devices, and its form (``plan_forms``)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import DeviceGroup, devices_of
from elimina.backends.gpu_start import is_cupy_installed, outlasts_gpu_start
from elimina.backends.protocols import Backend
from elimina.backends.registry import find_cuda, get_backend
from elimina.errors import DeviceError
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.count_runs import with_count_runs
from elimina.planning.machine import machine_of
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import Plan
from elimina.planning.planner import MIN_INCUMBENT_SECONDS, Conditioning, Elimination, make_plan
from elimina.planning.sparse import make_sparse_plan
from elimina.problem.preparation import Problem
from elimina.problem.semirings import INTEGERS
from elimina.running.fused_steps import with_fused_steps
from elimina.running.host import backend_of, elimination_on
from elimina.running.mini_bucket_plans import bound_side, bounding_plan
from elimina.running.plan_forms import fitting_plan
from elimina.running.planned_problem import PlannedProblem, PlanRecipe
from elimina.running.sparse_plans import sparse_plan


def plan_problem(
    problem: Problem,
    options: CheckedOptions,
    rough: Order | None = None,
    order: Sequence[int] | None = None,
    runs: int = 1,
    refinements: int = 0,
) -> PlannedProblem:
    """Find an order, and plan on the requested device or (``auto``) on the faster one.

    Args:
        problem: Problem to plan.
        options: Planning options.
        rough: Order from ``rough_order``; None: not computed.
        order: Elimination order; None: it is searched for.
        runs: Expected number of runs of the plan.
        refinements: Number of times that tuples of sparse tables exceeded the memory.

    Raises:
        InputError: The order or the dtype does not fit the problem.
        DeviceError: The device is missing or cannot be used.
        UnsupportedError: Sparse tables are requested, but not supported.
    """
    started = time.perf_counter()
    order = elimination_order(problem, options, rough, runs) if order is None else order
    ordered = time.perf_counter()
    backend = backend_of(options)
    # If a GPU is a candidate, the CPU's plan may only serve for comparison, so it is made quickly. If the CPU is
    # chosen and its plan is slow, the plan is made again.
    is_small = rough is not None and rough.seconds_at(CELLS_PER_SECOND) < MIN_INCUMBENT_SECONDS
    is_hasty = options.chooses_device and (is_small or is_cupy_installed())
    plan = _plan_for(backend, problem, order, options, refinements, is_hasty, runs == 1)
    if options.chooses_device and (not plan.fits or outlasts_gpu_start(plan.seconds)):
        cuda = find_cuda(options.threads)
        if cuda is not None:
            on_cuda = _plan_for(cuda, problem, order, options, refinements)
            if on_cuda.fits and (on_cuda.seconds < plan.seconds or not plan.fits):
                backend, plan = cuda, on_cuda
    is_slow = not plan.fits or plan.seconds > MIN_INCUMBENT_SECONDS
    if is_hasty and is_slow and isinstance(backend, CpuBackend) and plan.dtype in INTEGERS[1:]:
        plan = _plan_for(backend, problem, order, options, refinements)
    if not isinstance(backend, CpuBackend):
        from elimina.running.shared_plans import shared_out

        backend, plan = shared_out(backend, problem, order, options, plan)
    return PlannedProblem(problem, plan, backend, {"order": ordered - started, "plan": time.perf_counter() - ordered})


def _plan_for(
    backend: Backend,
    problem: Problem,
    order: Sequence[int],
    options: CheckedOptions,
    refinements: int = 0,
    is_hasty: bool = False,
    runs_once: bool = False,
) -> Plan:
    """Return the exact plan on a device, or mini-buckets if an i-bound is requested."""
    elimination = elimination_on(backend, problem, order, options)._replace(is_hasty=is_hasty, runs_once=runs_once)
    if options.ibound is not None:
        return bounding_plan(elimination, options, bound_side(problem))
    return with_count_runs(fitting_plan(backend, elimination, options, refinements), problem)


def without_lost_devices(planned: PlannedProblem, options: CheckedOptions) -> PlannedProblem | None:
    """Plan again for those devices that are still usable; None if there are none, or if the new plan does not fit."""
    remaining_devices = [device for device in devices_of(planned.backend) if _is_usable(device)]
    if not remaining_devices:
        return None
    backend = remaining_devices[0] if len(remaining_devices) == 1 else DeviceGroup(remaining_devices)
    plan = _plan_for(backend, planned.problem, planned.plan.order, options)
    return planned._replace(plan=plan, backend=backend) if plan.fits else None


def _is_usable(device: Backend) -> bool:
    try:
        device.memory()
    except DeviceError:
        return False
    return True


def plan_again(problem: Problem, choice: PlanRecipe, options: CheckedOptions) -> PlannedProblem:
    """Make a plan again from its recipe, even if it exceeds the memory that now remains.

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
    if options.memory is None:
        plan = plan._replace(memory_limit=min(choice.memory, backend.memory()))
    return PlannedProblem(problem, plan, backend, {"order": 0.0, "plan": time.perf_counter() - started})


def plan_on(backend: Backend, problem: Problem, order: Sequence[int], options: CheckedOptions) -> Plan:
    """Plan for one backend, without slices."""
    return make_plan(elimination_on(backend, problem, order, options))
