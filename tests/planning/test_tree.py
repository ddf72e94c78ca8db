"""Junction trees: the maximal cliques of the triangulated graph, joined; central orders keep them."""

from __future__ import annotations

from itertools import combinations

import networkx
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.planning.tree import junction_tree, plan_tree
from tests.reference import tree as reference


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


def forest_of(cliques):
    forest = networkx.Graph([(v, clique.parent) for v, clique in enumerate(cliques) if clique.parent >= 0])
    forest.add_nodes_from(range(len(cliques)))
    return forest


@settings(max_examples=60, deadline=None)
@given(problems())
def test_against_the_triangulated_graph(problem):
    scopes, order = problem
    cliques = junction_tree(plan_tree(scopes, [2] * len(order), order))
    assert cliques == reference.junction_tree(reference.bucket_tree(scopes, order))
    graph = triangulated(scopes, order)
    assert sorted(sorted(c.scope) for c in cliques) == sorted(map(sorted, networkx.find_cliques(graph)))
    forest = forest_of(cliques)
    assert networkx.is_forest(forest)
    assert networkx.number_connected_components(forest) == networkx.number_connected_components(graph)
    for variable in order:
        holders = [i for i, clique in enumerate(cliques) if variable in clique.scope]
        assert networkx.is_connected(forest.subgraph(holders))
    for number, (scope, separator, parent) in enumerate(cliques):
        assert parent == -1 or parent > number
        assert set(separator) == (set(scope) & set(cliques[parent].scope) if parent >= 0 else set())


@settings(max_examples=60, deadline=None)
@given(problems())
def test_central_orders_keep_the_cliques(problem):
    scopes, order = problem
    sizes = [2] * len(order)
    tree = plan_tree(scopes, sizes, order)
    cliques = junction_tree(tree)
    central = tree.central_order()
    centred = junction_tree(plan_tree([c.scope for c in cliques], sizes, central))
    assert {frozenset(c.scope) for c in centred} == {frozenset(c.scope) for c in cliques}
    assert sum(c.parent < 0 for c in centred) == sum(c.parent < 0 for c in cliques)
