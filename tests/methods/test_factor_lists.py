"""Factors as arrays: their product is the model's, at every assignment."""

from __future__ import annotations

import itertools
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.methods.factor_lists import factors_of
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.problem.preparation import prepare
from tests.random_models import models

SMALLEST_LOG = math.log(sys.float_info.min)


def products(problem, factors):
    """Yield an assignment of the free variables and the logarithm of the factors' product there, for all of them."""
    sizes = [problem.model.sizes[v] for v in problem.free]
    starts, members = factors.scopes
    for states in itertools.product(*map(range, sizes)):
        log, first = factors.log_scale, 0
        for begin, end in itertools.pairwise(starts.tolist()):
            scope = members[begin:end]
            shape = [sizes[v] for v in scope]
            table = factors.values[first : first + math.prod(shape)].reshape(shape)
            first += table.size
            value = table[tuple(states[v] for v in scope)]
            log += math.log(value) if value > 0 else -math.inf
        yield states, log


@given(models("probability"), st.data())
def test_the_product_is_that_of_the_model(model, data):
    evidence = {
        v: data.draw(st.integers(0, size - 1)) for v, size in enumerate(model.sizes) if data.draw(st.booleans())
    }
    problem = prepare(model, "pr", evidence)
    factors = factors_of(problem)
    peaks = [float(max(table.dense().flat, default=0.0)) for table in problem.tables]
    # Tables are divided by their largest values before they are multiplied.
    scale = model.constant + sum(math.log(peak) if peak else -math.inf for peak in peaks)
    for states, log in products(problem, factors):
        assignment = problem.complete(problem.free, states)
        expected = model.constant + sum(terms_of(model, assignment))
        # Products below the range of normal floats need not be exact, and are said not to be.
        is_below = not factors.is_complete and -math.inf < expected < scale + SMALLEST_LOG
        assert log == pytest.approx(expected, abs=1e-9, rel=1e-9) or (is_below and log < scale + SMALLEST_LOG + 1)


def terms_of(model, assignment):
    """Return the logarithms of the factors' values."""
    values = [float(factor.at(dict(enumerate(assignment)))) for factor in model.factors]
    return [math.log(value) if value > 0 else -math.inf for value in values]


def test_values_are_at_most_one_and_supports_are_zeros_and_ones():
    model = Model(
        [Variable("a", 2), Variable("b", 3)],
        [Table([1, 0], [[3.0, 0.0], [1.0, 2.0], [0.0, 9.0]]), Table([1], [2.0, 1.0, 4.0])],
        sense="probability",
    )
    factors = factors_of(prepare(model, "pr", {}))
    assert factors.values.max() == 1
    assert factors.supports().values.tolist() == [1, 0, 1, 1, 0, 1]


def test_a_table_of_zeros_is_a_sum_of_zero():
    model = Model([Variable("a", 2)], [Table([0], [0.0, 0.0])], sense="probability")
    assert factors_of(prepare(model, "pr", {})).log_scale == -math.inf


def test_an_underflow_is_no_sum_of_zero():
    tiny = [[1e-300, 1.0], [1.0, 1e-300]]
    tables = [Table([0], row) for row in tiny] + [Table([0], [1e-300, 1e-300]), Table([0], [1e-300, 1e-300])]
    factors = factors_of(prepare(Model([Variable("a", 2)], tables, sense="probability"), "pr", {}))
    assert factors.log_scale > -math.inf or not factors.is_complete
