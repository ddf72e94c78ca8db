"""Belief propagation by sweeps: exact on trees, equal to the smallest join graph elsewhere."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from elimina._core import MessageSweeps
from elimina.methods import message_sweeps as method
from elimina.methods.factor_lists import factors_of
from elimina.methods.junction_structure import MarginalQuery, choose_structure
from elimina.methods.posterior_estimation import quick_posteriors
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from tests.methods.test_join_graph_propagation import estimates as join_graphs
from tests.methods.test_join_graph_propagation import exact, grid, random_model


def estimates(problem: Problem, seconds: float = 60.0) -> list[SumEstimate]:
    return list(method.belief_propagation(problem, CheckedOptions(), Limits(time.monotonic() + seconds, 1 << 30)))


@pytest.fixture(autouse=True)
def small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of any size are estimated."""
    monkeypatch.setattr(method, "MIN_VARIABLES", 0)


@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(20))
def test_trees_are_exact(seed: int, zeros: float) -> None:
    problem = prepare(random_model(np.random.default_rng(seed), 8, 0, zeros, is_tree=True), "mar", {0: 0})
    log_z, marginals = exact(problem)
    if log_z == -math.inf:
        return
    last = estimates(problem)[-1]
    assert last.log_z == pytest.approx(log_z, abs=1e-9)
    assert last.shares == pytest.approx(np.concatenate([*marginals, []]), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_trees_of_larger_factors_are_exact(seed: int) -> None:
    """Each factor shares one variable with those before it."""
    rng = np.random.default_rng(seed)
    sizes, tables = [2], []
    while len(sizes) < 8:
        new = range(len(sizes), len(sizes) + int(rng.integers(1, 4)))
        sizes += rng.integers(1, 4, len(new)).tolist()
        scope = rng.permutation([int(rng.integers(0, new[0])), *new]).tolist()
        tables.append((scope, rng.random([sizes[v] for v in scope]) + 0.01))
    problem = prepare(Model.from_arrays(sizes, tables, sense="probability"), "mar", {})
    log_z, marginals = exact(problem)
    last = estimates(problem)[-1]
    assert last.log_z == pytest.approx(log_z, abs=1e-9)
    assert last.shares == pytest.approx(np.concatenate(marginals), abs=1e-9)


def test_sweeps_and_join_graphs_agree_on_a_grid() -> None:
    problem = prepare(grid(6, 0.4), "mar", {})
    last, first = estimates(problem)[-1], join_graphs(problem)[0]
    assert last.shares == pytest.approx(first.shares, abs=1e-4)
    assert last.log_z == pytest.approx(first.log_z, abs=1e-3)


def test_pairs_of_two_states_are_like_those_of_more() -> None:
    """A third state that is forbidden takes the general path."""
    rng = np.random.default_rng(3)
    pairs = [(int(u), int(v)) for u, v in (rng.choice(12, 2, replace=False) for _ in range(25))]
    tables = [rng.random((2, 2)) + 0.1 for _ in pairs]
    wider = []
    for table in tables:
        wide = np.zeros((3, 3))
        wide[:2, :2] = table
        wider.append(wide)
    two = Model.from_arrays([2] * 12, list(zip(pairs, tables, strict=True)), sense="probability")
    three = Model.from_arrays([3] * 12, list(zip(pairs, wider, strict=True)), sense="probability")
    shares = [estimates(prepare(model, "mar", {}))[-1].shares for model in (two, three)]
    assert shares[1].reshape(12, 3)[:, :2] == pytest.approx(shares[0].reshape(12, 2), abs=1e-5)


def test_small_models_begin_with_a_join_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(method, "MIN_VARIABLES", 37)
    assert estimates(prepare(grid(6, 0.4), "mar", {})) == []


def test_the_first_estimate_is_made_even_when_time_is_up() -> None:
    problem = prepare(grid(6, 0.4), "mar", {})
    first = next(method.belief_propagation(problem, CheckedOptions(), Limits(time.monotonic() - 1, 1 << 30)))
    assert first.shares is not None


def test_messages_outside_the_range_of_floats_prove_nothing() -> None:
    tiny = [((0,), [1.0, 1e-200]), ((0,), [1e-200, 1.0]), ((0, 1), [[1e-200, 1e-200], [1e-200, 1.0]])]
    model = Model.from_arrays([2, 2], [*tiny, ((1,), [1.0, 1e-300])], sense="probability")
    assert all(not estimate.is_zero for estimate in estimates(prepare(model, "mar", {})))


def test_quick_posteriors_answer_a_query() -> None:
    model = grid(5, 0.3)
    structure = choose_structure(model, {0: 1}, None, CheckedOptions())
    result = quick_posteriors(MarginalQuery(model, {0: 1}, range(25), True, structure, {}), 60)
    assert result is not None
    assert result.status == "estimated"
    assert result.error > 0
    assert next(iter(result.marginals.values())) == {0: 0.0, 1: 1.0}
    assert len(result.marginals) == 25


def test_arguments_are_checked() -> None:
    factors = factors_of(prepare(grid(3, 0.4), "mar", {}))
    starts, members = factors.scopes
    sizes = np.full(9, 2, dtype=np.int64)
    with pytest.raises(ValueError, match="one value"):
        MessageSweeps(sizes, starts, members.astype(np.int32), factors.values[1:])
    with pytest.raises(IndexError, match="no such variable"):
        MessageSweeps(sizes[1:], starts, members.astype(np.int32), factors.values)
    messages = MessageSweeps(sizes, starts, members.astype(np.int32), factors.values)
    with pytest.raises(ValueError, match="damping"):
        messages.run(1e-6, 1.0, 1, 1.0)
