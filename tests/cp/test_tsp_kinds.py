"""Tours and bounds where cities are not spread evenly: lines, clusters, grids, equal places, ties."""

from __future__ import annotations

import itertools
import signal
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import RootBound, TourSearch
from elimina.cp.tour_distances import distance_matrix
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import solve_tsp


def problem_of(points, kind="EUC_2D"):
    return TourProblem("points", distance_matrix(np.asarray(points, dtype=np.float64), kind))


def line(n, size, seed=0):
    return problem_of(np.c_[np.random.default_rng(seed).integers(0, size, n), np.zeros(n)])


def slope(n, size, seed=0):
    """Cities on a line that is not parallel to an axis; their distances are whole."""
    place = np.random.default_rng(seed).integers(0, size, n)
    return problem_of(np.c_[3 * place, 4 * place])


def star(n, arms, seed=0):
    """Cities on rays; from one ray to another it leads through the middle, city 0."""
    random = np.random.default_rng(seed)
    arm, out = random.integers(1, arms + 1, n), random.integers(1, 10_000, n)
    arm[0] = out[0] = 0
    lengths = np.where(arm[:, None] == arm, np.abs(out[:, None] - out), out[:, None] + out)
    return TourProblem("star", lengths.astype(np.int32))


def grid(rows, columns):
    return problem_of([(10 * i, 10 * j) for i in range(rows) for j in range(columns)])


def circle(n):
    angle = 2 * np.pi * np.arange(n) / n
    return problem_of(10_000 * np.c_[np.cos(angle), np.sin(angle)])


def repeated(n, places, seed=0):
    random = np.random.default_rng(seed)
    return problem_of(random.integers(0, 1000, (places, 2))[random.integers(0, places, n)])


