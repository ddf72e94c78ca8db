"""Marginals of variables whose domain is far larger than all tables."""

import json

import numpy as np
import pytest

from elimina import Model, Options, Table, Variable, solve
from elimina.errors import MemoryLimitError
from elimina.problem.merged_marginals import MergedMarginal
from elimina.result import Marginals
from tests.seeds import run_seed

LARGEST = 2**31 - 1


def model_of(sizes, default=1.0, weights=None):
    """Return a model with one listed table over all variables, and weights of the first one's states."""
    rows = np.array([[0] * len(sizes), [3] * len(sizes)], np.int32)
    tables = [Table(range(len(sizes)), np.array([2.0, 5.0]), sizes=sizes, rows=rows, default=default)]
    tables += [] if weights is None else [Table([0], weights)]
    return Model([Variable(f"x{v}", size) for v, size in enumerate(sizes)], tables, sense="probability")


def test_answer_costs_no_memory_in_the_domains():
    result = solve(model_of([LARGEST] * 500), "mar", time_limit=60)
    assert result.status == "exact"
    assert len(result.marginals) == 500
    assert "x499" in result.marginals
    assert "x500" not in result.marginals
    marginal = result.marginals["x7"]
    assert len(marginal) == LARGEST
    assert marginal[5] == pytest.approx(1 / LARGEST, rel=1e-9)
    for text in (str(result), repr(result), result._repr_html_(), repr(result.marginals), repr(marginal)):
        assert len(text) < 10**6
    for write in (result.to_json, result.to_frame, result.marginals.arrays):
        with pytest.raises(MemoryLimitError, match=r"the posteriors take .* ask for other variables"):
            write()


def exact(model):
    """Return the marginal of the first of two variables."""
    table = np.full(model.sizes, float(model.factors[0].default))
    table[tuple(model.factors[0].rows.T)] = model.factors[0].values
    if len(model.factors) > 1:
        table *= model.factors[1].values[:, None]
    return table.sum(axis=1) / table.sum()


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("default", [0.0, 0.5])
def test_marginals_of_a_large_domain_are_those_of_its_table(default, is_weighted):
    random = np.random.default_rng([run_seed(), is_weighted])
    weights = random.integers(1, 9, 100_000).astype(float) if is_weighted else None
    model = model_of([100_000, 6], default, weights)
    marginal = solve(model, "mar", options=Options(method="eliminate")).marginals["x0"]
    assert isinstance(marginal, MergedMarginal)
    truth = exact(model)
    np.testing.assert_allclose(list(marginal.values()), truth, rtol=1e-9, atol=1e-15)
    assert list(marginal) == list(range(100_000))
    assert dict(marginal.items()) == marginal
    states = [0, 3, 99_999, *random.integers(0, 100_000, 20).tolist()]
    assert [marginal[state] for state in states] == pytest.approx(truth[states], rel=1e-9)
    state, share = marginal.mode()
    assert share == pytest.approx(truth.max(), rel=1e-9)
    assert truth[state] == pytest.approx(truth.max(), rel=1e-9)
    for state in (100_000, -1, "a", None):
        assert state not in marginal
        with pytest.raises(KeyError):
            marginal[state]


def test_arrays_and_json_have_all_states():
    result = solve(model_of([100_000, 6], 0.5), "mar")
    assert isinstance(result.marginals, Marginals)
    np.testing.assert_allclose(result.marginals.arrays()["x0"], exact(model_of([100_000, 6], 0.5)), rtol=1e-9)
    written = json.loads(result.to_json())["marginals"]["x0"]
    assert written == {str(state): share for state, share in result.marginals["x0"].items()}
