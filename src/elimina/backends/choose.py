"""Finding a backend by its name."""

from __future__ import annotations

from importlib import util

from elimina.backends.base import Backend
from elimina.backends.cpu import CpuBackend
from elimina.errors import DeviceError, InputError

DEVICES = ("auto", "cpu", "cuda")


def get_backend(device: str, threads: int | None = None) -> Backend:
    """Return the backend of a device.

    Args:
        device: ``cpu`` or ``cuda``.
        threads: Number of CPU threads; None for all.

    Raises:
        InputError: Unknown device.
        DeviceError: There is no such device, or it cannot be used.
    """
    if device == "cpu":
        return CpuBackend(threads)
    if device == "cuda":
        from elimina.backends.cuda.backend import CudaBackend

        return CudaBackend()
    raise InputError(f"unknown device {device!r}; it is one of {', '.join(DEVICES)}")


def find_cuda() -> Backend | None:
    """Return the CUDA backend if it can be used here."""
    if util.find_spec("cupy") is None:
        return None
    try:
        return get_backend("cuda")
    except DeviceError:
        return None
