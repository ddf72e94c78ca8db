"""Tours, bounds and the weighted circuit, against all tours."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import cp
from elimina._core import RootBound, TourSearch
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import solve_tsp
from elimina.cp.tsplib import read_tsp
from elimina.errors import InputError


def tours(n):
    """All tours, one direction each."""
    for rest in itertools.permutations(range(1, n)):
        if rest[0] <= rest[-1]:
            yield (0, *rest)


def edges_of(tour):
    return {(min(a, b), max(a, b)) for a, b in zip(tour, (*tour[1:], tour[0]), strict=True)}


@st.composite
def matrices(draw, most=7, low=0, high=30):
    n = draw(st.integers(3, most))
    matrix = np.zeros((n, n), dtype=np.int32)
    place = np.triu_indices(n, 1)
    matrix[place] = draw(st.lists(st.integers(low, high), min_size=len(place[0]), max_size=len(place[0])))
    return matrix + matrix.T


def random_points(n, seed, size=1000):
    points = np.random.default_rng(seed).integers(0, size, (n, 2))
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    return TourProblem("random", np.floor(np.sqrt(squares) + 0.5).astype(np.int32))


def shortest(problem):
    """Held and Karp's dynamic program over sets of cities."""
    d, n = problem.distances.tolist(), problem.cities
    best = {(1 << j, j): d[0][j] for j in range(1, n)}
    for size in range(2, n):
        for cities in itertools.combinations(range(1, n), size):
            inside = sum(1 << j for j in cities)
            for j in cities:
                before = inside ^ (1 << j)
                best[inside, j] = min(best[before, k] + d[k][j] for k in cities if k != j)
    everything = (1 << n) - 2
    return min(best[everything, j] + d[j][0] for j in range(1, n))


def circuit_model(matrix, edges=None):
    n = len(matrix)
    model = cp.Model()
    successors = model.int_vars(n, 0, n - 1)
    pairs = list(itertools.combinations(range(n), 2)) if edges is None else edges
    length, has = model.weighted_circuit(successors, {(i, j): int(matrix[i, j]) for i, j in pairs})
    return model, successors, length, has, pairs


def length_of(problem, result):
    return problem.length([city - 1 for city in result.tour])


@settings(deadline=None, max_examples=60)
@given(matrices(low=-20), st.integers(0, 3))
def test_every_instance_is_solved(matrix, seed):
    problem = TourProblem("x", matrix)
    known = []
    result = solve_tsp(problem, seed=seed, on_improvement=known.append)
    best = min(problem.length(tour) for tour in tours(len(matrix)))
    assert (result.status, result.value, result.lower_bound) == ("optimal", best, best)
    assert sorted(result.tour) == list(range(1, len(matrix) + 1))
    assert length_of(problem, result) == best
    assert all(one.length >= best and (one.bound is None or one.bound <= best) for one in known)
    assert [one.length for one in known] == sorted((one.length for one in known), reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_larger_instances(seed):
    # Few places: many distances are equal, some are 0.
    problem = random_points(11, seed, size=1000 if seed % 2 else 5)
    result = solve_tsp(problem, seed=seed)
    assert result.status == "optimal"
    assert result.value == length_of(problem, result) == shortest(problem)


@settings(deadline=None, max_examples=60)
@given(matrices(most=6), st.data())
def test_all_circuits_are_found(matrix, data):
    pairs = list(itertools.combinations(range(len(matrix)), 2))
    chosen = sorted(data.draw(st.sets(st.sampled_from(pairs), min_size=1)))
    model, successors, length, has, _ = circuit_model(matrix, chosen)
    found = model.solve(all_solutions=True)
    assert found.stats["complete"]
    seen = set()
    for solution in found.solutions:
        tour = [0]
        while len(tour) < len(matrix):
            tour.append(solution[successors][tour[-1]])
        mine = edges_of(tour)
        assert sorted(tour) == list(range(len(matrix)))
        assert solution[length] == sum(int(matrix[i, j]) for i, j in mine)
        assert solution[has] == [pair in mine for pair in chosen]
        seen.add(tuple(tour))
    possible = [tour for tour in tours(len(matrix)) if edges_of(tour) <= set(chosen)]
    assert seen == {way for tour in possible for way in (tour, (0, *tour[:0:-1]))}
    assert len(found.solutions) == len(seen)


@settings(deadline=None, max_examples=100)
@given(matrices(), st.integers(0, 40), st.data())
def test_filtering_keeps_all_that_is_short_enough(matrix, excess, data):
    """At the root and after decisions: the bound is none too high, and no edge of a tour below the limit is lost."""
    problem = TourProblem("x", matrix)
    best = min(problem.length(tour) for tour in tours(len(matrix)))
    model, _, length, has, pairs = circuit_model(matrix)
    model.add(length <= best + excess)
    forced = {
        k: data.draw(st.booleans())
        for k in data.draw(st.lists(st.integers(0, len(pairs) - 1), max_size=2, unique=True))
    }
    for k, value in forced.items():
        model.add(has[k] == int(value))
    allowed = [
        edges_of(tour)
        for tour in tours(len(matrix))
        if problem.length(tour) <= best + excess
        and all((pairs[k] in edges_of(tour)) == value for k, value in forced.items())
    ]
    left = model.propagated()
    if left is None:
        assert not allowed
        return
    numbers = {next(iter(x.terms)): pair for x, pair in zip(has, pairs, strict=True)}
    (of_length,) = length.terms
    lengths = [sum(int(matrix[i, j]) for i, j in tour) for tour in allowed]
    assert all(left[of_length][0] <= one for one in lengths)
    for number, pair in numbers.items():
        for tour in allowed:
            assert int(pair in tour) in left[number]


def test_filtering_decides_edges():
    """Two far groups: both edges between them are known to be the short ones, long ones are ruled out."""
    places = 100 * np.array([[0, 0], [0, 10], [9, 0], [9, 10], [200, 0], [200, 10], [209, 0], [209, 10]])
    matrix = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)).round().astype(np.int32)
    problem = TourProblem("groups", matrix)
    best = solve_tsp(problem).value
    model, _, length, has, pairs = circuit_model(matrix)
    model.add(length <= best)
    left = model.propagated()
    assert left is not None
    values = {pair: left[next(iter(x.terms))] for x, pair in zip(has, pairs, strict=True)}
    assert values[0, 7] == [0]
    assert values[2, 4] == values[3, 5] == [1]
    assert left[next(iter(length.terms))] == [best]


