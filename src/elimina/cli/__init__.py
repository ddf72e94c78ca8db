"""The command line."""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit with 0 (finished), 1 (error), 2 (usage) or 130 (interrupted)."""
    try:
        # Imported here, so that an interrupt while NumPy loads is one line too.
        from elimina.cli.commands import run

        code = run(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)
