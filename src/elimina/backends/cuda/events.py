"""Events of a device's streams."""

from __future__ import annotations

from typing import Any

PASSED, NOT_READY = 0, 600
"""CUDA's status of an event: the device has reached it (cudaSuccess), or not yet (cudaErrorNotReady)."""


def has_passed(runtime: Any, event: Any) -> bool:
    """Return whether the device has reached an event; an event's own ``done`` stays false if the context has failed.

    Raises:
        CUDARuntimeError: The context has failed, by work queued earlier.
    """
    status = runtime.eventQuery(event.ptr)
    if status not in (PASSED, NOT_READY):
        raise runtime.CUDARuntimeError(status)
    return bool(status == PASSED)
