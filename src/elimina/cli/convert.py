"""``elimina convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.cli.notices import reading_options

if TYPE_CHECKING:
    from elimina.dcop import Problem
    from elimina.model import Model


@click.command(short_help="Write a model in another format.")
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@reading_options
def convert(source: str, target: str, no_check: bool) -> None:
    """Write the model in SOURCE as TARGET; suffixes name the formats (.wcsp, .uai, .cfn, .bif, .xmlbif, .erg).

    SOURCE may also be .net or .xdsl, and either may end in .gz or .xz.
    A small .fzn (FlatZinc) may be SOURCE, too: its constraints become tables, as far as they fit.
    Costs become probabilities exp(-cost) and the other way round, which may round.

    Distributed problems are .yaml (pyDCOP), .json and .xml (FRODO's XCSP, and XDisCSP to read); an .xml file of a model
    of probabilities is XMLBIF. Without agents, each variable gets one of its own.
    """
    from elimina import dcop
    from elimina.cli.models import read_model
    from elimina.dcop.formats import is_distributed

    if is_distributed(source):
        problem = dcop.read(source)
        save(problem.model, target, problem)
    else:
        save(read_model(source, no_check=no_check), target)


def save(model: Model, target: str, problem: Problem | None = None) -> None:
    """Write a model, as a problem where the suffix is that of distributed problems."""
    from elimina.dcop import Problem, formats
    from elimina.io import convert_sense, write
    from elimina.io.files import suffix_of

    suffix = suffix_of(Path(target))
    if suffix not in formats.FORMATS or (suffix == "xml" and model.sense == "probability"):
        write(model, target)
        return
    if problem is None:
        problem = Problem.from_model(convert_sense(model, "min-cost") if model.sense == "probability" else model)
    formats.write(problem, target)
