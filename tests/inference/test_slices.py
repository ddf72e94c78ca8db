"""Sliced runs against unsliced ones and against brute force."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from tests.devices import on_devices
from tests.reference import brute
from tests.strategies import KINDS, models


def sliced_solve(data, model, task, device, **options):
    """Solve in less memory than the unsliced plan needs; None if not even slices of one value each fit."""
    needed = elimina.plan(model, task, device=device, **options).peak_bytes
    share = data.draw(st.sampled_from([0.3, 0.5, 0.7, 0.9]))
    memory = max(int(needed * share), 1)
    plan = elimina.plan(model, task, device=device, memory=memory, slices=10**6, **options)
    if not plan.fits or plan.slicing is None:
        return None
    result = elimina.solve(model, task, device=device, memory=memory, slices=10**6, **options)
    assert result.stats["slices"] == math.prod(model.variables[model.index(v)].size for v in result.stats["sliced"])
    assert result.stats["slices"] > 1
    assert result.stats["peak_bytes"] <= memory
    return result


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_optimum(device, kind, data):
    model = data.draw(models(kind))
    result = sliced_solve(data, model, "mpe", device)
    if result is not None:
        brute.check_optimum(model, result)


@on_devices
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_partition(device, dtype, data):
    model = data.draw(models("probability"))
    result = sliced_solve(data, model, "pr", device, dtype=dtype)
    if result is None:
        return
    expected = brute.partition(model)
    if expected == -math.inf:
        assert (result.status, result.log10_z) == ("infeasible", -math.inf)
    else:
        assert result.log10_z == pytest.approx(
            expected, rel=1e-11 if dtype == "float64" else 1e-5, abs=1e-9 if dtype == "float64" else 1e-5
        )


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_count(device, kind, data):
    model = data.draw(models(kind))
    result = sliced_solve(data, model, "count", device)
    assert result is None or result.value == brute.count(model)
