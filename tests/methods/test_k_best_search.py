"""Branch and bound for the k best assignments, beside brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import FORBIDDEN, Model
from elimina.methods import k_best_search
from elimina.methods.k_best_search import KBestSearch
from elimina.problem.preparation import prepare
from tests.methods.test_best_assignments import allowed, random_model

MEMORY = 1 << 30


def values_of(search: KBestSearch) -> list[float]:
    ranked, is_whole = search.ranked()
    assert is_whole
    assert len({tuple(assignment) for _, assignment in ranked}) == len(ranked)
    return [value for value, _ in ranked]


@given(
    seed=st.integers(0, 10**6),
    sense=st.sampled_from(["min-cost", "max-cost", "probability"]),
    k=st.integers(1, 40),
    threads=st.integers(1, 3),
    shift_seconds=st.sampled_from([0.0, 1.0]),
    known=st.integers(0, 20),
)
@settings(max_examples=200, deadline=None)
def test_the_best_assignments(seed, sense, k, threads, shift_seconds, known):
    """Shifted costs and a known assignment, of any value, change nothing."""
    model = random_model(seed, sense)
    every = allowed(model)
    expected = list(every.values())[:k]
    problem = prepare(model, "mpe", {})
    search = KBestSearch(problem, problem.free, k, threads, MEMORY, shift_seconds=shift_seconds)
    if not search.is_possible:
        assert not expected or not problem.free
        return
    if known < len(every):
        search.add_assignment(list(every)[known])
    search.run(60)
    assert search.is_complete
    assert values_of(search) == pytest.approx(expected, abs=1e-8)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_turns_find_the_same_as_one_run_and_bound_the_rest(seed):
    model = random_model(seed, "min-cost", 8)
    expected = list(allowed(model).values())[:5]
    problem = prepare(model, "mpe", {})
    search = KBestSearch(problem, problem.free, 5, 1, MEMORY)
    if not search.is_possible:
        return
    for _ in range(10_000):
        search.run(0.0)
        if search.is_complete:
            break
        # All assignments that are better than the bound are known.
        better = [value for value in expected if value < search.bound - 1e-6]
        assert values_of(search)[: len(better)] == pytest.approx(better, abs=1e-8)
        search.run(1e-4)
    search.run(60)
    assert values_of(search) == pytest.approx(expected, abs=1e-8)


def test_tables_or_solutions_beyond_the_memory_and_forbidden_ones_are_refused():
    model = random_model(1, "min-cost")
    problem = prepare(model, "mpe", {})
    assert not KBestSearch(problem, problem.free, 5, 1, 100).is_possible
    assert not KBestSearch(problem, problem.free, 10**9, 1, MEMORY).is_possible
    nothing = Model.from_arrays([2, 2], [((0, 1), np.full((2, 2), FORBIDDEN))])
    assert not KBestSearch(prepare(nothing, "mpe", {}), (0, 1), 5, 1, MEMORY).is_possible


def test_a_call_that_is_over_evaluates_some_assignments_only(monkeypatch):
    model = Model.from_arrays([4] * 8, [((v, v + 1), np.zeros((4, 4), dtype=int)) for v in range(7)])
    problem = prepare(model, "mpe", {})
    search = KBestSearch(problem, problem.free, 4**8, 1, MEMORY)
    search.run(60)
    assert search.is_complete
    monkeypatch.setattr(k_best_search, "_RANKING_SECONDS", 0.0)
    ranked, is_whole = search.ranked(lambda: True)
    assert len(ranked) == 1
    assert not is_whole
