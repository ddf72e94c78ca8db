"""Batches of cases against one set of evidence after another, and against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from elimina import ImpossibleEvidenceError, InputError, JunctionTree, MemoryLimitError, Model, Options, Table, Variable
from elimina._core import normalise_columns
from elimina.io.cases import Cases
from elimina.methods import batch as batch_module
from elimina.methods.batch import CaseByCase, PlannedCases
from tests import calls
from tests.devices import on_devices
from tests.methods.test_marginals import naive_bayes, network_model
from tests.problem.test_relevance import networks
from tests.random_models import models
from tests.reference import brute


def random_cases(model, rng, count, share=0.5):
    cases = np.stack([rng.integers(0, size, count) for size in model.sizes], axis=1) if model.sizes else None
    return np.where(rng.random((count, len(model.sizes))) < share, cases, -1)


def check_row(model, posteriors, row, case, tolerance):
    weights = {v: [float(x == value) for x in range(model.sizes[v])] for v, value in enumerate(case) if value >= 0}
    log, expected = brute.posteriors(model, weights)
    assert posteriors.log10_evidence[row] == pytest.approx(log / math.log(10), rel=tolerance, abs=tolerance)
    for v, variable in enumerate(model.variables):
        found = posteriors.marginals[variable.name][row]
        assert found == pytest.approx(expected[v], rel=0, abs=tolerance)


@pytest.fixture(params=[None, CaseByCase, PlannedCases], ids=["chunks", "case by case", "planned"])
def way(request, monkeypatch):
    """Each way of answering cases on the CPU, whatever they are estimated to take."""
    take(monkeypatch, request.param)


def take(monkeypatch, way):
    for each in (CaseByCase, PlannedCases):
        monkeypatch.setattr(each, "least_seconds", lambda self, values: 0.0)
        monkeypatch.setattr(each, "seconds", lambda self, values: 0.0 if type(self) is way else math.inf)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(models("probability", max_variables=5, max_cells=100), st.integers(0, 2**32), st.integers(0, 20))
def test_any_model(way, model, seed, count):
    assume(model.variables)
    rng = np.random.default_rng(seed)
    cases = random_cases(model, rng, count)
    posteriors = JunctionTree(model, device="cpu").batch(cases, indices=True)
    assert posteriors.log10_evidence.shape == (count,)
    for row in range(count):
        check_row(model, posteriors, row, cases[row], 1e-9)


@on_devices
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(network=networks(), seed=st.integers(0, 2**32), dtype=st.sampled_from(["float64", "float32"]))
def test_equal_to_one_set_of_evidence_after_another(way, device, network, seed, dtype):
    rng = np.random.default_rng(seed)
    model = network_model(network)
    model = Model(
        model.variables,
        [Table(f.scope, np.where(rng.random(f.sizes) < 0.3, 0.0, f.values)) for f in model.factors],
        sense="probability",
    )
    cases = random_cases(model, rng, 37)
    engine = calls.junction_tree(model, device=device, dtype=dtype)
    posteriors = engine.batch(cases, indices=True)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for row, case in enumerate(cases):
        engine.set_evidence({v: int(x) for v, x in enumerate(case) if x >= 0})
        assert posteriors.log10_evidence[row] == pytest.approx(engine.log10_evidence, rel=tolerance, abs=tolerance)
        try:
            expected = engine.marginals()
        except ImpossibleEvidenceError:
            assert all((table[row] == 0).all() for table in posteriors.marginals.values())
            continue
        for name, table in posteriors.marginals.items():
            assert table[row] == pytest.approx(expected[name], abs=tolerance)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(networks(), st.data())
def test_some_names_and_columns(way, network, data):
    model = network_model(network)
    places = st.lists(st.integers(0, len(model.sizes) - 1), unique=True)
    names, columns = data.draw(places), data.draw(places)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    cases = Cases(tuple(columns), random_cases(model, rng, 5)[:, columns].astype(np.int32))
    posteriors = JunctionTree(model, device="cpu").batch(cases, names, indices=True)
    assert list(posteriors.marginals) == [f"v{v}" for v in names]
    full = np.full((5, len(model.sizes)), -1)
    full[:, columns] = cases.values
    everything = JunctionTree(model, device="cpu").batch(full, indices=True)
    assert posteriors.log10_evidence == pytest.approx(everything.log10_evidence, abs=1e-12)
    for name, table in posteriors.marginals.items():
        assert table == pytest.approx(everything.marginals[name], abs=1e-12)


def chain(length: int, low: float, change: float | None = None) -> Model:
    """Copies of one value with a chance of change each, each read off with a small error."""
    change = low if change is None else change
    copy, read = [[1 - change, change], [change, 1 - change]], [[1 - low, low], [low, 1 - low]]
    factors = [Table([0], [0.5, 0.5])]
    factors += [Table([v - 1, v], copy) for v in range(1, length)]
    factors += [Table([v, length + v], read) for v in range(length)]
    variables = [Variable(f"v{i}", 2) for i in range(2 * length)]
    return Model(variables, factors, sense="probability", children=range(2 * length))


def test_a_case_that_is_much_less_likely_than_the_others(way):
    """Apart by 1e-400: with one scale for all cases it would be 0 beside them."""
    model = chain(20, 1e-40)
    cases = np.full((40, 40), -1)
    cases[:, 20:] = 0
    cases[7, 20::2] = 1
    cases[9, 0] = 1
    engine = JunctionTree(model, device="cpu")
    posteriors = engine.batch(cases, indices=True)
    for row in (0, 7, 9):
        engine.set_evidence({v: int(x) for v, x in enumerate(cases[row]) if x >= 0})
        assert posteriors.log10_evidence[row] == pytest.approx(engine.log10_evidence, rel=1e-12)
        for name, expected in engine.marginals().items():
            assert posteriors.marginals[name][row] == pytest.approx(expected, abs=1e-9)
    assert posteriors.log10_evidence[7] < -350


def test_chunks_and_progress(monkeypatch):
    monkeypatch.setattr(batch_module, "_CACHE_BYTES", 1)
    monkeypatch.setattr(batch_module, "CASE_COLUMN_SECONDS", 0.0)
    take(monkeypatch, None)
    model = naive_bayes(6, 3)
    cases = random_cases(model, np.random.default_rng(1), 100)
    shares = []
    engine = calls.junction_tree(model, device="cpu", threads=2)
    small = engine.batch(cases, progress=shares.append, indices=True)
    chunks = math.ceil(100 / engine._batch.cases)
    assert chunks > 1
    assert shares == pytest.approx([i / chunks for i in range(1, chunks + 1)])
    monkeypatch.undo()
    engine.close()
    large = JunctionTree(model, device="cpu").batch(cases, indices=True)
    assert small.log10_evidence == pytest.approx(large.log10_evidence, abs=1e-12)
    for name, table in small.marginals.items():
        assert table == pytest.approx(large.marginals[name], abs=1e-12)


def test_chunks_are_of_one_size(monkeypatch):
    monkeypatch.setattr(batch_module, "_MAX_CASES", 64)
    model = naive_bayes(6, 3)
    engine = calls.junction_tree(model, device="cpu", threads=1)
    for count, cases in ((64, 64), (65, 48), (129, 48), (200, 64), (20, 32), (3, 3), (1, 2)):
        engine.batch(random_cases(model, np.random.default_rng(1), count), indices=True)
        assert engine._batch.cases == cases
        engine._batch = None


def test_evidence_that_was_set_holds_in_all_cases():
    engine = JunctionTree(naive_bayes(3, 2), device="cpu")
    cases = np.full((3, 11), -1)
    before = engine.batch(cases, indices=True)
    engine.set_evidence({0: 1})
    assert engine.batch(cases, indices=True).marginals["v0"].tolist() == [[0, 1]] * 3
    engine.set_evidence({})
    assert engine.batch(cases, indices=True).marginals["v0"] == pytest.approx(before.marginals["v0"])


def test_frames_and_mappings():
    model = Model([Variable("a", 2, ["no", "yes"])], [Table([0], [0.25, 0.75])], sense="probability")
    posteriors = JunctionTree(model, device="cpu").batch({"a": ["yes", None]})
    assert posteriors.marginals["a"].tolist() == [[0, 1], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        (np.zeros((2, 3), int), "a column for each of the 11 variables"),
        (np.full((2, 11), 9), "row 0: variable 'v0' has no state 9"),
        ({"z": [1]}, "the model has no variable 'z'"),
        (Cases((0, 0), np.zeros((1, 2), np.int32)), "two columns are about the same variable"),
        (Cases((0,), np.full((1, 1), 5, np.int32)), "row 0: variable 'v0' has no state of index 5"),
        (Cases((0,), np.zeros((1, 2), np.int32)), "expected integers of the shape .cases, 1., found int32"),
        ({"v0": [-1]}, "row 0: variable 'v0' has no state -1; leave cells that are not observed empty"),
    ],
)
def test_what_is_refused(cases, problem):
    with pytest.raises(InputError, match=problem):
        JunctionTree(naive_bayes(3, 2), device="cpu").batch(cases)


def test_memory():
    model = naive_bayes(28, 4)
    plan = JunctionTree(model, device="cpu").plan
    engine = JunctionTree(model, device="cpu", memory=f"{3 * plan.peak_bytes}B")
    cases = random_cases(model, np.random.default_rng(1), 20)
    posteriors = engine.batch(cases, indices=True)
    assert engine._batch.planned.plan.peak_bytes <= 3 * plan.peak_bytes
    assert engine._batch.cases < 20
    assert np.isfinite(posteriors.log10_evidence).all()
    tight = JunctionTree(model, device="cpu", memory=f"{plan.peak_bytes * 5 // 4}B")
    assert tight.batch(cases, indices=True).log10_evidence == pytest.approx(posteriors.log10_evidence, abs=1e-12)
    assert tight._batch.cases < engine._batch.cases
    tiny = naive_bayes(1, 2)
    memory = JunctionTree(tiny, device="cpu").plan.peak_bytes
    small = JunctionTree(tiny, device="cpu", memory=f"{memory}B", options=Options(exact=True))
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        small.batch(np.full((5, 9), -1), indices=True)


@pytest.mark.parametrize("pitch", [7, 9])
def test_columns_divided_by_their_totals(pitch):
    """One table for all cases, one for each, and one with a column of zeros, which is left alone."""
    rng = np.random.default_rng(0)
    zone, out = rng.random(100), np.full((10, 20), -1.0)
    zone[60:90] = np.where(np.arange(30) % 10 == 4, 0.0, zone[60:90])
    tables = np.array([[2, 3, 1, 0, 1], [8, 2, pitch, 1, 4], [60, 3, 10, 1, 7]])
    done = normalise_columns(zone, tables, out[:, 3:10])
    assert done.tolist() == [True, True, False]
    single, own = zone[2:5], np.stack([zone[8:15], zone[8 + pitch : 15 + pitch]])
    np.testing.assert_array_equal(out[1:4, 3:10], np.repeat((single / single.sum())[:, None], 7, axis=1))
    np.testing.assert_array_equal(out[4:6, 3:10], own / own.sum(axis=0))
    out[1:6, 3:10] = -1.0
    assert (out == -1.0).all()


def test_columns_need_rows_in_one_piece():
    with pytest.raises(ValueError, match="a step of 1"):
        normalise_columns(np.ones(9), np.zeros((1, 5), dtype=np.int64), np.ones((4, 8))[:, ::2])
