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
from elimina._core import LinkedTrees, RankedFactors, TreesTooLargeError
from elimina.methods import estimation
from elimina.methods import incremental_trees as estimates
from elimina.methods.estimate_methods import INCREMENTAL_TREES
from elimina.methods.factor_lists import factors_of
from elimina.methods.incremental_trees import incremental_trees
from elimina.methods.sum_estimate import Limits, hellinger_distances
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.observations import evidence_of
from elimina.problem.preparation import prepare
from tests.random_models import models
from tests.reference import brute

few = settings(max_examples=40, deadline=None)


def ample() -> Limits:
    return Limits(math.inf, 1 << 26)


def run(model, evidence=None, limits=None):
    problem = prepare(model, "pr", evidence or {})
    return problem, list(incremental_trees(problem, CheckedOptions(), limits or ample()))


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


class Forced:
    """Trees over a problem's variables in the sequence of the model, with cliques as small as the factors allow."""

    def __init__(self, model, most_cells=1, most_bytes=1 << 26, forecasts=None):
        self.problem = prepare(model, "pr", {})
        self.factors = factors_of(self.problem)
        self.sizes = np.array([model.sizes[v] for v in self.problem.free], dtype=np.int64)
        starts, members = self.factors.scopes
        self.scopes = [set(map(int, scope)) for scope in np.split(members, starts[1:-1])]
        ranked = RankedFactors(self.sizes, starts, members.astype(np.int32), self.factors.values)
        self.trees = LinkedTrees(ranked, most_cells, most_bytes, forecasts)
        self.trees.build(math.inf)
        self.largest = max(most_cells, *self.sizes, *[self.cells(scope) for scope in self.scopes])

    @property
    def log_z(self):
        return self.trees.log_z + self.factors.log_scale

    def cells(self, scope):
        return math.prod(int(self.sizes[v]) for v in scope)

    def cliques(self, number):
        """Return the scopes of a tree's cliques, and the parents."""
        starts, members, parents = self.trees.cliques(number)
        return [set(map(int, scope)) for scope in np.split(members, starts[1:-1])], parents.tolist()


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
    forced = Forced(model)
    trees = forced.trees
    shares = trees.pass_backward(math.inf)
    for _ in range(2):
        assert np.isfinite(shares).all()
        for v, share in zip(forced.problem.free, np.split(shares, np.cumsum(forced.sizes)[:-1]), strict=True):
            assert share.sum() == pytest.approx(1)
            assert ((share > 0) >= (np.array(posteriors[v]) > 0)).all()
        trees.pass_forward(math.inf)
        shares = trees.pass_backward(math.inf)
    for number in range(len(trees)):
        assert all(forced.cells(scope) <= forced.largest for scope in forced.cliques(number)[0])
    if trees.is_exact:
        assert forced.log_z == pytest.approx(log_z)


@few
@given(st.integers(0, 10**6))
def test_cliques_of_a_variable_are_connected(seed):
    forced = Forced(ladder(12, seed))
    for number in range(len(forced.trees)):
        scopes, parents = forced.cliques(number)
        assert all(parent < clique for clique, parent in enumerate(parents))
        for v in set().union(*scopes):
            members = {clique for clique, scope in enumerate(scopes) if v in scope}
            assert sum(parents[clique] in members for clique in members) == len(members) - 1


@few
@given(st.integers(0, 10**6))
def test_trees_have_every_factor_and_variable_once(seed):
    forced = Forced(ladder(10, seed))
    factors, eliminated = zip(*map(forced.trees.members, range(len(forced.trees))), strict=True)
    assert sorted(number for pairs in factors for number, _ in pairs.tolist()) == list(range(len(forced.scopes)))
    assert sorted(v for pairs in eliminated for v, _ in pairs.tolist()) == list(range(len(forced.sizes)))
    for number, pairs in enumerate(factors):
        scopes, _ = forced.cliques(number)
        assert all(forced.scopes[factor] <= scopes[clique] for factor, clique in pairs.tolist())


