"""Circuits and sub-circuits: no solution is lost, and what components say is known without a search."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import cp
from tests.cp.brute import allowed, found, supported

Successors = list[list[int]]


def is_circuit(values: tuple[int, ...]) -> bool:
    graph = nx.DiGraph(enumerate(values))
    return set(values) == set(range(len(values))) and nx.is_strongly_connected(graph)


def is_subcircuit(values: tuple[int, ...]) -> bool:
    inside = {i: v for i, v in enumerate(values) if i != v}
    return (
        set(values) == set(range(len(values)))
        and nx.number_strongly_connected_components(nx.DiGraph(list(inside.items()))) <= 1
    )


CHECKS = {"circuit": is_circuit, "subcircuit": is_subcircuit}


def posted(name: str, successors: Successors) -> tuple[cp.Model, list[cp.Expression]]:
    model = cp.Model()
    xs = [model.int_var(d) for d in successors]
    getattr(model, name)(xs)
    return model, xs


@st.composite
def sparse(draw: st.DrawFn, most: int) -> Successors:
    """Few successors each, so that there are many components."""
    n = draw(st.integers(2, most))
    some = st.sets(st.integers(0, n - 1), min_size=1, max_size=3)
    return [sorted(draw(some)) for _ in range(n)]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(CHECKS)), sparse(7))
def test_no_solution_is_lost(name: str, successors: Successors) -> None:
    model, xs = posted(name, successors)
    solutions = allowed(successors, CHECKS[name])
    assert found(model, xs) == solutions
    left, needed = model.propagated(), supported(successors, CHECKS[name])
    if needed is None:
        return
    assert left is not None
    assert all(set(few) <= set(more) for few, more in zip(needed, left, strict=True))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(CHECKS)), sparse(40))
def test_nodes_that_are_visited_are_strongly_connected(name: str, successors: Successors) -> None:
    model, _ = posted(name, successors)
    left = model.propagated()
    edges = [(i, v) for i, d in enumerate(successors if left is None else left) for v in d if i != v]
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(len(successors)))
    components = list(nx.strongly_connected_components(graph))
    if name == "circuit" and len(components) > 1:
        assert left is None
    if left is None or name == "circuit":
        return
    visited = {i for i, d in enumerate(left) if i not in d}
    (home,) = [c for c in components if c & visited] or [set(graph)]
    assert visited <= home
    assert all(left[i] == [i] for i in set(graph) - home) or not visited


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(CHECKS)), st.integers(3, 5), st.data())
def test_many_successors_at_once(name: str, n: int, data: st.DataObject) -> None:
    """A Boolean gives values to most nodes in one step; some may be equal, or close a cycle."""
    successors = data.draw(st.lists(st.none() | st.integers(0, n - 1), min_size=n, max_size=n))
    model, xs = posted(name, [list(range(n))] * n)
    b = model.bool_var()
    for x, value in zip(xs, successors, strict=True):
        if value is not None:
            model.add(x == value, only_if=b)
    model.search([b], "input_order", "indomain_max")
    model.search(xs, "first_fail", "indomain_min")
    wanted = [range(n) if v is None else [v] for v in successors]
    result = model.solve(all_solutions=True)
    values = [tuple(s[xs]) for s in result.solutions if s[b]]
    assert result.stats["complete"]
    assert len(set(values)) == len(values)
    assert set(values) == allowed(wanted, CHECKS[name])


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_equal_successors_that_lead_to_a_cycle(name: str) -> None:
    """They come between AllDifferent, which takes 11 from 9, and components, which look at paths."""
    model, xs = posted(name, [list(range(12))] * 12)
    taken = model.holds(xs[9] != 11)
    for i, value in {0: 4, 1: 4, 2: 4, 3: 4, 4: 5, 6: 7, 7: 8, 8: 7}.items():
        model.add(xs[i] == value, only_if=taken)
    solver, _ = model._build()
    assert solver.propagate()
    assert not solver.decide(10, 11, True)


def cliques(*groups: range, edges: list[tuple[int, int]]) -> Successors:
    inside = [[j for j in group if j != i] for group in groups for i in group]
    return [sorted({*d, *(b for a, b in edges if a == i)}) for i, d in enumerate(inside)]


def test_a_way_that_is_the_only_one_is_taken() -> None:
    """Two cliques: there is one edge from the first to the second, and one back."""
    model, _ = posted("circuit", cliques(range(4), range(4, 8), edges=[(1, 6), (5, 2)]))
    left = model.propagated()
    assert left is not None
    assert (left[1], left[5]) == ([6], [2])
    # The way back leaves from where the way there enters: other nodes cannot be visited between.
    model, _ = posted("circuit", cliques(range(4), range(4, 8), edges=[(1, 6), (6, 2)]))
    assert model.propagated() is None
    model, _ = posted("subcircuit", [sorted({*d, i}) for i, d in enumerate(cliques(range(4), edges=[]))])
    assert model.propagated() == [list(range(4))] * 4


@pytest.mark.parametrize("root", range(6))
def test_components_are_passed_in_their_order(root: int) -> None:
    """Without the root, 1 2 3 4 5 are passed in this order: steps over one of them lead nowhere."""
    names = [(i + root) % 6 for i in range(6)]
    successors: Successors = [[] for _ in names]
    for a, b in [*itertools.combinations(range(1, 6), 2), (0, 1), (0, 3), (3, 0), (5, 0)]:
        successors[names[a]].append(names[b])
    model, xs = posted("circuit", successors)
    result = model.solve(all_solutions=True)
    assert [s[xs] for s in result.solutions] == [[(i + 1) % 6 for i in range(6)]]
    # Each call looks from one root only: a few nodes may be needed.
    assert result.stats["failures"] <= 2


def test_a_knight_returns() -> None:
    """Warnsdorff's problem on a board of 6 x 6 has 9862 closed tours in each direction; a few are enough."""
    n = 6
    steps = [(1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1)]
    board = list(itertools.product(range(n), repeat=2))
    successors = [[n * (r + a) + c + b for a, b in steps if r + a in range(n) and c + b in range(n)] for r, c in board]
    model, xs = posted("circuit", successors)
    model.search(xs, "first_fail", "indomain_min")
    result = model.solve(all_solutions=True, solution_limit=20)
    assert all(is_circuit(tuple(s[xs])) for s in result.solutions)
    assert len(result.solutions) == 20
    assert result.stats["failures"] < 2000
    model, _ = posted(
        "circuit",
        [
            [5 * (i // 5 + a) + i % 5 + b for a, b in steps if i // 5 + a in range(5) and i % 5 + b in range(5)]
            for i in range(25)
        ],
    )
    assert model.solve().status == "infeasible"
