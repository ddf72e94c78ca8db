"""Running a test on every device, and sharing a GPU between tests."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

on_devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])

_ENTRANCE, _GPUS = 0, 1  # bytes of the file that processes lock

GPUS_FILE = Path(tempfile.gettempdir()) / f"elimina-gpus-{os.getuid()}"
"""The file that processes lock."""


@contextmanager
def hold_gpus(path: Path, *, alone: bool) -> Iterator[None]:
    """Share the GPUs with other processes that hold them, or wait until they are gone and hold them alone.

    A process that waits keeps the entrance locked, so that others cannot share the GPUs again and again before it.
    """
    with path.open("a+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, _ENTRANCE)
        fcntl.lockf(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, 1, _GPUS)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _ENTRANCE)
        yield
