"""``elimina generate``: random instances of the families of the GpuBE papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from elimina.io import write
from elimina.model import Model

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(short_help="Write a random problem.")
def generate() -> None:
    """Write a random WCSP: costs 0..100, a share p2 of each table forbidden (Fioretto et al. 2018, section 8.1)."""


def _common(command: Command) -> Command:
    for option in (
        click.option(
            "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same one, the same problem."
        ),
        click.option(
            "--p2", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share of forbidden pairs."
        ),
        click.option(
            "-d", "--domain", type=click.IntRange(min=1), default=10, show_default=True, help="Values of each variable."
        ),
    ):
        command = option(command)
    return command


@generate.command()
@click.argument("file", type=click.Path())
@click.option(
    "-n", "--variables", type=click.IntRange(min=1), default=10, show_default=True, help="Number of variables."
)
@click.option("--p1", type=click.FloatRange(0, 1), default=0.3, show_default=True, help="Density of the graph.")
@_common
def random(file: str, variables: int, p1: float, domain: int, p2: float, seed: int) -> None:
    """A connected random graph."""
    from elimina.generate import random_model

    _save(random_model(variables, domain, p1, p2, seed=seed), file)


@generate.command(short_help="A scale-free graph.")
@click.argument("file", type=click.Path())
@click.option(
    "-n", "--variables", type=click.IntRange(min=2), default=10, show_default=True, help="Number of variables."
)
@_common
def scalefree(file: str, variables: int, domain: int, p2: float, seed: int) -> None:
    """A scale-free graph (Barabasi and Albert), two edges for each new variable."""
    from elimina.generate import scale_free_model

    _save(scale_free_model(variables, domain, p2, seed=seed), file)


@generate.command()
@click.argument("file", type=click.Path())
@click.option("--side", type=click.IntRange(min=1), default=10, show_default=True, help="Rows, and columns too.")
@click.option("--columns", type=click.IntRange(min=1), help="Columns, if not as many as rows.")
@_common
def grid(file: str, side: int, columns: int | None, domain: int, p2: float, seed: int) -> None:
    """A grid."""
    from elimina.generate import grid_model

    _save(grid_model(side, domain, p2, seed=seed, columns=columns), file)


def _save(model: Model, file: str) -> None:
    write(model, file)
    click.echo(f"{file}: {len(model.variables)} variables, {len(model.factors)} functions")
