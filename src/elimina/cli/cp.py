"""Command ``elimina cp``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from elimina.cli import signals
from elimina.cli.help import Command, option
from elimina.cli.models import source_of, source_option
from elimina.cli.options import check_writable, format_options, number_option, seconds_of
from elimina.cli.terminal import labelled, show
from elimina.io.files import save
from elimina.planning.plan import count_text, seconds_text
from elimina.result import Result, number_text, with_reading

DEVICES = ("auto", "cpu", "cuda")
_LEAST_SECONDS = 1e-3
"""Time limit of the search, in seconds, where reading has used up the given one."""


@click.command(cls=Command, short_help="Solve a model of constraints by propagation and search.")
@click.argument("file", type=click.Path())
@number_option("--threads", default=1, least=1, help="Number of threads of the search.")
@option("--free", is_flag=True, help="Ignore the model's search annotations; search by past conflicts, with restarts.")
@option("--lns", is_flag=True, help="Search near the best solution, too (large neighbourhood search).")
@option(
    "--device",
    type=click.Choice(DEVICES),
    default="auto",
    show_default=True,
    metavar="DEVICE",
    help="Device that filters AllDifferent: auto, cpu or cuda.",
)
@option(
    "--time-limit", type=seconds_of, metavar="SECONDS", group="limits", help="Time limit in seconds, reading included."
)
@number_option("--seed", most=2**62, group="expert", help="Random seed of the search.")
@format_options("human", "json")
@option("-o", "--output", type=click.Path(), metavar="FILE", group="output", help="File for the answer.")
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
    from elimina.cp import SearchOptions, files

    started = time.monotonic()
    if output is not None:
        check_writable(Path(output))
    model = files.read(source_of(file))
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
        text = result.to_json() if format_ == "json" else _human(result)
        if output is not None:
            save(Path(output), [text, "\n"])
        elif format_ == "json":
            click.echo(text)
        else:
            show(text)


def _human(result: Result) -> str:
    rows = [("status", str(result.status))]
    if result.value is not None:
        rows.append(("value", number_text(result.value)))
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    if "nodes" in result.stats:
        rows.append(("nodes", f"{count_text(result.stats['nodes'])}, {count_text(result.stats['failures'])} failures"))
    rows.append(("time", seconds_text(result.stats["seconds"]["total"])))
    if result.assignment:
        rows.append(("assignment", " ".join(f"{name}={value}" for name, value in result.assignment.items())))
    return labelled(rows)
