"""Choice of dense or sparse tables for runs in several parts, which all need the same choice.

Such runs resume from a checkpoint, or are spread over workers.
"""

from __future__ import annotations

from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.problem.tasks import Task, described

_MAX_WRITTEN_BYTES = 1 << 32
"""Largest size, in bytes, to which listed tables are written out for a run without a memory limit."""

_LEAST_CELL_BYTES = 2


def with_fixed_tables(options: CheckedOptions, task: Task, model: Model) -> CheckedOptions:
    """Return options with dense or sparse tables, chosen without regard to the free memory.

    Tables are dense, unless tables that list their tuples are too large to be written out.
    """
    if options.tables != "auto":
        return options
    cells = sum(table.cells for table in model.factors if table.rows is not None)
    max_bytes = options.memory or _MAX_WRITTEN_BYTES
    is_sparse = described(task).has_rows and cells * _LEAST_CELL_BYTES > max_bytes
    return replace(options, tables="sparse" if is_sparse else "dense")
