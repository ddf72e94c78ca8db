"""Cases of ``elimina solve --cases``: the answer to one task of one model for each row of a table."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from elimina.cli.question_inputs import call_options, cases_source, evidence_of, query_of
from elimina.errors import InputError
from elimina.io.cases import read_cases
from elimina.io.files import save, suffix_of
from elimina.io.posteriors import open_posteriors
from elimina.methods.batch import Batch, ObservedCases, with_observations
from elimina.methods.estimated_batch import EstimatedBatch, batch_of
from elimina.methods.row_assignments import RowAssignments, RowDecoder, most_probable_joint
from elimina.methods.small_networks import rewritten_for_sums
from elimina.model.model import Model, variable_indices
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options
from elimina.problem import observations as evidence_module
from elimina.problem.evidence import Observed, with_factors
from elimina.problem.preparation import with_scopes
from elimina.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

    from elimina.distributed import ClusterBatch


_CELLS_AT_ONCE = 1 << 22
"""Number of probabilities to compute between two writes of answers. More are computed if one batch has more."""


def solve_cases(
    model: Model, file: str, output: str | None, options: dict[str, Any], client: Client | None = None
) -> None:
    """Answer ``solve MODEL --cases FILE`` for a task of ``_CASE_TASKS``, on a cluster if a client is given.

    Args:
        model: The model.
        file: Table of cases.
        output: File for the answers; None: they go to standard output, as CSV.
        options: Options of the command.
        client: Client of the cluster that answers; None for this machine.

    Raises:
        UsageError: An option is incompatible with cases.
        FormatError: The file of cases is malformed.
        InputError: The evidence or the query does not fit the model, or a file cannot be read or written.
        MemoryLimitError: Not even a few cases fit.
    """
    task = options["task"]
    if task not in _CASE_TASKS:
        raise click.UsageError(f"--cases cannot be combined with --task {task}: use --task mar, pr, mpe or mmap")
    case_task = _CASE_TASKS[task]
    if options["query"] and not case_task.takes_query:
        raise click.UsageError(f"--query cannot be combined with --cases and --task {task}: leave it out")
    if client is not None and not case_task.runs_on_clusters:
        raise click.UsageError(f"--task {task} answers cases on this machine only: leave --cluster and --local out")
    evidence = evidence_module.evidence_of(model, evidence_of(options["evidence"], model))
    columns, codes = read_cases(cases_source(file, "--cases"), model, ignore_extra=options["ignore_extra"])
    observed = with_factors(model, evidence)
    cases = with_observations(columns, codes, observed.values)
    planning = check_options(call_options(options, model))
    query = query_of(options["query"], model)
    question = _Question(observed.model, cases, planning, query, "", options["digits"], client)
    if output is not None:
        case_task.write(question._replace(output=output))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        case_task.write(question._replace(output=str(path)))
        with path.open() as lines:
            for line in lines:
                click.echo(line, nl=False)


class _Question(NamedTuple):
    """A question about each case of a table.

    Attributes:
        model: Model with the likelihoods of the evidence.
        cases: Cases, with the observations of the evidence.
        options: Options of the call.
        query: Variables of the requested posteriors; None for all.
        output: File for the answers.
        digits: Number of significant digits of the answers; None: as many as identify each number.
        client: Client of the cluster that answers; None for this machine.
    """

    model: Model
    cases: ObservedCases
    options: CheckedOptions
    query: Sequence[str | int] | None
    output: str
    digits: int | None
    client: Client | None


def _write_sums(question: _Question) -> None:
    _write_marginals(question._replace(query=()))


def _write_marginals(question: _Question) -> None:
    model, cases, planning, query, output, digits, client = question
    asked = None if query is None else variable_indices(model, query, "query")
    if asked is not None:
        model = rewritten_for_sums(Observed(model, {}), {*cases.columns, *asked}).model
    count = len(cases.values)
    variables = model.variables if asked is None else [model.variables[v] for v in asked]
    rows = max(1, _CELLS_AT_ONCE // max(1, sum(v.size for v in variables)))
    batch: Batch | EstimatedBatch | ClusterBatch
    if client is not None:
        from elimina.distributed import ClusterBatch

        batch = ClusterBatch(client, model, cases.columns, asked, planning, count)
    else:
        batch = batch_of(model, cases.columns, asked, planning, count)
        if isinstance(batch, Batch):
            rows = max(batch.cases * batch.threads, rows)
    opened = open_posteriors(output, variables, has_errors=not batch.is_exact, digits=digits)
    with Progress() as progress, opened as writer:
        if isinstance(batch, Batch):
            progress.start(batch.planned.plan, count / (batch.cases * batch.threads))
        for start in range(0, count, rows):
            values = cases.values[start : start + rows]
            posteriors = batch.run(values, _stage_progress(progress, start / count, len(values) / count))
            posteriors.mark_impossible(cases.contradicted[start : start + rows])
            table = np.concatenate(
                [np.empty((len(values), 0)), *(posteriors.marginals[v.name] for v in variables)], axis=1
            )
            # An impossible case has no posteriors: its cells are empty.
            table[posteriors.log10_evidence == -np.inf] = np.nan
            notes = () if posteriors.errors is None else (posteriors.statuses, posteriors.errors)
            writer.write(table, posteriors.log10_evidence, *notes)
    if isinstance(batch, Batch):
        batch.close()


def _write_assignments(question: _Question) -> None:
    model, cases, planning, _, output, digits, _ = question
    path = _assignment_file(output, digits)
    decoder = RowDecoder(model, cases.columns, planning, len(cases.values))
    with Progress() as progress:
        progress.start(decoder.plan, len(cases.values) / decoder.rows_at_once)
        assignments = decoder.assignments(cases, progress=progress.update)
    decoder.close()
    save(path, assignments.csv_chunks())


def _write_map(question: _Question) -> None:
    model, cases, planning, query, output, digits, _ = question
    if query is None:
        raise click.UsageError("--task mmap needs the variables whose most probable states are asked for: add --query")
    path = _assignment_file(output, digits)
    scope = tuple(dict.fromkeys(variable_indices(model, query, "query")))
    variables = [model.variables[v] for v in scope]
    joined = with_scopes(rewritten_for_sums(Observed(model, {}), {*cases.columns, *scope}).model, (scope,))
    count = len(cases.values)
    batch = Batch(joined, cases.columns, (), planning, count, (scope,))
    rows = max(batch.cases * batch.threads, _CELLS_AT_ONCE // math.prod(v.size for v in variables))
    blocks: list[RowAssignments] = []
    with Progress() as progress:
        progress.start(batch.planned.plan, count / (batch.cases * batch.threads))
        # Without cases, the loop still runs once, because the arrays of at least one block are needed below.
        total = max(count, 1)
        for start in range(0, total, rows):
            values = cases.values[start : start + rows]
            answer = batch.run(values, _stage_progress(progress, start / total, len(values) / total))
            answer.mark_impossible(cases.contradicted[start : start + rows])
            (joint,) = (answer.joints or {}).values()
            blocks.append(most_probable_joint(variables, joint, answer.log10_evidence))
    batch.close()
    indices = np.concatenate([block.indices for block in blocks])
    logs = np.concatenate([block.log10_probability for block in blocks])
    save(path, RowAssignments(tuple(variables), indices, logs).csv_chunks())


def _assignment_file(output: str, digits: int | None) -> Path:
    """Return the path of a file of assignments.

    Raises:
        UsageError: A number of digits is given.
        InputError: The suffix is not that of a CSV file.
    """
    path = Path(output)
    if digits is not None:
        raise click.UsageError("--digits is about posteriors, and assignments have none: leave it out")
    if suffix_of(path) != "csv":
        raise InputError(f"{path}: assignments are written to .csv, .csv.gz and .csv.xz files")
    return path


class _CaseTask(NamedTuple):
    """A task that can be answered for cases.

    Attributes:
        write: Function that computes and writes the answers.
        takes_query: True if a query selects the variables.
        runs_on_clusters: True if workers of a cluster can answer.
    """

    write: Callable[[_Question], None]
    takes_query: bool = False
    runs_on_clusters: bool = True


_CASE_TASKS = {
    "mar": _CaseTask(_write_marginals, takes_query=True),
    "pr": _CaseTask(_write_sums),
    "mpe": _CaseTask(_write_assignments, runs_on_clusters=False),
    "mmap": _CaseTask(_write_map, takes_query=True, runs_on_clusters=False),
}
"""Tasks that can be answered for cases."""


def _stage_progress(progress: Progress, done: float, share: float) -> Callable[[float], None]:
    return lambda stage_share: progress.update(done + share * stage_share)
