"""Importance sampling against brute force: unbiased sums, intervals at their level, marginals and their errors."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from elimina import Model
from elimina.methods import importance_sampling as method
from elimina.methods import sum_estimate
from elimina.methods.importance_sampling import Estimator, SampleForm, _expected_squares, form_of, importance_sampling
from elimina.methods.join_graph_proposals import join_graph_proposal
from elimina.methods.proposals import (
    LoggedTables,
    Proposal,
    forward_proposal,
    message_proposal,
    mini_bucket_plan,
    mixture_of,
)
from elimina.methods.sum_estimate import Limits, hellinger_distances
from elimina.methods.weight_statistics import WeightStatistics
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from tests.methods.test_junction_tree import joint
from tests.ticking import let_looks_take

OPTIONS = CheckedOptions(threads=1, ibound=1)
MEMORY = 10**8


def _model(rng: np.random.Generator, count: int = 7, coupling: float = 1.0) -> Model:
    """A dense random model whose buckets have to be divided at i-bound 1, with zeros beside the first states."""
    sizes = [int(size) for size in rng.integers(2, 4, count)]
    factors = []
    for u, v in itertools.combinations(range(count), 2):
        table = np.exp(coupling * rng.normal(size=(sizes[u], sizes[v])))
        table[1:, 1:] *= rng.random((sizes[u] - 1, sizes[v] - 1)) > 0.1
        factors.append(((u, v), table))
    return Model.from_arrays(sizes, factors, sense="probability")


def _proposal(problem: Problem) -> Proposal:
    plan = mini_bucket_plan(problem, problem.free, OPTIONS, MEMORY, math.inf)
    return message_proposal(problem, plan, OPTIONS, None)


def _graph_proposal(problem: Problem) -> Proposal:
    proposal = join_graph_proposal(problem, problem.free, 16 * 300, 60.0)
    assert proposal is not None
    return proposal


def _mixed_proposal(problem: Problem) -> Proposal:
    return mixture_of([_proposal(problem), _graph_proposal(problem)])


PROPOSALS = {"buckets": _proposal, "graph": _graph_proposal, "mixture": _mixed_proposal}


def _form(proposal: Proposal, group: int, batch: int) -> SampleForm:
    return SampleForm(proposal, group, batch, 1.0)


@pytest.mark.parametrize(
    ("kind", "group"), [("buckets", 1), ("buckets", 16), ("graph", 1), ("graph", 16), ("mixture", 1)]
)
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_unbiased_and_weights_bounded(kind, group, seed):
    """The mean of many groups is within 4 standard errors of the sum, and no weight exceeds the mini-buckets' bound."""
    rng = np.random.default_rng(seed)
    model = _model(rng)
    problem = prepare(model, "pr", {})
    proposal = PROPOSALS[kind](problem)
    exact = joint(model, {}).sum()
    count = 16_384
    logs, states = np.zeros(count), np.empty((len(proposal.variables), count), dtype=np.int32)
    sizes = np.zeros(count // group if group > 1 else 0)
    proposal.sampler.draw(seed, 0, states, logs, sizes, 1)
    means = np.exp(logs + proposal.log_constant).reshape(-1, group).mean(axis=1)
    assert (means <= math.exp(proposal.log_bound) * (1 + 1e-12)).all()
    assert exact <= math.exp(proposal.log_bound) * (1 + 1e-12)
    assert abs(means.mean() - exact) < 4 * means.std() / math.sqrt(len(means)) + 1e-12 * exact
    assert (sizes <= group + 1e-9).all()
    # Values of weight 0 are impossible, all others possible.
    possible = joint(model, {}).reshape(model.sizes)
    codes = dict(zip(proposal.variables, states, strict=True))
    index = tuple(codes.get(v, np.zeros(count, dtype=np.int32)) for v in range(len(model.sizes)))
    assert (possible[index][logs > -math.inf] > 0).all()


@pytest.mark.parametrize("group", [1, 16])
def test_intervals_cover(group):
    """95 % intervals of random models; 160 of them miss more often than 17 times once in 1,000 tests."""
    misses = 0
    for seed in range(160):
        model = _model(np.random.default_rng(seed), 5, 1.5)
        problem = prepare(model, "pr", {})
        exact = joint(model, {}).sum()
        proposal = _proposal(problem)
        estimator = Estimator(problem, _form(proposal, group, 256), seed, 1)
        estimator.draw()
        estimate = estimator.estimate(proposal.log_bound)
        low, high, _ = estimate.interval
        misses += not low - 1e-12 <= math.log(exact) <= high + 1e-12
    assert misses <= 17


@pytest.mark.parametrize("group", [1, 64])
def test_marginals_and_their_errors(group):
    """The stated distances are within a factor of 3 of the true ones on the mean of models."""
    quotients = []
    for seed in range(8):
        model = _model(np.random.default_rng(seed), 6, 1.5)
        problem = prepare(model, "pr", {})
        estimator = Estimator(problem, _form(_proposal(problem), group, 1024), seed, 1)
        for _ in range(4):
            estimator.draw()
        shares, errors = estimator.marginals()
        table = joint(model, {})
        axes = [tuple(u for u in range(table.ndim) if u != v) for v in problem.free]
        exact = np.concatenate([table.sum(axis=axis) / table.sum() for axis in axes])
        sizes = np.array([model.sizes[v] for v in problem.free])
        distances = hellinger_distances(shares, exact, sizes)
        assert (distances < 6 * errors).all()
        quotients.append(distances.mean() / errors.mean())
    assert 1 / 3 < np.mean(quotients) < 3


@pytest.mark.parametrize("size", [0.5, 1.0, 1.7, 4.0, 60.0])
def test_rare_states_have_the_expected_distance_of_a_dirichlet_distribution(size):
    rng, sizes = np.random.default_rng(0), np.array([2, 3, 4])
    shares = np.array([1, 0, 0.5, 0.5, 0, 0.1, 0.2, 0.3, 0.4])
    squares = _expected_squares(shares, sizes, size)
    for square, first, count in zip(squares, np.cumsum(sizes) - sizes, sizes, strict=True):
        known = shares[first : first + count]
        drawn = rng.dirichlet(max(0.0, size - 1) * known + 1 / count, 20_000)
        assert square == pytest.approx(1 - (np.sqrt(drawn) @ np.sqrt(known)).mean(), rel=0.03)


def test_samples_with_a_heavy_tail_measure_nothing():
    problem = prepare(_model(np.random.default_rng(0), 6, 1.5), "pr", {})
    estimator = Estimator(problem, _form(_proposal(problem), 1, 1024), 0, 1)
    estimator.draw()
    assert len(estimator.folds().weights) == 8
    estimator.weights = WeightStatistics()
    estimator.weights.add(1.2 * np.random.default_rng(0).exponential(size=1024))
    weights, shares = estimator.folds()
    assert weights.tolist() == [1.0]
    assert shares[0] == pytest.approx(estimator.marginals()[0])


@pytest.mark.parametrize("kind", ["buckets", "graph"])
@pytest.mark.parametrize("seed", range(4))
def test_samples_are_weighed_as_they_were_drawn(kind, seed):
    """The products over the weights are the probabilities of being drawn, dead ends beside them."""
    model = _model(np.random.default_rng(seed), 6)
    problem = prepare(model, "pr", {})
    proposal = PROPOSALS[kind](problem)
    drawn, logs = np.empty((6, 500), dtype=np.int32), np.zeros(500)
    proposal.sampler.draw(seed, 0, drawn, logs, np.zeros(0), 1)
    weights = np.zeros(500)
    proposal.sampler.weigh(drawn, weights, 2)
    is_alive = logs > -math.inf
    assert weights[is_alive] == pytest.approx(logs[is_alive], abs=1e-12)
    states = np.indices(model.sizes).reshape(6, -1)
    weights = np.zeros(states.shape[1])
    proposal.sampler.weigh(np.ascontiguousarray(states[list(proposal.variables)], dtype=np.int32), weights, 1)
    products = joint(model, {}).reshape(model.sizes)[tuple(states)]
    densities = np.where(products > 0, products / np.exp(weights + proposal.log_constant), 0.0)
    frequency = np.bincount(np.ravel_multi_index(drawn[np.argsort(proposal.variables)], model.sizes)[is_alive])
    assert densities.sum() <= 1 + 1e-9
    assert densities.sum() == pytest.approx(is_alive.mean(), abs=4 * math.sqrt(0.25 / 500))
    assert set(np.flatnonzero(frequency)) <= set(np.flatnonzero(densities))


def test_a_mixture_sums_what_each_of_its_proposals_misses():
    """Each message allows two of four states, so that each proposal sees a half of the sum."""

    def proposal(message: list[float]) -> Proposal:
        tables = LoggedTables()
        tables.add([0, 1], 0, np.zeros((2, 4)))
        with np.errstate(divide="ignore"):
            tables.add([1], 1, np.log(message), 0)
        sampler = tables.sampler(np.array([2, 4]), 0, 2, is_weighted=True)
        return Proposal(sampler, (0, 1), 0.0, math.inf, False, 0)

    halves = [proposal([1.0, 3.0, 0.0, 0.0]), proposal([0.0, 0.0, 2.0, 1.0])]
    for sampled, sums in (*((half, 4.0) for half in halves), (mixture_of(halves), 8.0)):
        states, logs = np.empty((2, 40_000), dtype=np.int32), np.zeros(40_000)
        sampled.sampler.draw(1, 0, states, logs, np.zeros(0), 1)
        weights = np.exp(logs)
        assert abs(weights.mean() - sums) < 4 * weights.std() / math.sqrt(len(weights))


def test_likelihood_weighting_is_unbiased():
    rng = np.random.default_rng(1)
    factors = []
    for v in range(8):
        parents = [int(u) for u in rng.permutation(v)[:2]]
        table = rng.random([3] * (len(parents) + 1))
        factors.append(((*parents, v), table / table.sum(axis=-1, keepdims=True)))
    model = Model.from_arrays([3] * 8, factors, sense="probability", children=range(8))
    evidence = {7: 1, 6: 0, 4: 2}
    problem = prepare(model, "pr", evidence)
    proposal = forward_proposal(problem, MEMORY)
    exact = joint(model, {v: np.eye(3)[x] for v, x in evidence.items()}).sum()
    logs, states = np.zeros(20_000), np.empty((len(proposal.variables), 20_000), dtype=np.int32)
    proposal.sampler.draw(1, 0, states, logs, np.zeros(0), 1)
    weights = np.exp(logs + proposal.log_constant)
    assert abs(weights.mean() - exact) < 4 * weights.std() / math.sqrt(len(weights))


def test_estimates_get_better_until_the_deadline_and_after_it_was_moved(monkeypatch):
    clock = let_looks_take(0.02, monkeypatch, method, sum_estimate)
    model = _model(np.random.default_rng(3), 14, 0.7)
    problem = prepare(model, "mar", {})
    limits = Limits(clock.monotonic() + 5, MEMORY, 1)
    run = importance_sampling(problem, OPTIONS, limits)
    estimates = []
    for _ in range(200):
        estimates.append(next(run))
        if limits.is_over:
            break
    errors = [estimate.log_z_error for estimate in estimates]
    assert errors[-1] <= errors[0]
    limits.deadline = clock.monotonic() + 5
    last = next(run)
    assert last.figures["samples"] > estimates[-1].figures["samples"]
    assert last.shares.shape == (sum(model.sizes[v] for v in problem.free),)
    assert last.upper >= last.log_z
    assert last.interval.low <= last.log_z <= last.interval.high


def test_a_sum_of_zero():
    model = Model.from_arrays([2, 2], [((0, 1), np.zeros((2, 2)))], sense="probability")
    limits = Limits(time.monotonic() + 5, MEMORY, 1)
    estimates = list(importance_sampling(prepare(model, "pr", {}), OPTIONS, limits))
    assert [estimate.log_z for estimate in estimates] == [-math.inf]


def test_memory_that_holds_no_samples():
    model = _model(np.random.default_rng(3), 14, 0.7)
    limits = Limits(time.monotonic() + 5, 1000, 1)
    assert list(importance_sampling(prepare(model, "pr", {}), OPTIONS, limits)) == []


def test_mini_buckets_take_the_memory_of_a_graph_that_does_not_fit():
    """The factors alone exceed the graph's share of the memory."""
    rng = np.random.default_rng(0)
    tables = [((v, v + 1, v + 2), rng.random((40, 40, 40))) for v in range(0, 9, 2)] + [((0, 10), rng.random((40, 40)))]
    problem = prepare(Model.from_arrays([40] * 11, tables, sense="probability"), "mar", {})
    cells = sum(table.size for _, table in tables)
    limits = Limits(time.monotonic() + 60, int(3.2 * 8 * cells), 1)
    run = importance_sampling(problem, CheckedOptions(threads=1), limits)
    assert any(estimate.shares is not None for estimate in itertools.islice(run, 3))


def test_pilot_chooses_filters_for_uneven_weights():
    rng = np.random.default_rng(0)
    even, uneven = (_proposal(prepare(_model(rng, 10, coupling), "pr", {})) for coupling in (0.01, 8.0))
    assert form_of(even, MEMORY, 1, 1).group == 1
    assert form_of(uneven, MEMORY, 1, 1).group > 1
    assert form_of(even, 100, 1, 1) is None
