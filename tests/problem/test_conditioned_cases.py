"""The sum given each of several assignments, against the sums of the separate problems."""

from __future__ import annotations

import numpy as np
import pytest

from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.problem.cases import condition_on_each
from elimina.problem.preparation import Problem, prepare, restrict
from tests.seeds import run_seed


def log_sum(problem: Problem) -> float:
    """Return the logarithm of a sum over all free variables, from dense tables."""
    operands: list[object] = []
    for table in problem.tables:
        operands += [table.dense(), list(table.scope)]
    with np.errstate(divide="ignore"):
        return float(np.log(np.einsum(*operands, [])))


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_sums_given_several_assignments(is_sparse: bool, count: int) -> None:
    rng = np.random.default_rng(run_seed())
    sizes = [2, 3, 4, 2, 3]
    for _ in range(20):
        tables = []
        for scope in ((0, 1), (1, 2, 3), (3, 4), (2,), (4, 0), ()):
            values = rng.random([sizes[v] for v in scope])
            table = Table(scope, values)
            if is_sparse and scope:
                rows = np.argwhere(values < 0.5).astype(np.int32)
                table = Table(scope, values[values < 0.5], sizes=values.shape, rows=rows, default=0.25)
            tables.append(table)
        variables = [Variable(f"case {v}", size) for v, size in enumerate(sizes)]
        problem = prepare(Model(variables, tables, sense="probability"), "pr", {4: 1})
        conditioned = rng.permutation(4)[: rng.integers(1, 5)].tolist()
        assignments = [{v: int(rng.integers(sizes[v])) for v in conditioned} for _ in range(count)]
        together = condition_on_each(problem, assignments)
        separate = [log_sum(restrict(problem, values)) for values in assignments]
        assert together.free[-1] == 5
        assert set(together.free) == {0, 1, 2, 3, 5}.difference(conditioned)
        assert together.model.variables[5].name == "case 5"
        assert log_sum(together) == pytest.approx(np.logaddexp.reduce(separate), abs=1e-12)
