"""Command ``elimina tsp``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.cli import signals
from elimina.cli.help import Command, option
from elimina.cli.options import check_writable, format_options, number_option, seconds_of
from elimina.cli.terminal import labelled, show
from elimina.planning.plan import count_text, seconds_text
from elimina.result import Bounds, Result, with_reading

if TYPE_CHECKING:
    from elimina.cp.tsp import Known


@click.command(cls=Command, short_help="Find a shortest tour of a travelling salesman problem.")
@click.argument("file", type=click.Path())
@option(
    "--time-limit", type=seconds_of, metavar="SECONDS", group="limits", help="Time limit in seconds, reading included."
)
@number_option("--seed", most=2**62, group="expert", help="Random seed of the local search.")
@format_options("human", "json")
@option(
    "-o", "--output", type=click.Path(), metavar="TOUR", group="output", help="File for the tour, in TSPLIB format."
)
def tsp(file: str, time_limit: float | None, seed: int, format_: str, output: str | None) -> None:
    """Find a shortest tour of the symmetric TSPLIB problem in FILE (.tsp; also .gz, .xz), and prove it shortest.

    Tours and bounds are printed as they improve. The run ends with a proof, at the time limit or at Ctrl-C.
    """
    from elimina.cp.tsp import solve_tsp
    from elimina.cp.tsplib import read_tsp, write_tour

    started = time.monotonic()
    if time_limit is not None:
        signals.alarm(time_limit)
    if output is not None:
        check_writable(Path(output))
    problem = read_tsp(file)
    read = time.monotonic() - started
    in_json = format_ == "json"
    left = None if time_limit is None else max(0.0, time_limit - read)
    found = solve_tsp(problem, time_limit=left, seed=seed, on_known=(lambda known: None) if in_json else _show)
    with signals.deferred():
        result = signals.attributed(with_reading(found, read))
        if output is not None:
            write_tour(output, problem.name, [city - 1 for city in result.tour or ()], int(result.value or 0))
        if in_json:
            click.echo(result.to_json())
        else:
            show(_human(result, output is None))


def _show(known: Known) -> None:
    bound = "unknown" if known.bound is None else str(known.bound)
    click.echo(f"{known.seconds:8.2f} s  tour {known.length}  bound {bound}")


def _human(result: Result, with_tour: bool) -> str:
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
