"""``elimina solve --cases``: posteriors of a table of cases, written chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from elimina.cli.options import planning_of, query_of
from elimina.cli.progress import Progress
from elimina.inference.batch import Batch
from elimina.inference.choose import Options
from elimina.io.cases import read_cases
from elimina.io.posteriors import open_posteriors
from elimina.model import Model

_CELLS_AT_ONCE = 1 << 22


def solve_cases(model: Model, file: str, output: str | None, options: dict[str, Any]) -> None:
    """Answer ``solve MODEL --task mar --cases FILE -o OUTPUT``.

    Raises:
        UsageError: An option does not go with cases.
        FormatError: The file of cases is malformed.
        MemoryLimitError: Not even a few cases fit.
    """
    if options["task"] != "mar" or output is None or options["evidence"] is not None:
        raise click.UsageError(
            "--cases goes with --task mar and -o POSTERIORS (.csv, .parquet, .npz), not with --evidence"
        )
    cases = read_cases(file, model)
    asked = query_of(options["query"], model)
    count = len(cases.values)
    batch = Batch(model, cases.columns, asked, Options(**planning_of(options, model)), count)
    variables = model.variables if asked is None else [model.variables[v] for v in asked]
    rows = max(batch.cases * batch.threads, _CELLS_AT_ONCE // sum(v.size for v in variables))
    with Progress() as progress, open_posteriors(output, variables) as writer:
        progress.start(batch.planned.plan, count / (batch.cases * batch.threads))
        for start in range(0, count, rows):
            values = cases.values[start : start + rows]
            found = batch.run(values, _part(progress, start / count, len(values) / count))
            table = np.concatenate([found.marginals[v.name] for v in variables], axis=1)
            # Nothing follows from a case that is impossible; the file says so by empty cells.
            table[found.log10_evidence == -np.inf] = np.nan
            writer.write(table, found.log10_evidence)
    batch.close()


def _part(progress: Progress, done: float, share: float) -> Callable[[float], None]:
    return lambda part: progress.update(done + share * part)
