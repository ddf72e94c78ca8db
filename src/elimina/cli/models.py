"""Reading models by their suffix, those of constraints and of agents included, with the notices of the library."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from elimina.cli.help import Decorated, option
from elimina.errors import InputError
from elimina.io import read
from elimina.io.files import suffix_of

if TYPE_CHECKING:
    from elimina.model import Model


_logger = logging.getLogger("elimina")


class _Echo(logging.Handler):
    """Writer of a line for each notice, on the present standard error (which may have been redirected)."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        click.echo(f"elimina: {self.format(record)}", err=True)


def show_notices(level: int = logging.WARNING) -> None:
    """Write the library's notices from a level on to standard error."""
    if not any(isinstance(handler, _Echo) for handler in _logger.handlers):
        _logger.addHandler(_Echo())
    _logger.setLevel(level)


def reading_options(command: Decorated) -> Decorated:
    """Add the options of commands that read models: ``--no-check``, whose value is ``no_check``, and ``-v``."""
    check = option(
        "--no-check", is_flag=True, group="expert", help="Accept distributions that do not sum to 1 as they are."
    )
    return check(verbose_option(command))


def verbose_option(command: Decorated) -> Decorated:
    """Add ``-v``."""
    add = option(
        "-v",
        "--verbose",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_be_verbose,
        group="output",
        help="Log what is done and why, on standard error.",
    )
    return add(command)


def _be_verbose(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        show_notices(logging.INFO)


Command = TypeVar("Command", bound=Callable[..., Any])

_ELSEWHERE = {
    "mzn": "run 'elimina install-minizinc' once, then 'minizinc --solver elimina' on this file; to solve a small model "
    "by elimina solve, compile it to a .fzn file first ('minizinc -c')",
    "tsp": "use 'elimina tsp'",
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
