"""States in their native types: one meaning on all paths, and the one that pgmpy and pyAgrum give them."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina import JunctionTree, Model, StateIndex, Table, Variable, solve
from elimina.errors import InputError
from elimina.io.cases import cases_from_frame, read_cases
from elimina.io.evidence import parse_assignments
from elimina.model.variable import find_text, index_of_text, texts_of
from tests.adapters import stand_ins
from tests.packages import installed

SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = ("A", "B", "C", "D")

STATES = st.one_of(
    st.lists(st.integers(-3, 12), min_size=1, max_size=4, unique=True),
    st.lists(
        st.text("xyz01-. ", min_size=1, max_size=3).map(str.strip).filter(bool), min_size=1, max_size=4, unique=True
    ),
    st.permutations([False, True]),
    st.sampled_from([["1", 2, True], [0, "a", "-1"], [False, 1], [True, 0], [2, 1, 0]]),
)


@st.composite
def networks(draw, states=STATES):
    """A Bayesian network over a few variables."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    variables, tables = [], []
    for v, name in enumerate(NAMES[: draw(st.integers(1, 4))]):
        own = draw(states)
        variables.append(Variable(name, len(own), own))
        parents = draw(st.lists(st.sampled_from(range(v)), unique=True, max_size=2)) if v else []
        values = rng.random([variables[p].size for p in parents] + [len(own)]) + 0.05
        tables.append(Table([*parents, v], values / values.sum(axis=-1, keepdims=True)))
    return Model(variables, tables, sense="probability", children=range(len(variables)))


@st.composite
def questions(draw, states=STATES):
    """A network, and the index of each observed variable's state."""
    model = draw(networks(states))
    observed = draw(st.lists(st.sampled_from(range(len(model.variables))), unique=True))
    return model, {v: draw(st.integers(0, model.variables[v].size - 1)) for v in observed}


def typed(states):
    return [(type(state), state) for state in states]


def same(one, other):
    """Marginals with the same states, types included, and the same probabilities."""
    assert one.keys() == other.keys()
    for name, own in one.items():
        assert typed(own) == typed(other[name])
        assert list(own.values()) == pytest.approx(list(other[name].values()), abs=1e-9)


@SLOW
@given(questions())
def test_all_paths_mean_the_same(tmp_path, question):
    model, observed = question
    variables = model.variables
    evidence = {variables[v].name: variables[v].state(x) for v, x in observed.items()}
    expected = solve(model, "mar", evidence=evidence, device="cpu").marginals
    log = solve(model, "pr", evidence=evidence, device="cpu").log10_z
    for v, x in observed.items():
        assert typed(expected[variables[v].name]) == typed(variables[v].states)
        assert expected[variables[v].name][variables[v].state(x)] == pytest.approx(1)
    forms = [
        {v: StateIndex(x) for v, x in observed.items()},
        {variables[v].name: np.eye(variables[v].size)[x] for v, x in observed.items()},
        {variables[v].name: np.array(variables[v].state(x))[()] for v, x in observed.items()},
    ]
    items = [f'"{variables[v].name}"="{variables[v].state(x)}"' for v, x in observed.items()]
    if items:
        forms.append(parse_assignments(",".join(items), model))
    (tmp_path / "m.evid").write_text(
        " ".join(map(str, [len(observed), *(n for pair in observed.items() for n in pair)]))
    )
    forms.append(elimina.read_evidence(tmp_path / "m.evid", model))
    tree = JunctionTree(model, device="cpu")
    for form in forms:
        same(solve(model, "mar", evidence=form, device="cpu").marginals, expected)
        tree.set_evidence(form)
        for name, found in tree.marginals().items():
            assert found == pytest.approx(list(expected[name].values()), abs=1e-9)
        assert tree.log10_evidence == pytest.approx(log, abs=1e-9)
    tree.update(dict.fromkeys(evidence))
    tree.update(evidence)
    assignment, _ = tree.mpe()
    best = solve(model, evidence=evidence, device="cpu").assignment
    assert [type(state) for state in assignment.values()] == [type(best[name]) for name in assignment]
    assert json.loads(solve(model, evidence=evidence, device="cpu").to_json())["assignment"] == best
    samples = tree.sample(5, 1)
    codes = tree.sample(5, 1, indices=True)
    for v, variable in enumerate(variables):
        assert typed(samples[variable.name].tolist()) == typed(variable.state(x) for x in codes[:, v])
    tables = [[evidence]]
    row = [variables[v].state(observed[v]) if v in observed else None for v in range(len(variables))]
    tables.append(np.array([row], dtype=object))
    if items:
        tables += [{name: [state] for name, state in evidence.items()}, pandas.DataFrame([evidence])]
        frame = pandas.DataFrame({name: [str(state)] for name, state in evidence.items()})
        frame.to_csv(tmp_path / "c.csv", index=False)
        tables.append(read_cases(tmp_path / "c.csv", model))
    for table in tables:
        batch = tree.batch(table)
        assert batch.log10_evidence == pytest.approx([log], abs=1e-9)
        for name, found in batch.marginals.items():
            assert found[0] == pytest.approx(list(expected[name].values()), abs=1e-9)
    indices = np.array([[observed.get(v, -1) for v in range(len(variables))]])
    assert tree.batch(indices, indices=True).log10_evidence == pytest.approx([log], abs=1e-9)
    assert tree.batch(tree.sample(7, seed=1)).log10_evidence == pytest.approx(
        tree.batch(tree.sample(7, 1, indices=True), indices=True).log10_evidence
    )


