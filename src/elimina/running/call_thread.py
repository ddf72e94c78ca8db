"""Threads for calls: how they are stopped, and blocks that must finish first, such as writing a file."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from queue import Empty, SimpleQueue

from elimina._core import Stopped
from elimina.system import lock_for_a_moment, start_thread

_POLL_SECONDS = 0.005
"""Seconds between attempts to raise an exception in a thread."""

_EXIT_SECONDS = 60.0
"""Seconds that the interpreter waits at exit for abandoned work to end."""

IDLE_POLL_SECONDS = 0.02
"""Seconds between an idle thread's checks for a request to end, and seconds that it has to end at exit."""

IDLE_THREAD_SECONDS = 1.0
"""Seconds that an idle thread waits for the next call; it is faster than a new thread, whose caches are cold."""

threads: dict[int, int] = {}
"""Number of nested ``shielded`` blocks by thread."""

_abandoned_threads: list[threading.Thread] = []

idle_threads: list[CallThread] = []
_hiring_lock = lock_for_a_moment()
"""Lock that is held while a thread changes between idle and busy."""

_hook_lock = lock_for_a_moment()
"""Lock that is held while the interpreter's hook for dropped exceptions is replaced."""


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Protect a block from the exception that ends a call in this thread."""
    thread = threading.get_ident()
    threads[thread] = threads.get(thread, 0) + 1
    try:
        yield
    finally:
        threads[thread] -= 1
        if not threads[thread]:
            del threads[thread]


class CallThread(threading.Thread):
    """A thread that runs the work of one call after another, and ends after a while without calls.

    Args:
        processors: The processors to which the thread is bound: those of its first caller.
    """

    def __init__(self, processors: Collection[int]) -> None:
        super().__init__(name="elimina", daemon=True)
        self.processors, self.is_free = processors, False
        self.works: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self) -> None:
        """Run each call's work; end after a while without calls, or if the thread was not released after a call."""
        try:
            while (work := self._next()) is not None:
                self.is_free = False
                work()
                # The reference is deleted, because the work keeps the call's tables alive.
                del work
                if not self.is_free:
                    return
        finally:
            # An error such as a lack of memory may end an idle thread, which then must not be used for a call.
            self._retire()

    def _next(self) -> Callable[[], None] | None:
        while True:
            try:
                return self.works.get(timeout=IDLE_THREAD_SECONDS)
            except Empty:
                if self._retire():
                    return None

    def _retire(self) -> bool:
        """Stop waiting for calls; return False if a call has arrived meanwhile."""
        with _hiring_lock:
            if self in idle_threads:
                idle_threads.remove(self)
            return self.works.empty()

    def release(self) -> None:
        """Make the thread available to other calls."""
        with _hiring_lock:
            self.is_free = True
            idle_threads.append(self)


def do_in_thread(work: Callable[[], None]) -> threading.Thread:
    """Run a call's work in an idle thread, or in a new one; return the thread.

    Raises:
        MemoryLimitError: No thread can be started.
    """
    # Threads stay bound to the processors of their first callers, so only threads with the same processors are used.
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    with _hiring_lock:
        for position in reversed(range(len(idle_threads))):
            if idle_threads[position].processors == processors:
                idle_thread = idle_threads.pop(position)
                idle_thread.works.put(work)
                return idle_thread
    thread = CallThread(processors)
    thread.works.put(work)
    start_thread(thread)
    return thread


@atexit.register
def end_idle_threads() -> None:
    """End the threads that are waiting for a call."""
    with _hiring_lock:
        threads = list(idle_threads)
        idle_threads.clear()
        for thread in threads:
            thread.works.put(None)
    for thread in threads:
        thread.join(IDLE_POLL_SECONDS)


def is_shielded(thread: threading.Thread) -> bool:
    """Return whether a thread is in a ``shielded`` block."""
    return thread.ident in threads


def stop_thread(thread: threading.Thread, raise_in: Callable[[threading.Thread], bool], patience: float) -> None:
    """End a thread by an exception, or abandon it.

    CPython drops an exception raised in a destructor or in a callback of a weak reference; the exception is then raised
    again.

    Args:
        thread: Thread to end.
        raise_in: Function that raises ``Stopped`` in the thread, and returns whether it succeeded.
        patience: Seconds that the thread has to end.
    """
    is_due = threading.Event()
    is_due.set()

    def notice(unraisable: sys.UnraisableHookArgs) -> None:
        _report(before, unraisable)
        if unraisable.exc_type is Stopped and threading.get_ident() == thread.ident:
            is_due.set()

    with _hook_lock:
        before, sys.unraisablehook = sys.unraisablehook, notice
        try:
            until = time.monotonic() + patience
            while thread.is_alive() and time.monotonic() < until:
                if is_due.is_set():
                    is_due.clear()
                    if not raise_in(thread):
                        is_due.set()
                thread.join(_POLL_SECONDS)
        finally:
            # An abandoned thread may drop the exception later, so the hook remains to hide it.
            sys.unraisablehook = functools.partial(_report, before) if thread.is_alive() else before
    abandon_thread(thread)


def abandon_thread(thread: threading.Thread) -> None:
    """Record a thread that has not ended; at exit, the interpreter waits for it for up to ``_EXIT_SECONDS``."""
    if thread.is_alive():
        _abandoned_threads.append(thread)


def _report(before: Callable[[sys.UnraisableHookArgs], object], unraisable: sys.UnraisableHookArgs) -> None:
    """Pass a dropped exception to the previous hook unless it was raised to end a thread."""
    if unraisable.exc_type is not Stopped:
        before(unraisable)


@atexit.register
def _wait_for_abandoned_threads() -> None:
    # A thread that returns from the core into a finalised interpreter would crash the process.
    until = time.monotonic() + _EXIT_SECONDS
    for thread in _abandoned_threads:
        thread.join(max(0.0, until - time.monotonic()))