def two_clusters(n, apart, seed=0):
    points = np.random.default_rng(seed).integers(0, 1000, (n, 2))
    points[n // 2 :, 0] += apart
    return problem_of(points)


def clustered(n, seed=0):
    """Johnson and McGeoch's generator: normally distributed around a centre for each hundred cities."""
    random = np.random.default_rng(seed)
    centres = random.uniform(0, 1e6, (max(n // 100, 2), 2))
    return problem_of(np.round(centres[random.integers(0, len(centres), n)] + random.normal(0, 1e6 / n**0.5, (n, 2))))


def matrix_of_ties(n, high, seed=0):
    upper = np.triu(np.random.default_rng(seed).integers(1, high + 1, (n, n)), 1).astype(np.int32)
    return TourProblem("ties", upper + upper.T)


def equal_distances(n, length):
    return TourProblem("equal", (length * (1 - np.eye(n))).astype(np.int32))


KINDS = {
    "line": line(300, 100_000),
    "line, even": line(300, 100_000, 1),
    "line of repeated places": line(300, 200),
    "slope": slope(300, 100_000),
    "star": star(300, 7),
    "grid": grid(17, 18),
    "odd grid": grid(9, 9),
    "circle": circle(300),
    "repeated places": repeated(300, 10),
    "two places": repeated(40, 2),
    "two clusters": two_clusters(40, 10**6),
    "three values": matrix_of_ties(200, 3),
    "thirty values": matrix_of_ties(200, 30),
    "all equal": equal_distances(200, 7),
    "all zero": equal_distances(200, 0),
    **{f"{n} cities": line(n, 10) for n in range(1, 6)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_proven_soon(kind):
    # Processor time, which other processes do not add to.
    problem, started = KINDS[kind], time.process_time()
    result = solve_tsp(problem, time_limit=60)
    assert time.process_time() - started < 3
    assert result.status == "optimal"
    assert result.value == result.lower_bound == problem.length([city - 1 for city in result.tour])
    if kind.startswith("line"):
        # There and back.
        assert result.value == 2 * problem.distances.max()


def shortest(distances):
    n = len(distances)
    if n <= 3:
        return TourProblem("x", distances).length(range(n))
    rest = np.array([one for one in itertools.permutations(range(1, n)) if one[0] < one[-1]])
    lengths = distances[0, rest[:, 0]].astype(np.int64) + distances[rest[:, -1], 0]
    return int((lengths + distances[rest[:, :-1], rest[:, 1:]].sum(axis=1, dtype=np.int64)).min())


@st.composite
def small(draw):
    n, seed, size = draw(st.integers(3, 8)), draw(st.integers(0, 2**20)), draw(st.sampled_from([2, 4, 30, 10_000]))
    random = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["line", "slope", "star", "plane", "clusters", "ties", "negative"]))
    if kind == "star":
        return star(n, 3, seed).distances
    if kind in ("ties", "negative"):
        upper = np.triu(random.integers(-size if kind == "negative" else 0, size + 1, (n, n)), 1).astype(np.int32)
        return upper + upper.T
    points = random.integers(0, size, (n, 2))
    if kind == "line":
        points[:, 1] = 0
    elif kind == "slope":
        points[:, 1] = 2 * points[:, 0]
    elif kind == "clusters":
        points += 100_000 * random.integers(0, 3, (n, 1))
    return problem_of(points, draw(st.sampled_from(["EUC_2D", "MAN_2D", "CEIL_2D"]))).distances


@settings(deadline=None, max_examples=150)
@given(small(), st.integers(1, 300), st.integers(0, 3))
def test_bound_is_below_and_tour_above(distances, steps, seed):
    best = shortest(distances)
    search = TourSearch(distances, seed)
    search.kick(20)
    assert search.length == TourProblem("x", distances).length(search.tour) >= best
    assert sorted(search.tour) == list(range(len(distances)))
    root = RootBound(distances, *search.edges)
    assert root.bound is None
    for upper in (search.length, best, search.length):
        root.improve(upper, steps)
        assert root.bound <= best


@settings(deadline=None, max_examples=40)
@given(small(), st.integers(0, 3))
def test_every_small_instance_is_solved(distances, seed):
    result = solve_tsp(TourProblem("x", distances), seed=seed)
    assert (result.status, result.value, result.lower_bound) == ("optimal", shortest(distances), result.value)


@pytest.mark.parametrize("seed", range(2))
def test_clusters(seed):
    """Tours find the ways between clusters, and bounds count them."""
    problem = clustered(1000, seed)
    search = TourSearch(problem.distances, seed)
    search.kick(20_000)
    root = RootBound(problem.distances, *search.edges)
    root.improve(search.length, 2000)
    assert root.bound <= search.length < 1.03 * root.bound


def test_tours_of_repeated_places_are_as_good_as_of_one_city_each():
    problem = repeated(300, 60)
    _, first = np.unique(problem.distances, axis=0, return_index=True)
    places = problem.distances[np.ix_(first, first)]
    search = TourSearch(problem.distances, 0)
    search.kick(5000)
    best = TourSearch(places, 0)
    best.kick(5000)
    assert search.length <= 1.02 * best.length
    search.start(search.tour[::-1])
    assert search.length == problem.length(search.tour)


def test_calls_end_in_time():
    problem = clustered(3000)
    none = TourSearch(problem.distances, 0, 0)
    assert sorted(none.tour) == list(range(3000))
    root = RootBound(problem.distances, *none.edges, 0)
    assert not root.improve(none.length, 1000, 0)
    assert root.bound is None
    search = TourSearch(problem.distances, 0)
    root = RootBound(problem.distances, *search.edges)
    for call in (lambda: search.kick(10**9, 0.2), lambda: root.improve(search.length, 10**6, 0.2)):
        started = time.monotonic()
        call()
        assert 0.15 < time.monotonic() - started < 2


@pytest.mark.parametrize("what", ["kick", "improve"])
def test_signals_end_calls(what):
    def handle(number, frame):
        raise KeyboardInterrupt

    problem = clustered(2000)
    search = TourSearch(problem.distances, 0, 0.5)
    root = RootBound(problem.distances, *search.edges)
    calls = {
        "kick": lambda: search.kick(10**9),
        "improve": lambda: root.improve(search.length, 10**6),
    }
    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            calls[what]()
        assert time.monotonic() - started < 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert search.length == problem.length(search.tour)
