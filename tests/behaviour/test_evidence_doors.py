"""Evidence means the same through every door: one table of the calls that take it, and of the forms that it has."""

from __future__ import annotations

import datetime
import decimal
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, JunctionTree, Model, StateIndex, Table, Variable
from elimina.io.cases import cases_from_frame, read_cases
from tests.io.test_states import networks
from tests.packages import installed
from tests.reference import brute

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
arrow_csv = pytest.importorskip("pyarrow.csv")

SLOW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

MISSING = [
    None,
    math.nan,
    np.float32("nan"),
    np.array(math.nan),
    pandas.NA,
    pandas.NaT,
    np.datetime64("NaT"),
    decimal.Decimal("NaN"),
    np.ma.masked,
]

TEXTS = ["TRUE", "True", "true", "FALSE", "False", "0", "1", "01", "1.0", "1e0", "2", "2.5", "-1", "+1", "inf", "yes"]

STATES = st.one_of(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(-2, 4) | st.integers(2**53 - 2, 2**53 + 4), min_size=1, max_size=4, unique=True),
    st.permutations([False, True]),
    st.sampled_from([["TRUE", "FALSE"], ["false", "true"], ["True", "False"], ["0", "1"], ["1", "0"], ["low", "high"]]),
)


def tree_with(model, evidence):
    tree = JunctionTree(model, device="cpu")
    tree.set_evidence(evidence)
    return tree


def updated(model, evidence):
    """A tree that observed other states before: what the evidence calls missing is taken back."""
    tree = tree_with(model, {v.name: StateIndex(v.size - 1) for v in model.variables})
    tree.update(evidence)
    return tree


def under_evidence(model, evidence):
    tree = JunctionTree(model, evidence=evidence, device="cpu")
    return tree.batch([{}]).log10_evidence[0]


DOORS = {
    "pr": lambda model, evidence: elimina.solve(model, "pr", evidence=evidence, device="cpu").log10_z,
    "mar": lambda model, evidence: elimina.solve(model, "mar", evidence=evidence, device="cpu").log10_z,
    "eliminate": lambda model, evidence: (
        elimina.solve(model, "pr", evidence=evidence, device="cpu", options=elimina.Options(method="eliminate")).log10_z
    ),
    "JunctionTree": lambda model, evidence: JunctionTree(model, evidence=evidence, device="cpu").log10_evidence,
    "set_evidence": lambda model, evidence: tree_with(model, evidence).log10_evidence,
    "update": lambda model, evidence: updated(model, evidence).log10_evidence,
    "batch under evidence": under_evidence,
}
"""Calls that take evidence, as functions that return the base-10 logarithm of its probability."""

FORMS = {
    "mapping": lambda names, values: dict(zip(names, values, strict=True)),
    "indices": lambda names, values: dict(enumerate(values)),
    "Series": lambda names, values: pandas.Series(values, index=names, dtype=object),
    "row": lambda names, values: pandas.DataFrame([values], columns=names, dtype=object).iloc[0],
    "to_dict": lambda names, values: pandas.DataFrame([values], columns=names).iloc[0].to_dict(),
}
"""Forms of evidence: functions of the names of all variables, and the state of each one or a missing value."""

TABLES = {
    "records": lambda names, values: [dict(zip(names, values, strict=True))],
    "columns": lambda names, values: {name: [value] for name, value in zip(names, values, strict=True)},
    "frame": lambda names, values: pandas.DataFrame([values], columns=names),
    "objects": lambda names, values: np.array([values], dtype=object),
}
"""Forms of a table of cases with one row."""


@st.composite
def rows(draw):
    """A network, one value for each variable, and the index of the state that it means (-1: missing)."""
    model = draw(networks(STATES))
    codes = [draw(st.integers(-1, v.size - 1)) for v in model.variables]
    values = [
        draw(st.sampled_from(MISSING)) if x < 0 else v.state(x) for v, x in zip(model.variables, codes, strict=True)
    ]
    # Arrays with a missing value hold floats, in which larger integers are not told apart.
    assume(-1 not in codes or not any(isinstance(value, int) and value >= 2**53 for value in values))
    return model, values, codes


def probability_of(model, codes):
    weights = {v: np.eye(model.sizes[v])[x].tolist() for v, x in enumerate(codes) if x >= 0}
    return brute.posteriors(model, weights)[0] / math.log(10)


