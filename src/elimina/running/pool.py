"""Distribution of work items over threads, one for each device."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from elimina._core import Stop, Stopped, obey, stopped
from elimina.errors import DeviceError, MemoryLimitError
from elimina.running.call_thread import IDLE_POLL_SECONDS, shielded
from elimina.system import lost_thread, start_thread

logger = logging.getLogger("elimina")

Member = TypeVar("Member")
Item = TypeVar("Item")
Returned = TypeVar("Returned")

_ITEMS_PER_MEMBER = 4
"""A member takes several items at a time: its share of the remaining items, divided by this number."""


def spread(
    members: Sequence[Member],
    items: Sequence[Item],
    work: Callable[[Member, Iterator[Item]], Iterator[Returned]],
    wanted: Callable[[Item], bool] | None = None,
    together: int = 1,
) -> Generator[Returned | None]:
    """Divide items among members, each in a separate thread; a single member works in the caller's thread.

    Members take runs of items from a common queue (guided self-scheduling, Polychronopoulos and Kuck 1987); idle
    members take items from others. If a member fails with a ``DeviceError``, the other members process its items.

    Args:
        members: Devices, threads or other workers.
        items: Items in the preferred sequence.
        work: Function that receives items, and yields one result for each before it takes the next.
        wanted: Function that returns whether an item is needed, called in a member's thread; None: all items are.
        together: Number of neighbouring items that are cheaper if one member processes them.

    Yields:
        The items' results in the sequence of the items; None for items that are not needed.

    Raises:
        DeviceError: All members failed.
        MemoryLimitError: There are several members, and no thread can be started.
        Stopped: The call has to end.
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

    for result in work(members[0], offered()):
        while unwanted:
            unwanted -= 1
            yield None
        yield result
    yield from [None] * unwanted


class _Pool(Generic[Member, Item, Returned]):
    """Threads that process items: see ``spread``."""

    def __init__(
        self,
        members: Sequence[Member],
        items: Sequence[Item],
        work: Callable[[Member, Iterator[Item]], Iterator[Returned]],
        wanted: Callable[[Item], bool] | None,
        together: int,
    ) -> None:
        self._items, self._work, self._wanted, self._together = items, work, wanted, together
        self._spare = deque(members)
        self._members = len(members)
        self._next, self._open = 0, len(items)
        self._runs: list[deque[int]] = []
        self._changed = threading.Condition()
        self._results_queue: SimpleQueue[tuple[int, Returned | None] | BaseException] = SimpleQueue()
        self._stop = Stop()
        self._threads: list[threading.Thread] = []
        self._working = 0

    def results(self) -> Iterator[Returned | None]:
        """Start members, at most one per item, and yield the results in the sequence of the items.

        Members whose threads cannot be started stay in reserve; an error is raised if no thread can be started at all.
        """
        try:
            while self._spare and self._working < len(self._items):
                self._start()
        except MemoryLimitError:
            if not self._working:
                raise
        finished: dict[int, Returned | None] = {}
        position = 0
        while position < len(self._items):
            if position in finished:
                yield finished.pop(position)
                position += 1
                continue
            try:
                outcome = self._results_queue.get(timeout=IDLE_POLL_SECONDS)
            except Empty:
                if stopped():
                    raise Stopped from None
                if self._lost_member:
                    raise lost_thread() from None
                continue
            if isinstance(outcome, BaseException):
                self._drop_failed_member(outcome)
            else:
                finished[outcome[0]] = outcome[1]

    @property
    def _lost_member(self) -> bool:
        """True if items are open and a member's thread has ended without reporting an error."""
        running = sum(thread.is_alive() for thread in self._threads)
        return bool(self._open) and running < self._working and self._results_queue.empty()

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

    def _drop_failed_member(self, error: BaseException) -> None:
        """Continue without a member whose device failed.

        Raises:
            DeviceError: No member remains.
            BaseException: The error is not a failure of a device.
        """
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
            while (position := self._next_position(run)) is not None:
                taken.append(position)
                yield self._items[position]

        obey(self._stop)
        try:
            for result in self._work(member, offered()):
                self._put(taken.popleft(), result)
        except Stopped:
            pass
        except BaseException as error:
            with self._changed:
                self._runs = [other for other in self._runs if other is not run]
                self._runs.append(deque((*taken, *run)))
                self._results_queue.put(error)
                self._changed.notify_all()
        finally:
            obey(None)

    def _next_position(self, run: deque[int]) -> int | None:
        """Return the position of a member's next item; None if no item remains, or if the pool ends."""
        with self._changed:
            while not self._stop.requested and self._open:
                if not run:
                    self._fill(run)
                if not run:
                    self._changed.wait(IDLE_POLL_SECONDS)
                    continue
                position = run.popleft()
                if self._wanted is None or self._wanted(self._items[position]):
                    return position
                self._put(position, None)
        return None

    def _fill(self, run: deque[int]) -> None:
        """Add a run of positions for an idle member: new ones, or the last half of another member's longest run."""
        remaining_count = len(self._items) - self._next
        if not remaining_count:
            longest = max(self._runs, key=len, default=run)
            run.extendleft([longest.pop() for _ in range(-(-len(longest) // 2))])
        else:
            size = max(1, remaining_count // (_ITEMS_PER_MEMBER * self._members))
            whole = self._together - self._next % self._together
            # A run ends at the end of a group of ``together`` neighbours, unless it is shorter than a group.
            size = size - (size - whole) % self._together if size >= whole else size
            run.extend(range(self._next, self._next + size))
            self._next += size
        if all(other is not run for other in self._runs):
            self._runs.append(run)

    def _put(self, position: int, result: Returned | None) -> None:
        with self._changed:
            self._open -= 1
            self._results_queue.put((position, result))
            if not self._open:
                self._changed.notify_all()
