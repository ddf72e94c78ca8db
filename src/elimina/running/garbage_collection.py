"""Pauses of Python's garbage collection while many objects are created."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator

from elimina.running.call_thread import idle_threads, threads

_MANY_TABLES = 10_000
"""Number of tables above which collections skip existing objects: checking them would take milliseconds."""

_to_undo: set[tuple[int, Callable[[], None]]] = set()
"""Threads that disabled garbage collection or froze objects, each with a function to undo this."""


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection while many lasting objects are created: it would take a third of the planning time.

    After a fork, the child has only the thread that forked, so it undoes the changes of all other threads.
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
    """Exclude existing objects from garbage collection, which would take a second for the objects of a large model.

    Args:
        tables: Number of tables of the model.
    """
    # gc.unfreeze would also unfreeze objects that the caller has frozen, so nothing is done then.
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
    """Undo the changes of all threads that do not exist in a forked process."""
    this_thread = threading.get_ident()
    for entry in [entry for entry in _to_undo if entry[0] != this_thread]:
        _to_undo.discard(entry)
        entry[1]()
    for thread in threads.keys() - {this_thread}:
        del threads[thread]
    idle_threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_undo_for_others)
