"""``elimina generate``: random instances of the families of the GpuBE papers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from elimina.cli.options import number_option
from elimina.errors import InputError
from elimina.model import Model

Command = TypeVar("Command", bound=Callable[..., Any])


def _share(name: str, default: float, help: str) -> Callable[[Command], Command]:
    kind = click.FloatRange(0, 1)
    return click.option(name, type=kind, default=default, show_default=True, metavar="SHARE", help=help)


@click.group(short_help="Write a random problem.")
def generate() -> None:
    """Write a random WCSP: costs 0..100, a share p2 of each table forbidden (Fioretto et al. 2018, section 8.1).

    FILE is a model or, as .yaml, .json or .xml, a distributed problem.
    """


def _shared(command: Command) -> Command:
    for option in (
        number_option("--seed", help="The same one, the same problem."),
        click.option(
            "--agents",
            type=click.IntRange(min=1),
            metavar="N",
            help="Agents of a distributed problem, which get the variables in turn; one a variable if not given.",
        ),
    ):
        command = option(command)
    return command


def _common(command: Command) -> Command:
    for option in (
        _shared,
        click.option("--maximize", is_flag=True, help="Gains to be maximised instead of costs."),
        _share("--p2", 0.5, "Share of forbidden pairs."),
        number_option("-d", "--domain", default=10, least=1, help="Values of each variable."),
    ):
        command = option(command)
    return command


@generate.command()
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, least=1, help="Number of variables.")
@_share("--p1", 0.3, "Density of the graph.")
@_common
def random(file: str, variables: int, p1: float, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """A connected random graph."""
    from elimina.generate import random_model

    _save(random_model(variables, domain, p1, p2, seed=seed), file, **rest)


@generate.command(short_help="A scale-free graph.")
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, least=2, help="Number of variables.")
@_common
def scalefree(file: str, variables: int, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """A scale-free graph (Barabasi and Albert), two edges for each new variable."""
    from elimina.generate import scale_free_model

    _save(scale_free_model(variables, domain, p2, seed=seed), file, **rest)


@generate.command()
@click.argument("file", type=click.Path())
@number_option("--side", default=10, least=1, help="Rows, and columns too.")
@click.option("--columns", type=click.IntRange(min=1), metavar="N", help="Columns, if not as many as rows.")
@_common
def grid(file: str, side: int, columns: int | None, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """A grid."""
    from elimina.generate import grid_model

    _save(grid_model(side, domain, p2, seed=seed, columns=columns), file, **rest)


@generate.command()
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, least=1, help="Number of variables.")
@_share("--p1", 0.3, "Density of the graph.")
@number_option("-d", "--domain", default=3, least=1, help="Number of colours.")
@_shared
def coloring(file: str, variables: int, p1: float, domain: int, seed: int, agents: int | None) -> None:
    """Colouring of a random graph: a cost of 1 for each clash."""
    from elimina.generate import coloring_model

    _save(coloring_model(variables, domain, p1, seed=seed), file, agents)


def _save(model: Model, file: str, agents: int | None, maximize: bool = False) -> None:
    from elimina.cli.convert import save
    from elimina.dcop import Problem
    from elimina.dcop.formats import FORMATS
    from elimina.generate import maximized
    from elimina.io.files import suffix_of

    if agents is not None and suffix_of(Path(file)) not in FORMATS:
        raise InputError(f"{file} holds no agents; leave out --agents, or name a .yaml, .json or .xml file")
    if maximize:
        model = maximized(model)
    save(model, file, Problem.from_model(model, agents))
    click.echo(f"{file}: {len(model.variables)} variables, {len(model.factors)} functions")
