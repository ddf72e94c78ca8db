"""Causes of a call's early end, determined by the exception that ended its work."""

from __future__ import annotations

from elimina._core import Stopped
from elimina.errors import ClusterError, DeviceError, TimeLimitError
from elimina.result import EndedBy

_CAUSES: dict[type[BaseException], EndedBy] = {
    KeyboardInterrupt: "interrupt",
    TimeLimitError: "time-limit",
    Stopped: "time-limit",
    MemoryError: "memory-limit",
    DeviceError: "device-error",
    ClusterError: "worker-lost",
}


def cause_of(error: BaseException) -> EndedBy | None:
    """Return the cause of a call's early end from the exception that ended its work; None if the work failed."""
    return next((cause for kind, cause in _CAUSES.items() if isinstance(error, kind)), None)
