"""The two calls that most programs need: ``plan`` and ``solve``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from elimina.backends.base import Backend
from elimina.backends.choose import DEVICES, find_cuda, get_backend
from elimina.backends.cpu import CpuBackend
from elimina.errors import InputError, TimeLimitError
from elimina.inference.bucket import Execution, eliminate
from elimina.model import Model
from elimina.order import Method, find_order
from elimina.planning.estimate import cpu_machine, cuda_machine
from elimina.planning.plan import Plan
from elimina.planning.planner import make_plan
from elimina.planning.prepare import Problem, Task, prepare
from elimina.result import Result

Evidence = Mapping[str | int, str | int]

MOST_THREADS = 1024
ORDER_SECONDS = 2.0
"""Default limit on the search for an order; it ends earlier where the plan would not gain."""


class _Planned(NamedTuple):
    problem: Problem
    plan: Plan
    backend: Backend
    seconds: dict[str, float]


def plan(
    model: Model,
    task: Task = "mpe",
    *,
    evidence: Evidence | None = None,
    device: str = "auto",
    memory: int | None = None,
    order: Method | Sequence[int | str] = "auto",
    order_seconds: float = ORDER_SECONDS,
    seed: int = 0,
    threads: int | None = None,
    dtype: str | None = None,
) -> Plan:
    """Plan an exact elimination without allocating anything for it; ``print`` the plan to see its figures.

    Args:
        model: Any model.
        task: ``mpe``: the best assignment (the optimum of a WCSP, the most probable explanation of a network); ``pr``:
            the
            partition function, or the probability of the evidence; ``count``: the number of allowed assignments.
        evidence: Observed variables, by name or index -> label or value index.
        device: ``cpu``, ``cuda``, or ``auto``: the GPU if there is one and the work is worth its start.
        memory: Bytes that may be used on the device; None: what is free there, less a reserve.
        order: A method of ``elimina.order.find_order``, or the variables (names or indices) in elimination order.
        order_seconds: Time limit of the search for an order.
        seed: Of the search for an order.
        threads: CPU threads; None for all that the process may use.
        dtype: Override of the tables' dtype; by default the narrowest one that is exact.

    Returns:
        The plan; ``plan.fits`` says whether it stays within the memory.

    Raises:
        InputError: An option or the evidence does not fit the model.
        DeviceError: The device is missing or cannot be used.
    """
    return _plan(model, task, evidence, device, memory, order, order_seconds, seed, threads, dtype, None).plan


def solve(
    model: Model,
    task: Task = "mpe",
    *,
    evidence: Evidence | None = None,
    device: str = "auto",
    memory: int | None = None,
    order: Method | Sequence[int | str] = "auto",
    order_seconds: float = ORDER_SECONDS,
    seed: int = 0,
    threads: int | None = None,
    dtype: str | None = None,
    time_limit: float | None = None,
    on_plan: Callable[[Plan], None] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Answer a task exactly, by bucket elimination.

    Args:
        model: Any model.
        task: See ``plan``.
        evidence: See ``plan``.
        device: See ``plan``.
        memory: See ``plan``.
        order: See ``plan``.
        order_seconds: See ``plan``.
        seed: See ``plan``.
        threads: See ``plan``.
        dtype: See ``plan``.
        time_limit: Seconds for the whole call.
        on_plan: Called with the plan before it runs.
        progress: Called now and then with the share of the work that is done, from 0 to 1.

    Raises:
        InputError: An option or the evidence does not fit the model.
        MemoryLimitError: The plan needs more memory; nothing was allocated.
        DeviceError: The device is missing, unusable or out of memory.
        TimeLimitError: The time limit passed.
    """
    deadline = None if time_limit is None else time.monotonic() + time_limit
    planned = _plan(model, task, evidence, device, memory, order, order_seconds, seed, threads, dtype, time_limit)
    if deadline is not None and time.monotonic() > deadline:
        raise TimeLimitError(
            f"the time limit of {time_limit:g} s passed while the elimination was planned; allow more time"
        )
    if on_plan is not None:
        on_plan(planned.plan)
    return eliminate(Execution(planned.problem, planned.plan, planned.backend, progress, deadline), planned.seconds)


def _plan(
    model: Model,
    task: Task,
    evidence: Evidence | None,
    device: str,
    memory: int | None,
    order: Method | Sequence[int | str],
    order_seconds: float,
    seed: int,
    threads: int | None,
    dtype: str | None,
    time_limit: float | None,
) -> _Planned:
    if device not in DEVICES:
        raise InputError(f"unknown device {device!r}; it is one of {', '.join(DEVICES)}")
    if memory is not None and memory < 0:
        raise InputError(f"memory is {memory} bytes; it cannot be negative")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit is {time_limit} s; it must be above 0")
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        raise InputError(f"threads is {threads}; it must be from 1 to {MOST_THREADS}")
    started = time.perf_counter()
    problem = prepare(model, task, model.evidence(evidence or {}))
    prepared = time.perf_counter()
    budget = order_seconds if time_limit is None else min(order_seconds, time_limit / 2)
    chosen = _find_order(problem, order, budget, seed, threads)
    ordered = time.perf_counter()
    backend: Backend = CpuBackend(threads) if device != "cuda" else get_backend("cuda")
    plan_for = _plan_on(backend, problem, chosen, memory, dtype)
    if device == "auto" and (plan_for.seconds > 2 * cuda_machine().start or not plan_for.fits):
        cuda = find_cuda()
        if cuda is not None:
            on_cuda = _plan_on(cuda, problem, chosen, memory, dtype)
            if on_cuda.fits and (on_cuda.seconds < plan_for.seconds or not plan_for.fits):
                backend, plan_for = cuda, on_cuda
    finished = time.perf_counter()
    seconds = {"prepare": prepared - started, "order": ordered - prepared, "plan": finished - ordered}
    return _Planned(problem, plan_for, backend, seconds)


def _plan_on(backend: Backend, problem: Problem, order: Sequence[int], memory: int | None, dtype: str | None) -> Plan:
    machine = cpu_machine(backend.threads) if isinstance(backend, CpuBackend) else cuda_machine()
    return make_plan(problem, order, machine, backend.memory() if memory is None else memory, dtype)


def _find_order(
    problem: Problem, order: Method | Sequence[int | str], seconds: float, seed: int, threads: int | None
) -> tuple[int, ...]:
    """An order of the free variables: searched for, or the given one without the variables that are fixed."""
    model = problem.model
    if not isinstance(order, str):
        return _given_order(problem, order)
    free = {v: i for i, v in enumerate(problem.free)}
    scopes = [[free[v] for v in group.scope] for group in problem.groups]
    all_sizes = model.sizes
    method: Method = order  # type: ignore[assignment]  # find_order names the methods if it is none
    found = find_order(
        [all_sizes[v] for v in problem.free], scopes, method=method, seconds=seconds, seed=seed, threads=threads or 1
    )
    return tuple(problem.free[i] for i in found.order)


def _given_order(problem: Problem, order: Sequence[int | str]) -> tuple[int, ...]:
    model = problem.model
    given = [model.index(name) for name in order]
    seen: set[int] = set()
    for v in given:
        if v in seen:
            raise InputError(f"the order names variable {model.variables[v].name!r} twice")
        seen.add(v)
    missing = [v for v in problem.free if v not in seen]
    if missing:
        raise InputError(
            f"the order lacks {len(missing)} of the {len(problem.free)} variables to eliminate, "
            f"{model.variables[missing[0]].name!r} among them"
        )
    free = set(problem.free)
    return tuple(v for v in given if v in free)