@settings(deadline=None, max_examples=60)
@given(matrices(low=-20), st.integers(0, 25), st.integers(1, 60))
def test_root_bound(matrix, excess, steps):
    n = len(matrix)
    lengths = {tour: TourProblem("x", matrix).length(tour) for tour in tours(n)}
    best = min(lengths.values())
    ring = [(i + 1) % n for i in range(n)]
    root = RootBound(matrix, list(range(n)), ring)
    for _ in range(4):
        root.improve(best + excess, steps)
        assert root.bound <= best
    survivors = root.survivors(best + excess, 1000)
    assert survivors is not None
    kept = {(min(i, j), max(i, j)) for i, j in zip(survivors.ends, survivors.other_ends, strict=True)}
    edges = zip(survivors.ends, survivors.other_ends, strict=True)
    assert survivors.lengths == [matrix[i, j] for i, j in edges]
    for tour, length in lengths.items():
        assert length > best + excess or edges_of(tour) <= kept
    assert len(kept) < 3 or root.survivors(best + excess, 2) is None


def test_local_search():
    problem = random_points(200, 1)
    search = TourSearch(problem.distances, 5)
    first = search.length
    for _ in range(10):
        before = search.length
        search.kick(200)
        assert search.length <= before
        assert sorted(search.tour) == list(range(200))
        assert search.length == problem.length(search.tour)
    assert search.length < first
    search.start(list(range(200)))
    assert search.length == problem.length(search.tour) < problem.length(list(range(200)))
    same = [TourSearch(problem.distances, 3) for _ in range(2)]
    for one in same:
        one.kick(100)
    assert same[0].tour == same[1].tour
    with pytest.raises(ValueError, match="a tour has each city once"):
        search.start([0] * 200)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_cities(n):
    problem = random_points(n, 3)
    result = solve_tsp(problem)
    assert (result.status, result.lower_bound) == ("optimal", result.value)
    assert result.value == problem.length(range(n))


def test_equal_places():
    result = solve_tsp(TourProblem("x", np.zeros((9, 9), dtype=np.int32)))
    assert (result.status, result.value) == ("optimal", 0)


