"""Command ``elimina convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.cli.help import Command
from elimina.cli.models import read_model, source_of, source_option
from elimina.cli.notices import reading_options

if TYPE_CHECKING:
    from elimina.dcop import Problem
    from elimina.model import Model


@click.command(cls=Command, short_help="Write a model in another format.")
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@source_option
@reading_options
def convert(source: str, target: str, no_check: bool) -> None:
    """Write the model in SOURCE to TARGET. The suffixes name the formats (.wcsp, .uai, .cfn, .bif, .xmlbif, .erg).

    SOURCE may also be .net, .xdsl or a small .fzn (FlatZinc). Either file may end in .gz or .xz.
    Costs become probabilities exp(-cost); probabilities become costs -ln(p), rounded.

    Distributed problems are .yaml (pyDCOP), .json and .xml (FRODO's XCSP; XDisCSP is read only). A model without agents
    gets one for each variable. A probability model in an .xml file is XMLBIF.
    """
    from elimina import dcop
    from elimina.dcop.formats import is_distributed

    source = source_of(source)
    if is_distributed(source):
        problem = dcop.read(source)
        save(problem.model, target, problem)
    else:
        save(read_model(source, no_check=no_check), target)


def save(model: Model, target: str, problem: Problem | None = None) -> None:
    """Write a model, or a distributed problem if the suffix is that of one."""
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
