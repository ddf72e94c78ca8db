"""Conversions between costs and probabilities, alone and inside ``write``."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elimina
import elimina.io as eio
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.senses import convert_sense, integer_costs
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from tests.io.models import integer_models, probability_models


def assignments(model):
    return itertools.product(*map(range, model.sizes))


@given(model=integer_models(lowest=-1000), sense=st.sampled_from(["max-cost", "min-cost"]))
def test_changing_the_sign_and_back_loses_nothing(model, sense):
    assert convert_sense(model, "min-cost") is model
    other = convert_sense(model, "max-cost")
    back = convert_sense(other, "min-cost")
    assert other.sense == "max-cost"
    assert (back.upper_bound, back.constant) == (model.upper_bound, model.constant)
    for a in assignments(model):
        assert other.score(a) == -model.score(a)
        assert back.score(a) == model.score(a)
    for f, g in zip(model.factors, back.factors, strict=True):
        np.testing.assert_array_equal(f.dense(), g.dense())
        assert (f.rows is None) == (g.rows is None)


@given(model=probability_models(), decimals=st.sampled_from([None, 7]))
def test_probabilities_as_costs(model, decimals):
    tolerance = 1e-9 if decimals is None else len(model.factors) * 0.5e-7 + 1e-9
    for sense, sign in (("min-cost", -1), ("max-cost", 1)):
        costs = convert_sense(model, sense, decimals=decimals)
        for a in assignments(model):
            assert costs.score(a) == pytest.approx(sign * model.score(a), abs=tolerance)


def test_costs_as_probabilities():
    values = np.array([[3, 700], [elimina.FORBIDDEN, 5]])
    model = elimina.Model.from_arrays([2, 2], [([0, 1], values), ([0], [10.5, math.inf])], constant=2)
    as_probability = convert_sense(model, "probability")
    scaled = convert_sense(convert_sense(model, "max-cost"), "probability", scale=0.5)
    for a in assignments(model):
        assert as_probability.score(a) == pytest.approx(-model.score(a), rel=1e-12)
        assert scaled.score(a) == pytest.approx(-0.5 * model.score(a), rel=1e-12)


def test_a_cost_that_would_vanish_is_refused_with_a_scale_that_works():
    model = elimina.Model.from_arrays([2], [([0], [0, 100000])])
    with pytest.raises(InputError, match=r"a scale of at most 0\.007$"):
        convert_sense(model, "probability")
    assert convert_sense(model, "probability", scale=0.007).score([1]) == pytest.approx(-700)


def test_write_converts(tmp_path):
    network = elimina.Model.from_arrays([2], [([0], [0.25, 0.0])], sense="probability")
    for name, scale in (("m.wcsp", 10**7), ("m.cfn", 1)):
        eio.write(network, tmp_path / name)
        back = eio.read(tmp_path / name)
        assert back.score([0]) / scale == pytest.approx(math.log(4), abs=1e-7)
        assert back.upper_bound is None or back.score([1]) >= back.upper_bound
    costs = elimina.Model.from_arrays([2], [([0], [3, elimina.FORBIDDEN])], constant=1)
    eio.write(costs, tmp_path / "m.uai")
    back = eio.read(tmp_path / "m.uai")
    assert back.score([0]) == pytest.approx(-4)
    assert back.score([1]) == -math.inf
    eio.write(elimina.Model.from_arrays([2], [([0], [-3, -4])], sense="max-cost"), tmp_path / "m.wcsp")
    assert eio.read(tmp_path / "m.wcsp").score([1]) == 4
    with pytest.raises(InputError, match="at least 0"):
        eio.write(elimina.Model.from_arrays([2], [([0], [3, 4])], sense="max-cost"), tmp_path / "m.wcsp")


@given(decimals=st.integers(0, 6), bound=st.integers(0, 10**9), below=st.integers(0, 10**7))
def test_a_decimal_bound_becomes_the_integer_that_it_says(decimals, bound, below):
    power = 10**decimals
    model = Model.from_arrays([2], [((0,), [(bound - below) / power, 1 / power])], upper_bound=bound / power)
    integer, found = integer_costs(model)
    assert integer.upper_bound == math.ceil(Fraction(bound, power) * 10**found)
    assert integer.is_beyond_bound(integer.score([0])) == (below == 0)


def test_a_bound_between_two_costs_excludes_neither():
    integer, decimals = integer_costs(Model.from_arrays([2], [((0,), [0.7, 0.8])], upper_bound=0.75))
    assert (decimals, integer.upper_bound) == (1, 8)


def test_a_bound_is_the_same_after_a_round_trip(tmp_path):
    model = Model.from_arrays([2], [((0,), [0.07, 2.01])], upper_bound=0.07)
    elimina.write(model, tmp_path / "m.wcsp")
    assert elimina.read(tmp_path / "m.wcsp").upper_bound == 7
    assert elimina.solve(elimina.read(tmp_path / "m.wcsp")).status == elimina.solve(model).status == "infeasible"


def test_a_forbidden_default_of_integers_beside_floats(tmp_path):
    sparse = Table([0, 1], [5], sizes=[2, 2], rows=[[0, 0]], default=FORBIDDEN)
    model = Model([Variable("a", 2), Variable("b", 2)], [sparse, Table([0], [0.5, 1.5])])
    elimina.write(model, tmp_path / "m.wcsp")
    back = elimina.read(tmp_path / "m.wcsp")
    assert back.score([0, 0]) == 55
    assert elimina.solve(back).value == 55


def test_wrong_arguments_are_named():
    model = elimina.Model.from_arrays([2], [([0], [0.25, 0.75])], sense="probability")
    costs = convert_sense(model, "min-cost")
    for scale in (0, -1, math.inf, 10**400):
        with pytest.raises(InputError, match=r"scale is .*; it must be positive and finite"):
            convert_sense(costs, "probability", scale=scale)
    for decimals in (-1, 400):
        with pytest.raises(InputError, match=f"decimals is {decimals}"):
            convert_sense(model, "min-cost", decimals=decimals)
    assert convert_sense(model, "min-cost", decimals=300).factors[0].values[0] == -math.log(0.25)
    for wrong, message in (({"scale": "a"}, "scale is 'a'"), ({"decimals": 0.5}, "decimals is 0.5")):
        with pytest.raises(TypeError, match=message):
            convert_sense(costs, "probability", **wrong)
    with pytest.raises(TypeError, match="model is None"):
        convert_sense(None, "min-cost")
