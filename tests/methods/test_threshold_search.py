"""Thresholds for bottleneck problems, beside brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.generate import grid_model
from elimina.methods import threshold_search
from elimina.methods.threshold_search import ThresholdSearch
from elimina.problem.preparation import prepare
from tests.random_models import KINDS, models
from tests.reference import brute

MEMORY = 1 << 30


def worst(model: elimina.Model, chosen: list[int]) -> float:
    """The worst value of the tables at an assignment."""
    values = [table.at(chosen) for table in model.factors]
    return max(values) if model.sense == "min-cost" else min(values)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), threads=st.integers(1, 2), is_started=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_worst_cost_is_that_of_brute_force(kind, data, threads, is_started):
    model = data.draw(models(kind).filter(lambda model: model.factors))
    observed = [v for v in range(len(model.variables)) if data.draw(st.integers(0, 4)) == 0]
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    problem = prepare(model, "bottleneck", evidence)
    search = ThresholdSearch(problem, problem.free, threads, MEMORY)
    expected = brute.bottleneck(model, evidence)
    first = problem.complete((), ())
    if is_started and expected is not None and worst(model, first) not in (elimina.FORBIDDEN, -elimina.FORBIDDEN):
        search.start(first, worst(model, first))
    search.run(60)
    assert search.is_possible
    assert search.is_complete
    if expected is None:
        assert (search.bound, search.chosen) == (None, None)
        return
    assert search.bound == expected
    assert search.chosen is not None
    assert all(search.chosen[v] == value for v, value in evidence.items())
    assert worst(model, search.chosen) == expected


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_bounds_hold_after_any_time(seed):
    model = grid_model(5, 3, 0.2, seed=seed)
    problem = prepare(model, "bottleneck", {})
    search = ThresholdSearch(problem, problem.free, 1, MEMORY)
    expected = elimina.solve(model, "bottleneck", device="cpu").value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_search, "_FIRST_SECONDS", 1e-6)
        for _ in range(200):
            search.run(1e-5)
            assert expected is None or (search.bound is not None and search.bound <= expected)
            if search.chosen is not None:
                assert worst(model, search.chosen) >= expected
    search.run(60)
    assert search.is_complete
    assert search.bound == expected


def test_tables_that_do_not_fit_are_left_alone():
    problem = prepare(grid_model(12, 4, 0, seed=1), "bottleneck", {})
    search = ThresholdSearch(problem, problem.free, 1, 1 << 10)
    search.run(1.0)
    assert not search.is_possible


def test_forbidden_integers_beside_floats():
    tables = [((0, 1), [[elimina.FORBIDDEN, 3], [8, 9]]), ((0, 1), np.array([[0.5, math.inf], [0.5, 2.5]]))]
    model = elimina.Model.from_arrays([2, 2], tables)
    problem = prepare(model, "bottleneck", {})
    search = ThresholdSearch(problem, problem.free, 1, MEMORY)
    search.run(10)
    assert (search.bound, search.chosen, search.is_complete) == (8, [1, 0], True)


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
def test_wide_models_are_solved(sense):
    rng = np.random.default_rng(3)
    cells = np.arange(26 * 26).reshape(26, 26)
    scopes = [
        *zip(cells[:, :-1].flat, cells[:, 1:].flat, strict=True),
        *zip(cells[:-1].flat, cells[1:].flat, strict=True),
    ]
    model = elimina.Model.from_arrays(
        [4] * cells.size, [(s, rng.integers(0, 100, (4, 4))) for s in scopes], sense=sense
    )
    result = elimina.solve(model, "bottleneck", device="cpu", memory="64MiB", time_limit=20)
    assert (result.status, result.stats["method"]) == ("optimal", "thresholds")
    assert worst(model, model.indices_of(result.assignment)) == result.value
