"""Reading models by their suffix, those of constraints and of agents included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elimina.cli.help import option
from elimina.errors import InputError
from elimina.io import read
from elimina.io.files import suffix_of

if TYPE_CHECKING:
    from elimina.model import Model

Command = TypeVar("Command", bound=Callable[..., Any])

_ELSEWHERE = {
    "mzn": "'minizinc --solver elimina' solves it once 'elimina install-minizinc' has run, and with -c makes a .fzn "
    "file of it, which may be small enough for this command",
    "tsp": "'elimina tsp' finds its tours",
}
"""Suffixes of problems that other commands solve."""


def source_option(command: Command) -> Command:
    """Add ``--from``, the format of a model on standard input."""
    return option(
        "--from",
        metavar="FORMAT",
        group="expert",
        expose_value=False,
        callback=_note_format,
        help="Format of a model on standard input (FILE is -): a suffix, such as wcsp or uai.gz.",
    )(command)


def _note_format(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[__name__] = value


def source_of(path: str) -> str:
    """Return the name of a source: that of its file, or ``-.FORMAT`` of standard input.

    Raises:
        InputError: Standard input lacks its format, or a file has one besides its suffix.
    """
    context = click.get_current_context(silent=True)
    form = None if context is None else context.meta.get(__name__)
    if path != "-":
        if form is not None:
            raise InputError(f"--from {form} is for standard input (-); the suffix of {path} names its format")
        return path
    if form is None:
        raise InputError("standard input has no suffix: name its format by --from, such as --from wcsp")
    return f"-.{form.removeprefix('.')}"


def read_model(path: str, *, no_check: bool = False) -> Model:
    """Read a model; constraints become tables, and of a distributed problem only the costs count.

    Args:
        path: The file, as ``source_of`` names it.
        no_check: True if a network's probabilities are taken as they are.

    Raises:
        InputError: It cannot be read, or a constraint's table would be too large.
    """
    suffix = suffix_of(Path(path))
    if suffix in _ELSEWHERE:
        raise InputError(f"{path} is not a graphical model: {_ELSEWHERE[suffix]}")
    if suffix in ("fzn", "opb", "xml"):
        from elimina.cp.files import is_of_constraints
        from elimina.cp.files import read as read_constraints

        if is_of_constraints(path):
            return read_constraints(path).to_model()
    if suffix in ("yaml", "yml", "json", "xml"):
        from elimina import dcop
        from elimina.dcop.formats import is_distributed

        if is_distributed(path):
            return dcop.read(path).model
    return read(path, check=not no_check)
