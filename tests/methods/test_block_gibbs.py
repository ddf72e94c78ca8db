"""Gibbs sampling of blocks: close to brute force, by as much as it says, and exact where one block is everything."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from elimina._core import BlockGibbs
from elimina.methods import block_gibbs as method
from elimina.methods import sum_estimate
from elimina.methods.factor_lists import factors_of
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.model.model import Model
from elimina.model.table import Scopes
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from tests.reference import brute
from tests.ticking import let_looks_take

SWEEP_SECONDS = 2e-3
FOREST_CELLS = 16
"""Cells of tables that eliminate a forest of variables of up to four states, and no more of most models."""


@pytest.fixture
def even_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep takes the same time everywhere, so that rounds have the same lengths."""
    clock = let_looks_take(0.0, monkeypatch, method, sum_estimate)
    run = method._Chains.run

    def run_and_wait(chains: method._Chains, sweeps: int, seconds: float) -> int:
        done = run(chains, sweeps, seconds)
        clock.advance(done * SWEEP_SECONDS)
        return done

    monkeypatch.setattr(method._Chains, "run", run_and_wait)


def exact(problem: Problem) -> np.ndarray:
    """The marginals of the free variables, by enumeration."""
    model = problem.model
    weights = {v: [float(i == value) for i in range(model.sizes[v])] for v, value in problem.fixed.items()}
    _, marginals = brute.posteriors(model, weights)
    return np.concatenate([*(np.array(marginals[v]) for v in problem.free), []])


def sizes_of(problem: Problem) -> np.ndarray:
    return np.array([problem.model.sizes[v] for v in problem.free])


def estimates(problem: Problem, count: int, seed: int = 0, memory_bytes: int = 1 << 24) -> list[SumEstimate]:
    """The first estimates, without a limit of time."""
    limits = Limits(time.monotonic() + 600, memory_bytes, seed)
    return list(itertools.islice(method.block_gibbs(problem, CheckedOptions(), limits), count))


def random_model(seed: int, variables: int = 7, factors: int = 10) -> Model:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, variables)
    tables = []
    for _ in range(factors):
        scope = tuple(int(v) for v in rng.permutation(variables)[: int(rng.integers(1, 4))])
        tables.append((scope, np.exp(rng.normal(size=[sizes[v] for v in scope]))))
    return Model.from_arrays(sizes.tolist(), tables, sense="probability")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are forests, so that small models have several."""
    monkeypatch.setattr(method, "MAX_CELLS", FOREST_CELLS)


def sampler_of(problem: Problem, chains: int, seed: int, cells: float = FOREST_CELLS) -> BlockGibbs:
    factors = factors_of(problem)
    starts, members = factors.scopes
    scopes = (sizes_of(problem), starts, members.astype(np.int32))
    return BlockGibbs(*scopes, factors.values, np.ones(1), chains, seed, cells, 600.0)


def means_of(problem: Problem, sampler: BlockGibbs, chains: int, sweeps: int, powers: int = 1) -> np.ndarray:
    """Mean marginals of each chain."""
    sizes = sizes_of(problem)
    sums, draws = np.zeros((chains, sizes.sum())), np.zeros((chains, len(sizes)))
    moments = np.zeros((chains, powers, 4))
    assert sampler.run(sweeps, sums.reshape(-1), draws.reshape(-1), moments.reshape(-1), 600.0) == sweeps
    return sums / np.repeat(draws, sizes, axis=1)


@pytest.mark.parametrize("seed", range(8))
def test_long_chains_approach_brute_force(seed: int) -> None:
    problem = prepare(random_model(seed), "mar", {0: 0} if seed % 2 else {})
    means = means_of(problem, sampler_of(problem, 4, seed), 4, 20_000)
    assert hellinger_distances(means.mean(axis=0), exact(problem), sizes_of(problem)).max() < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_blocks_of_any_size_approach_brute_force(seed: int) -> None:
    problem = prepare(random_model(seed, variables=9, factors=18), "mar", {})
    cells = float(np.random.default_rng(seed).integers(4, 200))
    means = means_of(problem, sampler_of(problem, 4, seed, cells), 4, 5_000)
    assert hellinger_distances(means.mean(axis=0), exact(problem), sizes_of(problem)).max() < 0.02


def test_a_model_that_fits_the_tables_is_one_block_and_exact_after_one_sweep() -> None:
    problem = prepare(random_model(7, variables=9, factors=18), "mar", {})
    means = means_of(problem, sampler_of(problem, 1, 0, 4.0**9), 1, 1)
    assert means[0] == pytest.approx(exact(problem))


def test_a_tree_is_one_block_and_exact_after_one_sweep() -> None:
    rng = np.random.default_rng(1)
    tables = [((v, int(rng.integers(0, v))), rng.random((3, 3)) + 0.1) for v in range(1, 12)]
    problem = prepare(Model.from_arrays([3] * 12, tables, sense="probability"), "mar", {})
    means = means_of(problem, sampler_of(problem, 1, 0), 1, 1)
    assert means[0] == pytest.approx(exact(problem))


def test_products_of_many_small_factors_stay_numbers() -> None:
    """A star of 400 leaves, each of which makes one state of the centre far less likely."""
    tables = [((0, leaf), np.array([[1.0, 1e-9], [1e-9, 1e-9]])) for leaf in range(1, 401)]
    problem = prepare(Model.from_arrays([2] * 401, tables, sense="probability"), "mar", {})
    means = means_of(problem, sampler_of(problem, 1, 0), 1, 2)
    assert np.isfinite(means).all()
    assert means[0, 0] == pytest.approx(1.0)


def test_the_same_seed_draws_the_same_states() -> None:
    problem = prepare(random_model(3), "mar", {})
    one, other, different = (means_of(problem, sampler_of(problem, 2, seed), 2, 50) for seed in (1, 1, 2))
    assert (one == other).all()
    assert (one != different).any()


def test_stated_errors_are_those_of_the_means() -> None:
    """The mean of many runs' squared errors is that of the stated ones."""
    problem = prepare(random_model(5, variables=8, factors=16), "mar", {})
    sizes, shares = sizes_of(problem), exact(problem)
    stated, true = [], []
    for seed in range(30):
        means = means_of(problem, sampler_of(problem, 8, seed), 8, 60)
        mean = means.mean(axis=0)
        stated.append(method.estimated_errors(means, mean, sizes))
        true.append(hellinger_distances(mean, shares, sizes))
    ratio = np.sqrt(np.square(stated).mean() / np.square(true).mean())
    assert 0.7 < ratio < 1.4


