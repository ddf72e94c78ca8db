"""Texts on a terminal: the help, with options in groups, answers with bold labels, and traces of bounds."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from elimina.errors import InputError

if TYPE_CHECKING:
    from elimina.result import Bounds

_logger = logging.getLogger("elimina")
_LABEL = re.compile(r"([A-Za-z][\w, ]*:) +")
_LEAST_WIDTH = 40
"""Least width in characters; a narrower terminal breaks lines itself."""


class _Echo(logging.Handler):
    """Writer of a line for each notice, on the current standard error, even if redirected."""

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


@contextlib.contextmanager
def tracing(path: str | None) -> Iterator[Callable[[Bounds], None]]:
    """Yield a function that writes each improvement at once, as a line with a JSON object; or nothing without a path.

    Raises:
        InputError: The file cannot be written.
    """
    if path is None:
        yield lambda bounds: None
        return
    last: list[tuple[int | float | None, int | float | None]] = []
    try:
        with open(path, "w") as file:

            def write_bounds(bounds: Bounds) -> None:
                if last[-1:] != [bounds[1:3]]:
                    last.append(bounds[1:3])
                    file.write(json.dumps(bounds._asdict()) + "\n")
                    file.flush()

            yield write_bounds
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def read_trace(path: str) -> list[Bounds]:
    """Read a trace that ``tracing`` wrote.

    Raises:
        InputError: The file cannot be read, or is not a trace.
    """
    from elimina.result import Bounds

    try:
        with open(path) as file:
            trace = [Bounds(**json.loads(line)) for line in file if line.strip()]
        numbers = [x for bounds in trace for x in (bounds.seconds, *(end for end in bounds[1:3] if end is not None))]
        if not {type(x) for x in numbers} <= {int, float}:
            raise TypeError
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        form = "a JSON object with seconds, lower and upper on each line"
        raise InputError(f"{path} is not a trace of bounds, {form}; elimina solve --trace writes one") from error
    return trace


Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Group = Literal["common", "limits", "network", "output", "expert"]

_HEADINGS: dict[Group, str] = {
    "common": "Options",
    "limits": "Limits",
    "network": "Simulated network",
    "output": "Output",
    "expert": "Expert options",
}


class Option(click.Option):
    """An option in a group of the help, given once unless it takes several values.

    Args:
        names: Its names, as of ``click.Option``.
        group: Group under whose heading the help shows it.
        settings: Further arguments of ``click.Option``.
    """

    def __init__(self, names: Any, group: Group = "common", **settings: Any) -> None:
        super().__init__(names, **settings)
        self.group = group

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make the parser keep all values: by itself, it keeps only the last one."""
        is_multiple, self.multiple = self.multiple, self.multiple or not self.is_flag
        super().add_to_parser(parser, ctx)
        self.multiple = is_multiple

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Read the option; different values of an option with one value are an error."""
        values = () if self.multiple or self.is_flag or self.name is None else opts.get(self.name, ())
        if values:
            first = values[0]
            other = next((value for value in values if value != first), None)
            if other is not None and not ctx.resilient_parsing:
                raise click.UsageError(
                    f"{self.opts[0]} is given twice, as {first!r} and as {other!r}; give it once", ctx=ctx
                )
            opts = {**opts, str(self.name): values[-1]}
        return super().handle_parse_result(ctx, opts, args)

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the default without the range of numbers, which only errors state."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = partial(click.option, cls=Option)


def together(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds several options, in the order of the help."""

    def add(command: Decorated) -> Decorated:
        for add_option in reversed(options):
            command = add_option(command)
        return command

    return add


class WholeNumber(click.IntRange):
    """A whole number within bounds."""

    name = "whole number"


class Share(click.FloatRange):
    """A number from 0 to 1."""

    name = "number from 0 to 1"

    def __init__(self) -> None:
        super().__init__(0, 1)


class Command(click.Command):
    """A command whose help shows options in groups."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters with ``--help-all``, which is hidden if there are no expert options."""
        parameters = super().get_params(ctx)
        return [*parameters, _help_all(is_hidden=not self._in_group(parameters, "expert"))]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the tasks, if there is ``--task``, and the groups of options; expert ones only for ``--help-all``."""
        parameters = self.get_params(ctx)
        if any(parameter.name == "task" for parameter in parameters):
            from elimina.problem.tasks import DESCRIPTIONS

            with formatter.section("Tasks"):
                formatter.write_dl(
                    [
                        (", ".join([task, *description.aliases]), description.text)
                        for task, description in DESCRIPTIONS.items()
                    ]
                )
        for group, heading in _HEADINGS.items():
            records = [description.get_help_record(ctx) for description in self._in_group(parameters, group)]
            rows = [record for record in records if record is not None]
            if rows and (group != "expert" or ctx.meta.get(__name__)):
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def _in_group(self, parameters: list[click.Parameter], group: Group) -> list[click.Parameter]:
        return [
            parameter
            for parameter in parameters
            if isinstance(parameter, click.Option) and getattr(parameter, "group", "common") == group
        ]


class CommandGroup(click.Group):
    """A group of commands with ``--help-all``."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all``."""
        return [*super().get_params(ctx), _help_all(is_hidden=True)]


def _show_all(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[__name__] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


def _help_all(is_hidden: bool) -> click.Option:
    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        hidden=is_hidden,
        help="Show the expert options, too, and exit.",
    )
