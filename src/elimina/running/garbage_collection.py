"""Pauses of Python's garbage collector while many objects are made."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator

from elimina.running.call_thread import idle_threads, threads

_MANY_TABLES = 10_000
"""Tables of a model from which a garbage collection takes some milliseconds."""

_to_undo: set[tuple[int, Callable[[], None]]] = set()
"""Threads that have suspended garbage collection or frozen objects, with the functions to undo it."""


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Suspend garbage collection while many lasting objects are made: it would take a third of a plan's time.

    An exception may end a thread before the last line, so the thread that started it also restores the collection.
    """
    if not gc.isenabled():
        yield
        return
    entry = threading.get_ident(), gc.enable
    _to_undo.add(entry)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _to_undo.discard(entry)


@contextlib.contextmanager
def set_aside(tables: int) -> Iterator[None]:
    """Exclude existing objects from garbage collection, which would take a second among those of a large model.

    Args:
        tables: Number of tables of the model.
    """
    # The caller may have set objects aside itself.
    if tables < _MANY_TABLES or gc.get_freeze_count():
        yield
        return
    entry = threading.get_ident(), gc.unfreeze
    _to_undo.add(entry)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        _to_undo.discard(entry)


def _undo_for_others() -> None:
    """Undo, in a forked process, the changes of threads that do not exist there."""
    this_thread = threading.get_ident()
    for entry in [entry for entry in _to_undo if entry[0] != this_thread]:
        _to_undo.discard(entry)
        entry[1]()
    for thread in threads.keys() - {this_thread}:
        del threads[thread]
    idle_threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_undo_for_others)
