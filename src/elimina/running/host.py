"""The host of a run: its memory, its threads, and the requested backend."""

from __future__ import annotations

from collections.abc import Sequence

from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import Backend
from elimina.backends.registry import get_backend
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import Machine
from elimina.planning.planner import Elimination
from elimina.problem.preparation import Problem


def backend_of(options: CheckedOptions) -> Backend:
    """Return the backend of the requested device; without a request, the CPU.

    Without a request, the device is chosen later, by estimates of the time.

    Raises:
        DeviceError: The device is missing or cannot be used.
    """
    return get_backend(options.device, options.threads) if options.needs_gpu else CpuBackend(options.threads)


def host_memory(options: CheckedOptions) -> int:
    """Return the available memory of the host in bytes."""
    free = CpuBackend().memory()
    return free if options.memory is None or options.needs_gpu else options.memory


SHARING_THREADS = 4
"""Largest number of threads by which time budgets are divided; with more, set-up and planning would exceed the
budgets."""


def sharing_threads(options: CheckedOptions) -> int:
    """Return the number of threads by which time budgets are divided."""
    return min(options.host_threads, SHARING_THREADS)


def turn_share(options: CheckedOptions) -> float:
    """Return the factor by which several threads shorten a time budget, because they do the same work in less time."""
    return 1 / sharing_threads(options)


def limits_of(backend: Backend, options: CheckedOptions) -> tuple[Machine, int]:
    """Return the cost model of a backend, and its available memory in bytes."""
    return backend.machine, backend.memory() if options.memory is None else options.memory


def elimination_on(backend: Backend, problem: Problem, order: Sequence[int], options: CheckedOptions) -> Elimination:
    """Return the elimination of a problem on a backend."""
    return Elimination(problem, order, *limits_of(backend, options), options.dtype)
