"""Commands of ``elimina generate``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elimina.cli.grouped_options import Command, CommandGroup, Decorated, option, together
from elimina.cli.model_output import save
from elimina.cli.options import (
    number_option,
    share_option,
)
from elimina.dcop import Problem
from elimina.dcop.formats import FORMATS
from elimina.errors import InputError
from elimina.generate import coloring_model, grid_model, maximized, random_model, scale_free_model
from elimina.io.files import suffix_of
from elimina.model.model import Model
from elimina.number_texts import counted

if TYPE_CHECKING:
    pass


def _share(name: str, default: float, help: str) -> Callable[[Decorated], Decorated]:
    return share_option(name, default=default, show_default=True, help=help)


@click.group(cls=CommandGroup)
def generate() -> None:
    """Write a random WCSP with costs from 0 to 100 (Fioretto et al. 2018, section 8.1).

    A share p2 of each table is forbidden. FILE is a model, or a distributed problem if it ends in .yaml, .json or .xml.
    """


_shared = together(
    number_option(
        "--agents",
        default=None,
        minimum=1,
        help="Number of agents of a distributed problem.  [default: one for each variable]",
    ),
    number_option("--seed", help="Random seed. Equal seeds give equal problems."),
)
_common = together(
    number_option("-d", "--domain", default=10, minimum=1, help="Number of values of each variable."),
    _share("--p2", 0.5, "Share of forbidden pairs in each table."),
    option("--maximize", is_flag=True, help="Gains to maximise instead of costs to minimise."),
    _shared,
)


@generate.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, minimum=1, help="Number of variables.")
@_share("--p1", 0.3, "Share of the pairs of variables that have a table.")
@_common
def random(file: str, variables: int, p1: float, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """Write a problem on a connected random graph."""
    _save(random_model(variables, domain, p1, p2, seed=seed), file, **rest)


@generate.command(cls=Command, short_help="Write a problem on a scale-free graph.")
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, minimum=2, help="Number of variables.")
@_common
def scalefree(file: str, variables: int, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """Write a problem on a scale-free graph (Barabasi and Albert) with two edges for each new variable."""
    _save(scale_free_model(variables, domain, p2, seed=seed), file, **rest)


@generate.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("--side", default=10, minimum=1, help="Number of rows.")
@number_option("--columns", default=None, minimum=1, help="Number of columns.  [default: as many as rows]")
@_common
def grid(file: str, side: int, columns: int | None, domain: int, p2: float, seed: int, **rest: Any) -> None:
    """Write a problem on a grid."""
    _save(grid_model(side, domain, p2, seed=seed, columns=columns), file, **rest)


@generate.command(cls=Command, short_help="Write a colouring problem on a random graph.")
@click.argument("file", type=click.Path())
@number_option("-n", "--variables", default=10, minimum=1, help="Number of variables.")
@_share("--p1", 0.3, "Share of the pairs of variables that have a table.")
@number_option("-d", "--domain", default=3, minimum=1, help="Number of colours.")
@_shared
def coloring(file: str, variables: int, p1: float, domain: int, seed: int, agents: int | None) -> None:
    """Write the colouring of a random graph, with a cost of 1 for each clash."""
    _save(coloring_model(variables, domain, p1, seed=seed), file, agents)


def _save(model: Model, file: str, agents: int | None, maximize: bool = False) -> None:
    if agents is not None and suffix_of(Path(file)) not in FORMATS:
        raise InputError(f"{file} cannot hold agents: leave --agents out, or name a .yaml, .json or .xml file")
    if maximize:
        model = maximized(model)
    save(model, file, Problem.from_model(model, agents))
    click.echo(f"{file}: {counted(len(model.variables), 'variable')}, {counted(len(model.factors), 'function')}")
