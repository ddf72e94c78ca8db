"""Commands ``elimina cp`` and ``elimina tsp``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.cli import signals
from elimina.cli.models import source_of, source_option
from elimina.cli.options import (
    check_writable,
    choice_option,
    file_option,
    format_options,
    number_option,
    time_limit_option,
)
from elimina.cli.terminal import Command, labelled, option, show
from elimina.display import count_text, seconds_text
from elimina.io.files import save
from elimina.result import Bounds, Result, assignment_text, with_reading

if TYPE_CHECKING:
    from elimina.cp.tsp import TourState


DEVICES = ("auto", "cpu", "cuda")
_LEAST_SECONDS = 1e-3
"""Time limit of the search, in seconds, where reading has used up the given one."""


@click.command(cls=Command, short_help="Solve a model of constraints by propagation and search.")
@click.argument("file", type=click.Path())
@number_option("--threads", default=1, least=1, help="Number of threads of the search.")
@option("--free", is_flag=True, help="Ignore the model's search annotations; search by past conflicts, with restarts.")
@option("--lns", is_flag=True, help="Search near the best solution, too (large neighbourhood search).")
@choice_option(
    "--device", choices=DEVICES, metavar="DEVICE", help="Device that filters AllDifferent: auto, cpu or cuda."
)
@time_limit_option
@number_option("--seed", most=2**62, group="expert", help="Random seed of the search.")
@format_options("human", "json")
@file_option("-o", "--output", group="output", help="File for the answer.")
@source_option
def cp(
    file: str,
    threads: int,
    free: bool,
    lns: bool,
    device: str,
    time_limit: float | None,
    seed: int,
    format_: str,
    output: str | None,
) -> None:
    """Find a solution, or the best one, of the constraints in FILE: .fzn, .xml (XCSP3) or .opb; also .gz, .xz.

    The run ends with a proof, at the time limit or at Ctrl-C, and prints the best solution.
    """
    from elimina.cp import SearchOptions, read

    started = time.monotonic()
    if output is not None:
        check_writable(Path(output), file)
    model = read(source_of(file))
    reading = time.monotonic() - started
    found = model.solve(
        time_limit=None if time_limit is None else max(time_limit - reading, _LEAST_SECONDS),
        threads=threads,
        seed=seed,
        device=device,  # type: ignore[arg-type]
        options=SearchOptions(free=free, lns=lns),
    )
    with signals.deferred():
        result = signals.attributed(with_reading(found, reading))
        text = result.to_json() if format_ == "json" else _solution_text(result)
        if output is not None:
            save(Path(output), [text, "\n"])
        elif format_ == "json":
            click.echo(text)
        else:
            show(text)


def _solution_text(result: Result) -> str:
    rows = result.outcome()
    if "nodes" in result.stats:
        rows.append(("nodes", f"{count_text(result.stats['nodes'])}, {count_text(result.stats['failures'])} failures"))
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    if result.assignment:
        rows.append(("assignment", assignment_text(result.assignment)))
    return labelled(rows)


@click.command(cls=Command, short_help="Find a shortest tour of a travelling salesman problem.")
@click.argument("file", type=click.Path())
@time_limit_option
@number_option("--seed", most=2**62, group="expert", help="Random seed of the local search.")
@format_options("human", "json")
@file_option("-o", "--output", metavar="TOUR", group="output", help="File for the tour, in TSPLIB format.")
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
        check_writable(Path(output), file)
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
            show(_tour_text(result, output is None))


def _show(known: TourState) -> None:
    bound = "unknown" if known.bound is None else str(known.bound)
    click.echo(f"{known.seconds:8.2f} s  tour {known.length}  bound {bound}")


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
