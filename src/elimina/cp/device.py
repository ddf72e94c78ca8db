"""Device that filters AllDifferent constraints: the CPU, or a GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import util
from typing import Literal, Protocol

from elimina._core import CpDevice
from elimina.errors import DeviceError, InputError

Device = Literal["auto", "cpu", "cuda"]


class Filterable(Protocol):
    """A solver, or a FlatZinc model, before it is searched."""

    def device_delay(self) -> float:
        """Return the seconds of search before the search for a device."""

    def accelerate(self, device: CpDevice, measures: bool) -> None:
        """Let a device filter from now on."""

    def accelerate_later(self, find: Callable[[], Future[CpDevice | None]]) -> None:
        """After a delay, look for a device and use it."""


@functools.cache
def cuda_device(number: int = 0) -> CpDevice:
    """Return the compiled kernel for a CUDA device, for use by a solver.

    Raises:
        DeviceError: There is no such device, or it cannot be used.
    """
    from elimina.backends.cuda import kernels
    from elimina.backends.cuda.backend import CudaBackend

    return CpDevice(number, *CudaBackend(number).binary(kernels.DIVIDE))


def accelerate(solver: Filterable, device: str) -> None:
    """Let a GPU filter AllDifferent constraints, if requested or if it may be faster.

    Args:
        solver: After everything is posted.
        device: ``cpu``; ``cuda``: all that a GPU can filter; ``auto``: what asks for it, and, once the search has
            lasted for a while, what is filtered faster there, if there is one.

    Raises:
        DeviceError: ``cuda`` without a device that can be used.
        InputError: Unknown device.
    """
    if not isinstance(device, str) or device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}; it is one of auto, cpu, cuda")
    if device == "cuda":
        solver.accelerate(cuda_device(), False)
    elif device == "auto" and (delay := solver.device_delay()) < float("inf"):
        if delay > 0:
            solver.accelerate_later(_finding)
        elif (found := _found()) is not None:
            solver.accelerate(found, True)


def _found() -> CpDevice | None:
    if util.find_spec("cupy") is None:
        return None
    try:
        return cuda_device()
    except DeviceError:
        return None


def _finding() -> Future[CpDevice | None]:
    executor = ThreadPoolExecutor(1)
    try:
        return executor.submit(_found)
    finally:
        executor.shutdown(wait=False)