def test_fixed_edges():
    problem = random_points(7, 4)
    fixed = [(0, 3), (5, 3)]
    best = min(problem.length(tour) for tour in tours(7) if {(0, 3), (3, 5)} <= edges_of(tour))
    result = solve_tsp(TourProblem("x", problem.distances, None, fixed))
    assert (result.status, result.value) == ("optimal", best)
    assert {(0, 3), (3, 5)} <= edges_of([city - 1 for city in result.tour])
    for bad in ([(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (2, 0)], [(2, 2)]):
        with pytest.raises(InputError, match="cannot be in a tour"):
            solve_tsp(TourProblem("x", problem.distances, None, bad))


def test_distances_too_far_apart_for_fixed_edges():
    far = 10**9 * (1 - np.eye(5, dtype=np.int64))
    with pytest.raises(InputError, match="distances of 5 cities that differ by 1,000,000,000 are too far apart"):
        solve_tsp(TourProblem("x", far, None, [(0, 1)]))


def test_a_limit_gives_bounds():
    problem = random_points(300, 2)
    result = solve_tsp(problem, time_limit=0.3)
    assert result.status == "bounded"
    assert (result.status, result.ended_by) == ("bounded", "time-limit")
    assert 0.9 * result.value < result.lower_bound < result.value == length_of(problem, result) == result.upper_bound
    seconds = result.stats["seconds"]
    assert sum(seconds.values()) == pytest.approx(2 * seconds["total"], abs=1e-4)


def test_no_time_at_all():
    result = solve_tsp(random_points(300, 2), time_limit=1e-9)
    assert (result.status, result.lower_bound, result.ended_by) == ("feasible", None, "time-limit")
    assert sorted(result.tour) == list(range(1, 301))


def test_refused():
    model = cp.Model()
    successors = model.int_vars(3, 0, 2)
    with pytest.raises(InputError, match="there are no edges"):
        model.weighted_circuit(successors, {})
    for nodes, edges, problem in (
        (3, {(0, 1): 1, (1, 0): 1}, r"the edge \(1, 0\) is given twice"),
        (3, {(0, 3): 1}, r"the edge \(0, 3\) is not between two of the nodes 0 to 2"),
        (3, {(1, 1): 1}, r"the edge \(1, 1\) is not between"),
        (2, {(0, 1): 1}, "2 nodes: a circuit has at least three"),
    ):
        with pytest.raises(InputError, match=problem):
            model.weighted_circuit(model.int_vars(nodes, 0, nodes - 1), edges)
    model = cp.Model()
    ring = list(range(64))
    far = [*ring[1:], 0]
    model.post("weighted_circuit", model.int_vars(64, 0, 63), ring, far, [2**52] * 64, model.bool_vars(64), 0)
    with pytest.raises(InputError, match="the lengths times the nodes are beyond 2\\^57: use smaller units"):
        model.solve()


SQUARE = np.array([[0, 2, 3, 2], [2, 0, 2, 3], [3, 2, 0, 2], [2, 3, 2, 0]])


@pytest.mark.parametrize(
    ("distances", "fixed", "error", "words"),
    [
        (
            SQUARE + np.tri(4, k=-1, dtype=int),
            [],
            InputError,
            "from city 0 to 1 is 2, back it is 3: a TSP is symmetric",
        ),
        (SQUARE.astype(float), [], TypeError, "distances is an array of float64; it takes integers"),
        (None, [], TypeError, "distances is an array of object; it takes integers"),
        (SQUARE[:3], [], InputError, "distances of shape \\(3, 4\\) are not a matrix"),
        (SQUARE * 2**40, [], InputError, "beyond 2\\^31"),
        (SQUARE, [(0, 4)], InputError, "the fixed edge \\(0, 4\\) is not a pair of different cities from 0 to 3"),
        (SQUARE, [(1,)], InputError, "the fixed edge \\(1,\\) is not a pair"),
    ],
)
def test_problems_that_are_none(distances, fixed, error, words):
    with pytest.raises(error, match=words):
        TourProblem("x", distances, None, fixed)


def test_asymmetry_far_from_the_diagonal():
    distances = np.ones((600, 600), dtype=np.int32)
    distances[20, 580] = 2
    with pytest.raises(InputError, match="from city 20 to 580 is 2, back it is 1"):
        TourProblem("x", distances)
    assert TourProblem("x", np.ones((600, 600), dtype=np.int64)).distances.dtype == np.int32


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["burma14", "ulysses16", "gr17", "gr24", "bays29", "att48", "hk48", "eil51", "brazil58", "st70", "kroC100"]
)
def test_optima(data_dir, name):
    folder = data_dir / "tsplib"
    optimum = re.search(rf"^{name} : (\d+)", (folder / "solutions.txt").read_text(), re.M)
    assert optimum is not None
    result = solve_tsp(read_tsp(folder / f"{name}.tsp"), time_limit=120)
    assert (result.status, result.value) == ("optimal", int(optimum[1]))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"time_limit": -1}, InputError, "time_limit"),
        ({"time_limit": float("nan")}, InputError, "time_limit"),
        ({"time_limit": "soon"}, TypeError, "time_limit"),
        ({"seed": -1}, InputError, "seed"),
        ({"seed": 2**64}, InputError, "seed"),
    ],
)
def test_bad_limits_and_seeds(options, error, message):
    with pytest.raises(error, match=message):
        solve_tsp(random_points(6, 0), **options)
