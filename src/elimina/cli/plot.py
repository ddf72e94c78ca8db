"""Commands ``elimina plot`` and ``elimina report``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from elimina import api
from elimina.cli import signals
from elimina.cli.bound_traces import read_trace
from elimina.cli.dcop import heuristic_option, read_problem
from elimina.cli.grouped_options import Command, option
from elimina.cli.model_input import explaining, read_with_total, reading_options, source_of, source_option
from elimina.cli.options import (
    check_writable,
    file_option,
    memory_option,
    number_option,
    reject_given,
    task_option,
    threads_option,
    time_limit_option,
)
from elimina.cli.question_inputs import evidence_of, query_of
from elimina.cli.standard_input import input_source
from elimina.dcop.agent import agree_on_tree
from elimina.dcop.problem import Heuristic
from elimina.errors import InputError, source_text
from elimina.io.files import suffix_of
from elimina.model.model import Model
from elimina.planning.options import Options
from elimina.viz import plot as draw
from elimina.viz import write_graph
from elimina.viz.canvas import format_of
from elimina.viz.chart_figure import draw_chart
from elimina.viz.charts import bounds_chart
from elimina.viz.export import SUFFIXES as EXPORT_SUFFIXES
from elimina.viz.figure import draw_figure
from elimina.viz.pseudotree import pseudotree_diagram
from elimina.viz.tour import tour_diagram


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@file_option(
    "-o",
    "--output",
    required=True,
    metavar="PICTURE",
    help="Picture (.svg, .png, .pdf), or graph for other programs (.dot, .graphml).",
)
@option(
    "--what",
    type=click.Choice(("graph", "posteriors", "tree", "pseudotree", "trace", "tour")),
    metavar="WHAT",
    help="Subject: graph, posteriors (bars inside the nodes of a network), tree (junction tree), pseudotree, trace "
    "(bounds over time) or tour.  "
    "[default: trace for .jsonl, tour for .tsp, else graph]",
)
@option(
    "--evidence",
    multiple=True,
    metavar="FILE|A=x,B=y",
    help="Evidence file, or observations, to colour the graph by posteriors or by the optimum, or to draw posteriors. "
    "Repeatable.",
)
@file_option("--tour", help="Tour of a .tsp problem, from elimina tsp -o.")
@heuristic_option
@number_option("--seed", group="expert", help="Random seed for --heuristic random.")
@source_option
@reading_options
def plot(
    file: str,
    what: Any,
    evidence: tuple[str, ...],
    tour: str | None,
    output: str,
    heuristic: Heuristic,
    seed: int,
    no_check: bool,
) -> None:
    """Draw the model, distributed problem, .tsp problem or trace of bounds (solve --trace) in FILE."""
    file = source_of(file)
    what = what or {"jsonl": "trace", "tsp": "tour"}.get(suffix_of(Path(file)), "graph")
    if tour is not None and what != "tour":
        raise click.UsageError(f"--tour cannot be combined with --what {what}: use --what tour")
    if evidence and what not in ("graph", "posteriors"):
        raise click.UsageError(f"--evidence cannot be combined with --what {what}: use --what graph or posteriors")
    if what == "tour":
        _plot_tour(file, tour, Path(output))
        return
    if what == "trace":
        _plot_trace(file, Path(output))
        return
    if what == "pseudotree":
        _plot_pseudotree(file, Path(output), heuristic, seed)
        return
    is_export = what == "graph" and Path(output).suffix.lower() in EXPORT_SUFFIXES
    if not is_export:
        format_of(Path(output))
    model, total = read_with_total(file, no_check=no_check)
    with explaining(total):
        observed = evidence_of(evidence, model)
    answer = None
    if observed:
        answer = api.solve(model, "mar" if model.sense == "probability" else "mpe", evidence=observed)
    if is_export:
        write_graph(model, output, answer, [model.index(name) for name in observed])
        return
    draw(model, what, title=source_text(Path(file).name), answer=answer, evidence=observed).save(output)


def _plot_trace(file: str, output: Path) -> None:
    chart = bounds_chart(read_trace(file), source_text(Path(file).name))
    if chart is None:
        raise InputError(f"{source_text(file)}: cannot draw a trace without bounds")
    draw_chart(chart).save(output)


def _plot_pseudotree(file: str, output: Path, heuristic: Heuristic, seed: int) -> None:
    format_of(output)
    problem = read_problem(file)
    variables = problem.model.variables
    if not variables:
        raise InputError(f"{source_text(file)}: cannot draw a problem without variables")
    owners = [problem.agents[owner].name for owner in problem.owners]
    labels = [v.name if v.name == owner else f"{v.name} ({owner})" for v, owner in zip(variables, owners, strict=True)]
    scopes = [table.scope for table in problem.model.factors]
    tree = agree_on_tree(problem, heuristic, seed)
    draw_figure(pseudotree_diagram(tree, scopes, labels), source_text(Path(file).name)).save(output)


def _plot_tour(file: str, tour_file: str | None, output: Path) -> None:
    from elimina.cp.tsplib import read_tour, read_tsp  # imported here: it loads the constraint engine

    problem = read_tsp(file)
    if problem.points is None:
        raise InputError(
            f"{source_text(file)} has no coordinates (NODE_COORD_SECTION or DISPLAY_DATA_SECTION), so it cannot be "
            "drawn"
        )
    tour = length = None
    if tour_file is not None:
        tour_file = input_source(tour_file, "--tour", "tour")
        tour = read_tour(tour_file)
        if len(tour) != problem.cities:
            raise InputError(
                f"{source_text(tour_file)} is a tour of {len(tour)} cities, but {source_text(file)} has "
                f"{problem.cities}"
            )
        length = problem.length(tour)
    draw_figure(tour_diagram(problem.points, tour, length), problem.name).save(output)


_MODEL_OPTIONS = ("task", "evidence", "query")


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@file_option("-o", "--output", required=True, metavar="PAGE", help="Page, .html.")
@task_option(default=None, shown="mar for probabilities, else mpe")
@option("--evidence", multiple=True, metavar="FILE|A=x,B=y", help="Evidence file, or observations. Repeatable.")
@option("--query", multiple=True, metavar="A,B|FILE", help="Variables to report. Repeatable.  [default: all]")
@option("--title", metavar="TEXT", help="Heading of the page.  [default: the file's name]")
@time_limit_option
@memory_option("Limit, such as 8GiB.  [default: 80 % of free memory]")
@threads_option("Number of CPU threads.  [default: all; 1 for constraints]")
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
    from elimina.reporting import html_path, read_subject
    from elimina.reporting import report as write

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
        reject_given(_MODEL_OPTIONS, source_text(file), "they are for graphical models; leave them out")
    remaining = signals.remaining(time_limit, time.monotonic() - started)
    heading = source_text(Path(file).name) if title is None else title
    options = Options(memory=memory, threads=threads)
    page = write(subject, time_limit=remaining, title=heading, options=options, **asked)
    with signals.deferred():
        page.save(path)