@SLOW
@given(rows())
def test_a_missing_value_is_not_observed_through_any_door(question):
    model, values, codes = question
    names = [v.name for v in model.variables]
    expected = probability_of(model, codes)
    observed = {name: v.state(x) for name, v, x in zip(names, model.variables, codes, strict=True) if x >= 0}
    for form, make in FORMS.items():
        for door, call in DOORS.items():
            assert call(model, make(names, values)) == pytest.approx(expected, abs=1e-9), (form, door)
        evidence = make(names, values)
        best = elimina.solve(model, evidence=evidence, device="cpu").assignment
        assert {name: best[name] for name in observed} == observed
        order = elimina.plan(model, evidence=observed, device="cpu").order
        assert elimina.plan(model, evidence=evidence, device="cpu").order == order
        assert tree_with(model, evidence).evidence == observed
    for form, make in TABLES.items():
        found = JunctionTree(model, device="cpu").batch(make(names, values)).log10_evidence
        assert found == pytest.approx([expected], abs=1e-9), form
    hinted = elimina.Options(hint=dict(zip(names, values, strict=True)))
    assert elimina.solve(model, device="cpu", options=hinted).status == "optimal"


@pytest.mark.parametrize("missing", MISSING)
def test_adapters_do_not_observe_what_is_missing(missing):
    gum = installed("pyagrum")
    installed("pgmpy")
    from elimina.adapters.pgmpy import VariableElimination
    from elimina.adapters.pyagrum import LazyPropagation

    network = gum.fastBN("A{x|y}->B{x|y}")
    model = elimina.from_pyagrum(network)
    engine = LazyPropagation(network)
    engine.setEvidence({"A": missing, "B": "y"})
    expected = elimina.solve(model, "mar", evidence={"B": "y"}).marginals["A"]
    assert engine.posterior("A").tolist() == pytest.approx(list(expected.values()))
    other = VariableElimination(elimina.to_pgmpy(model))
    evidence = {"A": missing, "B": "y"}
    assert other.query(["A"], evidence=evidence).values.tolist() == pytest.approx(list(expected.values()))
    assert set(other.map_query(evidence=evidence)) == {"A"}
    frame = pandas.DataFrame({"A": pandas.Series([missing], dtype=object)})
    assert other.predict(frame).iloc[0].to_dict() == other.map_query()
    with pytest.raises(InputError, match="no variable 'C'"):
        other.query(["A"], evidence={"C": missing})


def test_pictures_do_not_mark_what_is_missing(monkeypatch):
    pytest.importorskip("matplotlib")
    from elimina.viz import plot

    marked = []
    monkeypatch.setattr("elimina.viz.draw_figure", lambda diagram, title: marked.append(diagram.marked))
    model = Model([Variable("a", 2), Variable("b", 2)], [Table([0, 1], np.ones((2, 2)))], sense="probability")
    plot(model, evidence={"a": 1, "b": math.nan})
    plot(model, evidence=["a", 1])
    assert marked == [[0], [0, 1]]


@pytest.mark.parametrize("state", [1.5, "1", True, -1.0, 7.0])
def test_mappings_name_states_with_their_types(state):
    model = Model([Variable("a", 3, [1, 2, 3])], [Table([0], [1.0, 1, 1])], sense="probability")
    for call in DOORS.values():
        assert call(model, {"a": 2.0}) == pytest.approx(0)  # a row of floats, of which this one is whole
        with pytest.raises(InputError, match="variable 'a' has no state"):
            call(model, {"a": state})


def test_the_state_that_was_meant_is_named():
    model = Model([Variable("a", 2, ["TRUE", "FALSE"])], [Table([0], [1.0, 1])], sense="probability")
    with pytest.raises(InputError, match="'TRUE' is a state, but of type str, not bool"):
        elimina.solve(model, evidence={"a": True})
    assert tree_with(model, pandas.Series({"a": True})).evidence == {"a": "TRUE"}


READERS = {
    "pandas": pandas.read_csv,
    "pandas, NumPy's types": lambda path: pandas.read_csv(path, dtype_backend="numpy_nullable"),
    "pandas as text": lambda path: pandas.read_csv(path, dtype=str),
    "polars": polars.read_csv,
    "pyarrow": arrow_csv.read_csv,
}


@st.composite
def samples(draw):
    """A model without tables, and the indices of states in some cases (-1: missing)."""
    states = draw(st.lists(STATES, min_size=1, max_size=3))
    model = Model([Variable(name, len(own), own) for name, own in zip("abc", states, strict=False)], [])
    count = draw(st.integers(1, 5))
    least = draw(st.sampled_from([-1, 0]))
    codes = [[draw(st.integers(least, v.size - 1)) for v in model.variables] for _ in range(count)]
    return model, codes


