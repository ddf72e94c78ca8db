"""``elimina convert``."""

from __future__ import annotations

import click

from elimina.io import read, write


@click.command(short_help="Write a model in another format.")
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
def convert(source: str, target: str) -> None:
    """Write the model in SOURCE as TARGET; suffixes name the formats (.wcsp, .uai, .cfn, .bif, .xmlbif, .erg).

    SOURCE may also be .net or .xdsl, and either may end in .gz or .xz.
    Costs become probabilities exp(-cost) and the other way round, which may round.
    """
    write(read(source), target)
