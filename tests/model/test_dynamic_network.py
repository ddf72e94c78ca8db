"""Dynamic networks: building them by name, from models, matrices and the networks of other packages; unrolling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import elimina
from elimina import DynamicModel, InputError, Model, Table, UnsupportedError, Variable
from tests.packages import installed

INITIAL = {
    "rain": {"no": 0.6, "yes": 0.4},
    ("wet", "rain"): {"no": {"no": 0.9, "yes": 0.2}, "yes": {"no": 0.1, "yes": 0.8}},
}
MOVES = np.array([[0.7, 0.3], [0.3, 0.7]])


def test_names_of_slices():
    model = DynamicModel.from_cpds(INITIAL, {("rain", "rain[-1]"): MOVES}, name="weather")
    network = model.unroll(3)
    assert [v.name for v in network] == ["rain[0]", "wet[0]", "rain[1]", "wet[1]", "rain[2]", "wet[2]"]
    assert network["wet[2]"].states == ("no", "yes")
    assert network.parents("wet[2]") == ["rain[2]"]
    assert network.parents("rain[2]") == ["rain[1]"]
    assert network.name == "weather"
    # 0.6 * 0.3 * 0.9, then the umbrella: what is left out keeps its distribution.
    states = network.indices_of(
        dict.fromkeys(("rain[0]", "wet[0]"), "no") | dict.fromkeys(("rain[1]", "wet[1]", "rain[2]", "wet[2]"), "yes")
    )
    assert network.score(states) == pytest.approx(np.log(0.6 * 0.9 * 0.3 * 0.8 * 0.7 * 0.8))
    assert [model.variables[v].name for v in model.interface] == ["rain"]
    with pytest.raises(InputError, match="count"):
        model.unroll(0)


def test_slices_may_differ():
    model = DynamicModel.from_cpds(
        INITIAL, {("rain", "rain[-1]", "wet[-1]"): np.full((2, 2, 2), 0.5), "wet": [0.25, 0.75]}
    )
    network = model.unroll(2)
    assert network.parents("wet[1]") == []
    assert network.parents("rain[1]") == ["rain[0]", "wet[0]"]
    assert elimina.solve(network, "mar").marginals["wet[1]"]["yes"] == pytest.approx(0.75)


def test_two_models_make_one():
    by_name = DynamicModel.from_cpds(INITIAL, {("rain", "rain[-1]"): MOVES})
    variables = [Variable("rain", 2, ["no", "yes"]), Variable("rain[-1]", 2, ["no", "yes"])]
    transition = Model(variables, [Table([1, 0], MOVES.T)], sense="probability", children=[0])
    by_model = DynamicModel(Model.from_cpds(INITIAL), transition)
    for first, second in zip(by_name.unroll(3).factors, by_model.unroll(3).factors, strict=True):
        assert first.scope == second.scope
        assert first.values.tolist() == second.values.tolist()


def test_matrices_are_those_of_hmmlearn():
    start, transition, emission = [0.6, 0.4], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]
    model = DynamicModel.hidden_markov(start, transition, emission, states=["fair", "loaded"], symbols=[1, 2, 6])
    network = model.unroll(2)
    states = {"state[0]": "fair", "observation[0]": 1, "state[1]": "loaded", "observation[1]": 6}
    assert network.score(network.indices_of(states)) == pytest.approx(np.log(0.6 * 0.5 * 0.1 * 1.0))
    several = DynamicModel.hidden_markov(
        start, transition, {"a": emission, "b": emission}, symbols={"b": ["x", "y", "z"]}
    )
    assert [v.name for v in several.variables] == ["state", "a", "b"]
    assert several.variables[2].states == ("x", "y", "z")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: DynamicModel.from_cpds(INITIAL, {("rain", "rian[-1]"): MOVES}),
            "names 'rian\\[-1\\]'.*did you mean 'rain\\[-1\\]'",
        ),
        (
            lambda: DynamicModel.from_cpds(INITIAL, {"rain[-1]": [0.5, 0.5]}),
            "a variable of the previous slice: leave it out",
        ),
        (
            lambda: DynamicModel.from_cpds(INITIAL, {("rain", "rain[-1]"): [[0.7, 0.7], [0.4, 0.4]]}),
            "'rain' given rain\\[-1\\]=no sums to 1.1",
        ),
        (lambda: DynamicModel.from_cpds({"a[-1]": [1.0]}, {}), "has the name of a variable of a slice before"),
        (
            lambda: DynamicModel.from_cpds({"a": [0.5, 0.5], "b": [0.5, 0.5]}, {("a", "b"): MOVES, ("b", "a"): MOVES}),
            "a cycle of parents",
        ),
        (
            lambda: DynamicModel(Model.from_arrays([2], []), Model.from_cpds(INITIAL)),
            "initial is not a Bayesian network",
        ),
        (
            lambda: DynamicModel(Model.from_cpds(INITIAL), Model.from_arrays([2], [])),
            "transition is not a Bayesian network",
        ),
        (
            lambda: DynamicModel(Model.from_cpds(INITIAL), Model.from_cpds({"snow": [1.0]})),
            "'snow', which the first slice has not",
        ),
        (
            lambda: DynamicModel(Model.from_cpds(INITIAL), Model.from_cpds({"rain": [0.5, 0.5]})),
            "'rain' has the states \\[0, 1\\] in transition",
        ),
        (
            lambda: DynamicModel(
                Model.from_arrays({"a": 2}, [], sense="probability", children=[]), Model.from_cpds(INITIAL)
            ),
            "'a' has no distribution",
        ),
        (
            lambda: DynamicModel.hidden_markov([0.5, 0.5], [[1.0]]),
            "transition the shape \\(1, 1\\); it takes \\(2, 2\\)",
        ),
        (lambda: DynamicModel.hidden_markov([0.5, 0.5], MOVES, [[1.0]]), "emission has 1 row"),
        (lambda: DynamicModel.hidden_markov([0.5, 0.5], MOVES, {"x": [[1.0]]}), "emission\\['x'\\] has 1 row"),
        (lambda: DynamicModel.hidden_markov([0.5, 0.5], MOVES, MOVES, symbols=["a"]), "2 symbols and symbols names 1"),
        (
            lambda: DynamicModel.hidden_markov([0.5, 0.5], MOVES, MOVES, symbols={"y": ["a"]}),
            "names 'y', which has no emission",
        ),
        (lambda: DynamicModel.hidden_markov([0.5, 0.5], MOVES, states=["a"]), "states names 1"),
        (lambda: DynamicModel.hidden_markov([0.5, 0.6], MOVES), "sum"),
        (lambda: DynamicModel.hidden_markov([], MOVES), "start has the shape \\(0,\\)"),
        (lambda: DynamicModel.hidden_markov("ab", MOVES), "start is 'ab'"),
    ],
)
def test_what_is_no_dynamic_network(call, text):
    with pytest.raises(InputError, match=text):
        call()


def test_arguments_of_wrong_types():
    with pytest.raises(TypeError, match="transition is 3"):
        DynamicModel.from_cpds(INITIAL, 3)
    with pytest.raises(TypeError, match="a key of transition is 3"):
        DynamicModel.from_cpds(INITIAL, {3: [0.5, 0.5]})
    with pytest.raises(TypeError, match="initial is 3"):
        DynamicModel.from_cpds(3, {})
    with pytest.raises(TypeError, match="a key of initial is 3"):
        DynamicModel.from_cpds({3: [0.5, 0.5]}, {})
    with pytest.raises(InputError, match=r"the key \('rain', 'rain'\) of transition names a variable twice"):
        DynamicModel.from_cpds(INITIAL, {("rain", "rain"): MOVES})


@pytest.mark.parametrize(
    ("argument", "value", "text"),
    [
        ("states", {"a", "b"}, r"states is \{"),
        ("states", "ab", "states is 'ab'"),
        ("symbols", {"a", "b"}, r"symbols is \{"),
        ("symbols", 2.0, "symbols is 2.0"),
        ("symbols", {"observation": "ab"}, r"symbols\['observation'\] is 'ab'"),
        ("emission", {3: MOVES}, "a key of emission is 3"),
    ],
)
def test_wrong_arguments_of_hidden_markov_models_are_named(argument, value, text):
    with pytest.raises(TypeError, match=f"{text}.*; it takes"):
        DynamicModel.hidden_markov(**{"start": [0.5, 0.5], "transition": MOVES, "emission": MOVES, argument: value})


def test_an_observed_variable_with_the_name_of_the_hidden_one():
    with pytest.raises(InputError, match="emission names 'state', the hidden variable"):
        DynamicModel.hidden_markov([0.5, 0.5], MOVES, {"state": MOVES})
    with pytest.raises(TypeError, match="initial is 3"):
        DynamicModel(3, Model.from_cpds(INITIAL))
    with pytest.raises(TypeError, match="model is 3"):
        elimina.OnlineFilter(3)


def dynamic_pgmpy():
    models = pytest.importorskip("pgmpy.models")
    factors = pytest.importorskip("pgmpy.factors.discrete")
    network = models.DynamicBayesianNetwork()
    network.add_edges_from([(("Z", 0), ("X", 0)), (("Z", 0), ("Z", 1)), (("Y", 0), ("X", 0)), (("X", 0), ("Y", 1))])
    cpd = factors.TabularCPD
    network.add_cpds(
        cpd(("Z", 0), 2, [[0.5], [0.5]]),
        cpd(("Y", 0), 2, [[0.3], [0.7]]),
        cpd(
            ("X", 0),
            3,
            [[0.6, 0.1, 0.2, 0.3], [0.3, 0.1, 0.5, 0.3], [0.1, 0.8, 0.3, 0.4]],
            [("Z", 0), ("Y", 0)],
            [2, 2],
        ),
        cpd(("Z", 1), 2, [[0.7, 0.2], [0.3, 0.8]], [("Z", 0)], [2]),
        cpd(("Y", 1), 2, [[0.1, 0.5, 0.9], [0.9, 0.5, 0.1]], [("X", 0)], [3]),
    )
    network.initialize_initial_state()
    return network


def test_networks_of_pgmpy():
    pytest.importorskip("pgmpy")
    network = dynamic_pgmpy()
    model = DynamicModel.from_pgmpy(network)
    assert sorted(v.name for v in model.variables) == ["X", "Y", "Z"]
    # The distributions of pgmpy, multiplied by hand.
    z, y = np.array([0.5, 0.5]), np.array([0.3, 0.7])
    x_given_z_y = np.array([[[0.6, 0.1], [0.2, 0.3]], [[0.3, 0.1], [0.5, 0.3]], [[0.1, 0.8], [0.3, 0.4]]])
    z_given_z = np.array([[0.7, 0.2], [0.3, 0.8]])
    y_given_x = np.array([[0.1, 0.5, 0.9], [0.9, 0.5, 0.1]])
    observations = [0, 2, 1]
    filtered = model.filter({"X": observations})
    for t, x in enumerate(observations):
        pair = z[:, None] * y * x_given_z_y[x]
        assert filtered.log_evidence[t] == pytest.approx(np.log(pair.sum()))
        assert filtered.marginals["Z"][t] == pytest.approx(pair.sum(axis=1) / pair.sum())
        assert filtered.marginals["Y"][t] == pytest.approx(pair.sum(axis=0) / pair.sum())
        z, y = z_given_z @ (pair.sum(axis=1) / pair.sum()), y_given_x[:, x]
    evidence = {f"X[{t}]": state for t, state in enumerate(observations)}
    tree = elimina.JunctionTree(model.unroll(3), evidence=evidence)
    smoothed = model.smooth({"X": observations})
    for name, t in itertools.product("YZ", range(3)):
        assert smoothed.marginals[name][t] == pytest.approx(tree.marginals()[f"{name}[{t}]"].array)


def test_posteriors_equal_those_of_pgmpy():
    models = pytest.importorskip("pgmpy.models")
    factors = pytest.importorskip("pgmpy.factors.discrete")
    inference = pytest.importorskip("pgmpy.inference")
    network = models.DynamicBayesianNetwork()
    network.add_edges_from([(("Z", 0), ("X", 0)), (("Z", 0), ("Z", 1))])
    emission = [[0.6, 0.1], [0.3, 0.1], [0.1, 0.8]]
    network.add_cpds(
        factors.TabularCPD(("Z", 0), 2, [[0.5], [0.5]]),
        factors.TabularCPD(("X", 0), 3, emission, [("Z", 0)], [2]),
        factors.TabularCPD(("Z", 1), 2, [[0.7, 0.2], [0.3, 0.8]], [("Z", 0)], [2]),
        factors.TabularCPD(("X", 1), 3, emission, [("Z", 1)], [2]),
    )
    network.initialize_initial_state()
    model = DynamicModel.from_pgmpy(network)
    observations = [0, 2, 1]
    evidence = {("X", t): state for t, state in enumerate(observations)}
    peer = inference.DBNInference(network)
    filtered, smoothed = model.filter({"X": observations}), model.smooth({"X": observations})
    expected = peer.forward_inference([("Z", 2)], evidence)["Z", 2].values
    assert filtered.marginals["Z"][2] == pytest.approx(expected)
    for t in range(2):
        expected = peer.backward_inference([("Z", t)], evidence)["Z", t].values
        assert smoothed.marginals["Z"][t] == pytest.approx(expected)


def test_a_network_of_pgmpy_without_slice_0():
    models = pytest.importorskip("pgmpy.models")
    factors = pytest.importorskip("pgmpy.factors.discrete")
    network = models.DynamicBayesianNetwork()
    network.add_edge(("Z", 0), ("Z", 1))
    network.add_cpds(factors.TabularCPD(("Z", 1), 2, [[0.7, 0.2], [0.3, 0.8]], [("Z", 0)], [2]))
    with pytest.raises(InputError, match=r"initialize_initial_state\(\)"):
        DynamicModel.from_pgmpy(network)
    with pytest.raises(InputError, match="expected a DynamicBayesianNetwork of pgmpy"):
        DynamicModel.from_pgmpy(3)


def test_networks_of_pyagrum():
    gum = installed("pyagrum")
    network = gum.fastBN("a0{no|yes}->b0[3];a0->at{no|yes}->bt[3];b0->bt")
    model = DynamicModel.from_pyagrum(network)
    unrolled = gum.fastBN("a0{no|yes}->b0[3];a0->a1{no|yes}->b1[3];b0->b1;a1->a2{no|yes}->b2[3];b1->b2")
    for t, name in itertools.product(range(3), "ab"):
        target, source = unrolled.cpt(f"{name}{t}"), network.cpt(f"{name}{'t' if t else 0}")
        cell, place = gum.Instantiation(source), gum.Instantiation(target)
        while not cell.end():
            for variable in source.names:
                number = t if variable.endswith("t") else max(0, t - 1)
                place.chgVal(f"{variable[:-1]}{number}", cell.val(source.variable(variable)))
            target.set(place, source.get(cell))
            cell.inc()
    inference = gum.LazyPropagation(unrolled)
    inference.setEvidence({"b0": 1, "b2": 2})
    inference.makeInference()
    answer = model.smooth({"b": [1, None, 2]}, ["a", "b"])
    for t in range(3):
        assert answer.marginals["a"][t] == pytest.approx(inference.posterior(f"a{t}").toarray())
    assert answer.marginals["b"][1] == pytest.approx(inference.posterior("b1").toarray())
    assert model.variables[0].states == ("no", "yes")


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("a0->at;c->at", UnsupportedError, "'c' is in no slice"),
        ("a0->at;b0", InputError, "but not 'bt' of the other"),
        ("at->a0", UnsupportedError, "'a0' has the parent 'at' in a later slice"),
    ],
)
def test_networks_of_pyagrum_that_do_not_repeat(text, error, match):
    gum = installed("pyagrum")
    with pytest.raises(error, match=match):
        DynamicModel.from_pyagrum(gum.fastBN(text))


@pytest.mark.parametrize("count", [2**33, 2**62])
def test_slices_that_no_memory_holds_are_refused_at_once(count):
    model = DynamicModel.hidden_markov([0.5, 0.5], MOVES, [[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(elimina.MemoryLimitError, match=r"the network of .* slices takes about .* are left"):
        model.unroll(count)
    with pytest.raises(elimina.MemoryLimitError, match=r"the posteriors of .* slices take .* may be used"):
        model.predict([0, 1], count)


def test_complex_probabilities_are_refused():
    with pytest.raises(InputError, match=r"start is array.* it takes a sequence of numbers"):
        DynamicModel.hidden_markov(np.array([0.5 + 1j, 0.5]), MOVES)
    with pytest.raises(InputError, match=r"emission is .* it takes an array of two axes of numbers"):
        DynamicModel.hidden_markov([0.5, 0.5], MOVES, [[1, 10**400], [1, 0]])


@pytest.mark.parametrize("start", [[0.5, 0.6], [0.5, 0.5]])
def test_rows_are_taken_as_they_are_without_a_check(start):
    """The error's advice works: the probabilities of all sequences of one symbol add up to the sum of the row."""
    if sum(start) != 1:
        with pytest.raises(InputError, match=r"'state' sums to 1.1, not 1: .* by check=False where"):
            DynamicModel.hidden_markov(start, MOVES, MOVES)
    model = DynamicModel.hidden_markov(start, MOVES, MOVES, check=False)
    assert sum(math.exp(model.log_likelihood([symbol])) for symbol in (0, 1)) == pytest.approx(sum(start))
