"""Local search with neighbourhoods solved by elimination: right totals, and optima of what is small."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina._core import LocalSearch
from elimina.generate import grid_model
from elimina.methods import local_search
from elimina.methods.local_search import AssignmentSearch
from elimina.problem.preparation import prepare
from tests.methods.test_soft_consistency import functions
from tests.random_models import models
from tests.reference import brute

MEMORY = 1 << 30


@pytest.mark.parametrize("kind", ["integer", "max-integer", "float", "probability"])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_the_best_is_never_worse_than_the_start(kind, data):
    model = data.draw(models(kind))
    sign = 1 if model.sense == "min-cost" else -1
    start = [data.draw(st.integers(0, size - 1)) for size in model.sizes]
    search = AssignmentSearch.of(
        prepare(model, "mpe", {}), MEMORY, *data.draw(st.tuples(st.integers(0, 3), st.integers(1, 3)))
    )
    if search is None:
        return
    search.start(start)
    search.run(math.inf, 1e4)
    slack = 1e-9 * max(1.0, abs(model.score(start)))
    assert math.isinf(model.score(start)) or sign * search.score <= sign * model.score(start) + slack
    best = brute.optimum(model)
    if best is not None and not math.isinf(search.score):
        assert model.is_beyond_bound(search.score) or sign * search.score >= sign * best - slack


@pytest.mark.parametrize("threads", [1, 2])
def test_a_grid_of_small_width_is_solved(threads):
    """Neighbourhoods grow to the whole grid, so that one elimination finds the optimum."""
    model = grid_model(5, 3, 0.1, seed=4)
    search = AssignmentSearch.of(prepare(model, "mpe", {}), MEMORY, 0, threads)
    search.run(math.inf, 1e6)
    assert search.score == elimina.solve(model).value


@pytest.mark.parametrize("threads", [1, 4])
def test_runs_are_reproducible(threads):
    model = grid_model(12, 4, 0.2, seed=4)
    found = []
    for _ in range(2):
        search = AssignmentSearch.of(prepare(model, "mpe", {}), MEMORY, 7, threads)
        search.run(math.inf, 1e6)
        search.run(math.inf, 1e7)
        found.append(search.best)
    assert found[0] == found[1]


def test_the_best_of_several_threads_counts():
    """Each searches by itself, and all go on from the best."""
    model = grid_model(12, 4, 0.2, seed=4)
    problem = prepare(model, "mpe", {})
    alone = [AssignmentSearch.of(problem, MEMORY, seed) for seed in (7, 8, 9)]
    for search in alone:
        search.run(math.inf, 1e6)
    together = AssignmentSearch.of(problem, MEMORY, 7, 3)
    assert together.run(math.inf, 1e6)
    assert len({search.score for search in alone}) > 1
    assert together.score == min(search.score for search in alone)


def test_little_memory_has_fewer_searches(monkeypatch):
    """Each keeps costs of its own."""
    made = []
    monkeypatch.setattr(local_search, "LocalSearch", lambda *given: made.append(given[-1]) or LocalSearch(*given))
    problem = prepare(grid_model(12, 4, 0.2, seed=4), "mpe", {})
    for memory in (MEMORY, 1 << 18):
        assert AssignmentSearch.of(problem, memory, 0, 4) is not None
    assert made[0] == 4 > made[1] >= 1


@pytest.mark.parametrize(
    ("sizes", "scopes", "cells", "message"),
    [
        ([2], [[1]], [2], "a scope names no variable"),
        ([2], [[0]], [3], "other cells"),
        ([0], [[0]], [0], "each variable has a value"),
        ([2], [], [2], "other cells"),
    ],
)
def test_the_core_refuses_other_tables(sizes, scopes, cells, message):
    with pytest.raises((ValueError, IndexError), match=message):
        LocalSearch(sizes, *functions(scopes, [np.zeros(count) for count in cells]), 0, 1)


def test_the_core_refuses_other_starts():
    with pytest.raises(ValueError, match="takes a thread"):
        LocalSearch([2], *functions([], [np.empty(0)]), 0, 0)
    search = LocalSearch([2], *functions([], [np.empty(0)]), 0, 1)
    with pytest.raises(IndexError, match="no such value"):
        search.start([2])
    with pytest.raises(ValueError, match="other variables"):
        search.start([0, 0])
