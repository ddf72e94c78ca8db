"""Join-graph propagation: exact on trees and where no bucket is divided, close to brute force elsewhere."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.methods import join_graph_propagation as method
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from tests.reference import brute


def exact(problem: Problem) -> tuple[float, list[np.ndarray]]:
    """The logarithm of the sum and the marginals of the free variables, by enumeration."""
    model = problem.model
    weights = {v: [float(i == value) for i in range(model.sizes[v])] for v, value in problem.fixed.items()}
    log_z, marginals = brute.posteriors(model, weights)
    return log_z, [np.array(marginals[v]) for v in problem.free]


def estimates(problem: Problem, memory_bytes: int = 1 << 30) -> list[SumEstimate]:
    limits = Limits(time.monotonic() + 60, memory_bytes)
    return list(method.propagate(problem, CheckedOptions(), limits))


def random_model(rng: np.random.Generator, variables: int, factors: int, zeros: float, is_tree: bool) -> Model:
    sizes = rng.integers(1, 4, variables)
    scopes = [(v, int(rng.integers(0, v))) for v in range(1, variables)] if is_tree else []
    while not is_tree and len(scopes) < factors:
        count = int(rng.integers(0, min(3, variables) + 1))
        scopes.append(tuple(int(v) for v in rng.permutation(variables)[:count]))
    tables = []
    for scope in scopes:
        cells = rng.random([sizes[v] for v in scope]) + 0.05
        tables.append((scope, np.where(rng.random(cells.shape) < zeros, 0.0, cells) * 10.0 ** rng.integers(-9, 9)))
    return Model.from_arrays(sizes.tolist(), tables, sense="probability")


@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_the_last_graph_is_exact(seed: int, is_tree: bool, has_zeros: bool) -> None:
    rng = np.random.default_rng(seed)
    variables = int(rng.integers(1, 7))
    model = random_model(rng, variables, int(rng.integers(0, 9)), 0.2 if has_zeros else 0.0, is_tree)
    evidence = {0: 0} if rng.random() < 0.5 else {}
    problem = prepare(model, "mar", evidence)
    log_z, marginals = exact(problem)
    rungs = estimates(problem)
    if log_z == -math.inf:
        # A table of zeros alone is proof; zeros of messages are not, since products may underflow.
        return
    last = rungs[-1]
    assert last.log_z == pytest.approx(log_z, abs=1e-5)
    assert last.shares == pytest.approx(np.concatenate([*marginals, []]), abs=1e-5)
    assert last.error == 0
    for estimate in rungs if marginals else ():
        assert estimate.shares is not None
        starts = np.cumsum([0, *map(len, marginals)])[:-1]
        assert np.add.reduceat(estimate.shares, starts) == pytest.approx(np.ones(len(marginals)))


def test_products_below_the_range_of_floats_are_not_called_impossible() -> None:
    tiny = [((0,), [1.0, 1e-200]), ((0,), [1e-200, 1.0]), ((0, 1), [[1e-200, 1e-200], [1e-200, 1.0]])]
    model = Model.from_arrays([2, 2], [*tiny, ((1,), [1.0, 1e-300])], sense="probability")
    assert all(estimate.log_z != -math.inf for estimate in estimates(prepare(model, "mar", {})))


def test_trees_are_exact_with_the_smallest_messages() -> None:
    rng = np.random.default_rng(5)
    problem = prepare(random_model(rng, 8, 0, 0.0, is_tree=True), "mar", {})
    first = estimates(problem)[0]
    assert first.figures["ibound"] == 1
    assert first.log_z == pytest.approx(exact(problem)[0], abs=1e-5)


def grid(rows: int, coupling: float) -> Model:
    rng = np.random.default_rng(rows)
    tables = []
    for row in range(rows):
        for column in range(rows):
            v = rows * row + column
            field = 0.3 * rng.normal()
            tables.append(((v,), np.exp([field, -field])))
            neighbours = [v + 1] * (column + 1 < rows) + [v + rows] * (row + 1 < rows)
            for other in neighbours:
                j = coupling * rng.normal()
                tables.append(((v, other), np.exp([[j, -j], [-j, j]])))
    return Model.from_arrays([2] * rows**2, tables, sense="probability")


def test_larger_clusters_are_closer() -> None:
    problem = prepare(grid(4, 0.8), "mar", {})
    log_z, marginals = exact(problem)
    sizes = np.full(16, 2)
    rungs = estimates(problem)
    distances = [hellinger_distances(e.shares, np.concatenate(marginals), sizes).mean() for e in rungs]
    assert len(rungs) >= 2
    assert distances[0] > 1e-3
    assert distances[-1] < 1e-6
    assert abs(rungs[0].log_z - log_z) > abs(rungs[-1].log_z - log_z)


def test_clusters_stay_within_the_memory() -> None:
    problem = prepare(grid(12, 1.0), "mar", {})
    rungs = estimates(problem, memory_bytes=1 << 16)
    assert rungs
    assert all(e.figures["cells"] * method.CELL_BYTES <= 1 << 16 for e in rungs)
    assert rungs[-1].error > 0


def test_a_turn_ends_at_its_deadline_and_the_next_one_goes_on() -> None:
    problem = prepare(grid(30, 2.0), "mar", {})
    limits = Limits(time.monotonic(), 1 << 24)
    run = method.propagate(problem, CheckedOptions(), limits)
    first = next(run)
    started = time.monotonic()
    limits.deadline = started + 0.2
    later = next(run)
    assert time.monotonic() - started < 2
    assert (later.figures["ibound"], later.error) != (first.figures["ibound"], first.error)


def test_a_cluster_takes_factors_over_its_variables_only() -> None:
    numbers = np.array([0, 2], dtype=np.int64)
    none = np.zeros(0, dtype=np.int32)
    scope = np.array([0, 1], dtype=np.int32)
    graph = method.JoinGraph(np.array([2, 3, 2]), numbers, scope, none, np.zeros(1, dtype=np.int64), none)
    for members, values in (([0, 2], 4), ([0, 0], 4), ([0, 1], 5)):
        with pytest.raises(ValueError, match="does not fit"):
            graph.multiply(np.array([0]), numbers, np.array(members, dtype=np.int32), np.ones(values))
    with pytest.raises(ValueError, match="does not fit"):
        graph.multiply(np.array([1]), numbers, scope, np.ones(6))
    graph.multiply(np.array([0]), numbers, scope, np.arange(6.0))
    assert graph.run(1e-9, 0.0, 100, 1.0)
    assert graph.marginals(scope) == pytest.approx([3 / 15, 12 / 15, 3 / 15, 5 / 15, 7 / 15])
    assert graph.log_sum() == pytest.approx(math.log(15))


def test_the_first_estimate_has_messages_however_late_it_is():
    rng = np.random.default_rng(3)
    problem = prepare(random_model(rng, 6, 0, 0.0, is_tree=True), "mar", {})
    _, marginals = exact(problem)
    late = Limits(time.monotonic() - 1, 1 << 30)
    first = next(method.propagate(problem, CheckedOptions(), late))
    # On a tree, messages in both directions are exact.
    assert first.shares == pytest.approx(np.concatenate(marginals), abs=1e-6)


def test_a_quick_order_that_is_passed_on_is_taken(monkeypatch: pytest.MonkeyPatch):
    problem = prepare(random_model(np.random.default_rng(4), 6, 8, 0.0, is_tree=False), "mar", {})
    expected = estimates(problem)
    order = method.positions_in_order(problem, CheckedOptions())
    monkeypatch.setattr(method, "rough_order", None)
    again = list(
        method.propagate(problem, CheckedOptions(), Limits(time.monotonic() + 60, 1 << 30, find_order=lambda: order))
    )
    assert [estimate.figures["cells"] for estimate in again] == [estimate.figures["cells"] for estimate in expected]
    assert again[-1].shares == pytest.approx(expected[-1].shares)


def test_equal_estimates_of_two_graphs_prove_nothing() -> None:
    """Two modes that messages of one bit do not connect: graphs of several sizes may all miss the same one."""
    problem = prepare(grid(8, 6.0), "mar", {})
    for estimate in estimates(problem, memory_bytes=1 << 16):
        assert estimate.log_z_error > 0
        assert estimate.error > 0
