"""Notices of the library on standard error, and the options of commands that read models."""

from __future__ import annotations

import logging

import click

from elimina.cli.help import Decorated, option

_logger = logging.getLogger("elimina")


class _Echo(logging.Handler):
    """Writer of a line for each notice, on what is standard error at that time: it may have been redirected."""

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
