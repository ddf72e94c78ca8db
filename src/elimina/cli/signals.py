"""Signals that end a command: SIGINT (Ctrl-C), SIGTERM, and the alarm of a time limit.

The first one raises KeyboardInterrupt, and the library returns the results so far. The second one ends the process at
once. Only small modules of the standard library are imported here, so that the handlers are set before anything loads.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, TypeVar

    from elimina.result import EndedBy, Result

    End = TypeVar("End", bound=str | None)

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGALRM: "time limit"}
"""Words for the signals that are handled."""

_ENDS = (signal.SIGINT, signal.SIGTERM)
"""Signals that determine the exit code. A command that the alarm ends has the exit code of its answer."""

_CAUSES: dict[int | None, EndedBy] = {signal.SIGTERM: "termination", signal.SIGALRM: "time-limit"}

_MIN_SECONDS = 1e-3
"""Time limit of a call, in seconds, if reading has used up the user's limit: a limit has to be positive."""

_GRACE_SECONDS = 0.1
"""Seconds that the library gets after a time limit to end by itself."""

_MAX_ALARM_SECONDS = 1e9
"""Longest alarm: 31 years, far below the overflow of the system's timers."""

_RERAISE_SECONDS = 0.01
"""Seconds until an exception dropped by Python is raised again."""

_SIGNAL_EXIT_CODES = 128
"""Difference between a signal's number and the exit code in shells."""

INTERRUPTED = _SIGNAL_EXIT_CODES + signal.SIGINT
_FAILED_WRITE_EXIT_CODE = 1
"""Exit code of a command after a failed write of its last lines."""


class _State:
    """Signals of this process.

    Attributes:
        came: Number of the first signal; None if no signal came.
        deferred: Number of nested ``deferred`` blocks that are running.
        is_over: True if the command has ended, and the process is about to.
        is_dropped: True if Python has dropped the exception of the signal that came.
        previous_handlers: Pairs of a signal and its handler before ``catch``.
        hook: The ``sys.unraisablehook`` to restore; None if it is not replaced.
    """

    came: int | None = None
    deferred = 0
    is_over = False
    is_dropped = False
    previous_handlers: tuple[tuple[int, Any], ...] = ()
    hook: Any = None


def catch() -> None:
    """Handle SIGINT, SIGTERM and the alarm from here on, to the process's end or until ``release``.

    Outside the main thread, nothing is changed.

    Raises:
        KeyboardInterrupt: A signal came while Python started, and the launcher held it back.
    """
    _State.came, _State.deferred, _State.is_over, _State.is_dropped = None, 0, False, False
    for number in _WORDS:
        try:
            _State.previous_handlers += ((number, signal.signal(number, _handle)),)
        except ValueError:
            return  # not in the main thread, which alone handles signals
    if _State.hook is None:
        _State.hook, sys.unraisablehook = sys.unraisablehook, _drop
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)


def release() -> None:
    """Restore the signal handlers of a program that ran a command in its process."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in reversed(_State.previous_handlers):
        if handler is not None:  # None: the handler was not set by Python
            signal.signal(number, handler)
    _State.previous_handlers = ()
    # A later hook that passes exceptions on to this one keeps it in use.
    if sys.unraisablehook is _drop:
        sys.unraisablehook, _State.hook = _State.hook, None


def alarm(seconds: float) -> None:
    """Interrupt the command if it has not ended when its time limit passes.

    Code that handles Ctrl-C then handles the limit too, even in phases without checks of the time.

    Args:
        seconds: Seconds from now.
    """
    signal.setitimer(signal.ITIMER_REAL, min(seconds + _GRACE_SECONDS, _MAX_ALARM_SECONDS))


def remaining(time_limit: float | None, seconds: float) -> float | None:
    """Return the rest of a time limit after some seconds, at least ``_MIN_SECONDS``; None if there is no limit."""
    return None if time_limit is None else max(time_limit - seconds, _MIN_SECONDS)


def _drop(dropped: Any) -> None:
    """Raise a signal's exception again if a destructor or a callback dropped it; report other dropped exceptions."""
    if dropped.exc_type is KeyboardInterrupt and _State.came is not None:
        _State.is_dropped = True
        signal.setitimer(signal.ITIMER_REAL, _RERAISE_SECONDS)
    else:
        _State.hook(dropped)


def _handle(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGALRM and _State.is_dropped:
        _State.is_dropped = False
        if not (_State.deferred or _State.is_over):
            raise KeyboardInterrupt
        return
    if number == signal.SIGALRM and (_State.came is not None or _State.is_over):
        return
    if _State.came is not None or _State.is_over:
        os._exit(_SIGNAL_EXIT_CODES + (_State.came or number))
    _State.came = number
    if not _State.deferred:
        raise KeyboardInterrupt


class deferred:
    """A block that signals do not interrupt: imports, or the output of an answer. See ``check``."""

    def __enter__(self) -> None:
        _State.deferred += 1

    def __exit__(self, *error: object) -> None:
        _State.deferred -= 1


def came() -> bool:
    """Return whether a signal came, the alarm included."""
    return _State.came is not None


def is_late() -> bool:
    """Return whether the alarm of a time limit came."""
    return _State.came == signal.SIGALRM


def check() -> None:
    """Raise the exception of a deferred signal.

    Raises:
        KeyboardInterrupt: A signal came.
    """
    if _State.came is not None:
        raise KeyboardInterrupt


def attributed(result: Result) -> Result:
    """Return the result with the cause of its end: an interrupt by SIGTERM or the alarm is named so; see ``cause``."""
    ended_by = cause(result.ended_by)
    return result if ended_by == result.ended_by else result.replace(ended_by=ended_by)


def cause(ended_by: End) -> End | EndedBy:
    """Return the cause of a call's end. An interrupt by SIGTERM or by the alarm becomes SIGTERM or the time limit."""
    return _CAUSES[_State.came] if ended_by == "interrupt" and _State.came in _CAUSES else ended_by


def word() -> str:
    """Return the word for the signal that came; a command without an answer prints it as its last line."""
    return _WORDS[signal.Signals(_State.came or signal.SIGINT)]


def end() -> None:
    """Record the end of the command: dropped interrupts are not raised again, and a further signal exits at once."""
    _State.is_over = True
    signal.setitimer(signal.ITIMER_REAL, 0)


def finish(code: int, is_process: bool = False) -> Any:
    """Exit with the code of the signal that came (130 or 143), or else with the given one.

    A code of 0 becomes 1 if the last lines of a process cannot be written.

    Args:
        code: Exit code.
        is_process: True if the process has nothing else to do.
    """
    end()
    code = _SIGNAL_EXIT_CODES + _State.came if _State.came in _ENDS else code
    if not is_process or sys.getprofile() is not None or sys.gettrace() is not None:
        sys.exit(code)
    # The interpreter's own exit takes a tenth of a short command's time, and waits for work that is no longer needed.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            code = code or _FAILED_WRITE_EXIT_CODE
    os._exit(code)
