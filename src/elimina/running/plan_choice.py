"""Choice of a plan: the device, and whole, in slices, on sparse tables, in memory tiers, or divided among GPUs."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from elimina import arguments
from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import DeviceGroup, devices_of, gpu_count, reach_each_other
from elimina.backends.gpu_start import is_cupy_installed, outlasts_gpu_start
from elimina.backends.protocols import Backend
from elimina.backends.registry import find_cuda, get_backend, with_other_gpus
from elimina.errors import DeviceError
from elimina.planning.listed_tables import seconds_written
from elimina.planning.machine import Machine, cuda_machine, machine_of, speeds
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.number_type import cost_bound
from elimina.planning.options import Options
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import RESIDENT, Plan
from elimina.planning.planner import MIN_INCUMBENT_SECONDS, kept_plan, make_plan
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.shards import make_shards
from elimina.planning.slice_form import Slicing
from elimina.planning.slicing import (
    MAX_SLICED_SECONDS,
    MAX_SLICES,
    make_finer_plan,
    make_sliced_plan,
    make_sliced_sparse_plan,
)
from elimina.planning.sparse import make_sparse_plan, reason_for_dense, tuples_cannot_pay
from elimina.planning.tree import Bound, Partition
from elimina.problem.preparation import Problem, restrict
from elimina.problem.semirings import INTEGERS, SEMIRINGS
from elimina.running.host import backend_of, host_memory, limits_of
from elimina.running.planned_problem import PlannedProblem, PlanRecipe

MAX_PARTITION_SECONDS = 5.0
PARTITION_SECONDS_PER_MESSAGE_SECOND = 4.0
"""Estimated time of dividing by content that is not asked for; where messages are limited, by theirs."""

MIN_SPARSE_PLAN_SECONDS = 0.5
"""Estimated time of dense tables' cells, in seconds, from which rows are thought of."""

MIN_WRITING_SECONDS = 0.05
"""Likewise, of writing out the cells of tables that list their tuples."""

MIN_COMPARED_FORMS_SECONDS = 2.0
"""Estimated seconds that segments cost from which slices and tiers are planned, too, which takes 0.5 to 5 s."""

MIN_SHARED_PLAN_SECONDS = 0.3
"""Estimated seconds of a plan on one card from which a plan for several is made."""

MIN_SHARDED_PLAN_SECONDS = 1.0
"""Estimated seconds of a plan on one card from which its division among the cards is tried, which takes a while."""

MAX_SHARED_TIME_SHARE = 0.85
"""Share of one card's time that several may take at most: estimates are not exact."""

FINER_SHARES = (4, 16)
"""Slices for each card that are tried besides one: more of them end at more nearly the same time."""

MIN_FUSED_CELLS = 1 << 20
"""Cells of a plan's largest table from which steps may eliminate several variables (``core/plan/fusion.cpp``)."""

MIN_FUSED_SECONDS = 0.01
"""Estimated seconds from which such a plan is made, which takes a millisecond or two."""

MAX_FUSED_TIME_SHARE = 1.4
"""Its estimated time, relative to that of steps for one variable, up to which it is taken. Estimates count all
combinations alike, but those of one cell share what is read; measured on grids and cliques (``bench/fused.py``)."""

