"""Warm starts: the answer is never worse than the hint, whatever ends the call, and bad hints are errors."""

from __future__ import annotations

import math
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, Model, Options, StateIndex, Table, Variable
from elimina.generate import random_model
from tests.random_models import models
from tests.reference import brute

METHODS = ["auto", "eliminate", "filter", "mbe", "search"]
HARD = random_model(30, 8, 0.5, 0.0, seed=1)
COLOURS = Model(
    [Variable("a", 2, ["red", "blue"]), Variable("b", 2)], [Table([0, 1], [[4, 3], [2, 1]]), Table([0], [0, 9])]
)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_answers_are_those_without_a_hint(method, data):
    model = data.draw(models("integer"))
    chosen = data.draw(st.lists(st.sampled_from(range(max(1, len(model.sizes)))), unique=True))
    hint = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in chosen if v < len(model.sizes)}
    result = elimina.solve(model, options=Options(method=method, hint=hint))
    if method != "mbe":
        brute.check_optimum(model, result)
    if len(hint) == len(model.sizes) and not math.isinf(score := model.score([hint[v] for v in range(len(hint))])):
        assert model.is_beyond_bound(score) or result.value <= score


@pytest.mark.parametrize("method", METHODS)
def test_an_ended_call_knows_the_hint(method):
    """Each method ends by its limit long before it could find a better one: at the latest the hint is known."""
    hint = {v.name: 0 for v in HARD.variables}
    given = HARD.score([0] * len(HARD.variables))
    result = elimina.solve(HARD, time_limit=0.5, options=Options(method=method, hint=hint, slices="never"))
    assert result.status == "bounded"
    assert result.value <= given
    assert HARD.score([result.assignment[v.name] for v in HARD.variables]) == result.value


def test_the_hint_of_a_small_model_is_completed_at_once():
    """The search is limited by the size of the tables, too: 3e7 cells of tiny tables take two seconds."""
    started = time.process_time()
    for _ in range(5):
        assert elimina.solve(COLOURS, options=Options(hint={"a": "blue"})).value == 3
    assert time.process_time() - started < 0.5


def test_some_variables_are_completed():
    told = []
    result = elimina.solve(
        COLOURS, options=Options(method="search", hint={"a": "red"}, on_bounds=lambda known: told.append(known.upper))
    )
    assert result.value == 3
    assert told[0] == 3


@pytest.mark.parametrize("hint", [{"b": True}, {"b": 7}, {"c": 0}, {"a": "green"}, {"a": StateIndex(5)}, {"a": [0, 1]}])
def test_bad_hints_name_the_culprit(hint):
    with pytest.raises(InputError, match=re.escape(repr(next(iter(hint))))):
        elimina.solve(COLOURS, options=Options(hint=hint))


def test_two_states_of_a_variable():
    with pytest.raises(InputError, match="hint gives variable 'b' two states: 0 and 1"):
        elimina.solve(COLOURS, options=Options(hint={"b": 0, 1: 1}))


def test_a_hint_is_a_mapping_for_optima():
    with pytest.raises(TypeError, match="hint is 3"):
        elimina.solve(COLOURS, options=Options(hint=3))
    with pytest.raises(InputError, match="a hint is for the task mpe: leave it out for pr"):
        elimina.solve(COLOURS, "pr", options=Options(hint={"b": 0}))


def test_evidence_comes_before_a_hint():
    result = elimina.solve(COLOURS, evidence={"a": "blue"}, options=Options(hint={"a": "red", "b": 1}))
    assert result.assignment == {"a": "blue", "b": 1}


@pytest.mark.parametrize("method", ["auto", "search", "filter"])
def test_a_hint_beyond_the_upper_bound_is_no_answer(method):
    options = Options(method=method, hint={"a": "blue", "b": 1}, upper_bound=2)
    assert elimina.solve(COLOURS, options=options).status == "infeasible"