@pytest.mark.usefixtures("small_blocks")
def test_errors_shrink_as_chains_grow() -> None:
    problem = prepare(random_model(2, variables=8, factors=16), "mar", {})
    answers = estimates(problem, 60)
    assert answers[-1].error < 0.5 * answers[0].error
    assert answers[-1].log_z is None


def strong_grid(seed: int) -> Model:
    """A grid of 4 x 4 spins whose chains stay in one of several modes."""
    rng = np.random.default_rng(seed)
    signs = np.array([1, -1])
    tables = [((v,), np.exp(rng.normal(0, 0.3) * signs)) for v in range(16)]
    edges = [(v, v + 1) for v in range(16) if v % 4 < 3] + [(v, v + 4) for v in range(12)]
    tables += [(edge, np.exp(rng.uniform(-5, 5) * np.outer(signs, signs))) for edge in edges]
    return Model.from_arrays([2] * 16, tables, sense="probability")


@pytest.mark.usefixtures("even_pace", "small_blocks")
@pytest.mark.parametrize("seed", range(4))
def test_replicas_pass_between_modes_and_tell_the_sum(seed: int) -> None:
    problem = prepare(strong_grid(seed), "mar", {})
    factors, sizes = factors_of(problem), sizes_of(problem)
    limits = Limits(time.monotonic() + 600, 1 << 24, seed)
    powers = method._powers(factors, sizes, limits)
    assert powers[0] == 1
    assert powers[-1] == 0
    assert (np.diff(powers) < 0).all()
    chains = method._Chains(factors, sizes, powers, 4, limits, 32)
    for _ in range(60):
        chains.advance(limits)
    means = chains.half_chains().mean(axis=0)
    log_z, error = chains.log_z()
    assert hellinger_distances(means, exact(problem), sizes).mean() < 0.03
    assert abs(log_z - brute.posteriors(problem.model, {})[0]) < 5 * error + 0.02
    assert error < 0.5


