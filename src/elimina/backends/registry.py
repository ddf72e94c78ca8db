"""Backends by the names of their devices."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import DeviceGroup, gpu_count
from elimina.backends.gpu_start import is_cupy_installed
from elimina.backends.protocols import Backend
from elimina.errors import DeviceError, InputError
from elimina.planning.devices import HINT, gpu_numbers


def get_backend(device: str, threads: int | None = None) -> Backend:
    """Return the backend of a device, or of several GPUs.

    Args:
        device: A name from ``device_name``, except ``auto``.
        threads: Number of CPU threads; None for all.

    Raises:
        InputError: The device is unknown.
        DeviceError: There is no such device, or it cannot be used.
    """
    if device == "cpu":
        return CpuBackend(threads)
    numbers = gpu_numbers(device)
    if not numbers:
        raise InputError(f"unknown device {device!r}: {HINT}")
    # This import takes 95 ms without CuPy, so calls on the CPU alone avoid it.
    from elimina.backends.cuda.backend import CudaBackend

    if len(numbers) == 1:
        return CudaBackend(numbers[0], threads)
    # Contexts of several GPUs are made at the same time.
    with ThreadPoolExecutor(len(numbers)) as pool:
        return DeviceGroup(list(pool.map(CudaBackend, numbers, itertools.repeat(threads))))


def find_cuda(threads: int | None) -> Backend | None:
    """Return the backend of the first GPU, with this number of CPU threads; None if it cannot be used here."""
    if not is_cupy_installed():
        return None
    try:
        return get_backend("cuda", threads)
    except DeviceError:
        return None


def with_other_gpus(backend: Backend, min_bytes: int) -> Backend:
    """Return a backend of the first GPU and of all others with ``min_bytes`` free; if there are none, the given one."""
    others = (_gpu_or_none(number, backend.threads) for number in range(1, gpu_count(backend)))
    roomy = [gpu for gpu in others if gpu and gpu.memory() >= min_bytes]
    return DeviceGroup([backend, *roomy]) if roomy else backend


def _gpu_or_none(number: int, threads: int) -> Backend | None:
    try:
        return get_backend(f"cuda:{number}", threads)
    except DeviceError:
        return None
