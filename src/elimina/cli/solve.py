"""Commands ``elimina solve`` and ``elimina plan``."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from elimina import api
from elimina.answer_texts import assignment_text, labelled, marginals_table
from elimina.cli import signals
from elimina.cli.grouped_options import Command, option
from elimina.cli.model_input import explaining, read_with_total, reading_options, source_of, source_option
from elimina.cli.options import (
    check_no_input,
    check_writable,
    cluster_of,
    cluster_options,
    file_option,
    format_for,
    format_options,
    names_not_for,
    naming_time_limit,
    number_option,
    output_option,
    planning_options,
    reject_given,
    run_options,
    time_limit_option,
)
from elimina.cli.question_inputs import call_options, evidence_of, query_of
from elimina.cli.terminal import show
from elimina.errors import InputError
from elimina.io.files import save
from elimina.model.auxiliary_variables import is_auxiliary
from elimina.model.model import Model
from elimina.number_texts import MAX_DIGITS, bytes_text, count_text, counted, number_text, seconds_text
from elimina.planning.solve_methods import SOLVE_METHODS, OptimumMethod, SolveMethod
from elimina.problem.tasks import described
from elimina.progress import Progress
from elimina.result import (
    Bounds,
    Marginals,
    NoMarginals,
    Result,
    bounds_rows,
    error_rows,
    log10_z_rows,
    optima_rows,
    ranked_rows,
)
from elimina.running.advice import advice_on
from elimina.running.phases import with_reading
from elimina.strategies.call import Call

FORMATS = ("human", "json", "uai")


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@planning_options
@run_options
@file_option("--trace", group="output", help="Record of the bounds over time, for elimina plot.")
@time_limit_option
@format_options(*FORMATS)
@output_option()
@file_option("--cases", help="Cases, .csv or .parquet (mar, pr, mpe, mmap).")
@number_option(
    "--digits",
    help="Significant digits in the .csv file of --cases; by default as many as identify each number.",
    default=None,
    minimum=1,
    maximum=MAX_DIGITS,
    group="expert",
)
@option("--ignore-extra", is_flag=True, group="expert", help="Ignore columns of --cases that are not variables.")
@cluster_options
@source_option
@reading_options
def solve(
    file: str,
    trace: str | None,
    time_limit: float | None,
    format_: str,
    output: str | None,
    cases: str | None,
    cluster: str | None,
    local: int | None,
    no_check: bool,
    **options: Any,
) -> None:
    """Answer a task on the model in FILE.

    FILE is .wcsp, .cfn, .uai, .bif, .xmlbif, .net, .xdsl, .erg, .cnf, .wcnf or .qpbo; also .gz, .xz. Small constraint
    models (.fzn, .opb, XCSP3's .xml) are converted to cost tables. Solve large ones with 'elimina cp'.
    """
    started = time.monotonic()
    inputs = file, cases, options["order"], *options["evidence"], *options["query"]
    if output is not None:
        check_writable(Path(output), *inputs)
    if trace is not None:
        check_no_input("--trace", Path(trace), *inputs, *options["hint"])
        is_twice = output is not None and os.path.realpath(trace) == os.path.realpath(output)
        if is_twice and (os.path.isfile(trace) or not os.path.exists(trace)):
            raise InputError(f"--trace and -o both name {output}; name two files")
    if cases is None:
        reject_given(("ignore_extra",), "a command without --cases", "it is about the columns of cases")
        reject_given(("digits",), "a command without --cases", "it is about the file of posteriors")
    if cases is None and (cluster is not None or local is not None):
        _check_goes_with_clusters(options["method"], options["task"])
    file = source_of(file)
    model, total = Call("read", time_limit).result(lambda: read_with_total(file, no_check=no_check))
    reading = time.monotonic() - started
    device = "cuda" if options["device"] == "cuda" else "cpu"
    if cases is not None:
        reject_given(("format_", "json"), "--cases", "leave them out; the suffix of -o names the format")
        reject_given(_NOT_WITH_CASES, "--cases", "leave them out; all cases are answered, by elimination")
        from elimina.cli.cases import solve_cases

        with cluster_of(cluster, local, device) as client:
            solve_cases(model, cases, output, options, client)
        return
    limit = naming_time_limit(time_limit, reading)
    time_limit = signals.remaining(time_limit, reading)
    with limit, Progress() as progress, _tracing(trace) as trace_bounds, cluster_of(cluster, local, device) as client:

        def on_bounds(bounds: Bounds) -> None:
            progress.bounds(bounds)
            trace_bounds(bounds)

        with explaining(total):
            asked, evidence = call_options(options, model), evidence_of(options["evidence"], model)
            query = query_of(options["query"], model)
        if asked.hint is not None and total in asked.hint:
            asked = replace(asked, hint={name: state for name, state in asked.hint.items() if name != total})
        can_tell = client is not None or progress.is_possible
        options_with_listeners = replace(
            asked,
            on_plan=progress.start,
            on_bounds=on_bounds,
            progress=progress.update if can_tell else None,
        )
        task = options["task"]
        if client is not None:
            from elimina.distributed import solve_optimum, solve_slices

            call: dict[str, Any] = {
                "client": client,
                "evidence": evidence,
                "options": options_with_listeners,
                "time_limit": time_limit,
            }
            solving = SOLVE_METHODS[asked.method]
            is_searched = solving.is_open or solving.searches
            sliced = not is_searched or not described(task).is_optimum
            result = solve_slices(model, task, **call) if sliced else solve_optimum(model, **call)
        else:
            result = api.solve(
                model, task, evidence=evidence, query=query, time_limit=time_limit, options=options_with_listeners
            )
    with signals.deferred():
        result = signals.attributed(with_reading(result, reading))
        if total is not None and result.assignment is not None and result.value is not None:
            result = result.replace(assignment={**result.assignment, total: result.value})
        format_ = format_for(output, format_)
        if format_ == "human":
            text = _human(result, model, _reason(model, bool(evidence), asked.upper_bound))
        else:
            text = result.to_json() if format_ == "json" else _uai(result, model)
        if output is None:
            (show if format_ == "human" else click.echo)(text)
        else:
            save(Path(output), [text, "\n"])


def _tracing(path: str | None) -> contextlib.AbstractContextManager[Callable[[Bounds], None]]:
    """Return a context manager that yields a function for writing bounds; without a path, the function does nothing."""
    if path is None:
        return contextlib.nullcontext(lambda bounds: None)
    from elimina.cli.bound_traces import tracing

    return tracing(path)


_NOT_WITH_CASES = ("time_limit", "trace", *names_not_for("a junction tree"))
_NOT_WITH_CLUSTERS = ("query", *names_not_for("elimination on a cluster", "search on a cluster"))
_NOT_WITH_SLICES = ("trace", *names_not_for("elimination on a cluster"))


def _check_goes_with_clusters(method: OptimumMethod, task: str) -> None:
    """Reject options and methods that do not run on a cluster, before workers start and files are created.

    Raises:
        UsageError: An option or the method is not for clusters.
        InputError: The method does not run the task on a cluster.
    """
    reject_given(_NOT_WITH_CLUSTERS, "a cluster", "leave them out, or leave --cluster and --local out")
    solving = SOLVE_METHODS[method]
    if not solving.runs_on_clusters:
        raise click.UsageError(
            f"--method {method} does not run on a cluster: use eliminate or search, or leave --cluster and --local out"
        )
    if solving.searches and not described(task).is_optimum:
        raise InputError(f"--method search does not run the task {task} on a cluster: use eliminate")
    if not (solving.is_open or solving.searches) or not described(task).is_optimum:
        reject_given(_NOT_WITH_SLICES, "elimination on a cluster", "they belong to --method search of the task mpe")


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@planning_options
@option("--json", "as_json", is_flag=True, group="output", help="Print the figures as one JSON object.")
@source_option
@reading_options
def plan(file: str, no_check: bool, as_json: bool, **options: Any) -> None:
    """Show the induced width, tables, memory and time that solving the model in FILE would take.

    No tables are allocated.
    """
    model, total = read_with_total(source_of(file), no_check=no_check)
    with explaining(total):
        evidence, query = evidence_of(options["evidence"], model), query_of(options["query"], model)
        asked = call_options(options, model)
    built_plan = api.plan(model, options["task"], evidence=evidence, query=query, options=asked)
    if as_json:
        click.echo(built_plan.to_json())
        return
    show(str(built_plan))
    advice = advice_on(built_plan)
    if advice is not None:
        show(f"{'advice:':22}{advice}")
    if described(built_plan.task).is_marginal:
        from elimina.planning.tree_statistics import plan_statistics

        show(f"{plan_statistics(built_plan)}\ncliques are not stored: messages and marginals are made from the factors")


def _reason(model: Model, is_observed: bool, upper_bound: float | None) -> str:
    """Return the reason for the status ``infeasible``."""
    subject = "no assignment with this evidence" if is_observed else "no assignment"
    if model.sense == "probability":
        return f"{subject} has a positive probability"
    is_bounded = model.upper_bound is not None or upper_bound is not None
    return f"{subject} is allowed" + (", or none within the upper bound" if is_bounded else "")


def _human(result: Result, model: Model, reason: str) -> str:
    rows = [("status", str(result.status)), *error_rows(result)]
    if result.status == "infeasible":
        rows.append(("reason", reason))
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    for name, attribute in described(result.task).shown:
        shown = getattr(result, attribute)
        if shown is not None:
            is_log = name == "value" and model.sense == "probability"
            rows.append(("log score" if is_log else name, number_text(shown)))
    if "structure" in result.stats:
        rows.append(("structure", result.stats["structure"]))
    rows += log10_z_rows(result)
    if result.log10_z is not None and result.value is not None:
        rows.append(("Z", f"{result.value:.12g}"))
    stats = result.stats
    if result.status == "bounded" or (result.value is None and result.status != "estimated"):
        rows += bounds_rows(result)
    rows += optima_rows(result)
    method = SOLVE_METHODS.get(stats.get("method", ""), SolveMethod())
    if "nodes" in stats:
        searches = ""
        if "rounds" in stats:
            searches = f" (searches: {stats['rounds']} with mini-buckets, {stats['turns']} with soft local consistency)"
        rows.append(("nodes", f"{count_text(stats['nodes'])}{searches}"))
    if method.filters and stats["rows_made"]:
        rows.append(
            ("tuples", f"{count_text(stats['rows_made'])}, {count_text(stats['rows_filtered'])} of them filtered")
        )
    elif stats["induced_width"] is not None:
        largest = counted(stats["largest_table"], "cell", is_rounded=True)
        rows.append(("width", f"{stats['induced_width']} (largest table: {largest})"))
    if stats["peak_bytes"]:
        rows.append(("memory", bytes_text(stats["peak_bytes"])))
    total = stats["seconds"]["total"]
    dtype = "" if stats["dtype"] is None else f", {stats['dtype']}"
    workers = f" of {stats['workers']} workers" if "workers" in stats else ""
    rows.append(("time", f"{seconds_text(total)} on {stats['device']}{workers}{dtype}"))
    if result.ranked:
        rows += ranked_rows(result, lambda name: not is_auxiliary(name))
    elif result.assignment:
        named = {name: state for name, state in result.assignment.items() if not is_auxiliary(name)}
        shown = named or result.assignment
        rows.append(("assignment", assignment_text(shown)))
        if hidden := len(result.assignment) - len(shown):
            rows.append(("not shown", f"{hidden:,} auxiliary variables of the constraints (--json has them)"))
    if isinstance(result.marginals, Marginals):
        result.marginals.check_room()
    return labelled(rows) + (f"\n{marginals_table(result.marginals)}" if result.marginals else "")


def _uai(result: Result, model: Model) -> str:
    """Return a result file of the UAI competitions: MPE (number of variables, values), PR (base-10 log), MAR, MMAP.

    Raises:
        InputError: The format has no place for the answer, or there is no answer to write.
    """
    heading = described(result.task).uai
    if heading is None:
        raise InputError(f"format uai has no answers to the task {result.task}: use --format human or json")
    if heading == "PR":
        if result.log10_z is None:
            raise InputError("format uai cannot hold bounds: use --format human or json")
        return f"PR\n{result.log10_z}"
    if heading == "MAR":
        if isinstance(result.marginals, NoMarginals):
            raise InputError(
                "the evidence is impossible, so there are no marginals for format uai: use --format human or json"
            )
        if len(result.marginals) < len(model.variables):
            raise InputError("format uai holds the marginals of all variables: leave --query out or use --format json")
        if isinstance(result.marginals, Marginals):
            result.marginals.check_room()
        from elimina.io.posteriors import write_marginals

        return write_marginals(list(values.values()) for values in result.marginals.values()).rstrip("\n")
    if result.assignment is None:
        raise InputError("there is no assignment to write in format uai: use --format human or json")
    values = [v.index(result.assignment[v.name]) for v in model.variables if v.name in result.assignment]
    return f"{heading}\n" + " ".join(map(str, [len(values), *values]))