@pytest.mark.usefixtures("even_pace", "small_blocks")
def test_chains_that_stay_in_their_modes_get_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two modes, between which no block passes: all variables are equal, in pairs of factors that form cliques.

    Replicas begin at random: as long as all chains are in one mode, they would state no error.
    """
    begun: list[int] = []
    powers_of = method._powers
    monkeypatch.setattr(method, "_powers", lambda *arguments: begun.append(len(answers)) or powers_of(*arguments))
    pairs = list(itertools.combinations(range(9), 2))
    tables = [(pair, np.exp(4 * np.eye(2))) for pair in pairs] + [((0,), np.array([1.0, 2.0]))]
    problem = prepare(Model.from_arrays([2] * 9, tables, sense="probability"), "mar", {})
    answers: list[SumEstimate] = []
    run = method.block_gibbs(problem, CheckedOptions(), Limits(time.monotonic() + 600, 1 << 24))
    for _ in range(method.TRIAL_ROUNDS * 5):
        answers.append(next(run))
    before = answers[begun[0] - 1]
    assert all(answer.shares is before.shares for answer in answers[begun[0] :][: method.TRIAL_ROUNDS - 1])
    assert any(answer.log_z is not None for answer in answers)
    assert hellinger_distances(answers[-1].shares, exact(problem), sizes_of(problem)).mean() < 0.1


@pytest.mark.usefixtures("small_blocks")
def test_sums_beyond_the_range_of_floats_are_unknown() -> None:
    """A uniform assignment of these variables has a product of about 1e-4200: no chain at power 0 draws another."""
    pairs = itertools.combinations(range(8), 2)
    model = Model.from_arrays([2] * 8, [(pair, [[1, 1e-300], [1e-300, 1]]) for pair in pairs], sense="probability")
    problem = prepare(model, "mar", {})
    factors, limits = factors_of(problem), Limits(time.monotonic() + 600, 1 << 24)
    chains = method._Chains(factors, sizes_of(problem), np.array([1.0, 0.0]), 2, limits, 32)
    chains.advance(limits)
    assert chains.log_z() == (None, np.inf)


def test_forbidden_tuples_and_tables_beyond_the_memory_have_no_estimate() -> None:
    equal = Model.from_arrays([2, 2], [((0, 1), np.eye(2)), ((0,), [1.0, 2.0])], sense="probability")
    assert estimates(prepare(equal, "mar", {}), 1) == []
    assert estimates(prepare(random_model(0), "mar", {}), 1, memory_bytes=1 << 10) == []


@pytest.mark.usefixtures("small_blocks")
def test_a_turn_ends_at_its_deadline_and_the_next_one_goes_on() -> None:
    problem = prepare(random_model(4), "mar", {})
    limits = Limits(time.monotonic() + 0.2, 1 << 24)
    run = method.block_gibbs(problem, CheckedOptions(), limits)
    first = next(run)
    while not limits.is_over:
        first = next(run)
    assert next(run).errors == pytest.approx(first.errors)
    limits.deadline = time.monotonic() + 60
    later = [next(run) for _ in range(3)]
    assert (later[-1].errors != first.errors).any()


def test_factors_have_positive_values_of_the_right_number() -> None:
    scopes = Scopes.of([(0, 1)])
    scope = (np.array([2, 2], dtype=np.int64), scopes.starts, scopes.members.astype(np.int32))
    with pytest.raises(ValueError, match="positive"):
        BlockGibbs(*scope, np.array([1.0, 0.0, 1.0, 1.0]), np.ones(1), 1, 0, 4.0, 1.0)
    with pytest.raises(ValueError, match="positive"):
        BlockGibbs(*scope, np.array([1.0, 2.0, 1.0, 1.0]), np.ones(1), 1, 0, 4.0, 1.0)
    with pytest.raises(ValueError, match="one value"):
        BlockGibbs(*scope, np.ones(3), np.ones(1), 1, 0, 4.0, 1.0)
    with pytest.raises(ValueError, match="first power"):
        BlockGibbs(*scope, np.ones(4), np.array([0.5]), 1, 0, 4.0, 1.0)
    with pytest.raises(ValueError, match="has a table"):
        BlockGibbs(*scope, np.ones(4), np.ones(1), 1, 0, 1.0, 1.0)


def test_chains_that_stay_in_their_modes_are_as_far_off_as_each_of_them():
    """A mean over chains whose starts decide on their modes has the error of one chain."""
    chains = np.array([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    spread = np.array([0.2])
    stuck = method._Answer(chains, chains.mean(axis=0), spread, spread / math.sqrt(2))
    assert stuck.is_stuck
    assert stuck.estimate(None, math.inf).error == pytest.approx(0.4)
    assert len(stuck.estimate(None, math.inf).folds.weights) == 1  # they measure no other estimate
    moving = stuck._replace(by_halves=spread)
    assert moving.estimate(None, math.inf).error == pytest.approx(0.2)
    assert len(moving.estimate(None, math.inf).folds.weights) == len(chains)
