"""The classifier behaves as scikit-learn's do, and predicts what counting predicts."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
from elimina.errors import ImpossibleEvidenceError, InputError

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import CategoricalNB

from elimina.adapters.sklearn import BayesNetClassifier
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable


@pytest.fixture
def naive():
    """A class with two features."""
    variables = [Variable("y", 2, ["no", "yes"]), Variable("a", 2), Variable("b", 3)]
    tables = [np.full(2, 1 / 2), np.full((2, 2), 1 / 2), np.full((2, 3), 1 / 3)]
    factors = [Table(scope, values) for scope, values in zip(([0], [0, 1], [0, 2]), tables, strict=True)]
    return Model(variables, factors, sense="probability", children=range(3))


def test_it_learns_by_counting(naive):
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 500)
    X = {"a": (rng.random(500) < np.where(y == "yes", 0.9, 0.2)).astype(int), "b": rng.integers(0, 3, 500)}
    model = BayesNetClassifier(naive, "y", smoothing=1.0).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    found = model.predict_proba(X)
    counts = np.array([[np.sum((y == c) & (X["a"] == a)) + 1.0 for a in (0, 1)] for c in ("no", "yes")])
    other = np.array([[np.sum((y == c) & (X["b"] == b)) + 1.0 for b in range(3)] for c in ("no", "yes")])
    prior = np.array([np.sum(y == c) + 1.0 for c in ("no", "yes")])
    scores = prior[:, None, None] * (counts / counts.sum(1, keepdims=True))[:, :, None]
    scores = scores * (other / other.sum(1, keepdims=True))[:, None, :]
    expected = scores[:, X["a"], X["b"]].T
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True))
    assert accuracy_score(y, model.predict(X)) > 0.8
    assert clone(model).get_params()["target"] == "y"
    assert model.predict_proba([{"a": 1}, {}]).shape == (2, 2)


def test_it_agrees_with_categorical_naive_bayes(naive):
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(0, 2, 200), rng.integers(0, 3, 200)], axis=1)
    y = np.where(rng.random(200) < 0.2 + 0.3 * X[:, 0], "yes", "no")
    prior = (np.array([np.sum(y == c) for c in ("no", "yes")]) + 1) / 202
    theirs = CategoricalNB(alpha=1.0, class_prior=prior).fit(X, y)
    frame = {"a": X[:, 0], "b": X[:, 1]}
    ours = BayesNetClassifier(naive, "y", smoothing=1.0).fit(frame, y)
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(X))
    assert (ours.predict(frame) == theirs.predict(X)).all()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(naive, library):
    package = pytest.importorskip(library)
    X, y = {"a": [0, 1, 1, 0], "b": [2, 0, 1, 1]}, ["no", "yes", "yes", "no"]
    frame = (package.table if library == "pyarrow" else package.DataFrame)(X)
    expected = BayesNetClassifier(naive, "y").fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(BayesNetClassifier(naive, "y").fit(frame, y).predict_proba(frame), expected)


def test_errors(naive):
    with pytest.raises(InputError, match="a label for each case: X has 2, y 1"):
        BayesNetClassifier(naive, "y").fit({"a": [0, 1], "b": [0, 1]}, ["no"])
    with pytest.raises(InputError, match="a column for each variable"):
        BayesNetClassifier(naive, "y").fit({"a": [0]}, ["no"])
    with pytest.raises(InputError, match="needs a Bayesian network"):
        BayesNetClassifier(Model(naive.variables, []), "y").fit(None)
    kept = BayesNetClassifier(naive, "y").fit(None)
    assert kept.predict_proba([{}]).tolist() == [[0.5, 0.5]]
    assert elimina.solve(kept.model_, "pr").value == pytest.approx(1)


def test_wrong_arguments_are_named(naive):
    X, y = {"a": [0, 1], "b": [0, 1]}, ["no", "yes"]
    for smoothing in (-1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="smoothing is"):
            BayesNetClassifier(naive, "y", smoothing=smoothing).fit(X, y)
    with pytest.raises(TypeError, match="smoothing is 'a'"):
        BayesNetClassifier(naive, "y", smoothing="a").fit(X, y)
    with pytest.raises(InputError, match="needs the labels y"):
        BayesNetClassifier(naive, "y").fit(X)
    with pytest.raises(NotFittedError):
        BayesNetClassifier(naive, "y").predict(X)


def test_a_column_of_the_target_is_refused(naive):
    """Otherwise predictions would repeat it."""
    X = {"a": [0, 1], "b": [0, 1], "y": ["no", "yes"]}
    with pytest.raises(InputError, match="X has a column of the target 'y'"):
        BayesNetClassifier(naive, "y").fit(None).predict(X)
    with pytest.raises(InputError, match="X has a column of the target 'y'"):
        BayesNetClassifier(naive, "y").fit(X, X["y"])


def test_labels_may_be_a_column(naive):
    X, y = {"a": [0, 1], "b": [0, 1]}, ["no", "yes"]
    expected = BayesNetClassifier(naive, "y").fit(X, y).predict_proba(X)
    found = BayesNetClassifier(naive, "y").fit(X, np.array(y)[:, None]).predict_proba(X)
    np.testing.assert_array_equal(found, expected)


def test_classes_of_several_types_keep_them(naive):
    variables = [Variable("y", 2, [0, "yes"]), *naive.variables[1:]]
    model = Model(variables, naive.factors, sense="probability", children=naive.children)
    found = BayesNetClassifier(model, "y").fit({"a": [0, 1], "b": [0, 1]}, [0, "yes"]).predict([{"a": 0}])
    assert found.tolist() == [0]


def test_arrays_have_a_column_for_each_feature(naive):
    array, y = np.array([[0, 2], [1, 0], [1, 2]]), ["no", "yes", "yes"]
    X = {"a": array[:, 0], "b": array[:, 1]}
    expected = BayesNetClassifier(naive, "y").fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(BayesNetClassifier(naive, "y").fit(array, y).predict_proba(array), expected)
    with pytest.raises(
        InputError, match=r"each variable but the target 'y', 2 in all; this one has the shape \(3, 3\)"
    ):
        BayesNetClassifier(naive, "y").fit(np.zeros((3, 3), dtype=int), y)


def test_a_frame_without_columns_has_cases(naive):
    pandas = pytest.importorskip("pandas")
    assert BayesNetClassifier(naive, "y").fit(None).predict(pandas.DataFrame(index=range(3))).tolist() == ["no"] * 3


def test_an_impossible_case_has_no_prediction(naive):
    factors = [naive.factors[0], Table([0, 1], [[1.0, 0.0], [1.0, 0.0]]), naive.factors[2]]
    model = Model(naive.variables, factors, sense="probability", children=naive.children)
    classifier = BayesNetClassifier(model, "y").fit(None)
    assert classifier.predict_proba({"a": [0, 1]}).tolist() == [[0.5, 0.5], [0.0, 0.0]]
    with pytest.raises(ImpossibleEvidenceError, match="row 1: the case has probability 0"):
        classifier.predict({"a": [0, 1]})


def test_extra_columns_may_be_ignored(naive):
    features, labels = {"a": [0, 1, 1], "b": [0, 2, 1]}, ["no", "yes", "no"]
    table = {"id": [7, 8, 9], **features}
    with pytest.raises(InputError, match=r"no variable 'id'.*ignore_extra=True"):
        BayesNetClassifier(naive, "y").fit(table, labels)
    classifier = BayesNetClassifier(naive, "y", ignore_extra=True).fit(table, labels)
    expected = BayesNetClassifier(naive, "y").fit(features, labels)
    assert classifier.predict_proba(table).tolist() == expected.predict_proba(features).tolist()
