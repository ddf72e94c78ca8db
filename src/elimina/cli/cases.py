"""Cases of ``elimina solve --cases``: posteriors of one model for each row of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from elimina.cli.options import call_options, evidence_of, query_of
from elimina.io.cases import read_cases
from elimina.io.posteriors import open_posteriors
from elimina.methods.batch import Batch, with_observations
from elimina.methods.estimated_batch import EstimatedBatch, batch_of
from elimina.methods.small_networks import rewritten_for_sums
from elimina.model.model import Model, variable_indices
from elimina.problem import observations as evidence_module
from elimina.problem.evidence import Observed, with_factors
from elimina.problem.tasks import described
from elimina.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

    from elimina.distributed import ClusterBatch


_CELLS_AT_ONCE = 1 << 22
"""Probabilities of the cases that are answered between two writes."""


def solve_cases(
    model: Model, file: str, output: str | None, options: dict[str, Any], client: Client | None = None
) -> None:
    """Answer ``solve MODEL --task mar --cases FILE -o OUTPUT``, on a cluster if there is one.

    Raises:
        UsageError: An option does not go with cases.
        FormatError: The file of cases is malformed.
        MemoryLimitError: Not even a few cases fit.
    """
    if not described(options["task"]).is_marginal:
        raise click.UsageError(f"--cases cannot be combined with --task {options['task']}: use --task mar")
    if output is None:
        raise click.UsageError("--cases needs a file for the posteriors: add -o FILE (.csv, .parquet or .npz)")
    evidence = evidence_module.evidence_of(model, evidence_of(options["evidence"], model))
    columns, codes = read_cases(file, model, ignore_extra=options["ignore_extra"])
    observed = with_factors(model, evidence)
    cases = with_observations(columns, codes, observed.values)
    named = query_of(options["query"], model)
    asked = None if named is None else variable_indices(model, named, "query")
    summed = observed.model
    if asked is not None:
        summed = rewritten_for_sums(Observed(summed, {}), {*cases.columns, *asked}).model
    count = len(cases.values)
    planning = call_options(options, model)
    variables = model.variables if asked is None else [model.variables[v] for v in asked]
    rows = _CELLS_AT_ONCE // sum(v.size for v in variables)
    batch: Batch | EstimatedBatch | ClusterBatch
    if client is not None:
        from elimina.distributed import ClusterBatch

        batch = ClusterBatch(client, summed, cases.columns, asked, planning, count)
    else:
        batch = batch_of(summed, cases.columns, asked, planning, count)
        if isinstance(batch, Batch):
            rows = max(batch.cases * batch.threads, rows)
    with Progress() as progress, open_posteriors(output, variables, has_errors=not batch.is_exact) as writer:
        if isinstance(batch, Batch):
            progress.start(batch.planned.plan, count / (batch.cases * batch.threads))
        for start in range(0, count, rows):
            values = cases.values[start : start + rows]
            found = batch.run(values, _part(progress, start / count, len(values) / count))
            found.mark_impossible(cases.contradicted[start : start + rows])
            table = np.concatenate([found.marginals[v.name] for v in variables], axis=1)
            # Nothing follows from a case that is impossible; the file says so by empty cells.
            table[found.log10_evidence == -np.inf] = np.nan
            notes = () if found.errors is None else (found.statuses, found.errors)
            writer.write(table, found.log10_evidence, *notes)
    if isinstance(batch, Batch):
        batch.close()


def _part(progress: Progress, done: float, share: float) -> Callable[[float], None]:
    return lambda part: progress.update(done + share * part)
