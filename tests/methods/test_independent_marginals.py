"""Marginals of variables as if they were independent, against products by hand."""

from __future__ import annotations

import numpy as np
import pytest

from elimina import InputError, Model
from elimina.methods import independent_marginals
from elimina.methods.independent_marginals import independent_posteriors

FACTORS = [((0,), [1.0, 3.0]), ((0,), [2.0, 1.0]), ((0, 1), np.eye(2)), ((2,), [0.0, 0.0, 0.0])]
MODEL = Model.from_arrays([2, 2, 3], FACTORS, sense="probability")


def test_tables_of_one_variable_are_multiplied() -> None:
    result = independent_posteriors(MODEL, {}, None)
    assert result is not None
    assert result.status == "estimated"
    assert list(result.marginals["x0"].values()) == pytest.approx([0.4, 0.6])
    assert list(result.marginals["x1"].values()) == [0.5, 0.5]
    # Whether a sum is 0 is left to other methods.
    assert list(result.marginals["x2"].values()) == pytest.approx([1 / 3] * 3)


def test_evidence_counts() -> None:
    result = independent_posteriors(MODEL, {"x0": 0, "x1": [1.0, 3.0], "x2": 2}, ["x1", "x0"])
    assert result is not None
    assert list(result.marginals) == ["x1", "x0"]
    assert list(result.marginals["x0"].values()) == [1.0, 0.0]
    assert list(result.marginals["x1"].values()) == pytest.approx([0.25, 0.75])


def test_products_outside_the_range_of_floats() -> None:
    model = Model.from_arrays([2], [((0,), [1.0, 1e-300])] * 2 + [((0,), [1e-300, 1.0])] * 2, sense="probability")
    result = independent_posteriors(model, {}, None)
    assert result is not None
    assert sum(result.marginals["x0"].values()) == pytest.approx(1)


def test_more_states_or_tables_than_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independent_marginals, "MAX_TABLES", 1)
    result = independent_posteriors(MODEL, {}, None)
    assert result is not None
    assert list(result.marginals["x0"].values()) == [0.25, 0.75]
    monkeypatch.setattr(independent_marginals, "MAX_STATES", 6)
    assert independent_posteriors(MODEL, {}, None) is None
    assert independent_posteriors(MODEL, {}, ["x2"]) is not None


def test_questions_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="no variable 'y'"):
        independent_posteriors(MODEL, {"y": 0}, None)
    with pytest.raises(InputError, match="task mar sums probabilities"):
        independent_posteriors(Model.from_arrays([2], [((0,), [0, 1])]), {}, None)
