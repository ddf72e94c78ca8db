"""Exchanging models with pgmpy and pyAgrum: with the packages where they are installed, and always with stand-ins."""

from __future__ import annotations

import itertools
import sys
import warnings
from importlib import import_module
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import elimina
import elimina.io as eio
from elimina.errors import InputError, UnsupportedError
from elimina.problem.observations import evidence_of
from tests.adapters import stand_ins
from tests.io import foreign
from tests.io.models import assert_same_network, random_network
from tests.packages import installed

Model, Variable, Table = elimina.Model, elimina.Variable, elimina.Table


@pytest.fixture(params=["stand-in", "package"])
def peer(request, monkeypatch):
    """Makes a package importable: a stand-in for it, or the package itself if it is installed."""

    def use(name: str) -> ModuleType:
        if request.param == "stand-in":
            for module, replacement in getattr(stand_ins, name)().items():
                monkeypatch.setitem(sys.modules, module, replacement)
            return sys.modules[name]
        return installed(name)

    return use


def markov_model() -> Model:
    variables = [Variable("a", 2, ["no", "yes"]), Variable("b", 3), Variable("c", 2), Variable("d", 1)]
    rng = np.random.default_rng(7)
    tables = [
        Table([2, 0], rng.random((2, 2))),
        Table([1], rng.random(3)),
        Table([], 0.5),
        Table([0, 2], rng.random((2, 2))),
        Table([3, 1], rng.random((1, 3))),
    ]
    return Model(variables, tables, sense="probability", constant=1.5)


def assert_same_scores(left: Model, right: Model) -> None:
    for values in itertools.product(*map(range, left.sizes)):
        names = {v.name: v.state(x) for v, x in zip(left.variables, values, strict=True)}
        given = evidence_of(right, names)
        assert right.score([given[i] for i in range(len(given))]) == pytest.approx(left.score(values), abs=1e-12)


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
@pytest.mark.parametrize("seed", range(4))
def test_networks_there_and_back(peer, name, seed):
    peer(name)
    model = random_network(seed, 12)
    theirs = getattr(elimina, f"to_{name}")(model)
    back = getattr(elimina, f"from_{name}")(theirs)
    assert_same_network(model, back)
    assert sorted(back.children) == list(range(12))
    if name == "pyagrum":
        assert back.name == model.name
    mine = {model.variables[f.scope[-1]].name: [model.variables[u].name for u in f.scope] for f in model.factors}
    theirs_too = {back.variables[f.scope[-1]].name: [back.variables[u].name for u in f.scope] for f in back.factors}
    assert mine == theirs_too


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
def test_markov_networks_there_and_back(peer, name):
    peer(name)
    model = markov_model()
    back = getattr(elimina, f"from_{name}")(getattr(elimina, f"to_{name}")(model))
    assert back.children is None
    assert len(back.factors) == (4 if name == "pgmpy" else 3)
    assert_same_scores(model, back)


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
def test_costs_become_probabilities(peer, name):
    peer(name)
    model = Model.from_arrays([2, 2], [([0, 1], [[0, 1], [2, 5]])])
    back = getattr(elimina, f"from_{name}")(getattr(elimina, f"to_{name}")(model))
    assert_same_scores(eio.convert_sense(model, "probability"), back)


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
def test_models_that_are_all_constant(peer, name):
    peer(name)
    model = Model([Variable("a", 2)], [Table([], 0.25)], sense="probability")
    assert_same_scores(model, getattr(elimina, f"from_{name}")(getattr(elimina, f"to_{name}")(model)))
    for bad in (
        Model([Variable("a", 2)], [], sense="probability", constant=800.0),
        Model([Variable("a", 2)], [], sense="probability", constant=-800.0),
        Model([], [Table([], 0.5)], sense="probability"),
    ):
        with pytest.raises(InputError):
            getattr(elimina, f"to_{name}")(bad)


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
def test_a_package_that_is_missing(monkeypatch, name):
    for module in {"pgmpy": ["pgmpy", "pgmpy.models"], "pyagrum": ["pyagrum"]}[name]:
        monkeypatch.setitem(sys.modules, module, None)
    model = random_network(1, 3)
    with pytest.raises(InputError, match=f"this needs the package {name} .*pip install {name}"):
        getattr(elimina, f"to_{name}")(model)
    with pytest.raises(InputError, match=r"expected a network of .*, got an object of type int"):
        getattr(elimina, f"from_{name}")(3)


