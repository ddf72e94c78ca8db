"""Work that is not to be given up half-way, such as a file that is being written, or to be held up."""

from __future__ import annotations

import contextlib
import gc
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


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Make many lasting objects without the search for garbage among all others, which takes a third of a plan's time.

    An exception that ends a thread may come before the last line: who started the thread sees to it, too.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def is_shielded(thread: threading.Thread) -> bool:
    """Return whether a thread does such work."""
    return thread.ident in _threads
