"""Partition functions in slices: each slice costs the same, however many were run before it."""

from __future__ import annotations

import itertools
import math
import sys
from types import FrameType

import numpy as np
import pytest

from elimina.backends.cpu import CpuBackend
from elimina.methods.partition_function import partition
from elimina.model.model import Model
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.problem.preparation import prepare
from elimina.result import Result
from elimina.running.execution import Execution
from elimina.running.plan_choice import plan_problem
from tests.reference import brute

FEW, MANY = 50, 400


def calls_of(execution: Execution) -> tuple[Result, int]:
    """Return the sum of an execution's slices, and the number of calls of functions that it takes."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        return partition(execution, {}), count
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("is_scaled", [False, True])
def test_each_slice_costs_the_same(is_scaled: bool) -> None:
    """Neither slices in floats nor those that run again in logarithms add up what was added before."""
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(12), 2))
    tables = [rng.uniform(0.5, 1.5, (2, 2)) * (1e-30 if is_scaled else 1.0) for _ in pairs]
    model = Model.from_arrays([2] * 12, list(zip(pairs, tables, strict=True)), sense="probability")
    options = check_options(Options("cpu", "400B", threads=1, slices=10**6, order=range(12)), "pr")
    problem = prepare(model, "pr", {})
    planned = plan_problem(problem, options)
    assert planned.plan.form.slices >= MANY
    execution = Execution(problem, planned.plan, CpuBackend(1), report_bounds=lambda _: None)
    # What the first run makes once is not counted.
    calls_of(execution._replace(share=range(2)))
    _, few = calls_of(execution._replace(share=range(FEW)))
    _, many = calls_of(execution._replace(share=range(MANY)))
    assert many < 1.5 * MANY / FEW * few
    whole, _ = calls_of(execution)
    assert whole.log10_z is not None
    assert math.isclose(whole.log10_z, brute.partition(model), rel_tol=1e-12)
