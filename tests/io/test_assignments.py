"""Observations and likelihoods given on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.errors import InputError
from elimina.io.evidence import parse_assignments
from elimina.model.model import Model
from elimina.model.variable import Variable
from elimina.problem.observations import evidence_of

MODEL = Model(
    [
        Variable("HR", 3, ["LOW", "NORMAL", "HIGH"]),
        Variable("CVP", 2, ["LOW", "5:10"]),
        Variable("x", 4),
        Variable('a="b,c"', 2, ["p|q", "r=s"]),
    ],
    [],
    sense="probability",
)


@pytest.mark.parametrize(
    ("text", "hard", "soft"),
    [
        ("HR=LOW", {0: 0}, {}),
        (" HR = HIGH , x=3", {0: 2, 2: 3}, {}),
        ("CVP=5:10", {1: 1}, {}),
        ('"a=""b,c"""=p|q', {3: 0}, {}),
        ('"a=""b,c"""=r=s,"HR"="LOW"', {3: 1, 0: 0}, {}),
        ("HR=LOW:0.2|NORMAL:0.7|HIGH:0.1", {}, {0: [0.2, 0.7, 0.1]}),
        ("HR=HIGH:3", {}, {0: [0, 0, 3]}),
        ("x=0:1e-3 | 2 : 4,HR=LOW", {0: 0}, {2: [1e-3, 0, 4, 0]}),
        ('CVP="5:10":0.5|LOW:1', {}, {1: [1, 0.5]}),
        ("CVP=5:10:0.5", {}, {1: [0, 0.5]}),
        ('"a=""b,c"""="p|q":2|r=s:1', {}, {3: [2, 1]}),
    ],
)
def test_forms(text, hard, soft):
    found = evidence_of(MODEL, parse_assignments(text, MODEL))
    assert {v: known for v, known in found.items() if isinstance(known, int)} == hard
    assert {v: known.tolist() for v, known in found.items() if not isinstance(known, int)} == soft


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the evidence is empty"),
        (" ", "the evidence is empty"),
        ("HR", "evidence 'HR' is not of the form name=state"),
        ("HR=LOW,", "evidence '' is not of the form name=state"),
        ("hr=LOW", "no variable 'hr'; did you mean 'HR'"),
        ("HR=Low", "variable 'HR' has no state 'Low'; its states are 'LOW', 'NORMAL', 'HIGH'"),
        ("HR=LOW,HR=HIGH", "evidence gives variable 'HR' two states: 'LOW' in 'HR=LOW' and 'HIGH' in 'HR=HIGH'"),
        ("HR=LOW,HR=LOW:1", "evidence is about variable 'HR' twice, in 'HR=LOW' and in 'HR=LOW:1'"),
        ('HR="LOW', "a quotation mark that is not closed"),
        ('HR=L"O"W', "quotation marks go around a whole name or state"),
        ('H"R"=LOW', "quotation marks go around a whole name or state"),
        ('H"R=LOW,x="1', "is not of the form name=state"),
        ("HR=LOW:1|NORMAL", "evidence 'NORMAL' about 'HR' is not of the form state:likelihood"),
        ("HR=LOW:1|LOW:2", "evidence gives state 'LOW' of 'HR' two likelihoods"),
        ("HR=LOW:0|HIGH:0", "evidence gives every state of 'HR' the likelihood 0"),
        ("HR=LOW:-1", "'-1' is not a likelihood"),
        ("HR=LOW:much", "'much' is not a likelihood"),
        ("HR=LOW:inf", "'inf' is not a likelihood"),
        ("HR=LOW:nan", "'nan' is not a likelihood"),
        ("HR=LOW:", "'' is not a likelihood"),
        ("HR=LOV:1", "variable 'HR' has no state 'LOV'"),
        ("x=4", "variable 'x' has no state '4'; its states are 0 to 3"),
    ],
)
def test_errors(text, problem):
    with pytest.raises(InputError) as caught:
        parse_assignments(text, MODEL)
    assert problem in str(caught.value)


NAMES = st.text(st.sampled_from('aB ,="|:é'), min_size=1, max_size=6)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@settings(max_examples=60, deadline=None)
@given(
    st.lists(NAMES, min_size=1, max_size=3, unique=True),
    st.lists(NAMES, min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_quoted_names_round_trip(names, states, data):
    model = Model([Variable(name, len(states), states) for name in names], [], sense="probability")
    hard, soft, items = {}, {}, []
    for v, name in enumerate(names):
        x = data.draw(st.integers(0, len(states) - 1))
        if data.draw(st.booleans()):
            hard[v] = x
            items.append(f"{quoted(name)}={quoted(states[x])}")
        else:
            soft[v] = data.draw(st.lists(st.floats(0, 1e9), min_size=len(states), max_size=len(states)).filter(any))
            pairs = zip(states, soft[v], strict=True)
            items.append(f"{quoted(name)}=" + "|".join(f"{quoted(state)}:{p!r}" for state, p in pairs))
    found = evidence_of(model, parse_assignments(",".join(items), model))
    assert {v: known for v, known in found.items() if isinstance(known, int)} == hard
    assert {v: known.tolist() for v, known in found.items() if not isinstance(known, int)} == soft


@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from('HRx=LOW,|:"01 '), max_size=25))
def test_any_text(text):
    try:
        found = parse_assignments(text, MODEL)
    except InputError:
        return
    assert found
