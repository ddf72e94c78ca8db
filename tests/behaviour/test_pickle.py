"""All protocols of pickle copy what users hold."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import elimina
from elimina import Model, StateIndex, Table, Variable, cp

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture(params=PROTOCOLS)
def copied(request):
    return lambda given: pickle.loads(pickle.dumps(given, request.param))


def test_models_answers_and_plans(copied):
    sparse = Table([1], [0.5], sizes=[3], rows=[[2]], default=0.25)
    model = Model(
        [Variable("a", 2, ["no", "yes"]), Variable("b", 3)], [Table([0], [0.3, 0.7]), sparse], sense="probability"
    )
    again = copied(model)
    assert [(v.name, v.size, v.states) for v in again.variables] == [("a", 2, ("no", "yes")), ("b", 3, None)]
    assert again.variables[0].index("yes") == 1
    assert again.factors[1].rows.tolist() == [[2]]
    np.testing.assert_array_equal(again.factors[1].dense(), sparse.dense())
    for task in ("mpe", "mar", "pr"):
        result = elimina.solve(model, task)
        assert copied(result).to_json() == result.to_json()
        plan = elimina.plan(model, task)
        assert str(copied(plan)) == str(plan)
    assert copied(elimina.JunctionTree(model)).marginals()["a"].tolist() == pytest.approx([0.3, 0.7])
    assert copied(StateIndex(1)) == StateIndex(1)


def test_constraint_models(copied):
    model = cp.Model()
    x = model.int_var(0, 5, "x")
    rule = 2 * x >= 3
    model.add(rule)
    model.minimize(x)
    assert copied(model).solve().value == 2
    assert copied(model.solve()).value == 2
    assert str(copied(rule)) == str(rule)
