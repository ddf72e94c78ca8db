"""Texts on a terminal: answers with bold labels, folded to its width, and the library's notices."""

from __future__ import annotations

import logging
import os
import re
import sys
import textwrap

import click

_logger = logging.getLogger("elimina")
_LABEL = re.compile(r"([A-Za-z][\w, ]*:) +")
_LEAST_WIDTH = 40
"""Lines are folded to at least this many characters. A narrower terminal breaks them itself."""


class _Echo(logging.Handler):
    """Handler that writes each notice as a line to the current standard error, even if it has been redirected."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        click.echo(f"elimina: {self.format(record)}", err=True)


def show_notices(level: int = logging.WARNING) -> None:
    """Write the library's notices from a level on to standard error."""
    if not any(isinstance(handler, _Echo) for handler in _logger.handlers):
        _logger.addHandler(_Echo())
    _logger.setLevel(level)


def show(text: str) -> None:
    """Print an answer: on a terminal, folded to its width, with bold labels unless ``NO_COLOR`` is set."""
    if sys.stdout.isatty():
        import shutil

        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        text = folded(text, shutil.get_terminal_size().columns, has_colour)
    click.echo(text)


def folded(text: str, width: int, has_colour: bool) -> str:
    """Return text with folded lines; continuations align with the text after the label.

    Args:
        text: Lines, some with a label, such as ``value:      12``.
        width: Characters in a line.
        has_colour: True if labels are bold.
    """
    return "\n".join(_line(line, max(width, _LEAST_WIDTH), has_colour) for line in text.splitlines())


def _line(line: str, width: int, has_colour: bool) -> str:
    label = _LABEL.match(line)
    if label is None:
        return line
    if len(line) > width:
        indent = " " * label.end()
        body = textwrap.wrap(line[label.end() :], width - label.end(), break_long_words=False, break_on_hyphens=False)
        line = label[0] + f"\n{indent}".join(body)
    return click.style(label[1], bold=True) + line[label.end(1) :] if has_colour else line
