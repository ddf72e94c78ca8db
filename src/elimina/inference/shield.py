"""Work in threads: stopping it, and shielding parts that must finish, such as a file that is being written."""

from __future__ import annotations

import atexit
import contextlib
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator

from elimina._core import Stopped

_LOOK_SECONDS = 0.005
"""Between looks at whether an exception is to be raised in a thread again."""

_EXIT_SECONDS = 60.0
"""Seconds for work that was left alone to end before the interpreter does."""

_threads: dict[int, int] = {}
"""Depth of ``shielded`` blocks by thread."""

_left_alone: list[threading.Thread] = []

_hooking = threading.Lock()
"""Held while the interpreter's hook for dropped exceptions is replaced."""


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


def stop_thread(thread: threading.Thread, raise_in: Callable[[threading.Thread], bool], patience: float) -> None:
    """End a thread by an exception, or leave it alone.

    CPython drops an exception that comes in a callback of a weak reference or in a destructor; it is raised again.

    Args:
        thread: Thread to end.
        raise_in: Function that raises ``Stopped`` in the thread, and returns whether that was possible.
        patience: Seconds for the thread to end.
    """
    is_due = threading.Event()
    is_due.set()

    def notice(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is not Stopped:
            before(unraisable)
        elif threading.get_ident() == thread.ident:
            is_due.set()

    with _hooking:
        before, sys.unraisablehook = sys.unraisablehook, notice
        try:
            until = time.monotonic() + patience
            while thread.is_alive() and time.monotonic() < until:
                if is_due.is_set():
                    is_due.clear()
                    if not raise_in(thread):
                        is_due.set()
                thread.join(_LOOK_SECONDS)
        finally:
            sys.unraisablehook = before
    if thread.is_alive():
        _left_alone.append(thread)


def is_left_alone() -> bool:
    """Return whether work that would not end is still running, for which the interpreter's end would wait."""
    return any(thread.is_alive() for thread in _left_alone)


@atexit.register
def _wait_for_those_left() -> None:
    # A thread that comes back from the core into an interpreter that has ended takes the process down.
    until = time.monotonic() + _EXIT_SECONDS
    for thread in _left_alone:
        thread.join(max(0.0, until - time.monotonic()))
