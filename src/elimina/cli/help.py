"""Help of the commands: options in groups; expert options are shown by ``--help-all`` only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import click

from elimina.tasks import DESCRIPTIONS

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
    """An option that belongs to a group of the help.

    Args:
        names: Its names, as of ``click.Option``.
        group: Group under whose heading the help shows it.
        settings: Further arguments of ``click.Option``.
    """

    def __init__(self, names: Any, group: Group = "common", **settings: Any) -> None:
        super().__init__(names, **settings)
        self.group = group

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the default; errors name the range of numbers, which would only lengthen the help."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = partial(click.option, cls=Option)


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
        """Return the parameters, with ``--help-all`` if there are expert options."""
        found = super().get_params(ctx)
        return [*found, _HELP_ALL] if self._in_group(found, "expert") else found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the tasks and the options, a section for each group."""
        found = self.get_params(ctx)
        if any(parameter.name == "task" for parameter in found):
            with formatter.section("Tasks"):
                formatter.write_dl([_task_row(task) for task in DESCRIPTIONS])
        for group, heading in _HEADINGS.items():
            records = [one.get_help_record(ctx) for one in self._in_group(found, group)]
            rows = [record for record in records if record is not None]
            if rows and (group != "expert" or ctx.meta.get(__name__)):
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def _in_group(self, found: list[click.Parameter], group: Group) -> list[click.Parameter]:
        return [one for one in found if isinstance(one, click.Option) and getattr(one, "group", "common") == group]


def _task_row(task: Any) -> tuple[str, str]:
    return ", ".join([task, *DESCRIPTIONS[task].aliases]), DESCRIPTIONS[task].text


def _show_all(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[__name__] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show the expert options, too, and exit.",
)
