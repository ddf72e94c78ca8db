"""``elimina solve`` and ``elimina plan``."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elimina import api, arguments
from elimina.cli import signals
from elimina.cli.cases import solve_cases
from elimina.cli.models import read_model
from elimina.cli.notices import reading_options
from elimina.cli.options import (
    check_writable,
    cluster_of,
    cluster_options,
    evidence_of,
    format_options,
    model_options,
    planning_of,
    query_of,
    reject_given,
    seconds_of,
)
from elimina.cli.progress import Progress
from elimina.cli.trace import tracing
from elimina.errors import InputError
from elimina.inference.anytime import Run
from elimina.inference.method import METHODS, OptimumMethod
from elimina.inference.options import Options
from elimina.io.files import save
from elimina.io.marginals import write_marginals
from elimina.model import Model
from elimina.planning.plan import bytes_text, count_text, seconds_text
from elimina.result import Bounds, Result, marginals_table, number_text, with_reading

if TYPE_CHECKING:
    from distributed import Client

FORMATS = ("human", "json", "uai")


def _gap_of(text: str | float) -> float:
    """Read a relative distance: ``0.01`` or ``1%``."""
    try:
        return arguments.share("gap", text)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


@click.command(short_help="Answer a task on a model.")
@click.argument("file", type=click.Path())
@model_options
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="eliminate: run the plan; mbe: bounds by mini-buckets (mpe, mmap, pr). mpe: filter: keep only what can be "
    "better; search: branch and bound, guided by mini-buckets. auto: filter what is large, search what does not fit; "
    "pr, mmap: bounds where sums do not fit.",
)
@click.option(
    "--upper-bound", type=int, metavar="COST", help="mpe: a total known to be reached; worse ones are not looked for."
)
@click.option(
    "--gap",
    type=_gap_of,
    default=0.0,
    metavar="SHARE",
    help="mpe: a relative distance of the bounds that is close enough, like 1%.",
)
@click.option(
    "--trace", type=click.Path(), metavar="FILE", help="mpe: bounds as they improve, a JSON object a line; see plot."
)
@click.option(
    "--checkpoint",
    type=click.Path(),
    metavar="DIR",
    help="Keep what a long run knows there; the same command goes on from it.",
)
@click.option("--time-limit", type=seconds_of, metavar="SECONDS", help="For everything, reading included.")
@format_options(*FORMATS, others="; uai: the competitions' result file")
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write the answer there instead of standard output."
)
@click.option(
    "--cases", type=click.Path(), metavar="FILE", help="mar: a .csv or .parquet file with a row for each case."
)
@cluster_options
@reading_options
def solve(
    file: str,
    method: OptimumMethod,
    upper_bound: int | None,
    gap: float,
    trace: str | None,
    time_limit: float | None,
    format_: str,
    output: str | None,
    cases: str | None,
    checkpoint: str | None,
    cluster: str | None,
    local: int | None,
    no_check: bool,
    **options: Any,
) -> None:
    """Answer a task on the model in FILE (.wcsp, .uai, .cfn, .bif, .xmlbif, .net, .xdsl, .erg; also .gz, .xz).

    FILE may also be a small .fzn (FlatZinc): its constraints become tables, as far as they fit; fzn-elimina searches.
    """
    started = time.monotonic()
    if output is not None:
        check_writable(Path(output))
    if cases is None and (cluster is not None or local is not None):
        _check_goes_with_clusters(method, options["task"])
    model = Run("read", time_limit).result(lambda: read_model(file, no_check=no_check))
    reading = time.monotonic() - started
    device = "cuda" if options["device"] == "cuda" else "cpu"
    if cases is not None:
        reject_given(_NOT_WITH_CASES, "--cases", "the suffix of -o names the format")
        with cluster_of(cluster, local, device) as client:
            solve_cases(model, cases, output, options, client)
        return
    if time_limit is not None:
        time_limit = max(time_limit - reading, _LEAST_SECONDS)
    with Progress() as progress, tracing(trace) as note, cluster_of(cluster, local, device) as client:

        def on_bounds(known: Bounds) -> None:
            progress.bounds(known)
            note(known)

        if client is not None:
            result = _solve_on(client, model, progress, on_bounds, method, upper_bound, gap, time_limit, options)
        else:
            result = api.solve(
                model,
                options["task"],
                evidence=evidence_of(options["evidence"], model),
                query=query_of(options["query"], model),
                **planning_of(options, model),
                method=method,
                upper_bound=upper_bound,
                gap=gap,
                time_limit=time_limit,
                on_plan=progress.start,
                on_bounds=on_bounds,
                progress=progress.update if progress.is_possible else None,
                checkpoint=checkpoint,
            )
    with signals.deferred():
        result = signals.attributed(with_reading(result, reading))
        text = {"human": _human, "json": _json, "uai": _uai}[format_](result, model)
        if output is None:
            click.echo(text)
        else:
            save(Path(output), [text, "\n"])


_LEAST_SECONDS = 1e-3
"""Left of a time limit that reading has used up."""


_NOT_WITH_CASES = (
    *("time_limit", "format_", "checkpoint", "scratch", "tables", "slices", "method", "upper_bound", "ibound", "shift"),
    *("gap", "trace", "partition"),
)
_NOT_WITH_CLUSTERS = ("checkpoint", "scratch", "ibound", "partition", "query")
_OF_SEARCH = ("upper_bound", "gap", "trace", "shift")


def _check_goes_with_clusters(method: OptimumMethod, task: str) -> None:
    """Refuse options before workers are started and files are made."""
    reject_given(_NOT_WITH_CLUSTERS, "a cluster", "it runs slices of an elimination, or searches")
    if method not in ("auto", "eliminate", "search"):
        raise click.UsageError(
            f"a cluster runs slices of an elimination, or searches; --method {method} runs without it"
        )
    if method == "search" and task != "mpe":
        raise InputError(f"on a cluster, the method search goes with the task mpe, not with {task}")
    if method == "eliminate" or task != "mpe":
        reject_given(_OF_SEARCH, "an elimination on a cluster", "that is of a search (--task mpe)")


def _solve_on(
    client: Client,
    model: Model,
    progress: Progress,
    on_bounds: Callable[[Bounds], None],
    method: OptimumMethod,
    upper_bound: int | None,
    gap: float,
    time_limit: float | None,
    options: dict[str, Any],
) -> Result:
    """Let a cluster's workers run slices, or search."""
    from elimina.distributed import solve_optimum, solve_slices

    asked, evidence = Options(**planning_of(options, model)), evidence_of(options["evidence"], model)
    if method == "eliminate" or options["task"] != "mpe":
        return solve_slices(
            model,
            options["task"],
            client=client,
            evidence=evidence,
            options=asked,
            time_limit=time_limit,
            on_plan=progress.start,
            progress=progress.update,
        )
    return solve_optimum(
        model,
        client=client,
        evidence=evidence,
        options=asked,
        method=method,
        upper_bound=upper_bound,
        gap=gap,
        time_limit=time_limit,
        on_plan=progress.start,
        on_bounds=on_bounds,
        progress=progress.update,
    )


