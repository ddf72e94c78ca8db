"""This process's memory on GPUs, and the return of idle memory to the driver."""

from __future__ import annotations

import atexit
import contextlib
import functools
import threading
from typing import Any

from elimina.backends.cuda.memory import DeviceMemory

LINGER_SECONDS, LINGER_SHARE, SHORT_LINGER_SECONDS = 1.0, 1 / 2, 0.25
"""Seconds for which a GPU's idle memory is kept if it exceeds ``KEPT_BYTES``: ``LINGER_SECONDS``, or
``SHORT_LINGER_SECONDS`` if it exceeds ``LINGER_SHARE`` of the GPU's memory.

Returning memory takes 0.06 s, and the driver clears it when it is allocated again: on an H200, allocating 64 GiB then
takes 0.2 s instead of 0.01 s.
"""

EXIT_SECONDS = 1.0
"""Longest wait for a release under way when the interpreter ends, in seconds."""


@functools.cache
def pinned_memory(cupy: Any) -> Any:
    """Return this process's pool of pinned host memory."""
    return cupy.cuda.PinnedMemoryPool()


@functools.cache
def device_memory(cupy: Any, device: int) -> DeviceMemory:
    """Return this process's memory on a GPU."""
    return DeviceMemory(cupy)


timers: dict[int, threading.Timer] = {}
"""By GPU: a timer that frees the idle memory of earlier programs."""

return_locks: dict[int, threading.Lock] = {}
"""By GPU: a lock to hold while its idle memory is freed."""


def keep_idle(device: int) -> None:
    """Cancel the timer that would release a GPU's idle memory; wait if the release has begun."""
    timer = timers.pop(device, None)
    if timer is not None:
        timer.cancel()
    with return_locks[device]:
        pass


@atexit.register
def _leave_driver() -> None:
    """Wait for threads that call the driver: no call may return after the interpreter has ended."""
    for timer in list(timers.values()):
        timer.cancel()
    for lock in list(return_locks.values()):
        # In a forked child, the copy of a lock may stay locked, so the wait is limited.
        if lock.acquire(timeout=EXIT_SECONDS):
            lock.release()


def return_idle(cupy: Any, device: int) -> None:
    """Return the unused memory of a GPU to the driver."""
    # Memory of a failed GPU cannot be released.
    with return_locks[device], contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(device):
        device_memory(cupy, device).release()
