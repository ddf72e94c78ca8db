"""Command ``elimina sample``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from elimina import api
from elimina.cli import signals
from elimina.cli.grouped_options import Command, WholeNumber, option
from elimina.cli.model_input import explaining, read_with_total, reading_options, source_of, source_option
from elimina.cli.options import (
    check_writable,
    evidence_option,
    format_for,
    format_options,
    naming_time_limit,
    output_option,
    sampling_options,
    time_limit_option,
)
from elimina.cli.question_inputs import call_options, evidence_of
from elimina.io.files import save
from elimina.methods.samples import Samples, check_samples_file
from elimina.strategies.call import Call


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@option("-n", "--count", type=WholeNumber(min=0), required=True, metavar="N", help="Number of samples.")
@evidence_option
@option(
    "--seed",
    "sample_seed",
    type=WholeNumber(min=0),
    metavar="N",
    help="Random seed of the samples.  [default: a new one each time]",
)
@option("--exact", is_flag=True, help="Fail where exact samples do not fit, instead of drawing weighted ones.")
@sampling_options
@time_limit_option
@format_options("csv", "json")
@output_option("File for the samples, .csv, .csv.gz or .csv.xz; .json means --json.")
@source_option
@reading_options
def sample(
    file: str,
    count: int,
    sample_seed: int | None,
    time_limit: float | None,
    format_: str,
    output: str | None,
    no_check: bool,
    **options: Any,
) -> None:
    """Draw samples of all variables of the probability model in FILE.

    Prints a row for each sample and a column for each variable. Samples are exact where the messages of an elimination
    fit into memory. Otherwise they have weights: the last column, log_weight, has the natural logarithm of each, and a
    line on standard error has the effective number of exact samples.
    """
    started = time.monotonic()
    if output is not None:
        check_writable(Path(output), file, options["order"], *options["evidence"])
        if format_for(output, format_) == "csv":
            check_samples_file(Path(output))
    file = source_of(file)
    model, total = Call("read", time_limit).result(lambda: read_with_total(file, no_check=no_check))
    reading = time.monotonic() - started
    with explaining(total):
        asked, evidence = call_options(options, model), evidence_of(options["evidence"], model)
    remaining = signals.remaining(time_limit, reading)
    with naming_time_limit(time_limit, reading):
        samples = api.sample(
            model,
            count,
            evidence=evidence,
            seed=sample_seed,
            time_limit=remaining,
            options=asked,
        )
    _write(samples, output, format_for(output, format_))
    if not samples.is_exact:
        worth = f"about {samples.effective_size:,.0f} exact ones"
        click.echo(f"elimina: the {count:,} samples are weighted, and worth {worth}", err=True)


def _write(samples: Samples, output: str | None, format_: str) -> None:
    if format_ == "json":
        text = samples.to_json() + "\n"
        if output is None:
            click.echo(text, nl=False)
        else:
            save(Path(output), [text])
    elif output is None:
        for chunk in samples.csv_chunks():
            click.echo(chunk, nl=False)
    else:
        samples.save(output)
