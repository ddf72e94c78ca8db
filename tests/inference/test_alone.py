"""Large tables that share no variable with another one."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
from elimina import Model, Table, Variable
from elimina.inference import call
from elimina.inference.call import best_alone
from elimina.table import FORBIDDEN
from tests import calls

HUGE = 2_000_000_000


def huge(values, rows, default, *others, sizes=(HUGE,), sense="min-cost"):
    variables = [Variable(f"x{v}", size) for v, size in enumerate((*sizes, 2, 2))]
    table = Table(range(len(sizes)), values, sizes=sizes, rows=rows, default=default)
    return Model(variables, [table, *others], sense=sense)


@pytest.mark.parametrize(
    ("values", "rows", "default", "sense", "expected"),
    [
        ([7, 2], [[0], [HUGE - 1]], 5, "min-cost", HUGE - 1),
        ([7, 8], [[1], [0]], 5, "min-cost", 2),
        ([7, 8], [[3], [0]], 5, "min-cost", 1),
        ([7.5, 8.25], [[0], [HUGE - 2]], 5, "max-cost", HUGE - 2),
        ([0.25, 0.5], [[0], [9]], 0.125, "probability", 9),
        ([3, FORBIDDEN], [[4], [5]], 4, "min-cost", 4),
        ([], np.zeros((0, 1), int), 1, "min-cost", 0),
    ],
)
@pytest.mark.parametrize("method", ["auto", "eliminate", "search"])
def test_the_best_value_needs_no_memory(values, rows, default, sense, expected, method):
    model = huge(values, rows, default, Table([1, 2], np.array([[1, 2], [3, 1.5]])), sense=sense)
    found = calls.solve(model, memory="64MB", device="cpu", method=method)
    assert found.status == "optimal"
    assert found.assignment["x0"] == expected
    assert found.value == model.score(model.indices_of(found.assignment))
    assert elimina.plan(model, memory="64MB", device="cpu").bytes["host"] < 1 << 20


def test_observed_and_shared_variables_keep_a_table_from_standing_alone():
    assert best_alone(huge([7], [[0, 0]], 5, sizes=(HUGE, 2)), {}) == {0: 0, 1: 1}
    assert best_alone(huge([7], [[0, 0]], 5, sizes=(HUGE, 2)), {1: 0}) == {}
    assert best_alone(huge([7], [[0, 0]], 5, Table([1], [0, 9]), sizes=(HUGE, 2)), {}) == {}


def test_a_table_that_forbids_all_other_tuples_is_left_to_the_plan():
    assert best_alone(huge([1], [[0]], FORBIDDEN), {}) == {}


def test_small_tables_against_enumeration(monkeypatch):
    monkeypatch.setattr(call, "_WRITTEN_CELLS", 0)
    random = np.random.default_rng(3)
    for _ in range(200):
        sizes = tuple(random.integers(1, 4, size=random.integers(1, 3)).tolist())
        numbers = random.permutation(int(np.prod(sizes)))[: random.integers(0, 8)]
        rows = np.stack(np.unravel_index(numbers, sizes), axis=1)
        sense = str(random.choice(["min-cost", "max-cost"]))
        model = huge(random.integers(-3, 4, len(rows)), rows, int(random.integers(-3, 4)), sizes=sizes, sense=sense)
        dense = model.factors[0].dense()
        best = best_alone(model, {})
        place = tuple(best[v] for v in range(len(sizes)))
        assert dense[place] == (dense.min() if sense == "min-cost" else dense.max())
