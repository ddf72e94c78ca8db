"""Reuse of a GPU's memory by one program after another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from elimina.backends.protocols import Backend, GpuBackend
from elimina.errors import DeviceError


@contextlib.contextmanager
def keeping_memory(backend: Backend) -> Iterator[None]:
    """Keep the memory of each program on a GPU for the next one; unused memory is released at the end."""
    if not isinstance(backend, GpuBackend):
        yield
        return
    backend.keeps_memory = True
    try:
        yield
    finally:
        backend.keeps_memory = False
        # Memory of a failed GPU cannot be released.
        with contextlib.suppress(DeviceError):
            backend.trim()
