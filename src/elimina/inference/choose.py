"""From a problem to a plan on a device: the search for an order, and the choice between CPU and GPU."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, cast

from elimina.backends.base import Backend
from elimina.backends.choose import DEVICES, find_cuda, get_backend
from elimina.backends.cpu import CpuBackend
from elimina.errors import InputError
from elimina.order import Method, find_order
from elimina.planning.estimate import cpu_machine, cuda_machine
from elimina.planning.plan import Plan
from elimina.planning.planner import make_plan
from elimina.planning.prepare import Problem
from elimina.planning.tiers import check_scratch, in_tiers

MOST_THREADS = 1024
ORDER_SECONDS = 2.0
"""Default limit on the search for an order; it ends earlier where the plan would not gain."""


class Options(NamedTuple):
    """How to plan; see ``elimina.plan`` for what the fields mean."""

    device: str = "auto"
    memory: int | None = None
    order: Method | Sequence[int | str] = "auto"
    order_seconds: float = ORDER_SECONDS
    seed: int = 0
    threads: int | None = None
    dtype: str | None = None
    scratch: str | None = None

    def check(self) -> None:
        """Check what does not depend on a model.

        Raises:
            InputError: A field makes no sense.
        """
        if self.device not in DEVICES:
            raise InputError(f"unknown device {self.device!r}; it is one of {', '.join(DEVICES)}")
        if self.memory is not None and self.memory < 0:
            raise InputError(f"memory is {self.memory} bytes; it cannot be negative")
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise InputError(f"threads is {self.threads}; it must be from 1 to {MOST_THREADS}")
        if self.scratch is not None:
            check_scratch(self.scratch)


class Planned(NamedTuple):
    """A plan, the backend that it is for, and the seconds that planning took by phase."""

    problem: Problem
    plan: Plan
    backend: Backend
    seconds: dict[str, float]


def plan_problem(problem: Problem, options: Options) -> Planned:
    """Find an order, and plan on the device that is asked for, or (``auto``) on the one that finishes first.

    Raises:
        InputError: The order or the dtype does not fit the problem.
        DeviceError: The device is missing or cannot be used.
    """
    started = time.perf_counter()
    order = elimination_order(problem, options)
    ordered = time.perf_counter()
    host = CpuBackend(options.threads)
    backend: Backend = host if options.device != "cuda" else get_backend("cuda")
    plan = in_tiers(plan_on(backend, problem, order, options), host.memory(), options.scratch)
    if options.device == "auto" and (plan.seconds > 2 * cuda_machine().start or not plan.fits):
        cuda = find_cuda()
        if cuda is not None:
            on_cuda = in_tiers(plan_on(cuda, problem, order, options), host.memory(), options.scratch)
            if on_cuda.fits and (on_cuda.seconds < plan.seconds or not plan.fits):
                backend, plan = cuda, on_cuda
    return Planned(problem, plan, backend, {"order": ordered - started, "plan": time.perf_counter() - ordered})


def plan_on(backend: Backend, problem: Problem, order: Sequence[int], options: Options) -> Plan:
    """Plan for one backend."""
    machine = cpu_machine(backend.threads) if isinstance(backend, CpuBackend) else cuda_machine()
    memory = backend.memory() if options.memory is None else options.memory
    return make_plan(problem, order, machine, memory, options.dtype)


def elimination_order(problem: Problem, options: Options) -> tuple[int, ...]:
    """An order of the free variables: searched for, or the given one without the variables that are fixed."""
    if not isinstance(options.order, str):
        return _given_order(problem, options.order)
    # Kept variables stay neighbours of each other throughout, which makes what is joined there part of the work.
    free = {v: i for i, v in enumerate((*problem.free, *problem.kept))}
    scopes = [[free[v] for v in group.scope] for group in problem.groups]
    scopes.append([free[v] for v in problem.kept])
    sizes = problem.model.sizes
    method = cast(Method, options.order)  # find_order names the methods if it is none
    found = find_order(
        [sizes[v] for v in free],
        scopes,
        method=method,
        seconds=options.order_seconds,
        seed=options.seed,
        threads=options.threads or 1,
    )
    variables = list(free)
    return tuple(variables[i] for i in found.order if i < len(problem.free))


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
