"""Every way through the same random model gives the same answer: dense, on rows, streamed, in slices, filtered."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elimina import MemoryLimitError
from elimina.backends.sparse.session import SparseSession
from elimina.generate import grid_model
from elimina.methods.and_or_search import MAX_COST_SUM
from elimina.methods.filtering import reason_unsupported
from elimina.planning import tiers
from elimina.planning.number_type import cost_bound
from elimina.planning.plan import RESIDENT
from elimina.problem.preparation import prepare
from elimina.result import OPEN_STATUSES
from tests import calls
from tests.devices import on_devices
from tests.random_models import KINDS, models
from tests.reference import brute

FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["rows", "mixed"])
def forms(request, monkeypatch):
    """``rows``: steps stay on rows however full their tables are; ``mixed``: full ones change over."""
    if request.param == "rows":
        monkeypatch.setattr(SparseSession, "_is_smaller_dense", lambda *_: False)
    return request.param


def answers(model, task, chosen):
    """Return the answer of each strategy. Tuples may be more than expected, and more than their slices hold."""
    for way, options in chosen.items():
        try:
            found = calls.solve(model, task, **options)
        except MemoryLimitError:
            if way != "rows in slices":
                raise
        else:
            if way != "rows in slices" or found.ended_by != "memory-limit":
                yield way, found


def ways(data, model, task, device, folder, forms):
    """The options of every way that this model has; a way that memory does not force upon it is left out.

    Those of dense tables come with one of the forms, which are of rows.
    """
    plain = {"device": device, "order": "min-fill"}
    method = {"method": "eliminate"} if task == "mpe" else {}
    share = data.draw(st.sampled_from([0.3, 0.6, 0.9]))
    known = ways_of_rows(model, task, plain, method, share)
    if forms == "rows":
        known |= ways_of_dense_tables(model, task, plain, method, share, folder)
    return known


def ways_of_dense_tables(model, task, plain, method, share, folder):
    plain = {**plain, "tables": "dense"}
    known = {"dense": {**plain, **method}}
    whole = calls.plan(model, task, **plain)
    fixed = tiers.fixed_bytes(len(whole.steps)) if plain["device"] == "cuda" else 0
    for name, own in (
        ("slices", {"memory": max(1, int(whole.peak_bytes * share)), "slices": 10**6}),
        (
            "streamed",
            {"memory": max(1, int(whole.peak_bytes * share)) + fixed, "slices": "never", "scratch": str(folder)},
        ),
    ):
        plan = calls.plan(model, task, **plain, **own)
        if plan.fits and plan.form != RESIDENT:
            known[name] = {**known["dense"], **own}
    if plain["device"] == "cpu" and reason_unsupported(prepare(model, task, {})) is None:
        known["filtered"] = {"device": "cpu", "method": "filter"}
    return known


def ways_of_rows(model, task, plain, method, share):
    plain = {**plain, "tables": "sparse"}
    known = {"rows": {**plain, **method}}
    whole = calls.plan(model, task, **plain)
    sliced = {**plain, "memory": max(1, int(whole.peak_bytes * share)), "slices": 10**6}
    if calls.plan(model, task, **sliced).fits:
        known["rows in slices"] = {**sliced, **method}
    if task == "mpe" and model.is_integer and cost_bound(prepare(model, task, {})) <= MAX_COST_SUM:
        known["filtered rows"] = {"device": plain["device"], "method": "filter", "tables": "sparse"}
    return known


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data())
def test_optimum(device, kind, data, forms, tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "HOST_WORK", 0)
    model = data.draw(models(kind))
    for _, found in answers(model, "mpe", ways(data, model, "mpe", device, tmp_path, forms)):
        brute.check_optimum(model, found)
    assert not list(tmp_path.iterdir())


@on_devices
@pytest.mark.parametrize("kind", ["integer", "max-float", "probability"])
@FEW
@given(data=st.data())
def test_count(device, kind, data, forms, tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "HOST_WORK", 0)
    model = data.draw(models(kind))
    expected = brute.count(model)
    for way, found in answers(model, "count", ways(data, model, "count", device, tmp_path, forms)):
        if way == "rows in slices" and found.status in OPEN_STATUSES:  # what a count answers where tuples do not fit
            assert found.lower_bound <= expected <= found.upper_bound
        else:
            assert (way, found.value) == (way, expected)


@on_devices
@FEW
@given(data=st.data())
def test_partition(device, data, forms, tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "HOST_WORK", 0)
    model = data.draw(models("probability"))
    expected = brute.partition(model)
    for way, found in answers(model, "pr", ways(data, model, "pr", device, tmp_path, forms)):
        assert (way, found.log10_z) == (way, pytest.approx(expected, rel=1e-12, abs=1e-9))


@on_devices
@FEW
@given(data=st.data())
def test_marginals(device, data, forms, tmp_path):
    model = data.draw(models("probability").filter(lambda model: model.variables))
    total, expected = brute.posteriors(model)
    for tables in ("dense", "sparse") if forms == "rows" else ("sparse",):
        result = calls.solve(model, "mar", device=device, tables=tables)
        if total == -math.inf:
            assert (tables, result.status) == (tables, "infeasible")
            continue
        found = [list(result.marginals[v.name].values()) for v in model.variables]
        for own, known in zip(found, expected, strict=True):
            assert own == pytest.approx(known, abs=1e-12)


@on_devices
def test_large_enough_for_everything(device, forms, tmp_path):
    """A model with tables of thousands of rows, where the few allowed ones decide."""
    model = grid_model(7, 5, 0.5, seed=3)
    results = [
        calls.solve(model, task, device=device, order="min-fill", tables=tables, **options)
        for task, options in (("mpe", {"method": "eliminate"}), ("count", {}))
        for tables in ("dense", "sparse")
    ]
    assert [r.value for r in results[::2]] == [r.value for r in results[1::2]]
    assert results[0].assignment == results[1].assignment
    assert np.isfinite(float(results[0].value or 0))