@settings(SLOW, max_examples=150)
@given(samples())
def test_samples_are_read_back_from_files(tmp_path, sample):
    """The states, or an error that says how the file is read: never another state, and never a state that is lost."""
    model, codes = sample
    columns = {
        v.name: [None if row[place] < 0 else v.state(row[place]) for row in codes]
        for place, v in enumerate(model.variables)
    }
    # Two columns at least: pandas skips blank lines.
    frame = pandas.DataFrame(columns, dtype=object).assign(row=range(len(codes)))
    frame.to_csv(tmp_path / "c.csv", index=False)
    expected = read_cases(tmp_path / "c.csv", model, ignore_extra=True)
    assert expected.values.tolist() == codes
    for name, read in READERS.items():
        table = read(tmp_path / "c.csv")
        try:
            found, problem = cases_from_frame(table, model, ignore_extra=True).values.tolist(), ""
        except InputError as error:
            found, problem = codes, str(error)
        assert found == codes, name
        assert not problem or (name != "pandas as text" and "as text (dtype=str in pandas)" in problem)


@pytest.mark.parametrize(
    "states", [["TRUE", "FALSE"], ["true", "false"], ["True", "False"], ["0", "1"], ["1", "0"], ["1.5", "2.5"]]
)
@pytest.mark.parametrize("reader", READERS)
def test_usual_states_are_read_back(tmp_path, states, reader):
    model = Model([Variable("x", 2, states)], [Table([0], [0.25, 0.75])], sense="probability", children=[0])
    tree = JunctionTree(model)
    drawn = tree.sample(20, seed=3)
    pandas.DataFrame({**drawn, "row": range(20)}).to_csv(tmp_path / "c.csv", index=False)
    found = tree.batch(READERS[reader](tmp_path / "c.csv"), ignore_extra=True).log10_evidence
    assert found == pytest.approx(tree.batch(drawn).log10_evidence)


def test_several_states_that_read_the_same():
    for states, cell in ((["1", "01"], 1), (["1", "1.0"], 1.0), (["TRUE", "true"], True), (["1", "true"], True)):
        model = Model([Variable("x", 2, states)], [])
        with pytest.raises(InputError, match=rf"row 0: .* states '{states[0]}' and '{states[1]}' both .*dtype=str"):
            cases_from_frame({"x": [cell]}, model)
        assert cases_from_frame({"x": states}, model).values.tolist() == [[0], [1]]


def test_a_state_that_pandas_drops_is_told(tmp_path, caplog):
    model = Model([Variable("x", 2, ["None", "Mild"])], [])
    (tmp_path / "c.csv").write_text("x\nMild\nNone\n")
    assert cases_from_frame(pandas.read_csv(tmp_path / "c.csv"), model).values.tolist() == [[1], [-1]]
    assert "'None' is a state that pandas.read_csv takes for a missing cell" in caplog.text
    caplog.clear()
    frame = pandas.read_csv(tmp_path / "c.csv", keep_default_na=False)
    assert cases_from_frame(frame, model).values.tolist() == [[1], [0]]
    assert not caplog.messages


def test_dates_are_no_states():
    model = Model([Variable("x", 2, ["1", "2"])], [])
    with pytest.raises(InputError, match="has no state"):
        cases_from_frame({"x": [datetime.date(2020, 1, 1)]}, model)


@st.composite
def batches(draw):
    """A network, evidence as weights of each variable's states, cases, and the variables asked for."""
    model = draw(networks())
    every = range(len(model.variables))
    hard, soft = {}, {}
    for v in draw(st.lists(st.sampled_from(every), unique=True)):
        size = model.sizes[v]
        if draw(st.booleans()):
            hard[v] = draw(st.integers(0, size - 1))
        else:
            soft[v] = draw(st.lists(st.sampled_from([0.0, 1e-200, 0.25, 1.0, 3.0]), min_size=size, max_size=size))
    columns = draw(st.lists(st.sampled_from(every), unique=True, min_size=1))
    cases = [[draw(st.integers(-1, model.sizes[v] - 1)) for v in columns] for _ in range(draw(st.integers(1, 20)))]
    names = draw(st.none() | st.lists(st.sampled_from(every), unique=True))
    return model, hard, soft, columns, cases, names


