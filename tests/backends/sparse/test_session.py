"""Programs on sparse tables: what dense steps read of them."""

from __future__ import annotations

import numpy as np
import pytest

from elimina import Model
from elimina.planning.step import JOIN
from tests import calls

SIZES = [5, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2]
SCOPES = [[0, 1, 2, 3, 8, 9, 10], [0, 4], [0, 5], [0, 6], [0, 7], [0, 11]]


@pytest.mark.parametrize("task", ["pr", "mar"])
def test_a_join_over_axes_that_none_of_its_tables_has(task):
    """The plan makes a matrix of tables of fewer axes, for a step that is a matrix product if it is dense."""
    random = np.random.default_rng(0)
    tables = [(scope, random.random([SIZES[v] for v in scope])) for scope in SCOPES]
    model = Model.from_arrays(SIZES, tables, sense="probability")
    options = {"device": "cpu", "tables": "sparse", "threads": 1, "order": range(12)}
    total = np.einsum(*(part for scope, values in tables for part in (values, scope)), [0])
    found = calls.solve(model, task, **options)
    assert found.log10_z == pytest.approx(np.log10(total.sum()))
    if task == "mar":
        np.testing.assert_allclose(list(found.marginals["x0"].values()), total / total.sum(), rtol=1e-9)
        return
    plan = calls.plan(model, task, **options)
    joins = [step for step in plan.steps if step.variable == JOIN]
    assert any(not any(o.strides[axis] for o in step.operands) for step in joins for axis in range(len(step.axes)))
