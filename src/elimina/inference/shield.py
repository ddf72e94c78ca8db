"""Work in threads: sharing it out, stopping it, and shielding parts that must finish, such as a file being written."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from elimina._core import Stop, Stopped, obey, stopped
from elimina.errors import DeviceError, MemoryLimitError
from elimina.system import lock_for_a_moment, start_thread

logger = logging.getLogger("elimina")

Member = TypeVar("Member")
Item = TypeVar("Item")
Found = TypeVar("Found")

_LOOK_SECONDS = 0.005
"""Between looks at whether an exception is to be raised in a thread again."""

_EXIT_SECONDS = 60.0
"""Seconds for work that was left alone to end before the interpreter does."""

_TURN_SECONDS = 0.02
"""Between looks of threads that wait at whether they are to end."""

_SHARES = 4
"""Runs of items that each member is given at least while many items are left."""

_MANY_TABLES = 10_000
"""Tables of a model from which a search for garbage takes some milliseconds."""

KEPT_SECONDS = 1.0
"""Seconds for which a thread waits for the next call: a new one often begins on a core whose caches hold nothing."""

_threads: dict[int, int] = {}
"""Depth of ``shielded`` blocks by thread."""

_left_alone: list[threading.Thread] = []

_to_undo: set[tuple[int, Callable[[], None]]] = set()
"""Threads that do without the search for garbage or set objects aside for a while, and the functions that end it."""

_resting: list[CallThread] = []
_hiring = lock_for_a_moment()
"""Held while a thread begins or ends to rest."""

_hooking = lock_for_a_moment()
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
    own = threading.get_ident(), gc.enable
    _to_undo.add(own)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _to_undo.discard(own)


@contextlib.contextmanager
def set_aside(tables: int) -> Iterator[None]:
    """Leave objects that are there out of the search for garbage: among those of a large model it takes a second.

    Args:
        tables: Number of tables of the model.
    """
    # The caller may have set objects aside itself.
    if tables < _MANY_TABLES or gc.get_freeze_count():
        yield
        return
    own = threading.get_ident(), gc.unfreeze
    _to_undo.add(own)
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        _to_undo.discard(own)


def _undo_for_others() -> None:
    """Undo in a forked process what threads that do not exist there would undo."""
    own = threading.get_ident()
    for entry in [entry for entry in _to_undo if entry[0] != own]:
        _to_undo.discard(entry)
        entry[1]()
    for thread in _threads.keys() - {own}:
        del _threads[thread]
    _resting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_undo_for_others)


class CallThread(threading.Thread):
    """A thread that does the work of one call after another, and ends if no call comes for a while.

    Args:
        processors: Those that its first caller may use.
    """

    def __init__(self, processors: Collection[int]) -> None:
        super().__init__(name="elimina", daemon=True)
        self.processors, self.is_free = processors, False
        self.works: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def run(self) -> None:
        """Do what comes."""
        while (work := self._next()) is not None:
            self.is_free = False
            work()
            # The call's tables go with it.
            del work
            if not self.is_free:
                return

    def _next(self) -> Callable[[], None] | None:
        while True:
            try:
                return self.works.get(timeout=KEPT_SECONDS)
            except Empty:
                with _hiring:
                    if self in _resting:
                        _resting.remove(self)
                    if self.works.empty():
                        return None

    def rest(self) -> None:
        """Be there for another call. Little of the present one is left: the next work waits for it."""
        with _hiring:
            self.is_free = True
            _resting.append(self)


def do_in_thread(work: Callable[[], None]) -> None:
    """Do a call's work in a thread that rests, or in a new one.

    Raises:
        MemoryLimitError: No thread can be started.
    """
    # A thread that was started earlier may be bound to others.
    processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    with _hiring:
        for place in reversed(range(len(_resting))):
            if _resting[place].processors == processors:
                _resting.pop(place).works.put(work)
                return
    thread = CallThread(processors)
    thread.works.put(work)
    start_thread(thread)


@atexit.register
def _end_resting() -> None:
    with _hiring:
        threads = list(_resting)
        _resting.clear()
        for thread in threads:
            thread.works.put(None)
    for thread in threads:
        thread.join(_TURN_SECONDS)


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
        _report(before, unraisable)
        if unraisable.exc_type is Stopped and threading.get_ident() == thread.ident:
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
            # Of a thread that is left alone, the exception may come later: it is not the user's.
            sys.unraisablehook = functools.partial(_report, before) if thread.is_alive() else before
    leave_alone(thread)


def leave_alone(thread: threading.Thread) -> None:
    """Note a thread that goes on, for which the interpreter's end will wait."""
    if thread.is_alive():
        _left_alone.append(thread)


def _report(before: Callable[[sys.UnraisableHookArgs], object], unraisable: sys.UnraisableHookArgs) -> None:
    """Pass a dropped exception on to the hook before, if it did not come to end a thread."""
    if unraisable.exc_type is not Stopped:
        before(unraisable)


@atexit.register
def _wait_for_those_left() -> None:
    # A thread that comes back from the core into an interpreter that has ended takes the process down.
    until = time.monotonic() + _EXIT_SECONDS
    for thread in _left_alone:
        thread.join(max(0.0, until - time.monotonic()))


