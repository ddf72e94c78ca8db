"""``elimina plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from elimina.io import read


@click.command(short_help="Draw a model or its junction tree.")
@click.argument("file", type=click.Path())
@click.option(
    "--what",
    type=click.Choice(("graph", "tree")),
    default="graph",
    show_default=True,
    help="The network, or its junction tree with clique sizes as areas.",
)
@click.option("-o", "--output", type=click.Path(), required=True, metavar="PICTURE", help="A .svg, .png or .pdf file.")
def plot(file: str, what: Any, output: str) -> None:
    """Draw the model in FILE (any format that solve reads)."""
    from elimina.viz import plot

    plot(read(file), output, what, title=Path(file).name)
