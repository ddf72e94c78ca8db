"""Command ``elimina cp``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.answer_texts import assignment_text, labelled
from elimina.cli import signals
from elimina.cli.grouped_options import Command, option
from elimina.cli.model_input import source_of, source_option, verbose_option
from elimina.cli.model_output import write_answer
from elimina.cli.options import (
    check_writable,
    choice_option,
    format_for,
    format_options,
    naming_time_limit,
    number_option,
    output_option,
    time_limit_option,
)
from elimina.cp import SearchOptions, read
from elimina.number_texts import count_text, seconds_text
from elimina.planning.option_values import read_gap
from elimina.result import Result, outcome_rows
from elimina.running.phases import with_reading

if TYPE_CHECKING:
    pass


DEVICES = ("auto", "cpu", "cuda")


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@number_option("--threads", default=1, minimum=1, help="Number of threads of the search.")
@option("--free", is_flag=True, help="Search by past conflicts alone, with restarts.")
@option("--lns", is_flag=True, help="Alternate search near the best solution with search everywhere.")
@choice_option(
    "--device", choices=DEVICES, metavar="DEVICE", help="Device that filters AllDifferent: auto, cpu or cuda."
)
@option(
    "--gap",
    type=read_gap,
    default=0.0,
    metavar="GAP",
    group="limits",
    help="Stop once the bounds are this close (relative: 0.01 or 1%).",
)
@time_limit_option
@number_option("--seed", maximum=2**62, group="expert", help="Random seed of the search.")
@format_options("human", "json")
@output_option()
@source_option
@verbose_option
def cp(
    file: str,
    threads: int,
    free: bool,
    lns: bool,
    device: str,
    gap: float,
    time_limit: float | None,
    seed: int,
    format_: str,
    output: str | None,
) -> None:
    """Find a solution, or the best one, of the constraints in FILE: .fzn, .xml (XCSP3) or .opb; also .gz, .xz.

    The run ends with a proof, at the time limit or at Ctrl-C, and prints the best solution. Search annotations of
    FlatZinc are ignored; fzn-elimina follows them, and prints all solutions.
    """
    started = time.monotonic()
    if output is not None:
        check_writable(Path(output), file)
    model = read(source_of(file))
    reading = time.monotonic() - started
    with naming_time_limit(time_limit, reading):
        result = model.solve(
            time_limit=signals.remaining(time_limit, reading),
            threads=threads,
            seed=seed,
            device=device,  # type: ignore[arg-type]
            options=SearchOptions(free=free, lns=lns, gap=gap),
        )
    with signals.deferred():
        result = signals.attributed(with_reading(result, reading))
        write_answer(result, _solution_text, format_for(output, format_), output)


def _solution_text(result: Result) -> str:
    rows = outcome_rows(result)
    if "nodes" in result.stats:
        rows.append(("nodes", f"{count_text(result.stats['nodes'])}, {count_text(result.stats['failures'])} failures"))
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    if result.assignment:
        rows.append(("assignment", assignment_text(result.assignment)))
    return labelled(rows)
