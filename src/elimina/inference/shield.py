"""Work that is not to be given up half-way, such as a file that is being written."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

_threads: dict[int, int] = {}
"""Depth of ``shielded`` blocks by thread."""


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Keep the end of a call from raising an exception in this thread."""
    own = threading.get_ident()
    _threads[own] = _threads.get(own, 0) + 1
    try:
        yield
    finally:
        _threads[own] -= 1
        if not _threads[own]:
            del _threads[own]


def is_shielded(thread: threading.Thread) -> bool:
    """Return whether a thread does such work."""
    return thread.ident in _threads
