"""Evidence as a row of a frame, and as a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina import InputError, Model, StateIndex, Table, Variable

pandas = pytest.importorskip("pandas")


@pytest.fixture
def model():
    variables = [Variable("a", 2, ["no", "yes"]), Variable("b", 3), Variable("c", 2, [True, False])]
    tables = [Table([0, 1], np.arange(1.0, 7).reshape(2, 3)), Table([1, 2], np.arange(6.0, 0, -1).reshape(3, 2))]
    return Model(variables, tables, sense="probability")


SERIES = [
    (pandas.Series({"a": "yes", "b": 2}), {"a": "yes", "b": 2}),
    (pandas.Series({"a": np.nan, "b": 2.0}), {"b": 2}),
    (pandas.Series({"a": None, "c": True}), {"c": True}),
    (pandas.Series({"c": pandas.NA, "b": 1}, dtype=object), {"b": 1}),
    (pandas.Series({"a": StateIndex(1), "b": np.array([0.5, 0, 1])}, dtype=object), {"a": "yes", "b": [0.5, 0, 1]}),
    (pandas.DataFrame({"a": ["no", "yes"], "b": [1, 2]}).iloc[1], {"a": "yes", "b": 2}),
    (pandas.Series([], dtype=object), {}),
]


@pytest.mark.parametrize(("given", "meant"), SERIES)
def test_series(model, given, meant):
    for task in ("mpe", "pr", "mar"):
        expected = elimina.solve(model, task, evidence=meant)
        found = elimina.solve(model, task, evidence=given)
        assert (found.value, found.assignment, found.log10_z) == (expected.value, expected.assignment, expected.log10_z)
    assert elimina.plan(model, "mpe", evidence=given).order == elimina.plan(model, "mpe", evidence=meant).order
    tree = elimina.JunctionTree(model)
    tree.set_evidence(given)
    one = tree.log10_evidence
    tree.set_evidence(meant)
    assert one == tree.log10_evidence
    tree = elimina.JunctionTree(model)
    tree.update(given)
    assert one == tree.log10_evidence
    assert "StateIndex" not in elimina.report(model, evidence=given).html


@pytest.mark.parametrize("kind", [str, Path])
def test_files(model, tmp_path, kind):
    (tmp_path / "x.evid").write_text("2 0 1 1 2\n")
    path = kind(tmp_path / "x.evid")
    expected = elimina.solve(model, evidence={"a": "yes", "b": 2}).assignment
    assert elimina.solve(model, evidence=path).assignment == expected
    elimina.write(model, tmp_path / "m.uai")
    assert list(elimina.solve(tmp_path / "m.uai", evidence=path).assignment.values())[:2] == [1, 2]
    tree = elimina.JunctionTree(model)
    tree.set_evidence(path)
    assert tree.evidence == {"a": "yes", "b": 2}
    tree = elimina.JunctionTree(model)
    tree.update(path)
    assert tree.evidence == {"a": "yes", "b": 2}


@pytest.mark.parametrize(
    ("given", "error", "problem"),
    [
        ("no.evid", InputError, "cannot read no.evid"),
        ("a=yes", InputError, "evidence is 'a=yes', which is not a file: write {'A': 'yes'}"),
        (pandas.Series({"a": "maybe"}), InputError, "'maybe'"),
        (pandas.Series(["yes", "no"], index=["a", "a"]), InputError, "the evidence names 'a' twice"),
        (pandas.Series({"x": 1}), InputError, "no variable 'x'"),
        (pandas.DataFrame({"a": ["no"]}), TypeError, "it takes a mapping from variables to states"),
        ([("a", "no")], TypeError, "a pandas Series, or the path of a file"),
        (3, TypeError, r"evidence is 3 \(int\)"),
    ],
)
def test_what_is_refused(model, given, error, problem):
    for call in (elimina.solve, elimina.plan):
        with pytest.raises(error, match=problem):
            call(model, evidence=given)
    with pytest.raises(error, match=problem):
        elimina.JunctionTree(model).set_evidence(given)
    with pytest.raises(error, match=problem.replace("evidence is", "changes is")):
        elimina.JunctionTree(model).update(given)


def test_missing_cells_of_a_row_take_evidence_back(model):
    row = pandas.Series({"a": None, "b": 2, "c": True})
    for changes in (row, row.to_dict()):
        tree = elimina.JunctionTree(model)
        tree.set_evidence({"a": "no", "b": 1})
        tree.update(changes)
        assert tree.evidence == {"b": 2, "c": True}
        tree.update({"b": None})
        assert tree.evidence == {"c": True}


LIKELIHOODS = [
    ({"yes": 0.7, "no": 0.2}, [0.2, 0.7]),
    ({"yes": 0.7}, [0, 0.7]),
    ({StateIndex(1): 1, "no": 0.5}, [0.5, 1]),
    (pandas.Series({"yes": 0.7, "no": 0.2}), [0.2, 0.7]),
    (pandas.Series([0.2, 0.7]), [0.2, 0.7]),
    (pandas.Series([0.2, 0.7], index=["no", "yes"])[::-1], [0.2, 0.7]),
]


@pytest.mark.parametrize(("given", "meant"), LIKELIHOODS)
def test_likelihoods_by_state(model, given, meant):
    tree = elimina.JunctionTree(model)
    tree.set_evidence({"a": given, "b": 1})
    assert tree.evidence["a"].tolist() == meant
    tree.set_evidence(pandas.Series({"a": given, "b": 1}, dtype=object))
    assert tree.evidence["a"].tolist() == meant
    expected = elimina.solve(model, "mar", evidence={"a": meant}).marginals
    assert elimina.solve(model, "mar", evidence={"a": given}).marginals == expected


def test_labels_that_are_states_are_no_positions():
    model = Model([Variable("a", 3, [2, 1, 0])], [Table([0], [1.0, 1, 1])], sense="probability")
    tree = elimina.JunctionTree(model, evidence={"a": pandas.Series([0.1, 0.2, 0.3])})
    assert tree.evidence["a"].tolist() == [0.3, 0.2, 0.1]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (pandas.Series([0.5, 1], index=["yes", "yes"]), "the labels 'yes', 'yes' stand for one state of variable 'a'"),
        (pandas.Series([0.5, 1], index=[3, 4]), "the labels 3, 4 name no state of variable 'a'"),
        ({"maybe": 1}, "no state 'maybe'"),
        ({"yes": "often"}, "not numbers"),
    ],
)
def test_likelihoods_of_what_is_no_state(model, given, problem):
    with pytest.raises(InputError, match=problem):
        elimina.solve(model, "pr", evidence={"a": given})


def test_evidence_to_begin_with(model):
    tree = elimina.JunctionTree(model, evidence={"a": "yes"})
    assert tree.evidence == {"a": "yes"}
    expected = elimina.solve(model, "mar", evidence={"a": "yes"})
    assert tree.log10_evidence == pytest.approx(expected.log10_z)
    assert tree.marginals(["b"])["b"].tolist() == pytest.approx(list(expected.marginals["b"].values()))