@SLOW
@given(questions(STATES.filter(lambda states: len({*map(type, states)}) == 1)))
def test_evidence_as_pgmpy_takes_it(question):
    inference = installed("pgmpy.inference")
    model, observed = question
    network = elimina.to_pgmpy(model)
    back = elimina.from_pgmpy(network)
    assert {v.name: typed(v.states) for v in back.variables} == {v.name: typed(v.states) for v in model.variables}
    evidence = {model.variables[v].name: model.variables[v].state(x) for v, x in observed.items()}
    expected = solve(model, "mar", evidence=evidence, device="cpu").marginals
    same({n: solve(back, "mar", evidence=evidence, device="cpu").marginals[n] for n in expected}, expected)
    engine = inference.VariableElimination(network)
    for name in expected.keys() - evidence.keys():
        theirs = engine.query([name], evidence=evidence, show_progress=False)
        states = theirs.state_names[name]
        assert [expected[name][state] for state in states] == pytest.approx(theirs.values.tolist(), abs=1e-9)


@SLOW
@given(questions())
def test_evidence_as_pyagrum_takes_it(question):
    gum = installed("pyagrum")
    model, observed = question
    network = elimina.to_pyagrum(model)
    back = elimina.from_pyagrum(network)
    for v in model.variables:
        own = list(v.states)
        is_integer = all(type(state) is int for state in own)
        expected_states = sorted(own) if is_integer else list(map(str, own))
        assert typed(back.variables[back.index(v.name)].states) == typed(expected_states)
    texts = {model.variables[v].name: str(model.variables[v].state(x)) for v, x in observed.items()}
    evidence = {model.variables[v].name: model.variables[v].state(x) for v, x in observed.items()}
    mine = solve(model, "mar", evidence=evidence, device="cpu").marginals
    engine = gum.LazyPropagation(network)
    engine.setEvidence(texts)
    engine.makeInference()
    for name in mine:
        posterior = engine.posterior(name).toarray().ravel().tolist()
        theirs = dict(zip(network.variable(name).labels(), posterior, strict=True))
        assert {str(state): p for state, p in mine[name].items()} == pytest.approx(theirs, abs=1e-9)
        other = back.variables[back.index(name)]
        handed_back = {n: StateIndex(index_of_text(back.variables[back.index(n)], t)) for n, t in texts.items()}
        again = solve(back, "mar", query=[name], evidence=handed_back, device="cpu").marginals[name]
        assert again == pytest.approx({state: theirs[str(state)] for state in other.states}, abs=1e-9)


