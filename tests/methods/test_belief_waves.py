"""Belief propagation in waves: exact on trees, and Bethe's approximation elsewhere.

The kernels run on the CPU, compiled by the host's compiler, and on a GPU where there is one.
"""

from __future__ import annotations

import contextlib
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina._core import RegionGraph, RegionPropagation
from elimina.backends.cuda.message_waves import MessageWaves
from elimina.methods import belief_waves
from elimina.methods.factor_lists import factors_of
from elimina.methods.sum_estimate import Limits
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from tests.kernels.host import HostArrays, HostDevice
from tests.methods.test_generalised_belief_propagation import grid
from tests.reference import brute

KINDS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    return HostDevice("waves.cu", tmp_path_factory.mktemp("kernels"))


@pytest.fixture(params=KINDS)
def lent(request):
    """A device and its arrays."""
    with contextlib.ExitStack() as stack:
        if request.param == "cpu":
            yield request.getfixturevalue("host"), HostArrays()
        else:
            from elimina.backends.registry import get_backend

            device = get_backend("cuda")
            yield device, stack.enter_context(device.arrays())


def random_tree(rng: np.random.Generator, variables: int, zeros: float) -> Model:
    """A model whose factors of up to three variables form no loop."""
    sizes = [2, *rng.integers(1, 4, variables - 1).tolist()]
    tables = []
    first = 1
    while first < variables:
        count = min(int(rng.integers(1, 3)), variables - first)
        scope = rng.permutation([int(rng.integers(first)), *range(first, first + count)]).tolist()
        tables.append((tuple(scope), rng.random([sizes[v] for v in scope])))
        first += count
    tables += [((int(v),), rng.random(sizes[v])) for v in rng.integers(0, variables, variables)]
    tables = [(scope, np.where(rng.random(cells.shape) < zeros, 0.0, cells)) for scope, cells in tables]
    return Model.from_arrays(sizes, tables, sense="probability")


def waves_of(model, device, arrays):
    problem = prepare(model, "mar", {})
    factors = factors_of(problem)
    sizes = np.array([model.sizes[v] for v in problem.free])
    return problem, factors, MessageWaves(device, arrays, sizes, *belief_waves.arrays_of(factors, sizes))


@pytest.mark.parametrize("seed", range(40))
def test_trees_are_exact(lent, seed):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, int(rng.integers(2, 9)), zeros=0.2 * (seed % 2))
    log_z, marginals = brute.posteriors(model, {})
    problem, factors, waves = waves_of(model, *lent)
    if factors.log_scale == -math.inf:
        assert log_z == -math.inf
        return
    residual = waves.run(30, 0.0)
    if log_z == -math.inf:
        assert waves.log_sum() + factors.log_scale < -100
        return
    assert residual < 1e-12
    assert waves.log_sum() + factors.log_scale == pytest.approx(log_z, abs=1e-9)
    np.testing.assert_allclose(waves.marginals(), np.concatenate([marginals[v] for v in problem.free]), atol=1e-9)


@pytest.mark.parametrize(("states", "coupling"), [(2, 0.3), (3, 0.4), (5, 0.3)])
@pytest.mark.parametrize("damping", [0.0, 0.5])
def test_grids_reach_the_same_fixed_point_as_region_propagation(lent, states, coupling, damping):
    model = grid(5, 6, coupling, states)
    _, factors, waves = waves_of(model, *lent)
    assert waves.run(200, damping) < 1e-10
    starts, members = factors.scopes
    sizes = np.array(model.sizes, dtype=np.int64)
    graph = RegionGraph(sizes, starts, members.astype(np.int32), 1, 1 << 20, 60.0)
    regions = RegionPropagation(graph, starts, members.astype(np.int32), factors.values)
    assert regions.filter_tuples(60.0)
    assert regions.run(1e-12, 0.0, 1000, 60.0)
    assert waves.log_sum() == pytest.approx(regions.log_sum(), abs=1e-8)
    marginals = regions.marginals(np.arange(len(sizes), dtype=np.int32))
    np.testing.assert_allclose(waves.marginals(), marginals, atol=1e-8)


