"""Start-up time of a GPU, compared with the waiting work."""

from __future__ import annotations

import functools
from importlib import util

from elimina.planning.machine import cuda_machine

_WORTHWHILE_STARTS = 2
"""A GPU is opened only for work that takes at least this many times as long as starting a GPU."""

open_gpus: set[int] = set()
"""Numbers of the GPUs that this process has opened."""


@functools.cache
def is_cupy_installed() -> bool:
    """Return whether CuPy is installed; cached, as searching all folders takes 0.1 ms."""
    return util.find_spec("cupy") is not None


def outlasts_gpu_start(seconds: float) -> bool:
    """Return whether work of this estimated time is worth starting a GPU; a GPU that is already open starts fast."""
    if seconds <= _WORTHWHILE_STARTS * cuda_machine(is_open=True).start:
        return False
    return seconds > _WORTHWHILE_STARTS * cuda_machine(is_open=bool(open_gpus)).start