SLICE_REFINEMENT_FACTOR = 16
"""Factor of the expected tuples, each time that more were made than memory holds."""


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
        refinements: See ``fitting_plan``.

    Raises:
        InputError: The order or the dtype does not fit the problem.
        DeviceError: The device is missing or cannot be used.
    """
    started = time.perf_counter()
    order = elimination_order(problem, options, rough, runs) if order is None else order
    ordered = time.perf_counter()
    backend = backend_of(options)
    # Where a card may do the work, the CPU's plan may be for comparison only. One that turns out slow is made again.
    is_small = rough is not None and rough.seconds_at(CELLS_PER_SECOND) < MIN_INCUMBENT_SECONDS
    is_hasty = options.chooses_device and (is_small or is_cupy_installed())
    plan = fitting_plan(backend, problem, order, options, is_hasty, runs == 1, refinements)
    if options.chooses_device and (not plan.fits or outlasts_gpu_start(plan.seconds)):
        cuda = find_cuda()
        if cuda is not None:
            on_cuda = fitting_plan(cuda, problem, order, options, refinements=refinements)
            if on_cuda.fits and (on_cuda.seconds < plan.seconds or not plan.fits):
                backend, plan = cuda, on_cuda
    is_slow = not plan.fits or plan.seconds > MIN_INCUMBENT_SECONDS
    if is_hasty and is_slow and isinstance(backend, CpuBackend) and plan.dtype in INTEGERS[1:]:
        plan = fitting_plan(backend, problem, order, options, refinements=refinements)
    if not isinstance(backend, CpuBackend):
        backend, plan = _shared_out(backend, problem, order, options, plan)
    return PlannedProblem(problem, plan, backend, {"order": ordered - started, "plan": time.perf_counter() - ordered})


def _shared_out(
    backend: Backend, problem: Problem, order: Sequence[int], options: Options, plan: Plan
) -> tuple[Backend, Plan]:
    """Return all cards that may be used, and a plan in slices that they share, if that is expected to gain."""
    start = cuda_machine().start if options.chooses_device else 0.0
    if plan.fits and plan.seconds - backend.machine.start < MIN_SHARED_PLAN_SECONDS + start:
        return backend, plan
    if plan.minibuckets is not None:
        # Bounds from above and from below, where there are both, are independent.
        if _bound_side(problem) is None:
            return backend, plan
        return with_other_gpus(backend, plan.peak_bytes) if options.chooses_device else backend, plan
    # Whether it gains is known before other cards are opened, which takes a while.
    count = gpu_count(backend) if options.chooses_device else len(devices_of(backend))
    shared = shared_plan(backend, count, problem, options, plan)
    most = MAX_SHARED_TIME_SHARE * shared_seconds(plan, backend, 1) if plan.fits else math.inf
    if shared is plan or start + shared_seconds(shared, backend, count) >= most:
        return backend, plan
    cards = with_other_gpus(backend, shared.peak_bytes) if options.chooses_device else backend
    # Some of them may have no memory left.
    count = len(devices_of(cards))
    is_gain = start + shared_seconds(shared, cards, count) < most
    return (cards, shared) if is_gain and shared.form.gpus <= count else (backend, plan)


def shared_plan(backend: Backend, count: int, problem: Problem, options: Options, plan: Plan) -> Plan:
    """Return a plan that ``count`` devices share in least time, the plan itself where that is best.

    They share slices, or all of them compute parts of one plan's tables.
    """
    if count == 1 or plan.sparse is not None or not problem.described.merges_slices or options.ibound is not None:
        return plan
    machine, memory = limits_of(backend, options)
    plans = [plan._replace(memory_limit=min(plan.memory_limit, memory))] if plan.fits else []
    is_slow = not plan.fits or plan.seconds - machine.start > MIN_SHARDED_PLAN_SECONDS
    if is_slow and reach_each_other(backend, count):
        whole = plan.whole._replace(form=RESIDENT)
        plans += filter(None, [make_shards(whole, machine, count, memory)])
    most = 0 if options.slices == "never" else MAX_SLICES if options.slices == "auto" else int(options.slices)
    if plan.fits and plan.form.is_resident and most:
        for least in (count, *(count * times for times in FINER_SHARES)):
            order = (*plan.order, *plan.form.variables)
            plans.append(make_finer_plan(problem, order, machine, plans[0], least, options.dtype))
    allowed = [found for found in plans if found.fits and found.form.slices <= max(1, most)]
    return min(allowed, key=lambda found: shared_seconds(found, backend, count), default=plan)


def without_lost_devices(planned: PlannedProblem, options: Options) -> PlannedProblem | None:
    """Return a plan for the devices that are left of those that a plan was divided among; None if there is none."""
    left = [device for device in devices_of(planned.backend) if _is_usable(device)]
    if not left:
        return None
    backend = left[0] if len(left) == 1 else DeviceGroup(left)
    plan = fitting_plan(backend, planned.problem, planned.plan.order, options)
    return planned._replace(plan=plan, backend=backend) if plan.fits else None


def _is_usable(device: Backend) -> bool:
    try:
        device.memory()
    except DeviceError:
        return False
    return True


def shared_seconds(plan: Plan, backend: Backend, count: int) -> float:
    """Return the estimated seconds of a plan's slices on so many devices, without their start."""
    number = plan.form.slices
    return (plan.seconds - backend.machine.start) * -(-number // count) / number


def plan_within(
    problem: Problem, order: Sequence[int], options: Options, most: float, seconds: float
) -> PlannedProblem:
    """Plan mini-buckets whose messages go to the host.

    Args:
        problem: Problem of the task ``mpe`` or ``pr``.
        order: The free variables in elimination order.
        options: Planning options; without an i-bound, it is the largest possible.
        most: Bytes of the host's memory that the messages may take, if those that may be used are more.
        seconds: Estimated time that they may take.

    Raises:
        DeviceError: The device is missing or cannot be used.
    """
    backend: Backend = CpuBackend(options.threads)
    if options.may_use_gpu and (options.needs_gpu or outlasts_gpu_start(seconds)):
        backend = backend_of(options) if options.needs_gpu else find_cuda() or backend
    machine, memory = limits_of(backend, options)
    memory = int(min(memory, most, host_memory(options)))
    ibound = "auto" if options.ibound is None else options.ibound
    levelled, side = options.levels_buckets, _bound_side(problem)
    divide = _content_partition(problem, order, options, PARTITION_SECONDS_PER_MESSAGE_SECOND * seconds)
    plan = make_bounded_plan(problem, order, machine, memory, options.dtype, ibound, levelled, seconds, side, divide)
    if plan.has_large_factors:
        plan = _with_other_tables(machine, problem, order, options, plan)
    return PlannedProblem(problem, plan, backend, {})


def plan_again(problem: Problem, choice: PlanRecipe, options: Options) -> PlannedProblem:
    """Make a plan again; it does not fit if less memory is left now than it needs.

    Raises:
        InputError: The dtype does not fit the problem.
        DeviceError: The device is missing or cannot be used.
    """
    started = time.perf_counter()
    backend = backend_of(options) if options.needs_gpu else get_backend(choice.device, options.threads)
    machine = machine_of(choice.device, choice.threads)
    plan = make_plan(problem, choice.unsliced, machine, choice.memory, options.dtype)
    if options.tables == "sparse":
        plan = _sparse_plan(machine, choice.memory, problem, choice.unsliced, options, plan) or plan
    if choice.sliced:
        dtype = plan.dtype if options.tables == "sparse" else options.dtype
        plan = make_plan(problem, choice.order, machine, choice.memory, dtype, choice.sliced, plan)
        if options.tables == "sparse":
            plan = make_sparse_plan(plan, problem, machine, whole=True) or plan
    plan = with_fused_steps(machine, problem, options.dtype, plan)
    if options.room is None:
        plan = plan._replace(memory_limit=min(choice.memory, backend.memory()))
    return PlannedProblem(problem, plan, backend, {"order": 0.0, "plan": time.perf_counter() - started})


def plan_on(backend: Backend, problem: Problem, order: Sequence[int], options: Options) -> Plan:
    """Plan for one backend, without slices."""
    return make_plan(problem, order, *limits_of(backend, options), options.dtype)


def bounding_plan(
    backend: Backend, problem: Problem, order: Sequence[int], options: Options, side: Bound | None
) -> Plan:
    """Plan mini-buckets for one backend; ``side``: see ``make_plan``."""
    machine, memory = limits_of(backend, options)
    ibound = "auto" if options.ibound is None else options.ibound
    levelled, divide = options.levels_buckets, _content_partition(problem, order, options)
    plan = make_bounded_plan(problem, order, machine, memory, options.dtype, ibound, levelled, side=side, divide=divide)
    return _with_other_tables(machine, problem, order, options, plan) if plan.has_large_factors else plan


def _content_partition(
    problem: Problem, order: Sequence[int], options: Options, seconds: float = MAX_PARTITION_SECONDS
) -> Callable[[int], Partition | None] | None:
    """Return the partition by content, if it is asked for, or expected to take no longer than the messages."""
    if options.partition == "scope" or not problem.described.is_optimum:
        return None
    from elimina.running.content_partition import partition_by_content

    most = math.inf if options.partition == "content" else seconds
    return lambda ibound: partition_by_content(problem, order, ibound, host_memory(options), most, options.host_threads)


def _bound_side(problem: Problem) -> Bound | None:
    return None if problem.described.is_optimum else "upper"


def fitting_plan(
    backend: Backend,
    problem: Problem,
    order: Sequence[int],
    options: Options,
    hasty: bool = False,
    once: bool = False,
    refinements: int = 0,
) -> Plan:
    """Plan for one backend: dense tables, or rows where that is faster.

    What does not fit goes onto rows, down the memory tiers, or into slices or segments, whichever takes least time. Too
    many slices, or too long a time, are planned too, for the figures; such a plan does not count as fitting.

    Args:
        backend: Device of the plan.
        problem: Problem of the plan.
        order: Elimination order.
        options: Planning options.
        hasty: See ``kept_plan``.
        once: See ``kept_plan``.
        refinements: Number of times that tuples exceeded the memory: each time, ``SLICE_REFINEMENT_FACTOR`` times as
            many are expected.

    Raises:
        UnsupportedError: Rows are asked for, and not possible.
    """
    machine, memory = limits_of(backend, options)
    if options.ibound is not None:
        return bounding_plan(backend, problem, order, options, _bound_side(problem))
    whole = kept_plan(problem, order, machine, memory, options.dtype, hasty=hasty, once=once)
    if whole.has_large_steps:
        return whole
    on_rows, written = None, 0.0
    if options.tables == "auto" and whole.factor_cells > MIN_WRITING_SECONDS * speeds().encoded:
        written = seconds_written(problem)
    cells = machine.cell_seconds(whole.seconds, len(whole.steps))
    is_quick = whole.fits and cells < MIN_SPARSE_PLAN_SECONDS and written < MIN_WRITING_SECONDS
    is_quick = is_quick or tuples_cannot_pay(whole, problem, machine)
    if options.tables == "sparse" or (options.tables == "auto" and not is_quick):
        on_rows = _sparse_plan(machine, memory, problem, order, options, whole, refinements)
    if on_rows is not None and options.tables == "sparse":
        if on_rows.fits:
            return on_rows
        return sparse_plan_in_fine_slices(
            machine, problem, options, on_rows, memory, SLICE_REFINEMENT_FACTOR**refinements
        )
    if whole.fits:
        is_better = on_rows is not None and on_rows.fits and on_rows.seconds < whole.seconds + written
        return (
            on_rows if on_rows is not None and is_better else with_fused_steps(machine, problem, options.dtype, whole)
        )
    segmented = tiered = sliced = None
    # The tables of a segment are sums: what earlier ones have decided is added to them.
    adds = SEMIRINGS[whole.semiring].is_additive
    if whole.decode and adds and not (options.keeps_tables or options.asks_for_slices):
        from elimina.running.segment_plan import make_segmented_plan

        segmented = make_segmented_plan(problem, order, machine, whole, options)
    if segmented is None or segmented.seconds - whole.seconds > MIN_COMPARED_FORMS_SECONDS:
        tiered = whole if options.keeps_tables else _in_tiers(whole, options)
        sliced = _sliced(machine, memory, problem, order, options, whole)
    others = [plan for plan in (tiered, sliced, on_rows, segmented) if plan is not None]
    # What nothing makes fit is explained by its slices, or else by its tiers.
    plan = min(
        (plan for plan in others if plan.fits),
        key=lambda plan: _seconds_on(plan, backend) + (0.0 if plan is on_rows else written),
        default=sliced or tiered or whole,
    )
    plan = with_fused_steps(machine, problem, options.dtype, plan)
    return plan if options.tables != "dense" else _with_other_tables(machine, problem, order, options, plan)


def _in_tiers(whole: Plan, options: Options) -> Plan:
    from elimina.planning.tiers import in_tiers

    return in_tiers(whole, CpuBackend(options.threads).memory(), arguments.path("scratch", options.scratch))


def with_fused_steps(machine: Machine, problem: Problem, dtype: str | None, plan: Plan) -> Plan:
    """Return a plan whose steps may eliminate several variables, where that is expected to be faster."""
    seconds = plan.seconds - machine.start
    is_small = plan.largest_table < MIN_FUSED_CELLS or seconds < MIN_FUSED_SECONDS
    if is_small or not plan.fits or plan.sparse is not None or not plan.form.is_resident or plan.form.is_replanned:
        return plan
    if plan.is_plain:
        found = kept_plan(problem, plan.order, machine, plan.memory_limit, dtype, single=plan)
    else:
        fixed = plan.form.variables, plan.whole
        found = make_plan(problem, plan.order, machine, plan.memory_limit, dtype, *fixed, single=plan)
    return found if found.fits and found.seconds - machine.start <= MAX_FUSED_TIME_SHARE * seconds else plan


def _seconds_on(plan: Plan, backend: Backend) -> float:
    """Return the estimated seconds of a plan, whose slices are shared out among the backend's devices."""
    if not plan.form.variables:
        return plan.seconds
    return backend.machine.start + shared_seconds(plan, backend, len(devices_of(backend)))


def _with_other_tables(machine: Machine, problem: Problem, order: Sequence[int], options: Options, plan: Plan) -> Plan:
    """Note in a dense plan that does not fit whether an exact one on rows would."""
    if plan.fits or reason_for_dense(problem) is not None:
        return plan
    free = options._replace(tables="auto", ibound=None)
    whole = make_plan(problem, order, machine, plan.memory_limit, options.dtype)
    on_rows = _sparse_plan(machine, plan.memory_limit, problem, order, free, whole)
    return plan._replace(shortfall=plan.shortfall._replace(fits_sparse=on_rows is not None and on_rows.fits))


def _sparse_plan(
    machine: Machine,
    memory: int,
    problem: Problem,
    order: Sequence[int],
    options: Options,
    whole: Plan,
    refinements: int = 0,
) -> Plan | None:
    """Return a plan with steps on rows, if that may be of use."""
    if whole.dtype == "int16" and options.dtype is None:
        wide = MAX_OPERANDS * cost_bound(problem) > np.iinfo(np.int32).max
        whole = make_plan(problem, order, machine, memory, "int64" if wide else "int32")
    return make_sparse_plan(whole, problem, machine, options.tables == "sparse", SLICE_REFINEMENT_FACTOR**refinements)


def sparse_plan_in_fine_slices(
    machine: Machine, problem: Problem, options: Options, plan: Plan, room: int, times: float = 1.0
) -> Plan:
    """Return a plan on tuples in slices of an expected size; the plan itself where that is too many slices.

    Args:
        machine: Device as the planner sees it.
        problem: Problem of the plan.
        options: True if there may be slices.
        plan: Plan without slices.
        room: Bytes that may be used.
        times: See ``make_sparse_plan``.
    """
    if options.slices == "never" or not problem.described.merges_slices:
        return plan
    most = MAX_SLICES if options.slices == "auto" else int(options.slices)
    return make_sliced_sparse_plan(problem, machine, plan, room, most, times) or plan


def _sliced(
    machine: Machine, memory: int, problem: Problem, order: Sequence[int], options: Options, whole: Plan
) -> Plan | None:
    """Return a plan in slices; None if the task cannot be merged from them, or nothing helps."""
    if options.slices == "never" or not problem.described.merges_slices:
        return None
    plan = make_sliced_plan(problem, order, machine, memory, options.dtype, whole)
    if plan is None:
        return None
    if isinstance(options.order, str):
        # What was the best order with them need not be the best one without them, and may do with fewer.
        part = restrict(problem, dict.fromkeys(plan.form.variables, 0))
        fresh = elimination_order(part, options._replace(order_seconds=options.order_seconds / 2))
        others = [
            make_plan(problem, fresh, machine, memory, options.dtype, plan.form.variables, whole),
            make_sliced_plan(problem, (*fresh, *plan.form.variables), machine, memory, options.dtype, whole),
        ]
        plan = min((plan, *(p for p in others if p is not None and p.fits)), key=lambda p: p.seconds)
    if options.slices == "auto":
        allowed = plan.form.slices <= MAX_SLICES and plan.seconds <= MAX_SLICED_SECONDS
    else:
        allowed = plan.form.slices <= int(options.slices)
    assert isinstance(plan.form, Slicing)
    return plan._replace(form=dataclasses.replace(plan.form, is_allowed=allowed))
