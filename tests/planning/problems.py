"""Random problems and orders for planning: too large to solve, quick to plan."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from elimina.model.model import Model
from elimina.model.table import FORBIDDEN
from elimina.planning.machine import cpu_machine, cuda_machine
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, make_plan
from elimina.problem.preparation import Problem, prepare


class Planned(NamedTuple):
    problem: Problem
    plan: Plan


@st.composite
def planned(draw, max_cells: float = math.inf) -> Planned:
    """A plan of a random model in a random order: narrow and wide, on both machines, for every task.

    Args:
        max_cells: The most assignments that the model may have.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.choice([1, 2, 2, 3, 4, 7, 16], draw(st.integers(0, 12))).tolist()
    while math.prod(sizes) > max_cells:
        sizes.pop()
    task = draw(st.sampled_from(["mpe", "pr", "count"]))
    factors = []
    for _ in range(draw(st.integers(0, 40))):
        scope = rng.permutation(len(sizes))[: rng.integers(0, 4)].tolist()
        values = rng.integers(0, int(rng.choice([2, 300, 10**6])), [sizes[v] for v in scope])
        if task != "pr":
            values = np.where(rng.random(values.shape) < 0.1, FORBIDDEN, values)
        factors.append((scope, values))
    model = Model.from_arrays(sizes, factors, sense="probability" if task == "pr" else "min-cost")
    observed = {v: 0 for v in range(len(sizes)) if rng.random() < 0.1}
    problem = prepare(model, task, observed)
    order = rng.permutation(problem.free).tolist()
    machine = cuda_machine() if draw(st.booleans()) else cpu_machine(2)
    return Planned(problem, make_plan(Elimination(problem, order, machine, 2**30)))
