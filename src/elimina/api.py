"""The two calls that most programs need: ``plan`` and ``solve``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from elimina.errors import InputError, TimeLimitError
from elimina.inference.bucket import Execution, eliminate
from elimina.inference.choose import ORDER_SECONDS, Options, Planned, plan_problem
from elimina.model import Model
from elimina.order import Method
from elimina.planning.plan import Plan
from elimina.planning.prepare import Task, prepare
from elimina.result import Result

Evidence = Mapping[str | int, str | int]


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
    options = Options(device, memory, order, order_seconds, seed, threads, dtype)
    return _plan(model, task, evidence, options).plan


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
    options = Options(device, memory, order, order_seconds, seed, threads, dtype)
    planned = _plan(model, task, evidence, options, time_limit)
    if deadline is not None and time.monotonic() > deadline:
        raise TimeLimitError(
            f"the time limit of {time_limit:g} s passed while the elimination was planned; allow more time"
        )
    if on_plan is not None:
        on_plan(planned.plan)
    return eliminate(Execution(planned.problem, planned.plan, planned.backend, progress, deadline), planned.seconds)


def _plan(
    model: Model, task: Task, evidence: Evidence | None, options: Options, time_limit: float | None = None
) -> Planned:
    options.check()
    if time_limit is not None:
        if not time_limit > 0:
            raise InputError(f"the time limit is {time_limit} s; it must be above 0")
        options = options._replace(order_seconds=min(options.order_seconds, time_limit / 2))
    started = time.perf_counter()
    problem = prepare(model, task, model.evidence(evidence or {}))
    prepared = time.perf_counter()
    planned = plan_problem(problem, options)
    return planned._replace(seconds={"prepare": prepared - started, **planned.seconds})
