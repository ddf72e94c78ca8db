"""Fixed edges of a tour problem, as shorter distances."""

from __future__ import annotations

from elimina.cp.tour_problem import Distances, TourProblem
from elimina.errors import InputError


def with_fixed_edges(problem: TourProblem) -> tuple[int, Distances]:
    """Shorten the fixed edges by so much that each shortest tour has all of them.

    Returns:
        The length by which tours with all fixed edges become shorter, and the new distances.

    Raises:
        InputError: No tour has all fixed edges, or the distances that they need are too large.
    """
    if not problem.fixed:
        return 0, problem.distances
    ends = sorted({(min(edge), max(edge)) for edge in problem.fixed})
    _check_paths(problem.cities, ends)
    spread = int(problem.distances.max()) - min(int(problem.distances.min()), 0)
    bonus = problem.cities * spread + 1
    if bonus + spread >= 2**31:
        raise InputError(
            f"{problem.name}: distances of {problem.cities:,} cities that differ by {spread:,} are too far apart for "
            "fixed edges: use a larger unit"
        )
    distances = problem.distances.copy()
    for i, j in ends:
        distances[i, j] -= bonus
        distances[j, i] -= bonus
    return bonus * len(ends), distances


def _check_paths(cities: int, edges: list[tuple[int, int]]) -> None:
    """Raise InputError unless a tour can have all edges."""
    root = list(range(cities))

    def find(city: int) -> int:
        while root[city] != city:
            city = root[city]
        return city

    degree = [0] * cities
    for count, (i, j) in enumerate(edges, 1):
        degree[i] += 1
        degree[j] += 1
        closes = find(i) == find(j) and count < cities
        if i == j or max(degree[i], degree[j]) > 2 or closes:
            raise InputError(f"the fixed edge from {i + 1} to {j + 1} cannot be in a tour with those before it")
        root[find(i)] = find(j)