def test_messages_of_small_factors_are_far_from_the_end_of_floats(lent):
    """Strong factors that contradict each other leave finite numbers."""
    strong = np.array([[1.0, 1e-300], [1e-300, 1.0]])
    tables = [((v, (v + 1) % 5), strong) for v in range(5)]
    model = Model.from_arrays([2] * 5, [*tables, ((0,), [1.0, 1e-200]), ((2,), [1e-200, 1.0])], sense="probability")
    waves = waves_of(model, *lent)[2]
    waves.run(50, 0.25)
    assert np.isfinite(waves.marginals()).all()


@given(st.integers(0, 2**32 - 1))
def test_arrays_hold_all_factors(seed):
    """The product of all arrays at an assignment is that of the model."""
    rng = np.random.default_rng(seed)
    model = random_tree(rng, int(rng.integers(2, 8)), zeros=0.0)
    problem = prepare(model, "mar", {})
    factors = factors_of(problem)
    sizes = np.array([model.sizes[v] for v in problem.free])
    biases, classes = belief_waves.arrays_of(factors, sizes)
    states = rng.integers(0, sizes)
    log = factors.log_scale + biases[np.cumsum(sizes) - sizes + states].sum()
    for group in classes:
        cells = np.ravel_multi_index(tuple(states[group.scopes]), group.sizes)
        log += np.log(group.tables[cells, np.arange(group.factor_count)]).sum()
    values = dict(zip(problem.free, states.tolist(), strict=True)) | problem.fixed
    weight = math.prod(factor.at({v: values[v] for v in factor.scope}) for factor in model.factors)
    assert log == pytest.approx(math.log(weight), abs=1e-9)


def test_the_method_settles_and_gives_way_between_estimates(host, monkeypatch):
    monkeypatch.setattr(belief_waves, "backend_of", lambda options: host)
    monkeypatch.setattr(belief_waves, "MIN_TIME_SHARE", 0.0)
    monkeypatch.setattr(belief_waves, "ROUND_WAVES", 2)
    model = grid(12, 12, 0.3)
    problem = prepare(model, "mar", {})
    limits = Limits(0.0, 1 << 26)
    estimates = belief_waves.belief_waves(problem, CheckedOptions(device="cuda"), limits)
    first = next(estimates)
    assert first.figures["residual"] > belief_waves.TOLERANCE
    limits.deadline = time.monotonic() + 60
    last = list(estimates)[-1]
    assert last.figures["residual"] <= belief_waves.TOLERANCE
    _, factors, waves = waves_of(model, host, HostArrays())
    waves.run(300, 0.25)
    assert last.log_z == pytest.approx(waves.log_sum() + factors.log_scale, abs=1e-3)
    np.testing.assert_allclose(last.shares, waves.marginals(), atol=1e-5)


def test_no_gpu_no_estimate():
    problem = prepare(grid(3, 3, 0.3), "mar", {})
    limits = Limits(time.monotonic() + 5, 1 << 24)
    assert list(belief_waves.belief_waves(problem, CheckedOptions(device="cpu"), limits)) == []


@pytest.mark.gpu
def test_the_method_settles_on_a_gpu():
    model = grid(60, 60, 0.3)
    problem = prepare(model, "mar", {})
    limits = Limits(time.monotonic() + 60, 1 << 26)
    *_, last = belief_waves.belief_waves(problem, CheckedOptions(device="cuda"), limits)
    assert last.figures["residual"] <= belief_waves.TOLERANCE
    factors = factors_of(problem)
    starts, members = factors.scopes
    sizes = np.array(model.sizes, dtype=np.int64)
    graph = RegionGraph(sizes, starts, members.astype(np.int32), 1, 1 << 24, 60.0)
    regions = RegionPropagation(graph, starts, members.astype(np.int32), factors.values)
    assert regions.filter_tuples(60.0)
    assert regions.run(1e-10, 0.0, 1000, 60.0)
    assert last.log_z == pytest.approx(regions.log_sum() + factors.log_scale, abs=1e-2)
    np.testing.assert_allclose(last.shares, regions.marginals(np.arange(len(sizes), dtype=np.int32)), atol=1e-5)
