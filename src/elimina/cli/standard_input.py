"""Standard input as an input of a command, which ``-`` names."""

from __future__ import annotations

import click

from elimina.errors import InputError


def input_source(source: str, what: str, suffix: str) -> str:
    """Return the name under which an input is read: the file's own, or ``-.SUFFIX`` for standard input.

    Args:
        source: File, or ``-``.
        what: Name of the input, such as ``--cases``.
        suffix: Format of the input if it comes from standard input.

    Raises:
        InputError: Another input of the command is standard input, too.
    """
    if source != "-":
        return source
    context = click.get_current_context(silent=True)
    other = what if context is None else context.meta.setdefault(__name__, what)
    if other != what:
        raise InputError(f"standard input cannot be both {other} and {what}: name a file for one of them")
    return f"-.{suffix}"
