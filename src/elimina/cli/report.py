"""Command ``elimina report``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from elimina.cli import signals
from elimina.cli.help import Command, option
from elimina.cli.models import source_of, source_option
from elimina.cli.notices import reading_options
from elimina.cli.options import (
    bytes_of,
    check_writable,
    evidence_of,
    query_of,
    reject_given,
    seconds_of,
    task_option,
)
from elimina.inference.options import Options
from elimina.model import Model

_OF_MODELS = ("task", "evidence", "query")


@click.command(cls=Command, short_help="Write a page about a model, its plan and its answer.")
@click.argument("file", type=click.Path())
@option("-o", "--output", type=click.Path(), required=True, metavar="PAGE", help="Page, .html.")
@task_option(default=None, shown="mar for probabilities, else mpe")
@option("--evidence", multiple=True, metavar="FILE|A=x,B=y", help="Evidence file, or observations. Repeatable.")
@option("--query", multiple=True, metavar="A,B|FILE", help="Variables to report. Repeatable.  [default: all]")
@option("--title", metavar="TEXT", help="Heading of the page.  [default: the file's name]")
@option(
    "--time-limit", type=seconds_of, metavar="SECONDS", group="limits", help="Time limit in seconds, reading included."
)
@option(
    "--memory",
    type=bytes_of,
    metavar="SIZE",
    group="limits",
    help="Memory limit, such as 8GiB.  [default: what is free]",
)
@option(
    "--threads",
    type=click.IntRange(min=1, max=1024),
    metavar="N",
    group="limits",
    help="Number of CPU threads.  [default: all; 1 for constraints]",
)
@source_option
@reading_options
def report(
    file: str,
    output: str,
    task: Any,
    evidence: tuple[str, ...],
    query: tuple[str, ...],
    title: str | None,
    time_limit: float | None,
    memory: int | None,
    threads: int | None,
    no_check: bool,
) -> None:
    """Write one HTML page about FILE: figures, graph, junction tree, plan, answer and reasons.

    FILE is a model as for elimina solve, a distributed problem as for elimina dcop, constraints (.fzn, .opb, XCSP3)
    or a travelling salesman problem (.tsp). The page works offline.
    """
    from elimina.reporting.sources import read_subject
    from elimina.reporting.writing import html_path
    from elimina.reporting.writing import report as write

    started = time.monotonic()
    if time_limit is not None:
        signals.alarm(time_limit)
    path = html_path(output)
    check_writable(path)
    file = source_of(file)
    subject = read_subject(file, check=not no_check)
    asked: dict[str, Any] = {}
    if isinstance(subject, Model):
        asked = {"task": task, "evidence": evidence_of(evidence, subject), "query": query_of(query, subject)}
    else:
        reject_given(_OF_MODELS, file, "they are for graphical models; leave them out")
    left = None if time_limit is None else max(time_limit - (time.monotonic() - started), 1e-3)
    heading = Path(file).name if title is None else title
    options = Options(memory=memory, threads=threads)
    made = write(subject, time_limit=left, title=heading, options=options, **asked)
    with signals.deferred():
        made.save(path)
