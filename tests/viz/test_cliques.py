"""The cliques of a bucket tree are the maximal cliques of the triangulated graph, joined into a junction tree."""

from __future__ import annotations

from itertools import combinations

import networkx
from hypothesis import given
from hypothesis import strategies as st

from elimina.tree import bucket_tree
from elimina.viz.cliques import cliques, rooted_at_centres


@st.composite
def problems(draw):
    count = draw(st.integers(1, 9))
    scopes = draw(st.lists(st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True), max_size=12))
    return scopes, draw(st.permutations(range(count)))


def triangulated(scopes, order):
    """Eliminate on a graph, slowly."""
    graph = networkx.Graph()
    graph.add_nodes_from(order)
    for scope in scopes:
        graph.add_edges_from(combinations(scope, 2))
    left = graph.copy()
    for variable in order:
        fill = list(combinations(list(left[variable]), 2))
        graph.add_edges_from(fill)
        left.add_edges_from(fill)
        left.remove_node(variable)
    return graph


@given(problems())
def test_against_the_triangulated_graph(problem):
    scopes, order = problem
    tree = bucket_tree(scopes, order)
    found = cliques([frozenset((n.variable, *n.separator)) for n in tree.nodes], [n.parent for n in tree.nodes])
    graph = triangulated(scopes, order)
    assert sorted(map(sorted, found.scopes)) == sorted(map(sorted, networkx.find_cliques(graph)))
    for result in (found, rooted_at_centres(found)):
        edges = [(v, p) for v, p in enumerate(result.parents) if p >= 0]
        forest = networkx.Graph(edges)
        forest.add_nodes_from(range(len(result.scopes)))
        assert networkx.is_forest(forest)
        assert networkx.number_connected_components(forest) == networkx.number_connected_components(graph)
        for variable in order:
            holders = [i for i, scope in enumerate(result.scopes) if variable in scope]
            assert networkx.is_connected(forest.subgraph(holders))


@given(problems())
def test_centres_have_the_fewest_levels(problem):
    scopes, order = problem
    tree = bucket_tree(scopes, order)
    found = cliques([frozenset((n.variable, *n.separator)) for n in tree.nodes], [n.parent for n in tree.nodes])
    centred = rooted_at_centres(found)
    pairs = [{frozenset((v, p)) for v, p in enumerate(t.parents) if p >= 0} for t in (found, centred)]
    assert pairs[0] == pairs[1]
    forest = networkx.Graph([tuple(pair) for pair in pairs[0]])
    forest.add_nodes_from(range(len(found.scopes)))
    for part in networkx.connected_components(forest):
        root = next(v for v in part if centred.parents[v] < 0)
        assert networkx.eccentricity(forest.subgraph(part), root) == networkx.radius(forest.subgraph(part))