def check_batch(model, hard, soft, columns, cases, found):
    """Compare with brute force, where a case's observations and all evidence hold."""
    evidence = {**{v: np.eye(model.sizes[v])[x] for v, x in hard.items()}, **{v: np.array(w) for v, w in soft.items()}}
    for number, case in enumerate(cases):
        weights = {v: weight.tolist() for v, weight in evidence.items()}
        for v, x in zip(columns, case, strict=True):
            if x >= 0:
                weights[v] = (np.eye(model.sizes[v])[x] * evidence.get(v, 1.0)).tolist()
        log, posteriors = brute.posteriors(model, weights)
        assert found.log10_evidence[number] == pytest.approx(log / math.log(10), abs=1e-9)
        for name, table in found.marginals.items():
            assert table[number] == pytest.approx(posteriors[model.index(name)], abs=1e-9)


@SLOW
@given(batches(), st.data())
def test_the_evidence_of_a_tree_holds_in_each_case(question, data):
    model, hard, soft, columns, cases, names = question
    given = {**{v: StateIndex(x) for v, x in hard.items()}, **soft}
    codes = {model.variables[v].name: [case[place] for case in cases] for place, v in enumerate(columns)}
    tree = JunctionTree(model, evidence=given, device="cpu")
    for _ in range(2):
        check_batch(model, hard, soft, columns, cases, tree.batch(codes, names, indices=True))
    # Other evidence, and none, on the same plan.
    tree.set_evidence({v: StateIndex(0) for v in hard})
    check_batch(model, dict.fromkeys(hard, 0), {}, columns, cases, tree.batch(codes, names, indices=True))
    tree.set_evidence({})
    check_batch(model, {}, {}, columns, cases, tree.batch(codes, names, indices=True))


def test_extra_columns():
    model = Model([Variable("a", 2), Variable("b", 2)], [Table([0, 1], [[1.0, 2], [3, 4]])], sense="probability")
    tree = JunctionTree(model)
    expected = tree.batch({"b": [1, 0]}).log10_evidence
    frame = pandas.DataFrame({"id": ["x", "y"], "b": [1, 0], 9: [0.5, 0.5]})
    text = frame[["id", "b"]]
    tables = [frame, frame.to_dict("list"), frame.to_dict("records"), text.to_records(index=False)]
    tables += [polars.DataFrame(text.to_dict("list")), pyarrow.Table.from_pandas(text)]
    for table in tables:
        with pytest.raises(InputError, match=r"no variable 'id'.*; remove the column, or ignore .*ignore_extra=True"):
            tree.batch(table)
        assert tree.batch(table, ignore_extra=True).log10_evidence == pytest.approx(expected)
    with pytest.raises(InputError, match="none of the 1 columns is a variable of the model; the first one is 'id'"):
        tree.batch({"id": [1]}, ignore_extra=True)


def test_extra_columns_of_sequences():
    model = elimina.DynamicModel.hidden_markov([0.5, 0.5], [[0.7, 0.3], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]])
    observed = {"observation": [0, 1, 1]}
    table = {"id": ["x", "y", "z"], **observed, "place": [[0.0, 1.0]] * 3}
    calls = {
        "filter": lambda cases, **more: model.filter(cases, **more).marginals["state"],
        "smooth": lambda cases, **more: model.smooth(cases, **more).marginals["state"],
        "predict": lambda cases, **more: model.predict(cases, 2, **more).marginals["state"],
        "viterbi": lambda cases, **more: model.viterbi(cases, **more)[1],
        "log_likelihood": lambda cases, **more: model.log_likelihood(cases, **more),
        "fit": lambda cases, **more: elimina.fit(model, cases, options=elimina.FitOptions(**more)).log_likelihoods[-1],
    }
    for call in calls.values():
        for cases in (table, pandas.DataFrame({name: table[name] for name in ("id", "observation")})):
            with pytest.raises(InputError, match=r"no variable '(id|place)'.*ignore_extra=True"):
                call(cases)
            np.testing.assert_allclose(call(cases, ignore_extra=True), call(observed))
        with pytest.raises(InputError, match="none of the 1 columns is a variable"):
            call({"id": [1]}, ignore_extra=True)
    likelihoods = np.log([[0.9, 0.2], [0.1, 0.8]])
    expected = model.log_likelihood({"state": likelihoods})
    assert model.log_likelihood({"id": [1, 2], "state": likelihoods}, ignore_extra=True) == expected
