"""Sums over networks whose distributions are missing, double or do not sum to 1, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.methods.marginals import joint_table
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from tests import calls
from tests.reference import brute

CLOSE = 1e-5 / math.log(10)


def solve(model, **options):
    return calls.solve(model, "pr", device="cpu", **options)


@st.composite
def networks(draw):
    """Networks, not normalised, with rows that are off by as much as files have it, or by more; some factors miss."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors, children = [], []
    for child in rng.permutation(len(sizes)).tolist():
        parents = [v for v in children if rng.random() < 0.4]
        table = rng.random([sizes[v] for v in (*parents, child)]) + 0.01
        table /= table.sum(axis=-1, keepdims=True)
        table *= 1 + rng.choice([0, 1e-9, 3e-7, 4e-6, 1e-2]) * rng.uniform(-1, 1, table[..., :1].shape)
        factors.append(Table([*parents, child], table))
        children.append(child)
    held = [f for f in range(len(sizes)) if rng.random() < 0.8]
    variables = [Variable(f"x{v}", size) for v, size in enumerate(sizes)]
    kept, own = [factors[f] for f in held], [children[f] for f in held]
    return Model(variables, kept, sense="probability", children=own, check=False)


@given(networks(), st.data())
@settings(max_examples=200, deadline=None)
def test_partition(model, data):
    observed = data.draw(st.sets(st.sampled_from(range(len(model.sizes))), max_size=2))
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    assert solve(model, evidence=evidence).log10_z == pytest.approx(brute.partition(model, evidence), abs=CLOSE)


@given(networks(), st.data())
@settings(max_examples=100, deadline=None)
def test_joint_posteriors(model, data):
    variable = data.draw(st.sampled_from(range(len(model.sizes))))
    found = joint_table(model, {}, [variable], CheckedOptions("cpu"))
    logs = np.array([brute.partition(model, {variable: value}) for value in range(model.sizes[variable])])
    expected = 10.0 ** (logs - logs.max())
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=2e-5)


def test_many_leaves_that_are_off():
    def leaves(count, sums):
        variables = [Variable(f"x{i}", 2) for i in range(count)]
        tables = [Table([i], [0.5, sums - 0.5]) for i in range(count)]
        return Model(variables, tables, sense="probability", children=range(count), check=False)

    for off in (9e-6, 9e-7, 1e-9):
        assert solve(leaves(1000, 1 - off)).log10_z == pytest.approx(1000 * math.log10(1 - off), abs=CLOSE)
    assert not prepare(leaves(10, 1 - 1e-16), "pr", {}).tables
    assert len(prepare(leaves(10, 1 - 3e-7), "pr", {}).tables) == 10
    checked = leaves(10, 1 - 3e-7)
    checked.check_distributions()
    assert not prepare(checked, "pr", {}).tables


def test_variables_without_a_distribution():
    child = Table([0, 1], [[0.5, 0.5], [0.25, 0.75]])
    pair = Model([Variable("a", 2), Variable("b", 2)], [child], sense="probability", children=[1])
    assert solve(pair).value == pytest.approx(2)
    free = Model([Variable("a", 2), Variable("b", 5)], [Table([0], [0.5, 0.5])], sense="probability", children=[0])
    assert solve(free).value == pytest.approx(5)
