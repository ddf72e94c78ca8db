"""Tables over the kept variables of a plan."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.backends.protocols import run_once
from elimina.planning.arrays import view_of
from elimina.running.encoding import factor_view
from elimina.running.execution import Execution


def kept_tables(execution: Execution, arena: NDArray[np.generic]) -> list[tuple[tuple[int, ...], NDArray[Any]]]:
    """Run a plan; return its tables over kept variables: messages of the roots, and factors of only kept variables."""
    plan, program = execution.plan, execution.program()
    zone = run_once(execution.backend, program, arena, execution.report).zone
    tables: list[tuple[tuple[int, ...], NDArray[Any]]] = []
    for output in plan.outputs:
        step = plan.steps[output.step]
        tables.append((step.axes, view_of(zone, step.out_offset - program.zone[0], step.sizes, step.out_strides)))
    inside = frozenset(plan.kept)
    return tables + [(f.scope, factor_view(arena, f)) for f in plan.factors if inside.issuperset(f.scope)]
