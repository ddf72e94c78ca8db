"""The papers' random families."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from elimina.errors import InputError
from elimina.generate import grid_model, random_model, scale_free_model
from elimina.model.table import FORBIDDEN


def graph(model):
    g = nx.Graph()
    g.add_nodes_from(range(len(model.variables)))
    g.add_edges_from(f.scope for f in model.factors)
    assert g.number_of_edges() == len(model.factors)
    return g


def min_fill_width(g):
    """Induced width of a greedy min-fill order."""
    g = g.copy()
    width = 0
    while g:
        v = min(g, key=lambda u: (sum(not g.has_edge(a, b) for a, b in itertools.combinations(g[u], 2)), g.degree(u)))
        neighbours = list(g[v])
        width = max(width, len(neighbours))
        g.remove_node(v)
        g.add_edges_from(itertools.combinations(neighbours, 2))
    return width


@pytest.mark.parametrize(
    ("n", "p1", "edges"), [(10, 0.3, 14), (10, 0.2, 10), (10, 0.7, 32), (20, 0.3, 58), (5, 1.0, 10), (1, 0, 0)]
)
def test_random_graphs(n, p1, edges):
    for seed in range(5):
        g = graph(random_model(n, 2, p1, seed=seed))
        assert (g.number_of_nodes(), g.number_of_edges()) == (n, edges)
        assert nx.is_connected(g)


@pytest.mark.parametrize(
    ("n", "p1", "published"), [(10, 0.2, 2.0), (10, 0.3, 2.9), (15, 0.3, 5.3), (10, 0.6, 5.4), (10, 0.9, 7.6)]
)
def test_widths_are_those_of_the_papers_first_table(n, p1, published):
    widths = [min_fill_width(graph(random_model(n, 2, p1, seed=seed))) for seed in range(50)]
    assert np.mean(widths) == pytest.approx(published, abs=0.5)


def test_scale_free_graphs():
    for n, seed in itertools.product((2, 3, 10, 20), range(5)):
        g = graph(scale_free_model(n, 2, seed=seed))
        assert g.number_of_edges() == 2 * (n - 2) + 1
        assert nx.is_connected(g)
    degrees = dict(graph(scale_free_model(300, 1)).degree)
    assert min(degrees[v] for v in range(2, 300)) == 2
    assert max(degrees.values()) > 20


def test_grids():
    for side in (1, 2, 5):
        assert nx.is_isomorphic(graph(grid_model(side, 2)), nx.grid_2d_graph(side, side))
        assert nx.is_isomorphic(graph(grid_model(side, 2, columns=3)), nx.grid_2d_graph(side, 3))


def test_costs_and_tightness():
    model = grid_model(4, 10, 0.37, seed=3)
    values = np.stack([f.values for f in model.factors])
    assert ((values == FORBIDDEN).sum(axis=(1, 2)) == 37).all()
    allowed = values[values != FORBIDDEN]
    assert set(allowed.tolist()) == set(range(101))
    assert abs(allowed.mean() - 50) < 3
    assert model.is_integer
    assert (np.stack([f.values for f in grid_model(2, 3, 0.0).factors]) != FORBIDDEN).all()
    assert (np.stack([f.values for f in grid_model(2, 3, 1.0).factors]) == FORBIDDEN).all()


@pytest.mark.parametrize("build", [lambda s: random_model(9, 3, 0.4, seed=s), lambda s: scale_free_model(9, 3, seed=s)])
def test_the_seed_decides(build):
    same = zip(build(1).factors, build(1).factors, strict=True)
    assert all(a.scope == b.scope and (a.values == b.values).all() for a, b in same)
    assert [f.scope for f in build(1).factors] != [f.scope for f in build(2).factors]


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: random_model(10, 2, 0.1), "density 0.1 gives 5 edges; 10 variables need 9"),
        (lambda: random_model(0, 2, 0.1), "at least 1 variable"),
        (lambda: random_model(3, 0, 0.5), "at least 1 value"),
        (lambda: random_model(3, 2, 1.5), "p1 is a share from 0 to 1, not 1.5"),
        (lambda: scale_free_model(1, 2), "at least 2 variables"),
        (lambda: grid_model(0, 2), "a side of at least 1"),
        (lambda: grid_model(2, 2, columns=0), "a side of at least 1"),
        (lambda: grid_model(2, 2, -0.1), "p2 is a share"),
        (lambda: grid_model(10**5, 2), "10000000000 variables are more than 100000"),
        (lambda: scale_free_model(10**5, 100), "199997 tables of 100 x 100 costs are more"),
        (lambda: random_model(5000, 2, 0.001), "12497500 pairs to draw from"),
    ],
)
def test_what_is_refused(build, problem):
    with pytest.raises(InputError, match=problem):
        build()
