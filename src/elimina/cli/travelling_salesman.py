"""Command ``elimina tsp``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.answer_texts import labelled
from elimina.cli import signals
from elimina.cli.grouped_options import Command
from elimina.cli.options import (
    check_writable,
    format_options,
    number_option,
    output_option,
    time_limit_option,
)
from elimina.cli.standard_input import input_source
from elimina.cli.terminal import show
from elimina.cp.tsp import TourState, solve_tsp
from elimina.cp.tsplib import read_tsp, write_tour
from elimina.number_texts import count_text, seconds_text
from elimina.result import Bounds, Result
from elimina.running.phases import with_reading

if TYPE_CHECKING:
    pass


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@time_limit_option
@number_option("--seed", maximum=2**62, group="expert", help="Random seed of the local search.")
@format_options("human", "json")
@output_option("File for the tour, in TSPLIB format.", metavar="TOUR")
def tsp(file: str, time_limit: float | None, seed: int, format_: str, output: str | None) -> None:
    """Find a shortest tour of the symmetric TSPLIB problem in FILE (.tsp; also .gz, .xz), and prove it shortest.

    Tours and bounds are printed as they improve. The run ends with a proof, at the time limit or at Ctrl-C.
    """
    started = time.monotonic()
    if time_limit is not None:
        signals.alarm(time_limit)
    if output is not None:
        check_writable(Path(output), file)
    problem = read_tsp(input_source(file, "the problem", "tsp"))
    reading = time.monotonic() - started
    in_json = format_ == "json"
    remaining = signals.remaining(time_limit, reading)
    listener = (lambda state: None) if in_json else _show
    result = solve_tsp(problem, time_limit=remaining, seed=seed, on_improvement=listener)
    with signals.deferred():
        result = signals.attributed(with_reading(result, reading))
        if output is not None:
            write_tour(output, problem.name, [city - 1 for city in result.tour or ()], int(result.value or 0))
        if in_json:
            click.echo(result.to_json())
        else:
            show(_tour_text(result, output is None))


def _show(state: TourState) -> None:
    bound = "unknown" if state.bound is None else str(state.bound)
    click.echo(f"{state.seconds:8.2f} s  tour {state.length}  bound {bound}")


def _tour_text(result: Result, with_tour: bool) -> str:
    rows = [("status", str(result.status)), ("length", str(result.value))]
    if result.status == "bounded":
        gap = Bounds(0.0, result.lower_bound, result.upper_bound).gap
        rows.append(("bound", f"{result.lower_bound} (gap {100 * gap:.3g} %)"))
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    rows.append(("nodes", count_text(result.stats["nodes"])))
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    if with_tour and result.tour is not None:
        rows.append(("tour", " ".join(map(str, result.tour))))
    return labelled(rows)
