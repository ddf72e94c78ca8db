"""Generalised belief propagation: exact where theory says so, close to brute force elsewhere."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina._core import RegionGraph, RegionPropagation, short_loops
from elimina.methods import generalised_belief_propagation as method
from elimina.methods.factor_lists import factors_of
from elimina.methods.join_graph_propagation import propagate
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.model.model import Model
from elimina.model.table import Scopes
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, prepare
from tests.reference import brute


def exact(problem: Problem) -> tuple[float, np.ndarray]:
    """The logarithm of the sum and the marginals of the free variables, by enumeration."""
    model = problem.model
    weights = {v: [float(i == value) for i in range(model.sizes[v])] for v, value in problem.fixed.items()}
    log_z, marginals = brute.posteriors(model, weights)
    return log_z, np.concatenate([*(np.array(marginals[v]) for v in problem.free), []])


def estimates(problem: Problem, memory_bytes: int = 1 << 24) -> list[SumEstimate]:
    limits = Limits(time.monotonic() + 60, memory_bytes)
    return list(method.generalised_belief_propagation(problem, CheckedOptions(), limits))


def sizes_of(problem: Problem) -> np.ndarray:
    return np.array([problem.model.sizes[v] for v in problem.free])


def random_model(rng: np.random.Generator, variables: int, factors: int, zeros: float) -> Model:
    sizes = rng.integers(2, 4, variables)
    tables = []
    for _ in range(factors):
        scope = tuple(int(v) for v in rng.permutation(variables)[: int(rng.integers(1, min(3, variables) + 1))])
        cells = rng.random([sizes[v] for v in scope]) + 0.1
        tables.append((scope, np.where(rng.random(cells.shape) < zeros, 0.0, cells)))
    return Model.from_arrays(sizes.tolist(), tables, sense="probability")


def grid(rows: int, columns: int, coupling: float, states: int = 2, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    tables = []
    for row, column in itertools.product(range(rows), range(columns)):
        v = columns * row + column
        tables.append(((v,), np.exp(0.3 * rng.normal(size=states))))
        neighbours = [v + 1] * (column + 1 < columns) + [v + columns] * (row + 1 < rows)
        tables += [((v, other), np.exp(coupling * rng.normal(size=(states, states)))) for other in neighbours]
    return Model.from_arrays([states] * rows * columns, tables, sense="probability")


def scopes_of(clusters: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    scopes = Scopes.of(clusters)
    return scopes.starts, scopes.members.astype(np.int32)


def listed(scopes: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, ...]]:
    starts, members = scopes
    return [tuple(members[begin:end].tolist()) for begin, end in itertools.pairwise(starts.tolist())]


def graph_of(variables: int, clusters: list[tuple[int, ...]], largest: int = 60) -> RegionGraph:
    sizes = np.full(variables, 2, dtype=np.int64)
    return RegionGraph(sizes, *scopes_of(clusters), largest, 1 << 20, 60.0)


clusters_of_few = st.lists(
    st.sets(st.integers(0, 7), min_size=1, max_size=5).map(sorted).map(tuple), min_size=1, max_size=9
)


@given(clusters_of_few)
def test_each_set_of_variables_counts_once(clusters: list[tuple[int, ...]]) -> None:
    graph = graph_of(8, clusters)
    assert graph.is_complete
    regions = [
        *zip(listed(graph.outer), itertools.repeat(1.0), strict=False),
        *zip(listed(graph.inner), graph.counting_numbers, strict=True),
    ]
    for cluster in clusters:
        for size in range(1, len(cluster) + 1):
            for subset in itertools.combinations(cluster, size):
                assert sum(number for scope, number in regions if set(subset) <= set(scope)) == 1


@given(clusters_of_few)
def test_outer_regions_are_the_largest_clusters(clusters: list[tuple[int, ...]]) -> None:
    graph = graph_of(8, clusters)
    largest = {c for c in clusters if not any(set(c) < set(other) for other in clusters)}
    assert sorted(listed(graph.outer)) == sorted(largest)
    for inner, parents in zip(listed(graph.inner), listed(graph.parents), strict=True):
        assert len(parents) >= 2
        assert all(set(inner) < set(listed(graph.outer)[parent]) for parent in parents)


@given(clusters_of_few)
def test_regions_of_bethe_are_clusters_and_variables(clusters: list[tuple[int, ...]]) -> None:
    graph = graph_of(8, clusters, largest=1)
    outer = listed(graph.outer)
    shared = {v: sum(v in scope for scope in outer) for v in range(8)}
    numbers = dict(zip(listed(graph.inner), graph.counting_numbers, strict=True))
    assert numbers == {(v,): 1.0 - count for v, count in shared.items() if count > 1}


@given(st.integers(0, 2**32))
def test_short_loops_are_the_chordless_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scopes = [tuple(sorted(rng.permutation(8)[: rng.integers(1, 4)].tolist())) for _ in range(rng.integers(1, 12))]
    edges = {pair for scope in scopes for pair in itertools.permutations(scope, 2)}
    loops = []
    for size in (3, 4):
        for loop in itertools.combinations(range(8), size):
            degrees = [sum((v, w) in edges for w in loop) for v in loop]
            is_chordless = degrees == [2] * size
            if is_chordless and not any(set(loop) <= set(scope) for scope in scopes):
                loops.append(loop)
    assert sorted(listed(short_loops(8, *scopes_of(scopes), 1000, 60.0))) == sorted(loops)


def test_loops_end_at_a_number() -> None:
    pairs = list(itertools.combinations(range(12), 2))
    assert len(listed(short_loops(12, *scopes_of(pairs), 7, 60.0))) == 7


def test_unions_of_regions_on_a_grid_are_rectangles() -> None:
    side = 5
    cells = np.arange(side * side).reshape(side, side)

    def blocks(rows: int, columns: int) -> list[tuple[int, ...]]:
        return [
            tuple(cells[r : r + rows, c : c + columns].reshape(-1).tolist())
            for r in range(side - rows + 1)
            for c in range(side - columns + 1)
        ]

    squares = graph_of(side * side, blocks(2, 2))
    assert sorted(listed(squares.grow(1 << 6, 60.0))) == sorted(blocks(2, 2) + blocks(2, 3) + blocks(3, 2))
    assert set(blocks(3, 3)) < set(listed(squares.grow(1 << 9, 60.0)))


def test_a_graph_with_too_many_members_is_not_complete() -> None:
    clusters = [tuple(c) for c in itertools.combinations(range(12), 6)]
    sizes = np.full(12, 2, dtype=np.int64)
    graph = RegionGraph(sizes, *scopes_of(clusters), 60, 1000, 60.0)
    assert not graph.is_complete
    with pytest.raises(ValueError, match="complete"):
        RegionPropagation(graph, *scopes_of([]), np.zeros(0))


@given(st.integers(0, 2**32), st.booleans())
def test_trees_are_exact_with_the_regions_of_bethe(seed: int, has_zeros: bool) -> None:
    rng = np.random.default_rng(seed)
    variables = int(rng.integers(2, 8))
    tables = []
    for v in range(1, variables):
        cells = rng.random((3, 3)) + 0.1
        if has_zeros:
            cells[rng.integers(3), rng.integers(3)] = 0
        tables.append(((v, int(rng.integers(0, v))), cells))
    problem = prepare(Model.from_arrays([3] * variables, tables, sense="probability"), "mar", {})
    log_z, shares = exact(problem)
    first = estimates(problem)[0]
    assert first.figures["regions"] == "factors"
    assert first.log_z == pytest.approx(log_z, abs=1e-5)
    assert first.shares == pytest.approx(shares, abs=1e-5)


@given(st.integers(0, 2**32), st.integers(3, 4))
def test_a_short_loop_is_one_exact_region(seed: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    tables = [((v, (v + 1) % length), np.exp(2 * rng.normal(size=(3, 3)))) for v in range(length)]
    problem = prepare(Model.from_arrays([3] * length, tables, sense="probability"), "mar", {})
    log_z, shares = exact(problem)
    last = estimates(problem)[-1]
    assert last.log_z == pytest.approx(log_z, abs=1e-6)
    assert last.shares == pytest.approx(shares, abs=1e-6)


def test_two_rows_of_squares_are_exact() -> None:
    """The squares of a ladder form a tree."""
    problem = prepare(grid(2, 8, 1.5), "mar", {0: 1})
    log_z, shares = exact(problem)
    loops = [e for e in estimates(problem) if e.figures["regions"] == "loops"][-1]
    assert loops.log_z == pytest.approx(log_z, abs=1e-5)
    assert loops.shares == pytest.approx(shares, abs=1e-5)


@pytest.mark.parametrize("states", [2, 3])
def test_regions_of_bethe_are_belief_propagation(states: int) -> None:
    problem = prepare(grid(6, 6, 0.4, states), "mar", {})
    first = estimates(problem)[0]
    plain = next(propagate(problem, CheckedOptions(), Limits(time.monotonic() + 60, 1 << 24)))
    assert plain.figures["ibound"] == 1
    assert first.log_z == pytest.approx(plain.log_z, abs=1e-4)
    assert first.shares == pytest.approx(plain.shares, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_larger_regions_are_closer(seed: int) -> None:
    problem = prepare(grid(4, 4, 1.0, seed=seed), "mar", {})
    log_z, shares = exact(problem)
    last = {e.figures["regions"]: e for e in estimates(problem)}
    distances = [hellinger_distances(e.shares, shares, sizes_of(problem)).mean() for e in last.values()]
    assert list(last)[:2] == ["factors", "loops"]
    assert distances[1] < 0.5 * distances[0]
    assert distances[-1] < 0.5 * distances[1]
    errors = [abs(e.log_z - log_z) for e in last.values()]
    assert errors[-1] < errors[0]


@given(st.integers(0, 2**32), st.booleans())
def test_only_impossible_states_have_no_share(seed: int, has_evidence: bool) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, int(rng.integers(2, 7)), int(rng.integers(1, 9)), 0.3)
    problem = prepare(model, "mar", {0: 0} if has_evidence else {})
    log_z, shares = exact(problem)
    if log_z == -math.inf:
        return
    for estimate in estimates(problem):
        assert estimate.shares is not None
        assert np.isfinite(estimate.shares).all()
        assert (estimate.shares >= 0).all()
        assert (shares[estimate.shares == 0] == 0).all()


def test_forbidden_tuples_are_followed_through_the_regions() -> None:
    """A chain of equalities: the state of one end forbids all but one state of the other."""
    equal = np.eye(3)
    tables = [((v, v + 1), equal) for v in range(6)] + [((0,), [0.0, 1.0, 0.0]), ((6,), [0.2, 0.3, 0.5])]
    model = Model.from_arrays([3] * 7, tables, sense="probability")
    last = estimates(prepare(model, "mar", {}))[-1]
    assert last.shares == pytest.approx(np.tile([0.0, 1.0, 0.0], 7))
    assert last.log_z == pytest.approx(math.log(0.3))


def test_contradictions_are_no_estimate() -> None:
    tables = [((0, 1), np.eye(2)), ((1, 2), np.eye(2)), ((0, 2), 1 - np.eye(2)), ((0,), [1.0, 2.0])]
    problem = prepare(Model.from_arrays([2] * 3, tables, sense="probability"), "mar", {})
    assert exact(problem)[0] == -math.inf
    assert estimates(problem)[-1].figures["regions"] == "factors"


def test_random_models_are_estimated_as_well_as_the_method_can() -> None:
    distances, plain = [], []
    for seed in range(40):
        problem = prepare(random_model(np.random.default_rng(seed), 8, 14, 0.1), "mar", {})
        log_z, shares = exact(problem)
        answers = estimates(problem)
        if log_z == -math.inf or not answers:
            continue
        sizes = sizes_of(problem)
        plain.append(hellinger_distances(answers[0].shares, shares, sizes).mean())
        distances.append(hellinger_distances(answers[-1].shares, shares, sizes).mean())
    assert len(distances) > 20
    assert np.median(distances) < 1e-3
    assert np.mean(distances) < 0.2 * np.mean(plain)


def propagation_of(problem: Problem, side: int) -> RegionPropagation:
    """The squares of a grid as regions."""
    cells = np.arange(side * side).reshape(side, side)
    squares = [
        tuple(cells[r : r + 2, c : c + 2].reshape(-1).tolist()) for r in range(side - 1) for c in range(side - 1)
    ]
    factors = factors_of(problem)
    starts, members = factors.scopes
    graph = graph_of(side * side, squares)
    return RegionPropagation(graph, starts, members.astype(np.int32), factors.values)


def test_the_double_loop_ends_where_the_single_one_does() -> None:
    problem = prepare(grid(5, 5, 0.5), "mar", {})
    everything = np.arange(25, dtype=np.int32)
    single, double = propagation_of(problem, 5), propagation_of(problem, 5)
    assert single.filter_tuples(60.0)
    assert double.filter_tuples(60.0)
    assert single.run(1e-9, 0.5, 2000, 60.0)
    assert double.run_double_loop(1e-9, 0.1, 20, 20000, 60.0)
    assert double.marginals(everything) == pytest.approx(single.marginals(everything), abs=1e-6)
    assert double.log_sum() == pytest.approx(single.log_sum(), abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_double_loop_converges_on_strong_couplings(seed: int) -> None:
    propagation = propagation_of(prepare(grid(6, 6, 3.0, seed=seed), "mar", {}), 6)
    assert propagation.filter_tuples(60.0)
    assert propagation.run_double_loop(1e-6, 0.1, 30, 100_000, 60.0)


def test_regions_stay_within_the_memory() -> None:
    problem = prepare(grid(12, 12, 0.3), "mar", {})
    answers = estimates(problem, memory_bytes=1 << 16)
    assert answers
    assert all(e.figures["cells"] * method.OUTER_CELL_BYTES <= 1 << 16 for e in answers)
    assert answers[-1].error > 0


def test_factors_beyond_the_memory_have_no_estimate() -> None:
    problem = prepare(grid(3, 3, 0.3, states=40), "mar", {})
    assert estimates(problem, memory_bytes=1 << 12) == []


def test_a_turn_ends_at_its_deadline_and_the_next_one_goes_on() -> None:
    problem = prepare(grid(30, 30, 3.0), "mar", {})
    limits = Limits(time.monotonic(), 1 << 26)
    run = method.generalised_belief_propagation(problem, CheckedOptions(), limits)
    limits.deadline = time.monotonic() + 0.2
    first = next(run)
    # On a busy machine, a turn may end before a whole sweep.
    for _ in range(100):
        limits.deadline = time.monotonic() + 0.2
        later = next(run)
        if (later.figures, later.error) != (first.figures, first.error):
            return
    pytest.fail("no turn goes on")


def test_factors_outside_the_regions_are_refused() -> None:
    graph = graph_of(3, [(0, 1), (1, 2)])
    with pytest.raises(ValueError, match="does not fit"):
        RegionPropagation(graph, *scopes_of([(0, 2)]), np.ones(4))
    with pytest.raises(ValueError, match="does not fit"):
        RegionPropagation(graph, *scopes_of([(0, 1)]), np.ones(5))
    with pytest.raises(ValueError, match="at least 0"):
        RegionPropagation(graph, *scopes_of([(0, 1)]), -np.ones(4))
