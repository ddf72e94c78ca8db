"""The command line."""

from __future__ import annotations

import os
import sys

from elimina.cli import signals
from elimina.option_names import use_flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Its exit codes: 0 finished, 1 error, 2 usage, 130 ended by SIGINT, 143 ended by SIGTERM.

    Args:
        arguments: Arguments of a command within a program, whose signal handlers are restored afterwards; None: the
            arguments of this process.
    """

    def work() -> int:
        with signals.deferred():
            from elimina.cli.commands import run
        signals.check()
        return run(arguments)

    run_command(work, arguments is None)


def run_command(work: Callable[[], int], is_process: bool) -> None:
    """Exit with a command's code, or with that of a signal.

    Args:
        work: Function that runs the command, and returns its exit code.
        is_process: True if the process has nothing else to do; otherwise its signal handlers are restored.
    """
    try:
        use_flags(True)
        try:
            signals.catch()
            open_streams()
            if is_process:
                _escape_unknown_characters()
            code = work()
        except KeyboardInterrupt:
            signals.end()
            late = "elimina: the time limit passed before anything was known; allow more time"
            print(late if signals.is_late() else signals.word(), file=sys.stderr)
            code = 1 if signals.is_late() else signals.INTERRUPTED
        signals.finish(code, is_process)
    finally:
        if not is_process:
            use_flags(False)
            signals.release()


def open_streams() -> None:
    """Open standard streams that were closed before the process began, so that no other file gets their descriptors.

    Standard input is empty then, and writing to standard output fails as it does on a full disk.
    """
    for name, flags, mode in (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _escape_unknown_characters() -> None:
    """Write characters outside the encoding of standard output as escapes, as standard error does."""
    if getattr(sys.stdout, "errors", None) == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
