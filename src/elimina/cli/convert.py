"""Command ``elimina convert``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina import dcop
from elimina.cli.grouped_options import Command
from elimina.cli.model_input import read_model, reading_options, source_of, source_option
from elimina.cli.model_output import save
from elimina.cli.options import (
    check_no_input,
)
from elimina.io.formats import format_of

if TYPE_CHECKING:
    pass


@click.command(cls=Command)
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@source_option
@reading_options
def convert(source: str, target: str, no_check: bool) -> None:
    """Write the model in SOURCE to TARGET. The suffixes name the formats (.wcsp, .uai, .cfn, .bif, .xmlbif, .erg).

    SOURCE may also be .net, .xdsl, .cnf, .wcnf, .qpbo, or a small .fzn, .opb or XCSP3 file. Either file may end in .gz
    or .xz. Costs become probabilities exp(-cost); probabilities become costs -ln(p), rounded.

    Distributed problems are .yaml (pyDCOP), .json and .xml (FRODO's XCSP; XDisCSP is read only). A model without agents
    gets one for each variable. A probability model in an .xml file is XMLBIF.
    """
    check_no_input("TARGET", Path(target), source)
    source = source_of(source)
    form = format_of(Path(source))
    if form is not None and form.content == "distributed problem":
        problem = dcop.read(source)
        save(problem.model, target, problem)
    else:
        save(read_model(source, no_check=no_check), target)
