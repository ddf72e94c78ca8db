"""Sequences of linked clique trees against brute force, and what approximations must keep."""

from __future__ import annotations

import csv
import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.methods import estimation
from elimina.methods import incremental_trees as estimates
from elimina.methods.clique_fronts import CliqueFront
from elimina.methods.clique_tables import TableShapes
from elimina.methods.incremental_trees import incremental_trees
from elimina.methods.linked_trees import LinkedTrees, TreesTooLargeError
from elimina.methods.ranked_factors import RankedFactors
from elimina.methods.sum_estimate import Limits, hellinger_distances
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.options import Options
from elimina.problem.observations import evidence_of
from elimina.problem.preparation import prepare
from tests.random_models import models
from tests.reference import brute

few = settings(max_examples=40, deadline=None)


def ample() -> Limits:
    return Limits(math.inf, 1 << 26)


def run(model, evidence=None, limits=None):
    problem = prepare(model, "pr", evidence or {})
    return problem, list(incremental_trees(problem, Options(), limits or ample()))


def spin_grid(side: int, seed: int, strength: float = 1.0) -> Model:
    """A square grid of spins with random couplings and fields."""
    rng = np.random.default_rng(seed)
    factors = [Table([v], np.exp([x := rng.normal() * 0.5, -x])) for v in range(side * side)]
    for row, column in itertools.product(range(side), repeat=2):
        v = row * side + column
        for other in ([v + 1] if column + 1 < side else []) + ([v + side] if row + 1 < side else []):
            coupling = rng.normal() * strength
            factors.append(Table([v, other], np.exp([[coupling, -coupling], [-coupling, coupling]])))
    return Model([Variable(f"v{v}", 2) for v in range(side * side)], factors, sense="probability")