@few
@given(st.integers(0, 10**6), st.integers(2, 12))
def test_divergence_is_that_of_the_removed_information(seed, most_cells):
    # Two tables with the first variable join to four variables; both fit a clique, their join does not.
    rng = np.random.default_rng(seed)
    shape = [int(size) for size in rng.integers(2, 4, 5)]
    tables = [Table(scope, rng.random([shape[v] for v in scope])) for scope in ((0, 1, 2), (1, 2, 3), (2, 3, 4))]
    model = Model([Variable(f"v{v}", size) for v, size in enumerate(shape)], tables, sense="probability")
    trees = Forced(model, most_cells).trees
    divergence = 0.0
    if trees.interface(0) is not None and len(trees) == 2:
        (starts, members, _), values = trees.interface(0)
        scopes = [scope.tolist() for scope in np.split(members, starts[1:-1])]
        variables = sorted(set(members.tolist()))
        joint, first = np.ones([shape[v] for v in variables]), 0
        for scope in scopes:
            cells = math.prod(shape[v] for v in scope)
            factor = values[first : first + cells]
            joint = joint * factor.reshape([shape[v] if v in scope else 1 for v in variables])
            first += cells
        assert joint.sum() == pytest.approx(1)
        exact = exact_front(tables, trees.members(0), variables, shape)
        divergence = float((exact * np.log(exact / joint)).sum())
        for scope in scopes:
            axes = tuple(axis for axis, v in enumerate(variables) if v not in scope)
            assert joint.sum(axis=axes) == pytest.approx(exact.sum(axis=axes))
    if len(trees) <= 2:
        assert trees.divergence == pytest.approx(divergence, abs=1e-12)


def exact_front(tables, members, variables, shape):
    """Return the distribution of a tree's front by brute force."""
    product = np.ones(shape)
    for number, _ in members[0].tolist():
        table = tables[number]
        product = product * table.dense().reshape([size if v in table.scope else 1 for v, size in enumerate(shape)])
    summed = product.sum(axis=tuple(v for v in range(len(shape)) if v not in variables))
    return summed / summed.sum()


def test_larger_cliques_and_further_passes_come_nearer():
    errors = []
    for seed in range(5):
        model = spin_grid(4, seed)
        log_z, posteriors = brute.posteriors(model)
        forced = Forced(model, 16)
        trees = forced.trees
        exact = np.concatenate(posteriors)

        def distance(shares, exact=exact):
            return float(hellinger_distances(shares, exact, np.full(16, 2)).mean())

        first = distance(trees.pass_backward(math.inf))
        trees.pass_forward(math.inf)
        errors.append((first, distance(trees.pass_backward(math.inf)), abs(forced.log_z - log_z)))
    first, second, log_error = np.mean(errors, axis=0)
    assert second < 0.5 * first < 0.05
    assert log_error < 0.05


def test_forecasts_leave_the_sum_consistent():
    model = spin_grid(4, 3)
    log_z, _ = brute.posteriors(model)
    trees = Forced(model, 16).trees
    trees.pass_backward(math.inf)
    again = Forced(model, 16, forecasts=trees.forecast(math.inf))
    again.trees.pass_backward(math.inf)
    again.trees.pass_forward(math.inf)
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
    running = incremental_trees(problem, CheckedOptions(), limits)
    assert next(running).shares is None
    limits.deadline = math.inf
    assert next(running).shares is not None
    again = incremental_trees(problem, CheckedOptions(), Limits(time.monotonic() - 1, 1 << 26))
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
        Forced(model, 16, most_bytes=2000)


def test_tables_that_do_not_fit_are_refused():
    assert run(spin_grid(3, 0), limits=Limits(math.inf, 100))[1] == []


def test_estimates_without_numbers_are_passed_over(monkeypatch):
    monkeypatch.setattr(estimation, "METHODS", (estimation.MarginalMethod(INCREMENTAL_TREES, 1, 1.0),))
    running = estimation.Estimation(prepare(spin_grid(6, 0), "pr", {}), CheckedOptions(), 1 << 26)
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
    running = incremental_trees(problem, CheckedOptions(), Limits(math.inf, 1 << 22))
    estimate = list(itertools.islice(running, 3))[-1]
    sizes = np.array([model.sizes[v] for v in problem.free])
    distance = hellinger_distances(estimate.shares, shares, sizes).mean()
    with (data_dir / "approximate" / "peers.tsv").open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["instance"] == name]
    peers = [float(row["hd_mean"]) for row in rows if row["method"] != "dai-JT" and row["hd_mean"]]
    assert distance < min(peers)


def test_no_approximation_states_an_error_of_zero() -> None:
    """Sequences with larger cliques may be the same trees: their agreement proves nothing."""
    rng = np.random.default_rng(0)
    sizes = [60, 2] * 4
    factors = [((u, v), np.exp(rng.normal(size=(sizes[u], sizes[v])))) for u, v in itertools.combinations(range(8), 2)]
    problem = prepare(Model.from_arrays(sizes, factors, sense="probability"), "pr", {})
    limits = Limits(time.monotonic() + 60, 3_000_000)
    estimates = list(itertools.islice(incremental_trees(problem, CheckedOptions(), limits), 40))
    assert len(estimates) > 10
    assert all(estimate.log_z_error > 0 and estimate.error > 0 for estimate in estimates)
