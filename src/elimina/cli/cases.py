"""``elimina solve --cases``: posteriors of a table of cases, written chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from elimina.cli.options import planning_of, query_of
from elimina.inference.batch import Batch
from elimina.io.cases import read_cases
from elimina.io.posteriors import open_posteriors
from elimina.model import Model
from elimina.progress import Progress
from elimina.states import indices_of

if TYPE_CHECKING:
    from distributed import Client

    from elimina.distributed import ClusterBatch

_CELLS_AT_ONCE = 1 << 22


def solve_cases(
    model: Model, file: str, output: str | None, options: dict[str, Any], client: Client | None = None
) -> None:
    """Answer ``solve MODEL --task mar --cases FILE -o OUTPUT``, on a cluster if there is one.

    Raises:
        UsageError: An option does not go with cases.
        FormatError: The file of cases is malformed.
        MemoryLimitError: Not even a few cases fit.
    """
    if options["task"] != "mar":
        raise click.UsageError(f"--cases cannot be combined with --task {options['task']}: use --task mar")
    if output is None:
        raise click.UsageError("--cases needs a file for the posteriors: add -o FILE (.csv, .parquet or .npz)")
    if options["evidence"]:
        raise click.UsageError("--cases cannot be combined with --evidence: add a column to the file instead")
    cases = read_cases(file, model)
    named = query_of(options["query"], model)
    asked = None if named is None else indices_of(model, named, "query")
    count = len(cases.values)
    planning = planning_of(options, model)
    variables = model.variables if asked is None else [model.variables[v] for v in asked]
    rows = _CELLS_AT_ONCE // sum(v.size for v in variables)
    batch: Batch | ClusterBatch
    if client is not None:
        from elimina.distributed import ClusterBatch

        batch = ClusterBatch(client, model, cases.columns, asked, planning, count)
    else:
        batch = Batch(model, cases.columns, asked, planning, count)
        rows = max(batch.cases * batch.threads, rows)
    with Progress() as progress, open_posteriors(output, variables) as writer:
        if isinstance(batch, Batch):
            progress.start(batch.planned.plan, count / (batch.cases * batch.threads))
        for start in range(0, count, rows):
            values = cases.values[start : start + rows]
            found = batch.run(values, _part(progress, start / count, len(values) / count))
            table = np.concatenate([found.marginals[v.name] for v in variables], axis=1)
            # Nothing follows from a case that is impossible; the file says so by empty cells.
            table[found.log10_evidence == -np.inf] = np.nan
            writer.write(table, found.log10_evidence)
    if isinstance(batch, Batch):
        batch.close()


def _part(progress: Progress, done: float, share: float) -> Callable[[float], None]:
    return lambda part: progress.update(done + share * part)
