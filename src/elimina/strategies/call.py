"""A call that can end at any time, with its thread, its bounds and assignment so far, and its times."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread
from typing import Any, Literal, NamedTuple, TypeVar

from elimina import system
from elimina._core import Stop, Stopped, obey, stopped
from elimina.errors import EliminaError, MemoryLimitError, TimeLimitError
from elimina.model.model import rounded
from elimina.problem.tasks import DESCRIPTIONS
from elimina.result import OPEN_STATUSES, Bounds, EndedBy, Result
from elimina.running.budget import Budget
from elimina.running.call_thread import CallThread, abandon_thread, do_in_thread, is_shielded, stop_thread
from elimina.running.combination import combine
from elimina.strategies.causes import cause_of
from elimina.strategies.clock import Clock

T = TypeVar("T")

SOFT_SECONDS = 0.05
"""Seconds that work has to end by itself after a request to stop."""

HARD_SECONDS = 0.05
"""Seconds that work has to end after an exception was raised in its thread. Work that takes longer is abandoned."""

_WRITING_SECONDS = 2.0
"""Seconds that work has for writing a checkpoint."""

FIRST_BOUNDS_AGE_SECONDS, _FIRST_SECONDS = 1.0, 5.0
"""Seconds after which a call without results computes first bounds; and time limit, in seconds, for these bounds."""

_INTERRUPT_ITERATIONS = 100
"""Number of loop iterations after which an exception raised by another thread has arrived."""

_INTERRUPT_SECONDS = 0.1
"""Time limit of first bounds after an interrupt, in seconds: the user is waiting for the answer."""

_LOOK_SECONDS = 0.05
"""Seconds between checks for signals and stop requests."""

_LISTENER_SECONDS = 5.0
"""Seconds that work has to end by itself after a listener has raised an exception."""


class _Event(NamedTuple):
    """A call of a listener; its lock, if there is one, is released when the listener has returned."""

    listener: Callable[..., None]
    arguments: tuple[Any, ...]
    returned: Lock | None


class Call(Clock):
    """A call, with its bounds and assignment so far.

    The work runs in a separate thread, and the caller's thread waits for it. Interrupts therefore occur in the caller's
    thread only. Both interrupts and the time limit end the call at once with the result so far.

    Args:
        task: The task of the call.
        time_limit: Time limit of the whole call, in seconds; None: no limit.
        listener: Function that receives improved bounds, called in the caller's thread.
        gap: Gap of the bounds at which the work ends.
        begun: Start of the call by ``time.monotonic``; None: now.

    Attributes:
        best_result: Best result so far; an improvement replaces the whole object.
        sign: 1 if values are minimised, -1 if they are maximised.
        decimals: Largest number of decimals of the model's costs. Reported bounds are rounded to as many decimals.
            None: unknown.
        fallback: Function that computes bounds if the call ends without a better result. It takes the number of seconds
            for improving the bounds, and returns None if there are no bounds.
        fallback_after: Seconds after which ``fallback`` is called if there is no result yet.
    """

    def __init__(
        self,
        task: str,
        time_limit: float | None = None,
        listener: Callable[[Bounds], None] | None = None,
        gap: float = 0.0,
        begun: float | None = None,
    ) -> None:
        super().__init__(time_limit, begun)
        self._bytes_at_start = system.data_memory()
        self.task, self.gap = task, gap
        self.sign = 1
        self.decimals: int | None = None
        self.best_result: Result | None = None
        self.fallback: Callable[[float], Result | None] | None = None
        self.fallback_after = FIRST_BOUNDS_AGE_SECONDS
        self._listener = listener
        self._stop = Stop()
        self._events: SimpleQueue[_Event | None] = SimpleQueue()
        self._error: BaseException | None = None
        self._bounding: Thread | None = None
        self._bounding_stop = Stop()
        self._queued: Bounds | None = None
        self._reported_ends: tuple[float | None, float | None] = None, None
        self._thread: Thread | None = None  # set while the work runs
        self._is_raised = self._is_ended = self._is_forgotten = False
        self._ending = Lock()

    # --- methods for the work's thread ---

    @property
    def is_over(self) -> bool:
        """True if the work has to end, on request or because the time is up."""
        return stopped() or self.seconds <= 0

    def report(self, result: Result) -> None:
        """Store improvements of the bounds and the assignment, and report them to the listener."""
        self.best_result = combine(self.best_result, result, self.sign)
        if self._listener is None:
            return
        ends = self._rounded_ends(self.best_result)
        # Estimates without bounds are not reported.
        if ends == (None, None):
            return
        bounds = Bounds(round(self.age, 3), *ends, result.stats.get("nodes", 0))
        if self._queued is None or bounds[1:] != self._queued[1:]:
            self._queued = bounds
            self._events.put(_Event(self._listener, (bounds,), None))

    def notify(self, listener: Callable[..., None], *arguments: Any) -> None:
        """Call a listener in the caller's thread, and wait until it has returned.

        Raises:
            Stopped: The work has to end.
        """
        returned = Lock()
        returned.acquire()
        self._events.put(_Event(listener, arguments, returned))
        while not returned.acquire(timeout=_LOOK_SECONDS):
            if stopped():
                raise Stopped

    @property
    def growth_bytes(self) -> int:
        """Bytes by which the process has grown since the call began; 0 if the system does not report it."""
        return system.growth_since(self._bytes_at_start)

    def budget(self, seconds: float = math.inf) -> Budget:
        """Return the budget of a strategy that begins now, limited by ``seconds`` and by the call's time limit."""
        ends = [] if seconds == math.inf else [time.monotonic() + seconds]
        ends += [] if self.deadline is None else [self.deadline]
        return Budget(min(ends, default=None), self.best_result, self.report, self.growth_bytes)

    @property
    def is_answered(self) -> bool:
        """True if the result is final, its bounds are close enough, or it exists and the work has to end."""
        result = self.best_result
        if result is None:
            return False
        description = DESCRIPTIONS.get(self.task)
        is_close = Bounds(0.0, result.lower_bound, result.upper_bound).gap <= self.gap
        # Equal bounds on an optimum do not complete a count of optima or a list of several assignments.
        is_close = is_close and not (description is not None and description.is_beyond_optimum)
        return result.status not in ("bounded", "estimated") or is_close or self.is_over

    # --- methods for the caller's thread ---

    def answer(self, work: Callable[[], None]) -> Result:
        """Do the work in a thread, and return the answer when it ends or is interrupted.

        Raises:
            KeyboardInterrupt: The user interrupted the call before its first result.
            TimeLimitError: The time limit passed before the first result.
            EliminaError: The work failed without a result, or for a reason other than time, memory, a device or a
                worker.
        """
        try:
            result = self._finish(self._carry_out(work))
        finally:
            self._bounding_stop.request()
            if self._bounding is not None:
                abandon_thread(self._bounding)
            self._forget()
        # The result is complete, so an interrupt during the last report must not discard it.
        with contextlib.suppress(KeyboardInterrupt):
            self._report_last_bounds(result)
        return result

    def result(self, work: Callable[[], T]) -> T:
        """Do work in a thread, and return its result; an early end raises an exception.

        Raises:
            KeyboardInterrupt: The user interrupted the call, even if the work had finished by then.
            TimeLimitError: The time limit passed before the work finished.
            BaseException: The exception that the work raised.
        """
        done: list[T] = []
        try:
            ended_by = self._carry_out(lambda: done.append(work()))
            if done and ended_by != "interrupt":
                return done[0]
            if ended_by is None and self._error is not None:
                raise self._error
            raise self._error_without_answer(ended_by)
        finally:
            self._forget()

    def result_or_early(
        self, work: Callable[[], T], early: Callable[[Literal["interrupt", "time-limit"]], T | None]
    ) -> T:
        """Do work in a thread; return its result or, if it ends early, the result so far.

        Args:
            work: Function that returns the result.
            early: Function that returns the result so far for a cause of the early end; None if there is no result.

        Raises:
            KeyboardInterrupt: The user interrupted the work before its first result.
            TimeLimitError: The time limit passed before the first result.
        """
        try:
            return self.result(work)
        except (TimeLimitError, KeyboardInterrupt) as error:
            result = early("interrupt" if isinstance(error, KeyboardInterrupt) else "time-limit")
            if result is None:
                raise
            return result

    def _forget(self) -> None:
        """Release the work's tables: reference cycles would keep them until the next garbage collection."""
        self._is_forgotten = True
        self.fallback = self._error = None

    def _carry_out(self, work: Callable[[], None]) -> EndedBy | None:
        """Do the work in a thread; return the cause of an early end, or None if the work finished or failed."""
        ended_by: EndedBy | None = None
        is_collected = gc.isenabled()
        try:
            try:
                ended_by = self._serve_listeners(do_in_thread(partial(self._work, work)))
            except KeyboardInterrupt:
                ended_by = "interrupt"
            except BaseException:
                # The listener's exception is raised when the call has ended.
                self._end(_LISTENER_SECONDS)
                raise
            if ended_by is not None:
                try:
                    self._end()
                except KeyboardInterrupt:
                    # A second interrupt discards the answer. An interrupt after the time limit counts as the first.
                    if ended_by == "interrupt":
                        raise
                    ended_by = "interrupt"
                    self._end()
        finally:
            # Work that was ended early may have left garbage collection disabled. It is enabled at the end, because a
            # collection takes seconds if the work has created a million objects.
            if is_collected:
                gc.enable()
        return ended_by

    def _work(self, work: Callable[[], None]) -> None:
        worker = current_thread()
        is_kept = False
        try:
            obey(self._stop)
            with self._ending:
                if self._is_ended:
                    return
                self._thread = worker
            try:
                work()
            except BaseException as error:
                self._error = error
            with self._ending:
                self._thread = None
                is_kept = not self._is_ended
            # An exception that another thread has raised in this one arrives a few lines later, so the loop waits for
            # it. It cannot be withdrawn: in CPython 3.11, profiled or traced code would then hang.
            for _ in range(_INTERRUPT_ITERATIONS if self._is_raised else 0):
                pass
        except Stopped:
            # The exception arrived after the end of the work; it does not arrive a second time.
            pass
        finally:
            obey(None)
            if self._is_forgotten:
                self._forget()
            self._events.put(None)
            # The thread is released last, because a thread that failed must not serve other calls.
            if is_kept and isinstance(worker, CallThread):
                worker.release()

    def _serve_listeners(self, worker: Thread) -> EndedBy | None:
        """Call listeners until the work ends or the time is up; return the cause of an early end.

        Args:
            worker: Thread that does the work.
        """
        while True:
            # A signal may reach another thread without waking this one, so this thread wakes up regularly to handle
            # signals.
            try:
                event = self._events.get(timeout=min(self.seconds, _LOOK_SECONDS))
            except Empty:
                if self.seconds <= 0:
                    return "time-limit"
                if not worker.is_alive() and self._events.empty():
                    self._error = self._error or system.lost_thread()
                    return None
                self._prepare_fallback()
                continue
            if event is None:
                return None
            event.listener(*event.arguments)
            if event.returned is None:
                self._reported_ends = event.arguments[0][1:3]
            else:
                event.returned.release()

    def _report_last_bounds(self, result: Result) -> None:
        """Report the bounds of the answer if the listener has not received them yet."""
        ends = self._rounded_ends(result)
        if self._listener is not None and ends not in ((None, None), self._reported_ends):
            self._listener(Bounds(round(self.age, 3), *ends, result.stats.get("nodes", 0)))

    def _rounded_ends(self, result: Result) -> tuple[int | float | None, int | float | None]:
        return rounded(result.lower_bound, self.decimals), rounded(result.upper_bound, self.decimals)

    def _prepare_fallback(self) -> None:
        """Compute first bounds in a thread during a long call: when the call ends, there may be no time for them."""
        fallback = self.fallback
        if (
            fallback is not None
            and self._bounding is None
            and self.best_result is None
            and self.age > self.fallback_after
        ):
            self._bounding = Thread(target=self._bound, args=(fallback,), name="elimina", daemon=True)
            try:
                system.start_thread(self._bounding)
            except MemoryLimitError:
                self._bounding = None

    def _bound(self, fallback: Callable[[float], Result | None]) -> None:
        obey(self._bounding_stop)
        first: Result | None = None
        try:
            first = fallback(min(self.seconds, _FIRST_SECONDS))
        except Stopped:
            return
        except MemoryError:
            pass  # memory would not suffice for first bounds at the end of the call either
        finally:
            obey(None)
        # The work may have provided other first bounds meanwhile, which are not replaced.
        if self.fallback is fallback:
            self.fallback = lambda _: first

    def _first_bounds(self) -> Result | None:
        """Return first bounds, from their thread or after a short computation; None if there are none."""
        if self._bounding is not None:
            self._bounding.join(HARD_SECONDS)
        if self.fallback is None:
            return None
        return self.fallback(max(HARD_SECONDS, min(self.seconds, _INTERRUPT_SECONDS)))

    def _end(self, patience: float = SOFT_SECONDS) -> None:
        """End the work by a request, then by an exception; abandon it if neither ends it in time."""
        self._stop.request()
        with self._ending:
            self._is_ended = True
            thread = self._thread
        # Without a thread, the work has not begun and will not, or it has finished and its thread may serve other
        # calls.
        if thread is None:
            return
        thread.join(patience)
        if is_shielded(thread):
            thread.join(_WRITING_SECONDS)
        stop_thread(thread, self._raise_in, HARD_SECONDS)

    def _raise_in(self, thread: Thread) -> bool:
        """Raise ``Stopped`` at the next Python line of a thread that does the work; return whether it was raised."""
        with self._ending:
            if self._thread is None or is_shielded(thread):
                return False
            self._is_raised = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped))
            return True

    def _finish(self, ended_by: EndedBy | None) -> Result:
        result = self.best_result
        if result is not None and result.status not in OPEN_STATUSES:
            return self._with_seconds(result)
        is_strategy_limit = False
        if ended_by is None and self._error is not None:
            ended_by = cause_of(self._error)
            if ended_by is None or (ended_by != "time-limit" and result is None):
                raise self._error
            if is_strategy_limit := ended_by == "time-limit" and self.seconds > 0:
                ended_by = None
        if ended_by is None and result is not None:
            ended_by = self._end_without_error(result)
        is_open = result is None or None in (result.lower_bound, result.upper_bound)
        if is_open and (ended_by in ("interrupt", "time-limit") or is_strategy_limit):
            first = self._first_bounds()
            if first is not None:
                result = first if result is None else combine(first, result, self.sign)
        if result is None:
            raise self._error_without_answer(ended_by)
        if result.status not in OPEN_STATUSES:
            ended_by = None
        return self._with_seconds(result.replace(ended_by=ended_by))

    def _error_without_answer(self, ended_by: EndedBy | None) -> BaseException:
        if ended_by == "interrupt":
            return KeyboardInterrupt()
        if isinstance(self._error, EliminaError):
            return self._error
        # The limit is not stated, because it may be the remainder of a longer one that only the caller knows.
        return TimeLimitError("the time limit passed before anything was known; allow more time")

    def _end_without_error(self, result: Result) -> EndedBy | None:
        """Return the cause of an end before the bounds met: the gap or the time limit; None for other causes."""
        if self.gap and Bounds(0.0, result.lower_bound, result.upper_bound).gap <= self.gap:
            return "gap"
        return "time-limit" if self.deadline is not None and time.monotonic() >= self.deadline else None

    def _with_seconds(self, result: Result) -> Result:
        return result.replace(stats={**result.stats, "seconds": self.phase_seconds()})


