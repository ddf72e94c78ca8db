"""Filtering of AllDifferent constraints on GPUs."""

from __future__ import annotations

import functools
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import util
from typing import TYPE_CHECKING, Literal

from elimina._core import CpDevice, CpSolver
from elimina.errors import DeviceError, InputError

if TYPE_CHECKING:
    from elimina._core import FlatZinc

Device = Literal["auto", "cpu", "cuda"]


@functools.cache
def cuda_device(number: int = 0) -> CpDevice:
    """Return the compiled kernel for a CUDA device, for use by a solver.

    Raises:
        DeviceError: There is no such device, or it cannot be used.
    """
    from elimina.backends.cuda import kernels
    from elimina.backends.cuda.backend import CudaBackend

    return CpDevice(number, *CudaBackend(number).binary(kernels.DIVIDE))


def accelerate(solver: CpSolver | FlatZinc, device: str, threads: int = 1) -> None:
    """Let a GPU filter AllDifferent constraints, if requested or if it may be faster.

    Args:
        solver: Solver to which everything has been posted.
        device: ``cpu``: a GPU filters no constraint. ``cuda``: it filters all that it can. ``auto``: if there is a GPU,
            it filters constraints with an annotation for it, and after some seconds of search also those that it
            filters faster.
        threads: Number of threads of the search; a GPU filters for one thread only.

    Raises:
        DeviceError: ``cuda`` without a device that can be used.
        InputError: Unknown device, or ``cuda`` for several threads.
    """
    if not isinstance(device, str) or device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}; it is one of auto, cpu, cuda")
    if device == "cuda":
        if threads > 1:
            raise InputError(f"a GPU filters for one thread, not {threads}: leave out one of them")
        solver.accelerate(cuda_device(), False)
    elif threads == 1 and device == "auto" and (delay := solver.device_delay()) < float("inf"):
        if delay > 0:
            solver.accelerate_later(_future_gpu)
        elif (gpu := _usable_gpu()) is not None:
            solver.accelerate(gpu, True)


def _usable_gpu() -> CpDevice | None:
    if util.find_spec("cupy") is None:
        return None
    try:
        return cuda_device()
    except DeviceError:
        return None


def _future_gpu() -> Future[CpDevice | None]:
    executor = ThreadPoolExecutor(1)
    try:
        return executor.submit(_usable_gpu)
    finally:
        executor.shutdown(wait=False)
