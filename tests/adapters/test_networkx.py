"""Graphs of networkx become models and models graphs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import elimina
from elimina.errors import InputError

networkx = pytest.importorskip("networkx")

from elimina.adapters.networkx import from_networkx, to_networkx  # noqa: E402
from elimina.model.table import forbidden_value  # noqa: E402
from tests.project.test_docs import ROOT  # noqa: E402
from tests.seeds import run_seed  # noqa: E402


def test_a_bayesian_network_comes_back():
    model = elimina.read(ROOT / "examples" / "pump.bif")
    graph = to_networkx(model)
    assert networkx.is_directed_acyclic_graph(graph)
    back = from_networkx(graph)
    expected = elimina.solve(model, "mar", evidence={"Alarm": "on"}).marginals
    found = elimina.solve(back, "mar", evidence={"Alarm": "on"}).marginals
    for name, values in expected.items():
        assert found[name] == pytest.approx(values)


def test_costs_on_nodes_and_edges():
    graph = networkx.path_graph(["c", "b", "a"])
    for node in graph:
        graph.nodes[node]["states"] = ["r", "g"]
    graph.nodes["a"]["costs"] = [3, 0]
    for edge in graph.edges:
        graph.edges[edge]["costs"] = np.array([[5, 0], [1, 5]])
    model = from_networkx(graph)
    result = elimina.solve(model)
    assert (result.value, result.assignment["a"]) == (1, "g")
    assert sorted(map(sorted, to_networkx(model).edges)) == [["a", "b"], ["b", "c"]]


def test_colourings_are_counted_as_by_the_chromatic_polynomial():
    pytest.importorskip("sympy")
    graph = networkx.petersen_graph()
    for node in graph:
        graph.nodes[node]["states"] = ["red", "green", "blue"]
    for edge in graph.edges:
        graph.edges[edge]["costs"] = np.where(np.eye(3), np.inf, 0)
    number = networkx.chromatic_polynomial(graph).subs("x", 3)
    assert elimina.solve(from_networkx(graph), "count").value == number == 120


def test_errors():
    with pytest.raises(InputError, match="node 1 has no attribute 'states'"):
        from_networkx(networkx.path_graph([1, 2]))
    graph = networkx.DiGraph()
    graph.add_node("x", states=["a", "b"])
    with pytest.raises(InputError, match="node 'x' has no attribute 'table'"):
        from_networkx(graph)
    with pytest.raises(TypeError, match="graph is None; it takes a graph of networkx"):
        from_networkx(None)
    with pytest.raises(TypeError, match="model is 'x'"):
        to_networkx("x")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"states": 2}, "attribute 'states' of node 'x' is 2; give a list"),
        ({"states": "ab"}, "attribute 'states' of node 'x' is 'ab'; give a list"),
        ({"parents": 5}, "attribute 'parents' of node 'x' is 5; give a list"),
        ({"parents": ["z"]}, "node 'x' has the parent 'z', which the graph does not have"),
    ],
)
def test_wrong_attributes_are_named(attributes, message):
    graph = networkx.DiGraph()
    graph.add_node("x", **{"states": ["a", "b"], "table": [0.5, 0.5], **attributes})
    with pytest.raises(InputError, match=message):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"states": {"a", "b"}}, "attribute 'states' of node 'y' is .*; give a list"),
        ({"table": None}, "node 'y': a table holds integers of 64 bits or floats, not objects such as None"),
        ({"table": [0.5, 0.5]}, "node 'y': a table's scope has length 2, but its array has dimension 1"),
        ({"table": [[0.5, 0.5]]}, r"node 'y' has a table of the shape \(1, 2\); the numbers of states are \(2, 2\)"),
    ],
)
def test_the_node_of_a_wrong_table_is_named(attributes, message):
    graph = networkx.DiGraph([("x", "y")])
    graph.add_node("x", states=["a", "b"], table=[0.5, 0.5])
    graph.add_node("y", **{"states": ["a", "b"], "table": [[0.5, 0.5], [0.5, 0.5]], **attributes})
    with pytest.raises(InputError, match=message):
        from_networkx(graph)


def test_the_edge_of_wrong_costs_is_named():
    graph = networkx.Graph([("x", "x")])
    graph.add_node("x", states=[0, 1])
    graph.edges["x", "x"]["costs"] = np.eye(2)
    with pytest.raises(InputError, match=r"edge \('x', 'x'\): a table's scope names a variable twice"):
        from_networkx(graph)


def test_a_cycle_of_parents_is_refused():
    graph = networkx.DiGraph([("x", "y"), ("y", "x")])
    for node in graph.nodes:
        graph.add_node(node, states=[0, 1], table=np.full((2, 2), 0.5))
    with pytest.raises(InputError, match="a cycle of parents: 'x' <- 'y' <- 'x'"):
        from_networkx(graph)


def cost_model(seed, sense, is_integer):
    """Return a random model with factors over up to two variables, some of them over the same ones."""
    random = np.random.default_rng([run_seed(), seed])
    sizes = random.integers(1, 4, 5).tolist()
    scopes = [(), (0,), (0,), (3, 1), (1, 3), (2, 4), (4, 0), (1, 3)]
    tables = []
    for number, scope in enumerate(scopes):
        shape = [sizes[v] for v in scope]
        values = random.integers(1, 9, shape) if is_integer and number != 4 * (seed % 2) else random.random(shape)
        values = np.asarray(values)
        is_lost = random.random(shape) < 0.1
        tables.append(elimina.Table(scope, np.where(is_lost, forbidden_value(sense, values.dtype), values)))
    variables = [elimina.Variable(f"x{v}", size) for v, size in enumerate(sizes)]
    bound = None if sense == "probability" else (60.5 if sense == "min-cost" else 1)
    return elimina.Model(variables, tables, sense=sense, constant=-1.5, upper_bound=bound, name="a model")


@pytest.mark.parametrize("is_integer", [True, False])
@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
@pytest.mark.parametrize("seed", range(4))
def test_models_of_pairs_come_back(seed, sense, is_integer):
    model = cost_model(seed, sense, is_integer)
    model.decimals = None if sense == "probability" else 3
    back = from_networkx(to_networkx(model))
    for name in ("sense", "constant", "upper_bound", "decimals", "name", "sizes"):
        assert getattr(back, name) == getattr(model, name), name
    for indices in itertools.product(*map(range, model.sizes)):
        first, second = model.score(indices), back.score(indices)
        if abs(first) > 2**53:
            assert abs(second) > 2**53
        else:
            assert second == pytest.approx(first, rel=1e-12)
    answers = [elimina.solve(asked) for asked in (model, back)]
    assert answers[0].status == answers[1].status
    assert answers[0].value == pytest.approx(answers[1].value)


def test_a_network_keeps_its_name_and_constant():
    network = elimina.Model(
        [elimina.Variable("x", 2)], [elimina.Table([0], [0.25, 0.75])], sense="probability", constant=-2.0,
        children=[0], name="coin",
    )  # fmt: skip
    back = from_networkx(to_networkx(network))
    assert (back.name, back.constant, back.children) == ("coin", -2.0, (0,))


@pytest.mark.parametrize(("sizes", "reason"), [([2, 2, 2], "3 variables"), ([4000, 4000], "16,000,000 cells")])
def test_factors_that_a_graph_cannot_hold_are_not_lost_unnoticed(sizes, reason):
    scope = range(len(sizes))
    table = elimina.Table(scope, np.array([3]), sizes=sizes, rows=np.zeros((1, len(sizes)), np.int32), default=0)
    graph = to_networkx(elimina.Model([elimina.Variable(f"x{v}", size) for v, size in enumerate(sizes)], [table]))
    assert len(graph.edges) == math.comb(len(sizes), 2)
    with pytest.raises(InputError, match=f"the graph does not hold the costs of its model: a factor .* has {reason}"):
        from_networkx(graph)


def test_sums_that_integers_cannot_hold_are_refused():
    table = elimina.Table([0], np.array([2**62, 0]))
    with pytest.raises(InputError, match="too large to be added"):
        to_networkx(elimina.Model([elimina.Variable("x", 2)], [table, table]))
