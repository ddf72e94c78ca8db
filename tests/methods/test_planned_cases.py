"""Plans of their own for single cases: made in the core, run by the steps of the others."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import JunctionTree, Model, Table, Variable
from elimina.methods import batch
from elimina.methods.batch import Batch, CaseByCase, PlannedCases
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.program import case_planner
from elimina.running import propagator
from tests import calls
from tests.methods.test_batch import chain, random_cases, take
from tests.methods.test_marginals import naive_bayes
from tests.random_models import models


def grid(rows, columns, size=2, seed=0):
    """A random field, whose messages are wide."""
    rng = np.random.default_rng(seed)
    at = {(r, c): r * columns + c for r in range(rows) for c in range(columns)}
    pairs = [((r, c), n) for r, c in at for n in ((r + 1, c), (r, c + 1)) if n in at]
    factors = [Table([at[a], at[b]], rng.random((size, size)) + 0.1) for a, b in pairs]
    return Model([Variable(f"v{v}", size) for v in range(rows * columns)], factors, sense="probability")


def ways(model, **options):
    columns = range(len(model.variables))
    batch = Batch(model, columns, None, CheckedOptions(device="cpu", threads=1, order="min-fill", **options), 1000)
    return {type(way): way for way in batch._ways}


def answers(model, cases):
    """Return the answers by plans of their own and by the one plan, and the cases whose own plan is reliable."""
    both = ways(model)
    one, planned = both[CaseByCase], both[PlannedCases]
    values = cases.astype(np.int32)
    _, sound = planned._answer({}, values)
    return one.run({}, values), planned.run({}, values), sound


def check_equal(one, other):
    assert other[1] == pytest.approx(one[1], rel=1e-12, abs=1e-12)
    for v, table in one[0].items():
        possible = np.isfinite(one[1])
        assert other[0][v][possible] == pytest.approx(table[possible], rel=0, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(models("probability", max_variables=6, max_cells=200), st.floats(0, 1), st.integers(0, 2**32))
def test_equal_to_the_one_plan(model, share, seed):
    if ways(model):
        check_equal(*answers(model, random_cases(model, np.random.default_rng(seed), 6, share))[:2])


def padded(model, count):
    """With variables of one value, which no table has."""
    others = [Variable(f"one{i}", 1) for i in range(count - len(model.variables))]
    return Model([*model.variables, *others], model.factors, sense="probability")


@pytest.mark.parametrize("model", [chain(20, 0.2), chain(140, 0.2), padded(chain(10, 0.2), 2100)])
def test_many_variables(model):
    one, planned, sound = answers(model, random_cases(model, np.random.default_rng(0), 3, 0.2))
    assert sound.all()
    check_equal(one, planned)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("model", [naive_bayes(40, 3), grid(6, 6), grid(3, 4, 5)], ids=["hub", "grid", "large domains"])
def test_all_run_on_plans_of_their_own(model, share):
    """Buckets of more tables than a step reads; wide messages; steps in tiles."""
    one, planned, sound = answers(model, random_cases(model, np.random.default_rng(0), 5, share))
    assert sound.all()
    check_equal(one, planned)


def test_some_names(monkeypatch):
    """Only the messages that the asked variables need are sent."""
    model = grid(4, 4)
    cases = random_cases(model, np.random.default_rng(0), 20, 0.2)
    planner = ways(model)[PlannedCases]._planner
    values = np.full(16, -1, dtype=np.int32)
    batch = Batch(model, range(16), [3], CheckedOptions(device="cpu", threads=1), 1000)
    few = next(way for way in batch._ways if isinstance(way, PlannedCases))
    assert few._planner.measure(values).combinations < planner.measure(values).combinations
    everything = JunctionTree(model, device="cpu").batch(cases, indices=True)
    take(monkeypatch, PlannedCases)
    some = JunctionTree(model, device="cpu").batch(cases, ["v3"], indices=True)
    assert list(some.marginals) == ["v3"]
    assert some.marginals["v3"] == pytest.approx(everything.marginals["v3"], abs=1e-12)


def test_less_work_than_the_one_plan():
    model = grid(7, 7)
    way = ways(model)[PlannedCases]
    values = np.full(49, -1, dtype=np.int32)
    nothing = way._planner.measure(values)
    values[21:28] = 0
    middle = way._planner.measure(values)
    assert middle.combinations < nothing.combinations / 3
    values[:] = 0
    everything = way._planner.measure(values)
    assert (everything.combinations, everything.steps) == (0.0, 0)


def test_a_plan_that_does_not_fit(monkeypatch):
    """The one plan answers where messages have little room."""
    model = grid(6, 6)
    cases = random_cases(model, np.random.default_rng(0), 40, 0.2).astype(np.int32)

    def narrow(plan, program, sizes, least):
        return case_planner(plan._replace(arena_cells=program.zone[1] + 400), program, sizes, least)

    expected, alone, sound = answers(model, cases)
    assert sound.all()
    monkeypatch.setattr(propagator, "case_planner", narrow)
    expected, helped, sound = answers(model, cases)
    assert 0 < sound.sum() < 40
    check_equal(expected, alone)
    check_equal(expected, helped)
    monkeypatch.setattr(batch, "case_planner", narrow)
    both = ways(model)
    assert both[PlannedCases]._planner.measure(np.full(36, -1, dtype=np.int32)) is None
    assert both[PlannedCases].seconds(cases) == both[CaseByCase].seconds(cases)


def test_memory_for_the_one_plan_only():
    model = grid(6, 6)
    peak = JunctionTree(model, device="cpu").plan.peak_bytes
    assert set(ways(model, memory=8 * peak)) == {CaseByCase, PlannedCases}
    assert set(ways(model, memory=3 * peak)) == {CaseByCase}


def test_cases_that_observe_the_same_follow_each_other():
    model = naive_bayes(6, 3)
    way = ways(model)[PlannedCases]
    values = np.full((6, len(model.variables)), -1, dtype=np.int32)
    values[::2, 1] = values[1::2, 2] = [0, 1, 1]
    observed = values[way.sequence(values)] >= 0
    assert sum((a != b).any() for a, b in itertools.pairwise(observed)) == 1


def test_rows_stay_in_their_places(monkeypatch):
    model = naive_bayes(6, 3)
    cases = random_cases(model, np.random.default_rng(3), 150, 0.2)
    found = []
    for way in (None, PlannedCases):
        take(monkeypatch, way)
        found.append(calls.junction_tree(model, device="cpu", threads=2).batch(cases, indices=True))
    assert found[1].log10_evidence == pytest.approx(found[0].log10_evidence, abs=1e-12)
    for name, table in found[0].marginals.items():
        assert found[1].marginals[name] == pytest.approx(table, abs=1e-12)


def test_impossible_and_unlikely_cases():
    """Zeros come out as zeros; what may have underflowed is answered by the other way."""
    low = 1e-40
    factors = [Table([0], [0.5, 0.5]), *(Table([0, v], [[1 - low, low], [low, 1 - low]]) for v in range(1, 16))]
    model = Model([Variable(f"v{v}", 2) for v in range(16)], factors, sense="probability")
    cases = np.full((3, 16), -1)
    cases[1, 1:] = 0
    cases[2, 1:] = [0, 1, 1, 0, 1] * 3
    one, planned, sound = answers(model, cases)
    assert sound.tolist() == [True, False, False]
    assert one[1][2] < -500
    check_equal(one, planned)
    never = Model(model.variables, [*factors, Table([0, 1], [[0.0, 1.0], [0.0, 1.0]])], sense="probability")
    cases = np.zeros((1, 16), dtype=int)
    one, planned, _ = answers(never, cases)
    assert planned[1][0] == -math.inf
    check_equal(one, planned)
