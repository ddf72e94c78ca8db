"""Threads for the work of calls: stopping them, and shielding parts that must finish, such as writing a file."""

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
"""Seconds between an idle thread's checks for a request to end; also the seconds that it has to end at exit."""

IDLE_THREAD_SECONDS = 1.0
"""Seconds that an idle thread waits for the next call, because a new thread often begins on a core with cold caches."""

threads: dict[int, int] = {}
"""Depth of ``shielded`` blocks by thread."""

_abandoned_threads: list[threading.Thread] = []

idle_threads: list[CallThread] = []
_hiring_lock = lock_for_a_moment()
"""Lock for a thread's change between idle and busy."""

_hook_lock = lock_for_a_moment()
"""Lock for replacing the interpreter's hook for dropped exceptions."""


@contextlib.contextmanager
def shielded() -> Iterator[None]:
    """Prevent the end of a call from raising an exception in this thread while a block runs."""
    thread = threading.get_ident()
    threads[thread] = threads.get(thread, 0) + 1
    try:
        yield
    finally:
        threads[thread] -= 1
        if not threads[thread]:
            del threads[thread]


class CallThread(threading.Thread):
    """A thread that does the work of one call after another, and ends if no call comes for a while.

    Args:
        processors: The processors that the thread is bound to: those of its first caller.
    """

    def __init__(self, processors: Collection[int]) -> None:
        super().__init__(name="elimina", daemon=True)
        self.processors, self.is_free = processors, False
        self.works: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self) -> None:
        """Do each call's work; end if no call comes for a while, or if the thread was not offered for another call."""
        try:
            while (work := self._next()) is not None:
                self.is_free = False
                work()
                # The work refers to the call's tables, so it is deleted to free them.
                del work
                if not self.is_free:
                    return
        finally:
            # An error such as a lack of memory may end an idle thread, which must not be offered to a call then.
            self._retire()

    def _next(self) -> Callable[[], None] | None:
        while True:
            try:
                return self.works.get(timeout=IDLE_THREAD_SECONDS)
            except Empty:
                if self._retire():
                    return None

    def _retire(self) -> bool:
        """Stop waiting for calls; return True unless a call has arrived in the meantime."""
        with _hiring_lock:
            if self in idle_threads:
                idle_threads.remove(self)
            return self.works.empty()

    def release(self) -> None:
        """Offer the thread for another call."""
        with _hiring_lock:
            self.is_free = True
            idle_threads.append(self)


def do_in_thread(work: Callable[[], None]) -> threading.Thread:
    """Do a call's work in an idle thread, or in a new one; return the thread.

    Raises:
        MemoryLimitError: No thread can be started.
    """
    # Threads are bound to the processors of their first callers, so only those with the same processors are used.
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
    """End the threads that wait for another call."""
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

    CPython drops an exception that comes in a callback of a weak reference or in a destructor; the exception is then
    raised again.

    Args:
        thread: Thread to end.
        raise_in: Function that raises ``Stopped`` in the thread, and returns True if it could.
        patience: Seconds for the thread to end.
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
            # The exception of an abandoned thread may be dropped later, so the hook stays in place to hide it.
            sys.unraisablehook = functools.partial(_report, before) if thread.is_alive() else before
    abandon_thread(thread)


def abandon_thread(thread: threading.Thread) -> None:
    """Record a thread that has not ended: at exit, the interpreter waits for it, up to ``_EXIT_SECONDS``."""
    if thread.is_alive():
        _abandoned_threads.append(thread)


def _report(before: Callable[[sys.UnraisableHookArgs], object], unraisable: sys.UnraisableHookArgs) -> None:
    """Pass a dropped exception to the previous hook, unless it was raised to end a thread."""
    if unraisable.exc_type is not Stopped:
        before(unraisable)


@atexit.register
def _wait_for_abandoned_threads() -> None:
    # A thread that returns from the core into a finished interpreter crashes the process.
    until = time.monotonic() + _EXIT_SECONDS
    for thread in _abandoned_threads:
        thread.join(max(0.0, until - time.monotonic()))
