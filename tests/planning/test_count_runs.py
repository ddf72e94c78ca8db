"""Runs of a count: an upper bound on the number of assignments, and the moduli that it needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elimina
from elimina.planning import count_runs
from elimina.planning.count_runs import count_bits, moduli, prime_runs
from elimina.problem.preparation import prepare
from elimina.running.sweep import Sweep
from tests import calls
from tests.random_models import KINDS, models


def functions(length, free=4):
    """A few free variables, and a chain of variables that are functions of these and of each other."""
    rng = np.random.default_rng(length)
    factors = []
    for x in range(free, length):
        cells = np.full((3, 3, 3), np.inf)
        for first in range(3):
            for second in range(3):
                cells[first, second, rng.integers(3)] = 0.0
        factors.append(((x - free, x - 1, x), cells))
    return elimina.Model.from_arrays([3] * length, factors)


@given(st.sampled_from(KINDS).flatmap(models))
def test_no_count_exceeds_its_bound(model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_runs, "_WORD_BITS", 0)
        bits = count_bits(prepare(model, "count", {}))
    number = int(elimina.solve(model, "count").value or 0)
    assert number < 2**bits
    assert bits <= sum(map(math.log2, model.sizes)) + 1


def test_functions_of_other_variables_need_no_further_run(monkeypatch):
    """Without the bound on 3^100 assignments there would be four runs."""
    runs = []
    whole = Sweep.run
    monkeypatch.setattr(Sweep, "run", lambda self, *rest: runs.append(rest) or whole(self, *rest))
    model = functions(100)
    assert elimina.solve(model, "count").value == 3**4
    assert len(runs) == 1


@pytest.mark.parametrize("bits", [0.5, 64.0, 64.1, 95.0, 96.5, 126.0, 500.0, 15_850.3])
def test_the_number_of_primes_is_known_without_finding_them(bits):
    assert prime_runs(bits) == len(moduli(bits)) - 1


def test_a_plan_estimates_all_runs():
    """A chain of free variables needs as many moduli as its 3^n assignments."""
    allowed = np.zeros((3, 3))
    allowed[0, 0] = np.inf
    short, long = (
        elimina.Model.from_arrays([3] * length, [((x, x + 1), allowed) for x in range(length - 1)])
        for length in (40, 200)
    )
    runs = len(moduli(count_bits(prepare(long, "count", {}))))
    assert runs > 5
    assert calls.plan(long, "count", device="cpu").seconds > runs * calls.plan(short, "count", device="cpu").seconds


def test_combinations_of_a_count_take_longer_than_those_of_a_sum():
    """A CPU multiplies integers of 64 bits at half the speed of floats."""
    cells = np.where(np.random.default_rng(0).random((8, 8)) < 0.7, 1.0, 0.0)
    right = [(5 * row + column, 5 * row + column + 1) for row in range(4) for column in range(4)]
    down = [(v, v + 5) for v in range(15)]
    model = elimina.Model.from_arrays([8] * 20, [(pair, cells) for pair in right + down], sense="probability")
    options = {"device": "cpu", "threads": 1, "tables": "dense", "order": "min-fill"}
    count, total = (calls.plan(model, task, **options) for task in ("count", "pr"))
    assert count.work == total.work
    assert 1.5 * total.seconds < count.seconds < 2.1 * total.seconds
