"""Problems whose numbers of cells no float holds: answers are bounds, and every figure prints."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

import elimina
from elimina import Bounds, Model, Options, Table, Variable
from elimina.model.table import SizeProducts
from elimina.planning.order import find_order
from elimina.planning.tree_statistics import tree_statistics
from elimina.problem.preparation import prepare
from tests import calls
from tests.adversary import wide


def dense_graph(variables: int = 1100, size: int = 10) -> Model:
    """Return a random network of pairs; elimination would take more than 10^400 cells."""
    rng = random.Random(1)
    tables = []
    for _ in range(6 * variables):
        cells = np.array([rng.randint(1, 9) for _ in range(size**2)]).reshape(size, size)
        tables.append(Table(rng.sample(range(variables), 2), cells / 2))
    return Model([Variable(f"x{v}", size) for v in range(variables)], tables, sense="probability")


@pytest.mark.parametrize("method", ["auto", "mbe"])
@pytest.mark.parametrize("task", ["mpe", "pr"])
def test_answers_are_bounds(task, method):
    found = calls.solve(dense_graph(), task, method=method, device="cpu", time_limit=2.0)
    # Beside its bounds, a sum is estimated if there is time.
    assert found.status in ("bounded", "estimated")
    assert math.isfinite(found.upper_bound)
    json.loads(found.to_json())
    assert str(found)


def test_figures_of_orders_and_trees_are_exact():
    model = dense_graph(variables=900)
    order = find_order(model.sizes, [table.scope for table in model.factors], method="min-degree", iterations=1)
    problem = prepare(model, "mar", {})
    found = tree_statistics(problem, order.order)
    assert order.largest_table == 10**order.width > 10**308
    assert found.largest_clique == 10 ** (order.width + 1)
    assert found.average_clique <= found.largest_clique
    assert f"e{order.width + 1} at most" in str(found)


def test_products_of_sizes():
    rng = random.Random(0)
    sizes = [rng.choice([1, 2, 3, 7, 2**31 - 1]) for _ in range(2000)]
    product = SizeProducts(sizes)
    for length in (0, 1, 64, 65, 2000):
        scope = rng.sample(range(len(sizes)), length)
        assert product.of(scope) == math.prod(sizes[v] for v in scope)


def test_gaps_of_counts_beyond_floats():
    assert Bounds(0.0, 1, 2**5000).gap == Bounds(0.0, 0, 2**5000).gap == math.inf
    assert Bounds(0.0, 2**5000, 3 * 2**5000).gap == 2.0
    model = Model([Variable(f"x{v}", 2) for v in range(3000)], [], sense="min-cost")
    page = elimina.report(model, "count", options=Options(threads=1))
    assert page.result is not None
    assert page.result.value == 2**3000


@pytest.mark.parametrize("seed", range(5))
def test_seeds_of_the_adversary(seed):
    wide.check(wide.make(random.Random(seed), wide.Setting()))


def test_sparse_plans_of_sums_beyond_floats():
    """Steps of 10^1000 cells in a plan whose other steps are on tuples."""
    random_rows = np.random.default_rng(0).integers(0, 4, (3, 1100)).astype(np.int32)
    listed = Table(range(1100), np.array([0.25, 0.5, 1.0]), sizes=[10] * 1100, rows=random_rows, default=1.0)
    pairs = dense_graph().factors[:1650]
    model = Model([Variable(f"x{v}", 10) for v in range(1100)], [listed, *pairs], sense="probability")
    plan = calls.plan(model, "pr", device="cpu", threads=1, tables="sparse")
    assert not plan.fits
    assert str(plan)
