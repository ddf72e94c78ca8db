"""The command line."""

from __future__ import annotations

import sys

from elimina.cli import signals


def main(arguments: list[str] | None = None) -> None:
    """Run the command line.

    Its exit codes: 0 finished, 1 error, 2 usage, 130 ended by SIGINT, 143 ended by SIGTERM.

    Args:
        arguments: Those of a command that a program runs within its own process, which gets its handlers of signals
            back; None: those of this process.
    """
    try:
        _main(arguments)
    finally:
        if arguments is not None:
            signals.release()


def _main(arguments: list[str] | None) -> None:
    try:
        signals.catch()
        with signals.deferred():
            from elimina.cli.commands import run
        signals.check()
        code = run(arguments)
    except KeyboardInterrupt:
        signals.end()
        late = "elimina: the time limit passed before anything was known; allow more time"
        print(late if signals.is_late() else signals.word(), file=sys.stderr)
        code = 1 if signals.is_late() else signals.INTERRUPTED
    signals.finish(code, is_process=arguments is None)