def one_two_three(monkeypatch):
    """P(B | A) of the states 1, 2, 3 of A, as pgmpy has it."""
    for module, replacement in stand_ins.pgmpy().items():
        monkeypatch.setitem(sys.modules, module, replacement)
    network = stand_ins.DiscreteBayesianNetwork()
    network.add_nodes_from(["A", "B"])
    network.add_edges_from([("A", "B")])
    cpd = stand_ins.TabularCPD
    network.add_cpds(
        cpd("A", 3, [[0.2], [0.3], [0.5]], state_names={"A": [1, 2, 3]}),
        cpd("B", 2, [[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]], ["A"], [3], state_names={"B": [False, True], "A": [1, 2, 3]}),
    )
    return elimina.from_pgmpy(network)


def test_an_integer_is_a_state(monkeypatch):
    """The first example of a model whose states are 1, 2, 3: 1 was an index in evidence, and a state in a frame."""
    model = one_two_three(monkeypatch)
    assert model.variables[0].states == (1, 2, 3)
    assert typed(model.variables[1].states) == [(bool, False), (bool, True)]
    for evidence in ({"A": 1}, {"A": np.int64(1)}, {0: np.uint8(1)}, {"A": StateIndex(0)}, {"A": [1, 0, 0]}):
        found = solve(model, "mar", evidence=evidence, query=["B"]).marginals["B"]
        assert typed(found) == [(bool, False), (bool, True)]
        assert found == pytest.approx({False: 0.9, True: 0.1})
        tree = JunctionTree(model)
        tree.set_evidence(evidence)
        assert tree.marginals(["B"])["B"] == pytest.approx([0.9, 0.1])
    for cases in (pandas.DataFrame({"A": [1]}), {"A": np.array([1])}, [{"A": 1}], np.array([[1, None]], dtype=object)):
        assert JunctionTree(model).batch(cases).marginals["B"][0] == pytest.approx([0.9, 0.1])
    assert JunctionTree(model).batch(np.array([[0, -1]]), indices=True).marginals["B"][0] == pytest.approx([0.9, 0.1])
    result = solve(model, evidence={"A": 3})
    assert typed(result.assignment.values()) == [(int, 3), (bool, True)]
    assert json.loads(result.to_json())["assignment"] == {"A": 3, "B": True}
    assert list(json.loads(solve(model, "mar").to_json())["marginals"]["A"]) == ["1", "2", "3"]
    for wrong in (0, "1", True, 1.5, -1):
        with pytest.raises(InputError, match="variable 'A' has no state"):
            solve(model, evidence={"A": wrong})
    for wrong in (0, 1, "True"):
        with pytest.raises(InputError, match="variable 'B' has no state"):
            solve(model, evidence={"B": wrong})


@pytest.mark.parametrize(
    "text", [" 1", "1 ", "+1", "01", "1_0", "\u0661", "1.0", "1e0", "-0", "0x1", "", "--1", "9" * 5000]
)
def test_texts_that_are_no_integers(text):
    for variable in (Variable("x", 12), Variable("x", 3, [1, 10, -1]), Variable("x", 2, [True, False])):
        assert find_text(variable, text) is None
        with pytest.raises(InputError, match="variable 'x' has no state"):
            index_of_text(variable, text)
    model = Model([Variable("x", 12)], [])
    with pytest.raises(InputError):
        parse_assignments(f'x="{text}"', model)
    if text.strip() not in ("1", ""):
        with pytest.raises(InputError, match="has no state"):
            cases_from_frame({"x": [text]}, model)


@given(STATES)
def test_texts_are_read_back(states):
    variable = Variable("x", len(states), states)
    assert [index_of_text(variable, text) for text in texts_of(variable)] == list(range(len(states)))
    assert [variable.index(state) for state in states] == list(range(len(states)))
    for state in (*range(-4, 13), True, False, "1", "True", 1.0, 0.0):
        expected = [x for x, own in enumerate(states) if (type(own), own) == (type(state), state)]
        if expected:
            assert variable.index(state) == expected[0]
        else:
            with pytest.raises(InputError):
                variable.index(state)