def test_pgmpy_states_in_another_order(peer):
    pgmpy = peer("pgmpy")
    cpd = pgmpy.factors.discrete.TabularCPD
    network = pgmpy.models.DiscreteBayesianNetwork()
    network.add_nodes_from(["a", 7])
    network.add_edges_from([("a", 7)])
    of_seven = np.array([[0.1, 0.2], [0.9, 0.8]])
    network.add_cpds(
        cpd(7, 2, of_seven, ["a"], [2], state_names={7: [0, 1], "a": ["y", "x"]}),
        cpd("a", 2, [[0.3], [0.7]], state_names={"a": ["x", "y"]}),
    )
    model = elimina.from_pgmpy(network)
    assert [v.name for v in model.variables] == ["a", "7"]
    assert [v.states for v in model.variables] == [("x", "y"), (0, 1)]
    assert model.children == (1, 0)
    np.testing.assert_array_equal(model.factors[0].values, [[0.2, 0.8], [0.1, 0.9]])


def test_pgmpy_factor_graphs(peer):
    pgmpy = peer("pgmpy")
    graph = pgmpy.models.FactorGraph()
    factor = pgmpy.factors.discrete.DiscreteFactor(["b", "a"], [3, 2], np.arange(6.0))
    graph.add_nodes_from(["a", "b"])
    graph.add_factors(factor)
    graph.add_nodes_from([factor])
    graph.add_edges_from([("a", factor), ("b", factor)])
    model = elimina.from_pgmpy(graph)
    assert [(v.name, v.size) for v in model.variables] == [("a", 2), ("b", 3)]
    assert model.children is None
    assert [model.score([x, y]) for y, x in [(0, 1), (2, 1)]] == pytest.approx(np.log([1, 5]))


def test_pgmpy_networks_that_cannot_be_taken():
    def factor(variables, values, states):
        return SimpleNamespace(variables=variables, values=np.array(values), state_names=states)

    def network(nodes, cpds):
        return SimpleNamespace(nodes=lambda: nodes, get_cpds=lambda: cpds)

    a = factor(["a"], [0.5, 0.5], {"a": ["x", "y"]})
    b = factor(["b", "a"], [[1.0, 1.0]], {"b": [0], "a": ["x", "z"]})
    with pytest.raises(InputError, match="expected one conditional distribution of node 'b', found 0"):
        elimina.from_pgmpy(network(["a", "b"], [a]))
    with pytest.raises(InputError, match="expected one conditional distribution of node 'a', found 2"):
        elimina.from_pgmpy(network(["a"], [a, a]))
    with pytest.raises(InputError, match=r"variable 'a' has the states \['x', 'y'\] in one factor and"):
        elimina.from_pgmpy(network(["a", "b"], [a, b]))
    with pytest.raises(UnsupportedError, match="is not a table"):
        elimina.from_pgmpy(network(["a"], [SimpleNamespace(variable="a")]))
    one = factor([1], [0.5, 0.5], {1: [0, 1]})
    with pytest.raises(InputError, match="two variables are named '1'"):
        elimina.from_pgmpy(network([1, "1"], [one, factor(["1"], [0.5, 0.5], {"1": [0, 1]})]))


def test_pyagrum_influence_diagrams():
    with pytest.raises(UnsupportedError, match="influence diagram"):
        elimina.from_pyagrum(SimpleNamespace(utility=None, cpt=None))


def test_files_written_by_pyagrum(tmp_path):
    """pyAgrum writes 6 digits in XMLBIF and XDSL; in XDSL it lets the first parent vary fastest, unlike SMILE.

    It reads BIF and XMLBIF in single precision.
    """
    gum = installed("pyagrum")
    for seed in range(3):
        model = random_network(seed, 15)
        single = random_network(seed, 15, most_parents=1)
        for suffix, source in (("bif", model), ("bifxml", model), ("net", model), ("xdsl", single)):
            path = tmp_path / f"m.{suffix}"
            gum.saveBN(elimina.to_pyagrum(source), str(path))
            assert_same_network(source, eio.read(path), tolerance=1e-5 if "x" in suffix else 1e-15)
        for suffix in ("bif", "bifxml"):
            eio.write(model, tmp_path / f"n.{suffix}")
            assert_same_network(model, elimina.from_pyagrum(gum.loadBN(str(tmp_path / f"n.{suffix}"))), tolerance=1e-7)


