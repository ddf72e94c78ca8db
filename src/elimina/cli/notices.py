"""Notices of the library on standard error, and the options of commands that read models."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_logger = logging.getLogger("elimina")


class _Echo(logging.Handler):
    """Writes each notice as a line; standard error is looked up anew each time, for it may have been redirected."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"elimina: {self.format(record)}", err=True)


def show_notices(level: int = logging.WARNING) -> None:
    """Write the library's notices from a level on to standard error."""
    if not any(isinstance(handler, _Echo) for handler in _logger.handlers):
        _logger.addHandler(_Echo())
    _logger.setLevel(level)


def reading_options(command: Command) -> Command:
    """The options of commands that read models: ``--no-check``, whose value is ``no_check``, and ``-v``."""
    for option in (
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_be_verbose,
            help="Say which probabilities were normalised when the model was read.",
        ),
        click.option(
            "--no-check", is_flag=True, help="Take a network's probabilities as they are, whatever their sums."
        ),
    ):
        command = option(command)
    return command


def _be_verbose(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        show_notices(logging.INFO)