class InnerCall(Call):
    """A call for a problem within an outer call; its answers are translated to answers of the outer call.

    Args:
        whole: The outer call.
        translated: Function that translates an answer of the problem to an answer of the outer call's task.
        name: Prefix of the names of the problem's phases.
    """

    def __init__(self, whole: Call, translated: Callable[[Result], Result], name: str) -> None:
        super().__init__("mpe", gap=whole.gap)
        self.deadline, self._bytes_at_start = whole.deadline, whole._bytes_at_start
        self._whole, self._translated, self._name = whole, translated, name

    def report(self, result: Result) -> None:
        """Store improvements of the problem's result, and report them to the outer call, translated to its task."""
        self.best_result = combine(self.best_result, result, self.sign)
        self._whole.report(self._translated(result))

    def notify(self, listener: Callable[..., None], *arguments: Any) -> None:
        """Call a listener in the caller's thread: see ``Call.notify``."""
        self._whole.notify(listener, *arguments)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[dict[str, float]]:
        """Time a phase of the problem as a phase of the call, under the prefixed name."""
        seconds_by_part: dict[str, float] = {}
        with self._whole.phase(f"{self._name} {name}") as outer:
            yield seconds_by_part
            outer.update({f"{self._name} {name_of_part}": seconds for name_of_part, seconds in seconds_by_part.items()})