def spread(
    members: Sequence[Member],
    items: Sequence[Item],
    work: Callable[[Member, Iterator[Item]], Iterator[Found]],
    wanted: Callable[[Item], bool] | None = None,
    together: int = 1,
) -> Generator[Found | None]:
    """Share items out among members, each of which works in a thread of its own; one member works in this thread.

    Members take runs of items from one queue (guided self-scheduling, Polychronopoulos and Kuck 1987), and who has
    nothing left takes from the others. The items of a member that fails with a ``DeviceError`` are done by the others.

    Args:
        members: Devices, threads or whatever does the work.
        items: Items in the sequence in which they are best done.
        work: Takes items, and yields one result for each before it takes the next.
        wanted: Asked before an item is taken; None: all are. It is called in a member's thread.
        together: Number of neighbours that cost less if one member does all of them.

    Yields:
        The items' results in the sequence of the items; None for those that are not wanted.

    Raises:
        DeviceError: All members failed.
    """
    if len(members) > 1:
        pool = _Pool(members, items, work, wanted, together)
        try:
            yield from pool.results()
        finally:
            with shielded():
                pool.end()
        return
    unwanted = 0

    def offered() -> Iterator[Item]:
        nonlocal unwanted
        for item in items:
            if wanted is None or wanted(item):
                yield item
            else:
                unwanted += 1

    for found in work(members[0], offered()):
        while unwanted:
            unwanted -= 1
            yield None
        yield found
    yield from [None] * unwanted


class _Pool(Generic[Member, Item, Found]):
    """Threads that take items and put their results: see ``spread``."""

    def __init__(
        self,
        members: Sequence[Member],
        items: Sequence[Item],
        work: Callable[[Member, Iterator[Item]], Iterator[Found]],
        wanted: Callable[[Item], bool] | None,
        together: int,
    ) -> None:
        self._items, self._work, self._wanted, self._together = items, work, wanted, together
        self._spare = deque(members)
        self._members = len(members)
        self._next, self._open = 0, len(items)
        self._runs: list[deque[int]] = []
        self._changed = threading.Condition()
        self._found: SimpleQueue[tuple[int, Found | None] | BaseException] = SimpleQueue()
        self._stop = Stop()
        self._threads: list[threading.Thread] = []
        self._working = 0

    def results(self) -> Iterator[Found | None]:
        """Start as many members as there are items and threads at most, and yield the results in sequence."""
        try:
            while self._spare and self._working < len(self._items):
                self._start()
        except MemoryLimitError:
            if not self._working:
                raise
        known: dict[int, Found | None] = {}
        place = 0
        while place < len(self._items):
            if place in known:
                yield known.pop(place)
                place += 1
                continue
            try:
                found = self._found.get(timeout=_TURN_SECONDS)
            except Empty:
                if stopped():
                    raise Stopped from None
                continue
            if isinstance(found, BaseException):
                self._bear(found)
            else:
                known[found[0]] = found[1]

    def end(self) -> None:
        """End all members, and wait for them."""
        self._stop.request()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, args=(self._spare.popleft(),), name="elimina", daemon=True)
        start_thread(thread)
        self._threads.append(thread)
        self._working += 1

    def _bear(self, error: BaseException) -> None:
        """Continue without a member whose device failed."""
        self._working -= 1
        if not isinstance(error, DeviceError):
            raise error
        if self._spare:
            self._start()
        if not self._working:
            raise DeviceError(f"all {self._members} devices failed, the last one so: {error}") from error
        logger.warning("a device failed, and the others do its work: %s", error)

    def _serve(self, member: Member) -> None:
        run: deque[int] = deque()
        taken: deque[int] = deque()

        def offered() -> Iterator[Item]:
            while (place := self._take(run)) is not None:
                taken.append(place)
                yield self._items[place]

        obey(self._stop)
        try:
            for found in self._work(member, offered()):
                self._put(taken.popleft(), found)
        except Stopped:
            pass
        except BaseException as error:
            with self._changed:
                self._runs = [other for other in self._runs if other is not run]
                self._runs.append(deque((*taken, *run)))
                self._found.put(error)
                self._changed.notify_all()
        finally:
            obey(None)

    def _take(self, run: deque[int]) -> int | None:
        """Return the next place of a member's run; None if nothing is left to do."""
        with self._changed:
            while not self._stop.requested and self._open:
                if not run:
                    self._fill(run)
                if not run:
                    self._changed.wait(_TURN_SECONDS)
                    continue
                place = run.popleft()
                if self._wanted is None or self._wanted(self._items[place]):
                    return place
                self._put(place, None)
        return None

    def _fill(self, run: deque[int]) -> None:
        """Give a member that has none a run of places: new ones, or the last ones of another member's run."""
        left = len(self._items) - self._next
        if not left:
            longest = max(self._runs, key=len, default=run)
            run.extendleft([longest.pop() for _ in range(-(-len(longest) // 2))])
        else:
            size = max(1, left // (_SHARES * self._members))
            whole = self._together - self._next % self._together
            # Neighbours stay together while there is enough to do.
            size = size - (size - whole) % self._together if size >= whole else size
            run.extend(range(self._next, self._next + size))
            self._next += size
        if all(other is not run for other in self._runs):
            self._runs.append(run)

    def _put(self, place: int, found: Found | None) -> None:
        with self._changed:
            self._open -= 1
            self._found.put((place, found))
            if not self._open:
                self._changed.notify_all()