def test_other_states_become_text():
    cpd = stand_ins.TabularCPD
    network = stand_ins.DiscreteBayesianNetwork()
    network.add_nodes_from(["a", "b"])
    network.add_cpds(
        cpd("a", 3, [[0.2], [0.3], [0.5]], state_names={"a": [0.5, (1, 2), None]}),
        cpd("b", 2, [[0.2], [0.8]], state_names={"b": [np.int64(4), np.str_("x")]}),
    )
    model = elimina.from_pgmpy(network)
    assert typed(model.variables[0].states) == [(str, "0.5"), (str, "(1, 2)"), (str, "None")]
    assert typed(model.variables[1].states) == [(int, 4), (str, "x")]


def test_what_is_no_evidence_and_no_query():
    model = Model([Variable("HISTORY", 2), Variable("H", 2)], [Table([0, 1], np.ones((2, 2)))], sense="probability")
    tree = JunctionTree(model)
    for evidence in (["HISTORY"], "HISTORY", 2.5, [("H", 1)], {"H"}):
        is_path = isinstance(evidence, str)
        text = "cannot read HISTORY" if is_path else r"evidence is .*; it takes a mapping from variables to states"
        for call in (lambda: solve(model, evidence=evidence), lambda: tree.set_evidence(evidence)):  # noqa: B023
            with pytest.raises(InputError if is_path else TypeError, match=text):
                call()
        with pytest.raises(InputError if is_path else TypeError, match=text.replace("evidence", "changes")):
            tree.update(evidence)
    calls = {
        "query": lambda names: solve(model, "mar", query=names),
        "variables": tree.marginals,
        "names": lambda names: tree.sample(1, 0, names),
        "one": lambda names: tree.mutual_information(names, ["H"]),
    }
    for argument, call in calls.items():
        with pytest.raises(TypeError, match=rf"{argument} is 'HISTORY' \(str\); it takes .*, such as \['HISTORY'\]"):
            call("HISTORY")
        with pytest.raises(TypeError, match=rf"{argument} is 2 \(int\); it takes a sequence of names or indices"):
            call(2)
    with pytest.raises(TypeError, match="query is 'HISTORY'"):
        solve(model, "mmap", query="HISTORY")
    for query in (np.array([0, 1]), ("H", 0), iter(["H", "HISTORY"]), {"H": 1, "HISTORY": 2}.keys()):
        assert len(solve(model, "mar", query=query).marginals) == 2
    with pytest.raises(InputError, match="evidence about variable 'H' is given and taken back at once"):
        tree.update({"H": 1, 1: None})


def test_integers_as_names():
    """A node 1 of pgmpy becomes the variable '1'; the integer 1 could be its name, or an index."""
    cpd = stand_ins.TabularCPD
    network = stand_ins.DiscreteBayesianNetwork()
    network.add_nodes_from([1, 0, 2])
    network.add_cpds(*(cpd(v, 2, [[p], [1 - p]]) for v, p in ((1, 0.1), (0, 0.2), (2, 0.3))))
    model = elimina.from_pgmpy(network)
    tree = JunctionTree(model)
    calls = (
        lambda v: solve(model, "pr", evidence={v: 0}),
        lambda v: solve(model, "mar", query=[v]),
        lambda v: tree.set_evidence({v: 0}),
        lambda v: tree.update({v: None}),
        lambda v: tree.marginals([v]),
        lambda v: tree.batch({v: [0]}),
    )
    for call in calls:
        with pytest.raises(InputError, match="variable 1 may be the one named '1', or the one of index 1, named '0'"):
            call(1)
        call("1")
        call(2)  # the same one by name and by index
    assert solve(model, "pr", evidence={"1": 0}).value == pytest.approx(0.1)
    assert solve(model, "pr", evidence={2: 0}, options=elimina.Options(order=[1, 0, 2])).value == pytest.approx(0.3)


def test_whole_floats_that_became_integers_stand_for_their_texts():
    model = Model.from_arrays({"a": ["1.0", "2.0"]}, [(("a",), [0.5, 0.5])], sense="probability")
    frame = pandas.DataFrame({"a": [2.0, 1.0]}).convert_dtypes()
    assert cases_from_frame(frame, model).values.ravel().tolist() == [1, 0]
    both = Model.from_arrays({"a": ["1", "1.0"]}, [(("a",), [0.5, 0.5])], sense="probability")
    with pytest.raises(InputError, match="both read as that; read the table's cells as text"):
        cases_from_frame(frame.iloc[1:], both)