def test_pgmpy_reads_the_same_files(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readers = pytest.importorskip("pgmpy.readwrite")
        model = random_network(5, 15)
        path = tmp_path / "m.xdsl"
        path.write_text(foreign.xdsl(model))
        theirs = elimina.from_pgmpy(readers.XDSLReader(str(path)).get_model())
        assert_same_network(theirs, eio.read(path), tolerance=1e-7)
        for suffix, reader in (("bif", readers.BIFReader), ("xmlbif", readers.XMLBIFReader)):
            eio.write(model, tmp_path / f"m.{suffix}")
            theirs = elimina.from_pgmpy(reader(str(tmp_path / f"m.{suffix}")).get_model())
            assert_same_network(model, theirs, tolerance=1e-7)


WEIGHTED = ["NoisyOR", "NoisyORNet", "NoisyORCompound", "NoisyAND", "Logit"]
AGGREGATORS = ["AMPLITUDE", "AND", "COUNT", "EXISTS", "FORALL", "MAX", "MEDIAN", "MIN", "OR", "SUM"]


def computed_network(gum: ModuleType, kind: str):
    """A network whose last variable has a table that pyAgrum computes from the parents' states."""
    network = gum.BayesNet()
    for name, shares in (("a", [0.2, 0.8]), ("b", [0.7, 0.3]), ("c", [0.4, 0.6])):
        network.add(gum.RangeVariable(name, name, 0, 1))
        network.cpt(name).fillWith(shares)
    largest = 1 if kind in (*WEIGHTED, "AND", "OR", "EXISTS", "FORALL") else 3
    add = getattr(network, f"add{kind}")
    child = gum.RangeVariable("d", "d", 0, largest)
    if kind in WEIGHTED:
        add(child, 0.1)
    else:
        add(child)
    for parent, weight in (("a", 0.4), ("b", 0.7), ("c", 0.25)):
        if kind in WEIGHTED:
            network.addWeightedArc(parent, "d", weight)
        else:
            network.addArc(parent, "d")
    return network


@pytest.mark.parametrize("kind", [*WEIGHTED, *AGGREGATORS])
def test_tables_that_pyagrum_computes(kind):
    gum = installed("pyagrum")
    network = computed_network(gum, kind)
    engine = gum.LazyPropagation(network)
    engine.makeInference()
    expected = engine.posterior("d").tolist()
    # Memory that was used before looks like a distribution.
    for _ in range(20):
        stale = [np.full((2,) * 4, 0.5) for _ in range(20)]
        del stale
        for source in (network, gum.MarkovRandomField.fromBN(network)):
            found = elimina.solve(elimina.from_pyagrum(source), "mar").marginals["d"]
            np.testing.assert_allclose(list(found.values()), expected, atol=1e-9)


def test_a_noisy_or_by_hand():
    """The leak is 0.1; independent causes inhibit with 0.6 and 0.3 (Pearl, 1988)."""
    gum = installed("pyagrum")
    network = gum.BayesNet()
    for name in "ab":
        network.add(gum.LabelizedVariable(name, name, 2))
        network.cpt(name).fillWith([0.5, 0.5])
    network.addNoisyORNet(gum.LabelizedVariable("c", "c", 2), 0.1)
    for name, weight in (("a", 0.4), ("b", 0.7)):
        network.addWeightedArc(name, "c", weight)
    table = next(f for f in elimina.from_pyagrum(network).factors if len(f.scope) == 3)
    np.testing.assert_allclose(
        table.values[..., 0].T if table.scope[0] == 1 else table.values[..., 0],
        [[0.9, 0.9 * 0.3], [0.9 * 0.6, 0.9 * 0.6 * 0.3]],
    )


def test_an_array_of_pyagrum_that_differs_from_its_cells(peer, monkeypatch):
    peer("pyagrum")
    network = elimina.to_pyagrum(random_network(1, 3))
    tensor = type(network.cpt(0))
    monkeypatch.setattr(tensor, "toarray", lambda self: np.full(self.as_nparray().shape, 0.5))
    with pytest.raises(UnsupportedError, match=r"differs from its cells.*save the network as \.bifxml"):
        elimina.from_pyagrum(network)


def test_pyagrum_objects_that_are_no_networks_of_chances():
    gum = installed("pyagrum")
    diagrams, credal = installed("pyagrum.influence_diagram"), installed("pyagrum.credal_net")
    diagram = diagrams.InfluenceDiagram()
    diagram.addDecisionNode(gum.LabelizedVariable("d", "d", 2))
    with pytest.raises(UnsupportedError, match="influence diagram has decisions"):
        elimina.from_pyagrum(diagram)
    bounds = gum.BayesNet(), gum.BayesNet()
    for network, shares in zip(bounds, ([0.2, 0.5], [0.5, 0.8]), strict=True):
        network.add(gum.LabelizedVariable("a", "a", 2))
        network.cpt("a").fillWith(shares)
    with pytest.raises(InputError, match="a BayesNet or a MarkovRandomField, got an object of type CredalNet"):
        elimina.from_pyagrum(credal.CredalNet(*bounds))


def test_types_of_pyagrum_variables():
    gum = installed("pyagrum")
    network = gum.BayesNet()
    variables = [
        (gum.LabelizedVariable("a", "", ["no", "1"]), ("no", "1")),
        (gum.RangeVariable("b", "", -1, 1), (-1, 0, 1)),
        (gum.IntegerVariable("c", "", [7, 1, 3]), (1, 3, 7)),
        (gum.DiscretizedVariable("d", "", [0.0, 1.0, 2.5]), ("[0;1[", "[1;2.5]")),
        (gum.NumericalDiscreteVariable("e", "", [0.5, 2.0]), ("0.5", "2")),
    ]
    for variable, _ in variables:
        network.add(variable)
        network.cpt(variable.name()).fillWith([1 / variable.domainSize()] * variable.domainSize())
    assert [v.states for v in elimina.from_pyagrum(network).variables] == [states for _, states in variables]


def test_pgmpy_networks_that_are_refused():
    installed("pgmpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = import_module("pgmpy.models")
        discrete = import_module("pgmpy.factors.discrete")
    dynamic = models.DynamicBayesianNetwork([(("D", 0), ("D", 1))])
    dynamic.add_cpds(
        discrete.TabularCPD(("D", 0), 2, [[0.6], [0.4]]),
        discrete.TabularCPD(("D", 1), 2, [[0.6, 0.2], [0.4, 0.8]], [("D", 0)], [2]),
    )
    dynamic.initialize_initial_state()
    with pytest.raises(
        UnsupportedError, match=r"dynamic Bayesian network .* elimina\.DynamicModel\.from_pgmpy\(network\)"
    ):
        elimina.from_pgmpy(dynamic)
    slices = elimina.solve(elimina.DynamicModel.from_pgmpy(dynamic).unroll(2), "mar").marginals
    assert slices["D[1]"] == pytest.approx({0: 0.6 * 0.6 + 0.4 * 0.2, 1: 0.6 * 0.4 + 0.4 * 0.8})
    with pytest.raises(InputError, match="expected one conditional distribution of node 'a', found 0"):
        elimina.from_pgmpy(models.LinearGaussianBayesianNetwork([("a", "b")]))
    for other in (models.MarkovChain(["a"], [2]), discrete.JointProbabilityDistribution(["a"], [2], [0.5, 0.5])):
        with pytest.raises(InputError, match=f"got an object of type {type(other).__name__}"):
            elimina.from_pgmpy(other)
    lone = models.DiscreteMarkovNetwork([("a", "b")])
    lone.add_node("z")
    lone.add_factors(discrete.DiscreteFactor(["a", "b"], [2, 2], [1, 2, 3, 4]))
    with pytest.raises(InputError, match="node 'z' is in no factor, so its states are unknown"):
        elimina.from_pgmpy(lone)


def test_pgmpy_noisy_or():
    installed("pgmpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models, discrete = import_module("pgmpy.models"), import_module("pgmpy.factors.discrete")
    network = models.DiscreteBayesianNetwork([("a", "c"), ("b", "c")])
    names = ["True", "False"]
    network.add_cpds(
        discrete.TabularCPD("a", 2, [[0.3], [0.7]], state_names={"a": names}),
        discrete.TabularCPD("b", 2, [[0.4], [0.6]], state_names={"b": names}),
        discrete.NoisyORCPD("c", [0.8, 0.6], ["a", "b"]),
    )
    found = elimina.solve(elimina.from_pgmpy(network), "mar").marginals["c"]
    assert found == pytest.approx({"True": 1 - (1 - 0.3 * 0.8) * (1 - 0.4 * 0.6), "False": 0.76**2})


AWKWARD = [[3, 0, 1], [True, False], ["yes, sir", "no way", ""], ["1", "0"], [-1, 5], ["True", "true"], ["a b", 'c"d']]


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
@pytest.mark.parametrize("states", AWKWARD, ids=map(str, AWKWARD))
def test_awkward_states_there_and_back(peer, name, states):
    peer(name)
    rng = np.random.default_rng(len(states))
    size = len(states)
    model = Model.from_arrays(
        {"a": states, "b": states},
        [(("a",), rng.dirichlet(np.ones(size))), (("a", "b"), rng.dirichlet(np.ones(size), size))],
        sense="probability",
        children=["a", "b"],
    )
    back = getattr(elimina, f"from_{name}")(getattr(elimina, f"to_{name}")(model))
    expected, found = (elimina.solve(m, "mar").marginals for m in (model, back))
    for variable in ("a", "b"):
        as_text = {str(state): share for state, share in expected[variable].items()}
        assert {str(state): share for state, share in found[variable].items()} == pytest.approx(as_text)
    if name == "pgmpy":
        assert [v.states for v in back.variables] == [tuple(states)] * 2


@pytest.mark.parametrize("name", ["pgmpy", "pyagrum"])
def test_networks_of_others_are_answered_as_they_are(peer, name, monkeypatch):
    package = peer(name)
    for stand_in in (stand_ins.DiscreteBayesianNetwork, stand_ins.BayesNet):
        monkeypatch.setattr(stand_in, "__module__", f"{name}.base")
    model = random_network(2, 6)
    theirs = getattr(elimina, f"to_{name}")(model)
    evidence = {model.variables[0].name: model.variables[0].state(0)}
    expected = elimina.solve(model, "mar", evidence=evidence)

    def check(marginals):
        assert {v: list(p.values()) for v, p in marginals.items()} == {
            v: pytest.approx(list(p.values()), abs=1e-12) for v, p in expected.marginals.items()
        }

    check(elimina.solve(theirs, "mar", evidence=evidence).marginals)
    tree = elimina.JunctionTree(theirs, evidence=evidence)
    assert tree.log10_evidence == pytest.approx(expected.log10_z)
    assert_same_network(model, tree.model)
    assert elimina.plan(theirs, "mar").task == "mar"
    assert elimina.sample(theirs, 3, seed=1).count == 3
    check(elimina.report(theirs, "mar", evidence=evidence).result.marginals)
    if package.__name__ == "pgmpy":
        derived = type("OwnNetwork", (type(theirs),), {"__module__": "analysis"})()
        derived.add_nodes_from(theirs.nodes())
        derived.add_edges_from(theirs.edges() if callable(theirs.edges) else theirs.edges)
        derived.add_cpds(*theirs.get_cpds())
        check(elimina.solve(derived, "mar", evidence=evidence).marginals)


@pytest.mark.data
@pytest.mark.parametrize("name", ["asia", "alarm", "insurance", "child"])
def test_graphs_and_interventions_agree_with_pyagrum(name, data_dir):
    gum, causal = installed("pyagrum"), installed("pyagrum.causal")
    path = data_dir / "bayesnets" / "bif" / f"{name}.bif"
    model = elimina.read(path)
    theirs = elimina.to_pyagrum(model)  # rows of the file sum to 1 only up to its decimals
    names = [v.name for v in model.variables]
    rng = np.random.default_rng(len(names))
    for v in names:
        assert set(model.parents(v)) == {theirs.variable(u).name() for u in theirs.parents(v)}
        assert set(model.children_of(v)) == {theirs.variable(u).name() for u in theirs.children(v)}
        assert set(model.ancestors(v)) == {theirs.variable(u).name() for u in theirs.ancestors(v)}
        blanket = gum.MarkovBlanket(theirs, v)
        assert set(model.markov_blanket(v)) == {theirs.variable(u).name() for u in blanket.nodes()} - {v}
    for _ in range(300):
        one, other, *given = rng.permutation(names)[: rng.integers(2, 6)].tolist()
        assert model.is_d_separated(one, other, given) == theirs.isIndependent(one, other, set(given))
    for _ in range(10):
        cause, effect = rng.permutation(names)[:2].tolist()
        x = int(rng.integers(model[cause].size))
        _, impact, _ = causal.causalImpact(causal.CausalModel(theirs), on={effect}, doing={cause})
        mine = elimina.solve(model.do({cause: elimina.StateIndex(x)}), "mar").marginals[effect]
        values = [
            impact[{cause: x, effect: y}] if cause in impact.names else impact[{effect: y}] for y in range(len(mine))
        ]
        assert list(mine.values()) == pytest.approx(values, abs=1e-9)
