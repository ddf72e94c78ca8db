"""Whole runs whose arena lies in a lower tier of memory."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
from elimina.model import Model
from elimina.planning import tiers
from tests.devices import on_devices


def grid(rng, rows, columns, size, sense):
    """A grid with random tables: messages over a column."""
    factors = []
    for r in range(rows):
        for c in range(columns):
            for other in ([(r, c + 1)] if c + 1 < columns else []) + ([(r + 1, c)] if r + 1 < rows else []):
                scope = (r * columns + c, other[0] * columns + other[1])
                values = rng.integers(0, 50, (size, size)) if sense == "min-cost" else rng.random((size, size))
                factors.append((scope, values))
    order = [r * columns + c for c in range(columns) for r in range(rows)]
    return Model.from_arrays([size] * (rows * columns), factors, sense=sense), order


@pytest.fixture
def all_streamed(monkeypatch):
    """Even the smallest step passes through the device."""
    monkeypatch.setattr(tiers, "HOST_WORK", 0)


@on_devices
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(("task", "sense"), [("mpe", "min-cost"), ("pr", "probability"), ("mar", "probability")])
@pytest.mark.usefixtures("all_streamed")
def test_streamed_runs_are_the_same(device, on_disk, task, sense, tmp_path, monkeypatch):
    if device == "cpu" and not on_disk:
        pytest.skip("the host has no tier between its memory and the disk")
    for seed in range(2):
        model, order = grid(np.random.default_rng(seed), 5, 6, 5, sense)
        expected = elimina.solve(model, task, device="cpu", order=order)
        whole = elimina.plan(model, task, device="cpu", order=order)
        room = (whole.arena_cells - whole.factor_cells) * whole.itemsize // 2
        fixed = whole.factor_cells * whole.itemsize if device == "cpu" else tiers.fixed_bytes(len(whole.steps))
        plans = []
        with monkeypatch.context() as patch:
            if on_disk:
                patch.setattr("elimina.backends.cpu.available_memory", lambda: 100_000)
            found = elimina.solve(
                model, task, device=device, order=order, memory=room + fixed,
                scratch=str(tmp_path) if on_disk else None, on_plan=plans.append,
            )  # fmt: skip
        assert plans[0].fits
        assert plans[0].stream is not None
        assert (plans[0].scratch is not None) == on_disk
        assert "streamed" in str(plans[0])
        if task == "mpe":
            assert (found.value, found.assignment) == (expected.value, expected.assignment)
        elif task == "pr":
            assert found.log10_z == pytest.approx(expected.log10_z, rel=1e-12)
        else:
            for name, values in expected.marginals.items():
                np.testing.assert_allclose(found.marginals[name], values, rtol=1e-9)
        assert not list(tmp_path.iterdir())
