"""Filters of AllDifferent: the CPU's search, the device's code by one or three threads, and a GPU."""

from __future__ import annotations

import pytest

from elimina import _core, cp

FILTERS = ["cpu", "one thread", "three threads", pytest.param("cuda", marks=pytest.mark.gpu)]


def accelerated(model: cp.Model, kind: str) -> _core.CpSolver:
    """A model's solver whose AllDifferents are filtered so, whatever is faster."""
    solver, _ = model._build()
    if kind == "cuda":
        from elimina.cp.gpu_filtering import cuda_device

        solver.accelerate(cuda_device(), False)
    elif kind != "cpu":
        solver.accelerate(_core.CpDevice(1 if kind == "one thread" else 3), False)
    return solver