def ladder(length: int, seed: int, zeros: float = 0.0) -> Model:
    """Random tables of three variables with up to three states, that overlap."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 4, length)]
    factors = []
    for _ in range(length + 3):
        scope = [int(v) for v in rng.choice(length, 3, replace=False)]
        values = rng.random([sizes[v] for v in scope])
        factors.append(Table(scope, np.where(rng.random(values.shape) < zeros, 0.0, values)))
    return Model([Variable(f"v{v}", size) for v, size in enumerate(sizes)], factors, sense="probability")


def forced(model, most_cells: int = 1, evidence=None, forecasts=None):
    """Return the problem, its factors, and trees with cliques as small as the factors allow."""
    problem = prepare(model, "pr", evidence or {})
    factors = RankedFactors.of(problem, 0, 0.1)
    largest = max([factors.shapes.cells(scope) for scope, _ in factors.tables], default=1)
    return problem, factors, LinkedTrees(factors, max(most_cells, largest), ample(), forecasts)


@few
@given(models("probability"), st.data())
def test_without_approximation_sums_and_marginals_are_exact(model, data):
    evidence = {
        v: data.draw(st.integers(0, size - 1)) for v, size in enumerate(model.sizes) if data.draw(st.booleans())
    }
    problem, listed = run(model, evidence)
    weights = {v: [float(i == value) for i in range(model.sizes[v])] for v, value in evidence.items()}
    log_z, posteriors = brute.posteriors(model, weights)
    last = listed[-1]
    if log_z == -math.inf:
        assert last.log_z == -math.inf
        return
    assert last.log_z == pytest.approx(log_z, abs=1e-10, rel=1e-10)
    assert last.log_z_error == 0
    exact = [x for v in problem.free for x in posteriors[v]]
    assert last.shares == pytest.approx(exact, abs=1e-10)
    assert not last.errors.any()
    assert len(last.errors) == len(problem.free)


@few
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 0.3]))
def test_cliques_stay_small_and_no_possible_state_is_lost(seed, zeros):
    model = ladder(9, seed, zeros)
    log_z, posteriors = brute.posteriors(model)
    if log_z == -math.inf:
        assert run(model)[1][-1].log_z == -math.inf
        return
    _, factors, trees = forced(model)
    largest = max(factors.shapes.cells(scope) for scope, _ in factors.tables)
    shares = trees.pass_backward()
    for _ in range(2):
        assert np.isfinite(shares).all()
        places = np.cumsum([0, *factors.shapes.sizes])
        for rank, v in enumerate(factors.order):
            share = shares[places[rank] : places[rank + 1]]
            assert share.sum() == pytest.approx(1)
            assert ((share > 0) >= (np.array(posteriors[v]) > 0)).all()
        trees.pass_forward()
        shares = trees.pass_backward()
    for tree in trees.trees:
        assert all(factors.shapes.cells(scope) <= largest for scope in tree.scopes.values())
    if trees.is_exact:
        assert trees.log_z == pytest.approx(log_z)


@few
@given(st.integers(0, 10**6))
def test_cliques_of_a_variable_are_connected(seed):
    _, _, trees = forced(ladder(12, seed))
    for tree in trees.trees:
        links = sum(map(len, tree.neighbours.values())) // 2
        roots = sum(edge.parent < 0 for edge in tree.edges)
        assert links == len(tree.scopes) - roots
        for v in {v for scope in tree.scopes.values() for v in scope}:
            members = {n for n, scope in tree.scopes.items() if v in scope}
            shared = sum(len(tree.neighbours[n] & members) for n in members) // 2
            assert shared == len(members) - 1


@few
@given(st.integers(0, 10**6))
def test_trees_have_every_factor_and_variable_once(seed):
    _, factors, trees = forced(ladder(10, seed))
    assert sorted(number for tree in trees.trees for number, _ in tree.factors) == list(range(len(factors.tables)))
    assert sorted(v for tree in trees.trees for v in tree.eliminated) == list(range(len(factors.order)))
    for tree in trees.trees:
        assert all(set(factors.tables[number][0]) <= set(tree.scopes[clique]) for number, clique in tree.factors)


def joint_of(front, shape):
    """Return the joint distribution of a front: beliefs over those of the separators."""
    joint = np.ones(shape)
    for number, scope in front.scopes.items():
        joint = joint * front.beliefs[number].reshape([size if v in scope else 1 for v, size in enumerate(shape)])
        for other in front.neighbours[number]:
            if other < number:
                separator = front.separator(number, other)
                axes = tuple(axis for axis, v in enumerate(scope) if v not in separator)
                shared = front.beliefs[number].reshape([shape[v] for v in scope]).sum(axis=axes, keepdims=True)
                joint = joint / shared.reshape([size if v in separator else 1 for v, size in enumerate(shape)])
    return joint


@few
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_divergence_is_that_of_the_removed_information(seed, most_cells):
    rng = np.random.default_rng(seed)
    shape = [int(size) for size in rng.integers(2, 4, 4)]
    exact = rng.dirichlet(np.ones(math.prod(shape))).reshape(shape)
    front = CliqueFront(TableShapes(shape))
    front.place((0, 1, 2, 3), exact.reshape(-1), 0)
    front.separate(0, max(most_cells, shape[0]))
    joint = joint_of(front, shape)
    assert joint.sum() == pytest.approx(1)
    assert float((exact * np.log(exact / joint)).sum()) == pytest.approx(front.divergence, abs=1e-12)
    for number, scope in front.scopes.items():
        axes = tuple(v for v in range(4) if v not in scope)
        assert front.beliefs[number] == pytest.approx(exact.sum(axis=axes).reshape(-1))
    members = {v for scope in front.scopes.values() if 0 in scope for v in scope}
    assert math.prod(shape[v] for v in members) <= max(most_cells, shape[0])


def test_larger_cliques_and_further_passes_come_nearer():
    errors = []
    for seed in range(5):
        model = spin_grid(4, seed)
        log_z, posteriors = brute.posteriors(model)
        problem, factors, trees = forced(model, 16)
        order = np.argsort(factors.order)
        exact = np.array([x for v in problem.free for x in posteriors[v]])

        def distance(shares, order=order, exact=exact):
            ranked = shares.reshape(-1, 2)[order].reshape(-1)
            return float(hellinger_distances(ranked, exact, np.full(16, 2)).mean())

        first = distance(trees.pass_backward())
        trees.pass_forward()
        errors.append((first, distance(trees.pass_backward()), abs(trees.log_z - log_z)))
    first, second, log_error = np.mean(errors, axis=0)
    assert second < 0.5 * first < 0.05
    assert log_error < 0.05


def test_forecasts_leave_the_sum_consistent():
    model = spin_grid(4, 3)
    log_z, _ = brute.posteriors(model)
    _, _, trees = forced(model, 16)
    trees.pass_backward()
    forecast = trees.forecast()
    assert forecast
    _, _, again = forced(model, 16, forecasts=forecast)
    again.pass_backward()
    again.pass_forward()
    assert again.log_z == pytest.approx(log_z, abs=0.05)


def test_contradictory_evidence_is_proven_despite_approximation():
    cycle = [Table([v, (v + 1) % 9], [[1.0, 0.0], [0.0, 1.0]]) for v in range(8)]
    model = Model(
        [Variable(f"v{v}", 2) for v in range(9)],
        [*cycle, Table([8, 0], [[0.0, 1.0], [1.0, 0.0]])],
        sense="probability",
    )
    assert run(model)[1][-1].log_z == -math.inf


@pytest.mark.parametrize("factors", [[], [Table([0, 1], [[0.1, 0.2], [0.3, 0.4]])]])
def test_variables_without_factors_are_uniform(factors):
    model = Model(
        [Variable("a", 2), Variable("b", 2), Variable("c", 3), Variable("d", 1)], factors, sense="probability"
    )
    problem, listed = run(model)
    assert problem.free == (0, 1, 2)
    assert listed[-1].shares[4:] == pytest.approx([1 / 3] * 3)
    assert listed[-1].log_z == pytest.approx(math.log(3 if factors else 12))


def test_a_model_without_variables_has_its_constant():
    model = Model([], [Table([], 0.25)], sense="probability")
    _, listed = run(model)
    assert listed[-1].log_z == pytest.approx(math.log(0.25))
    assert len(listed[-1].shares) == 0


def test_a_deadline_ends_it_and_a_later_one_lets_it_go_on():
    problem = prepare(spin_grid(6, 0), "pr", {})
    limits = Limits(time.monotonic() - 1, 1 << 26)
    running = incremental_trees(problem, Options(), limits)
    assert next(running).shares is None
    limits.deadline = math.inf
    assert next(running).shares is not None
    again = incremental_trees(problem, Options(), Limits(time.monotonic() - 1, 1 << 26))
    assert [estimate.log_z for estimate in again] == [None]


def test_estimates_are_the_same_on_every_run(monkeypatch):
    monkeypatch.setattr(estimates, "_FIRST_CELLS", 16)
    first, second = (run(spin_grid(5, 1), limits=Limits(math.inf, 40_000))[1] for _ in range(2))
    assert len(first) == len(second) > 1
    for one, other in zip(first, second, strict=True):
        assert one.log_z == other.log_z
        assert (one.shares == other.shares).all()


def test_memory_is_a_limit(monkeypatch):
    monkeypatch.setattr(estimates, "_FIRST_CELLS", 16)
    model = spin_grid(6, 2)
    _, listed = run(model, limits=Limits(math.inf, 60_000))
    assert 16 <= max(estimate.figures["largest_clique"] for estimate in listed) < 2000
    with pytest.raises(TreesTooLargeError):
        LinkedTrees(RankedFactors.of(prepare(model, "pr", {}), 0, 0.1), 16, Limits(math.inf, 2000))


def test_tables_that_do_not_fit_are_refused():
    assert run(spin_grid(3, 0), limits=Limits(math.inf, 100))[1] == []


def test_estimates_without_numbers_are_passed_over(monkeypatch):
    monkeypatch.setattr(estimation, "METHODS", (estimation.Method(incremental_trees, 1, 1.0),))
    running = estimation.Estimation(prepare(spin_grid(6, 0), "pr", {}), Options(), 1 << 26)
    assert list(running.improve(time.monotonic() - 1)) == []
    assert running.best is None
    assert list(running.improve(math.inf))[-1] is running.best


@pytest.mark.data
@pytest.mark.parametrize("name", ["Segmentation_13", "Segmentation_16", "Promedus_37"])
def test_first_trees_are_nearer_than_every_peer(name, data_dir):
    path = data_dir / "uai" / "2014_MAR" / f"{name}.uai"
    model = elimina.read(path)
    evidence = elimina.read_evidence(path.with_suffix(".uai.evid"), model)
    problem = prepare(model, "pr", evidence_of(model, evidence))
    exact = elimina.solve(model, "mar", evidence=evidence).marginals
    shares = np.concatenate([list(exact[model.variables[v].name].values()) for v in problem.free])
    running = incremental_trees(problem, Options(), Limits(math.inf, 1 << 22))
    estimate = list(itertools.islice(running, 3))[-1]
    sizes = np.array([model.sizes[v] for v in problem.free])
    distance = hellinger_distances(estimate.shares, shares, sizes).mean()
    with (data_dir / "approximate" / "peers.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["instance"] == name]
    peers = [float(row["hd_mean"]) for row in rows if row["method"] != "dai-JT" and row["hd_mean"]]
    assert distance < min(peers)
