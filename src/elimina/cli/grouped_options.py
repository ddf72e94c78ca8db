"""Commands whose help shows their options in groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, TypeVar

import click

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
        """Read the option; an option that takes one value may not be given with different values."""
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
        """Return the default without the range of allowed numbers; only errors state the range."""
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
