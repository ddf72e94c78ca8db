"""Garbage collection stops while a plan is made, and goes on afterwards, whatever ends the call."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from elimina import Model, Options, solve
from elimina.inference import solver
from elimina.inference.shield import uncollected


def chain(count=1100):
    pairs = [([v, v + 1], np.ones((2, 2))) for v in range(count - 1)]
    return Model.from_arrays([2] * count, pairs, sense="probability")


def test_nesting_and_the_setting_before():
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("task", ["mpe", "pr", "mar"])
@pytest.mark.parametrize("failure", [None, ValueError, "interrupt"])
def test_plans_are_made_without_collections(monkeypatch, task, failure):
    plan, seen = solver.plan_call, []

    def watched(*arguments, **options):
        seen.append(gc.isenabled())
        if failure == "interrupt":
            # What ends a thread may come before the last line of what it does.
            gc.disable()
            raise KeyboardInterrupt
        if failure is not None:
            raise failure
        return plan(*arguments, **options)

    monkeypatch.setattr(solver, "plan_call", watched)
    if failure is None:
        solve(chain(), task, device="cpu", options=Options(method="eliminate"))
    else:
        with pytest.raises((ValueError, KeyboardInterrupt)):
            solve(chain(), task, device="cpu", options=Options(method="eliminate"))
    assert seen
    assert not any(seen)
    assert gc.isenabled()
