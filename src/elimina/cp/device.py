"""What filters AllDifferents: the CPU, or a GPU."""

from __future__ import annotations

import functools
from importlib import util
from typing import Literal, Protocol

from elimina._core import CpDevice
from elimina.errors import DeviceError, InputError

Device = Literal["auto", "cpu", "cuda"]


class Filterable(Protocol):
    """A solver, or a FlatZinc model, before it is searched."""

    def wants_device(self) -> bool:
        """Whether an AllDifferent asks for a device, or is large enough for it."""

    def accelerate(self, device: CpDevice, measures: bool) -> None:
        """Let a device filter from now on."""


@functools.cache
def cuda_device(number: int = 0) -> CpDevice:
    """The kernel for a CUDA device, compiled; a solver takes what it needs of it.

    Raises:
        DeviceError: There is no such device, or it cannot be used.
    """
    from elimina.backends import cuda_kernels
    from elimina.backends.cuda import CudaBackend

    return CpDevice(number, *CudaBackend(number).binary(cuda_kernels.DIVIDE))


def accelerate(solver: Filterable, device: str) -> bool:
    """Let a GPU filter AllDifferents where it is asked for, or may be worth it.

    Args:
        solver: After everything is posted.
        device: ``cpu``; ``cuda``: all that a GPU can filter; ``auto``: what asks for it or is filtered faster there, if
            there is one.

    Returns:
        Whether a GPU does.

    Raises:
        DeviceError: ``cuda`` without a device that can be used.
        InputError: Unknown device.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}; it is one of auto, cpu, cuda")
    if device == "cpu":
        return False
    if device == "cuda":
        solver.accelerate(cuda_device(), False)
        return True
    if not solver.wants_device() or util.find_spec("cupy") is None:
        return False
    try:
        found = cuda_device()
    except DeviceError:
        return False
    solver.accelerate(found, True)
    return True