@click.command(short_help="Show what solving a model would take.")
@click.argument("file", type=click.Path())
@model_options
@reading_options
def plan(file: str, no_check: bool, **options: Any) -> None:
    """Show what solving the model in FILE would take: width, tables, memory, time. Allocates nothing for it."""
    model = read_model(file, no_check=no_check)
    made = api.plan(
        model,
        options["task"],
        evidence=evidence_of(options["evidence"], model),
        query=query_of(options["query"], model),
        **planning_of(options, model),
    )
    click.echo(str(made))
    if made.task == "mar":
        from elimina.inference.junction import plan_statistics

        click.echo(f"{plan_statistics(made)}\ncliques are not stored: messages and marginals are made from the factors")


def _human(result: Result, model: Model) -> str:
    rows = [("status", str(result.status))]
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    if result.task in ("mpe", "mmap") and result.value is not None:
        rows.append(("log score" if model.sense == "probability" else "value", number_text(result.value)))
    if "structure" in result.stats:
        rows.append(("structure", result.stats["structure"]))
    if result.task == "count" and result.value is not None:
        rows.append(("count", number_text(result.value)))
    if result.log10_z is not None:
        rows.append(("log10 Z", f"{result.log10_z:.12g}"))
        if result.value is not None:
            rows.append(("Z", f"{result.value:.12g}"))
    stats = result.stats
    if result.status == "bounded" or (result.value is None and {result.lower_bound, result.upper_bound} != {None}):
        ends = (result.lower_bound, result.upper_bound)
        name = "log10 Z" if result.task == "pr" else "bounds"
        rows.append((name, " to ".join("unknown" if end is None else number_text(end) for end in ends)))
    if stats.get("method") == "search":
        rows.append(("nodes", f"{count_text(stats['nodes'])} in {stats['rounds']} rounds, {stats['turns']} turns"))
    if stats.get("method") == "filter":
        rows.append(
            ("rows", f"{count_text(stats['rows_made'])}, {count_text(stats['rows_filtered'])} of them filtered")
        )
    elif stats["induced_width"] is not None:
        rows.append(("width", f"{stats['induced_width']} (largest table: {count_text(stats['largest_table'])} cells)"))
    rows.append(("memory", bytes_text(stats["peak_bytes"])))
    total = stats["seconds"]["total"]
    dtype = "" if stats["dtype"] is None else f", {stats['dtype']}"
    workers = f" of {stats['workers']} workers" if "workers" in stats else ""
    rows.append(("time", f"{seconds_text(total)} on {stats['device']}{workers}{dtype}"))
    if result.assignment:
        rows.append(("assignment", " ".join(f"{name}={state}" for name, state in result.assignment.items())))
    lines = [f"{name + ':':12}{text}" for name, text in rows]
    return "\n".join([*lines, marginals_table(result.marginals)] if result.marginals else lines)


def _json(result: Result, model: Model) -> str:
    return result.to_json()


def _uai(result: Result, model: Model) -> str:
    """The competition's result files: MPE (number of variables, then values), PR (base-10 logarithm), MAR."""
    if result.task == "pr" and result.log10_z is None:
        raise InputError("format uai has no place for bounds; use --format human or json")
    if result.task == "pr":
        return f"PR\n{result.log10_z}"
    if result.task == "mpe":
        if result.assignment is None:
            raise InputError("there is no assignment to write: the problem is infeasible; use --format human or json")
        values = [v.index(result.assignment[v.name]) for v in model.variables]
        return "MPE\n" + " ".join(map(str, [len(values), *values]))
    if result.task == "mar":
        if result.marginals is None:
            raise InputError("there are no marginals to write: the evidence is impossible; use --format human or json")
        if len(result.marginals) < len(model.variables):
            raise InputError(
                "format uai has no place for some of the variables; leave --query out or use --format json"
            )
        return write_marginals(list(values.values()) for values in result.marginals.values()).rstrip("\n")
    if result.task == "mmap":
        if result.assignment is None:
            raise InputError("there is no assignment to write; use --format human or json")
        values = [v.index(result.assignment[v.name]) for v in model.variables if v.name in result.assignment]
        return "MMAP\n" + " ".join(map(str, [len(values), *values]))
    raise InputError("format uai has no place for a count; use --format human or json")
