"""Answers for people, folded with bold labels on terminals, and bounds as they improve, in a file."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator

import click

from elimina.errors import InputError
from elimina.result import Bounds

_LABEL = re.compile(r"([A-Za-z][\w, ]*:) +")
_LEAST_WIDTH = 40
"""Characters; a narrower terminal breaks lines itself."""


def labelled(rows: Iterable[tuple[str, str]]) -> str:
    """Return texts behind their labels, a line each."""
    return "\n".join(f"{name + ':':12}{text}" for name, text in rows)


def show(text: str) -> None:
    """Print an answer: on a terminal, folded to its width, with bold labels unless ``NO_COLOR`` is set."""
    if sys.stdout.isatty():
        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        text = folded(text, shutil.get_terminal_size().columns, has_colour)
    click.echo(text)


def folded(text: str, width: int, has_colour: bool) -> str:
    """Return text whose labelled lines are folded; what follows stands below the first line's text.

    Args:
        text: Lines, some with a label such as ``value:      12``.
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


@contextlib.contextmanager
def tracing(path: str | None) -> Iterator[Callable[[Bounds], None]]:
    """Write each improvement as a JSON object on a line of its own, at once; None: nowhere.

    Raises:
        InputError: The file cannot be written.
    """
    if path is None:
        yield lambda known: None
        return
    last: list[tuple[int | float | None, int | float | None]] = []
    try:
        with open(path, "w") as file:

            def note(known: Bounds) -> None:
                if last[-1:] != [known[1:3]]:
                    last.append(known[1:3])
                    file.write(json.dumps(known._asdict()) + "\n")
                    file.flush()

            yield note
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def read_trace(path: str) -> list[Bounds]:
    """Read a trace that ``tracing`` wrote.

    Raises:
        InputError: The file cannot be read, or is none.
    """
    try:
        with open(path) as file:
            return [Bounds(**json.loads(line)) for line in file if line.strip()]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} is not a trace of bounds ({error}); elimina solve --trace writes one") from error
