"""``elimina tsp``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.cli.options import check_writable, format_options, number_option, seconds_of
from elimina.errors import TimeLimitError
from elimina.planning.plan import count_text, seconds_text

if TYPE_CHECKING:
    from elimina.cp.tsp import Known, TspResult


@click.command(short_help="Find a shortest tour of a travelling salesman problem.")
@click.argument("file", type=click.Path())
@click.option("--time-limit", type=seconds_of, metavar="SECONDS", help="For everything, reading included.")
@number_option("--seed", most=2**62, help="Of the local search.")
@format_options("human", "json", others=", and nothing else")
@click.option("-o", "--output", type=click.Path(), metavar="TOUR", help="Write the tour there, in TSPLIB's format.")
def tsp(file: str, time_limit: float | None, seed: int, format_: str, output: str | None) -> None:
    """Find a shortest tour of the symmetric TSPLIB problem in FILE (.tsp; also .gz, .xz), and prove that it is one.

    Tours and bounds are printed as they improve. Without a time limit it ends with the proof, or by Ctrl-C.
    """
    from elimina.cp.tsp import solve_tsp
    from elimina.cp.tsplib import read_tsp, write_tour

    started = time.monotonic()
    if output is not None:
        check_writable(Path(output))
    problem = read_tsp(file)
    if time_limit is not None:
        time_limit -= time.monotonic() - started
        if time_limit <= 0:
            raise TimeLimitError("the time limit passed while the problem was read; allow more time")
    in_json = format_ == "json"
    result = solve_tsp(problem, time_limit=time_limit, seed=seed, on_known=(lambda known: None) if in_json else _show)
    if output is not None:
        write_tour(output, problem.name, result.tour, result.length)
    click.echo(json.dumps({"name": problem.name, **result.to_dict()}) if in_json else _human(result, output is None))


def _show(known: Known) -> None:
    bound = "unknown" if known.bound is None else str(known.bound)
    click.echo(f"{known.seconds:8.2f} s  tour {known.length}  bound {bound}")


def _human(result: TspResult, with_tour: bool) -> str:
    rows = [("status", str(result.status)), ("length", str(result.length))]
    if result.status == "bounded":
        rows.append(("bound", f"{result.bound} (gap {100 * result.gap:.3g} %)"))
    rows.append(("nodes", count_text(result.nodes)))
    rows.append(("time", seconds_text(result.seconds)))
    if with_tour:
        rows.append(("tour", " ".join(str(city + 1) for city in result.tour)))
    return "\n".join(f"{name + ':':12}{text}" for name, text in rows)
