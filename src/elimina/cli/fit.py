"""Command ``elimina fit``."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import click

from elimina.cli import signals
from elimina.cli.grouped_options import Command, option
from elimina.cli.model_input import read_model, reading_options, source_of, source_option
from elimina.cli.model_output import check_target, save
from elimina.cli.options import (
    check_writable,
    choice_option,
    file_option,
    naming_time_limit,
    number_option,
    sampling_options,
    time_limit_option,
)
from elimina.cli.question_inputs import call_options, cases_source
from elimina.learning import fit as fit_network
from elimina.methods.parameter_learning import Fit, FitOptions
from elimina.model.model import Model
from elimina.number_texts import counted
from elimina.progress import Progress
from elimina.strategies.call import Call


@click.command(cls=Command)
@click.argument("network", type=click.Path())
@click.argument("data", type=click.Path())
@option(
    "--prior",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="X",
    help="Pseudo-count of each cell; 0: maximum likelihood.",
)
@choice_option(
    "--start",
    choices=("counts", "model"),
    help="First starting tables: from counts of observed families, or those of NETWORK.",
)
@number_option("--restarts", help="Number of further, random starts.")
@number_option("--seed", "fit_seed", help="Random seed of the starts.")
@option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=1e-5,
    show_default=True,
    metavar="X",
    group="limits",
    help="Increase of the log-posterior for each row at which iterations end.",
)
@number_option("--max-iterations", default=100, group="limits", help="Limit on the iterations of each start.")
@option("--ignore-extra", is_flag=True, group="expert", help="Ignore columns of DATA that are not variables.")
@sampling_options
@time_limit_option
@file_option(
    "-o",
    "--output",
    group="output",
    required=True,
    help="File for the fitted network, such as .bif, .xmlbif or .uai.",
)
@source_option
@reading_options
def fit(
    network: str,
    data: str,
    output: str,
    time_limit: float | None,
    no_check: bool,
    **options: Any,
) -> None:
    """Fit the distributions of the Bayesian network in NETWORK to the rows of DATA, a .csv or .parquet file (or -).

    Complete data are counted. Where cells are missing, expectation maximisation finds a local optimum. NETWORK fixes
    the variables, their states and their parents.
    """
    started = time.monotonic()
    check_writable(Path(output), network, data, options["order"])
    check_target(output)
    file = source_of(network)
    model = Call("read", time_limit).result(lambda: read_model(file, no_check=no_check))
    reading = time.monotonic() - started
    with Progress() as progress, naming_time_limit(time_limit, reading):

        def show(best: Fit[Model]) -> None:
            progress.show(f"iteration {best.iterations}, log-likelihood {best.log_likelihood:.6g}", math.inf)

        settings = FitOptions(
            **{name: options[name] for name in ("start", "restarts", "tolerance", "max_iterations", "ignore_extra")},
            seed=options["fit_seed"],
            progress=show if progress.is_possible else None,
            planning=call_options(options, model),
        )
        seconds = signals.remaining(time_limit, reading)
        rows = cases_source(data, "DATA")
        best = fit_network(model, rows, prior=options["prior"], time_limit=seconds, options=settings)
    save(best.model, output)
    ended_by = signals.cause(best.ended_by)
    click.echo(
        f"{counted(best.rows, 'row')}, {best.iterations} iterations ({ended_by}), log-likelihood "
        f"{best.log_likelihood:.10g}"
    )
