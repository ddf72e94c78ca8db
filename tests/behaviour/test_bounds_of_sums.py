"""Bounds on sums by default and by mini-buckets: both sides hold, improve over time, and never depend on the method."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Bounds, MemoryLimitError, Model
from elimina.methods.weighted_mini_buckets import ORDERS, ladder
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.problem.preparation import prepare
from elimina.strategies import conditions, elimination
from tests import calls

SLACK = 1e-9


def transfer_log10_z(rows: int, columns: int, factors: dict[tuple[int, ...], np.ndarray]) -> float:
    """Return the logarithm of a lattice's partition function, by transfer matrices from row to row."""
    states = list(itertools.product(range(2), repeat=columns))
    weights, log = np.ones(len(states)), 0.0
    for row in range(rows):
        at = [row * columns + column for column in range(columns)]
        if row:
            above = [
                [math.prod(factors[v - columns, v][a[c], b[c]] for c, v in enumerate(at)) for b in states]
                for a in states
            ]
            weights = weights @ np.array(above)
        own = [
            math.prod(factors[v, v + 1][s[c], s[c + 1]] for c, v in enumerate(at[:-1]))
            * math.prod(factors[(v,)][s[c]] for c, v in enumerate(at))
            for s in states
        ]
        weights = weights * np.array(own)
        log += math.log10(weights.sum())
        weights /= weights.sum()
    return log


def lattice(seed: int, rows: int, columns: int, coupling: float) -> tuple[Model, float]:
    """Return a lattice of two states, and the logarithm of its sum."""
    rng = np.random.default_rng(seed)
    factors = {}
    for v in range(rows * columns):
        factors[(v,)] = np.exp(rng.normal(size=2))
        for u in ([v + 1] if (v + 1) % columns else []) + ([v + columns] if v + columns < rows * columns else []):
            factors[v, u] = np.exp(coupling * rng.normal(size=(2, 2)))
    model = Model.from_arrays([2] * rows * columns, list(factors.items()), sense="probability")
    return model, transfer_log10_z(rows, columns, factors)


@st.composite
def limits(draw):
    seed, coupling = draw(st.integers(0, 10**6)), draw(st.sampled_from([0.3, 1.0, 2.0]))
    return seed, draw(st.integers(7, 14)), draw(st.integers(5, 6)), coupling, draw(st.integers(9, 24))


def bounded(model: Model, memory: int, **options) -> tuple[float, float, list[tuple[float, float]]]:
    """Return the bounds in so many bytes, and all that were reported."""
    known: list[Bounds] = []
    found = calls.solve(
        model,
        "pr",
        device="cpu",
        memory=memory,
        slices="never",
        threads=1,
        order_seconds=0.01,
        on_bounds=known.append,
        **options,
    )
    reported = [extended(one.lower, one.upper) for one in known]
    if found.status == "exact":
        return found.log10_z, found.log10_z, reported
    # Neither an i-bound that is asked for nor bounds beside an estimate need fit.
    assert found.ended_by is None or (found.ended_by == "memory-limit" and ("ibound" in options or not known))
    return *extended(found.lower_bound, found.upper_bound), reported


def extended(lower: float | None, upper: float | None) -> tuple[float, float]:
    """Return bounds, of which either may be unknown, as numbers."""
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


@pytest.mark.parametrize("is_long", [False, True])
@given(drawn=limits())
@settings(max_examples=6, deadline=None)
def test_default_is_never_worse_than_mini_buckets(is_long, drawn):
    seed, rows, columns, coupling, kilobytes = drawn
    model, log10_z = lattice(seed, rows, columns, coupling)
    with pytest.MonkeyPatch.context() as patch:
        if is_long:
            for module in (conditions, elimination):
                patch.setattr(module, "is_long", lambda *_: True)
        try:
            lower, upper, known = bounded(model, kilobytes << 10)
        except MemoryLimitError:
            return
        others = [{}, *({"ibound": ibound} for ibound in (2, 5))]
        for other in others:
            try:
                its_lower, its_upper, _ = bounded(model, kilobytes << 10, method="mbe", **other)
            except MemoryLimitError:
                continue
            assert lower >= its_lower - SLACK
            assert upper <= its_upper + SLACK
            assert its_lower - SLACK <= log10_z <= its_upper + SLACK
    assert lower - SLACK <= log10_z <= upper + SLACK
    for (one_lower, one_upper), (next_lower, next_upper) in itertools.pairwise(known):
        assert one_lower <= next_lower
        assert one_upper >= next_upper


def test_a_worse_bound_later_changes_nothing():
    """A larger i-bound in another order is often worse on a lattice, and so is one without moment matching."""
    model, log10_z = lattice(0, 14, 6, 1.0)
    known: list[Bounds] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (conditions, elimination):
            patch.setattr(module, "is_long", lambda *_: True)
        found = calls.solve(model, "pr", device="cpu", method="mbe", ibound=4, threads=1, on_bounds=known.append)
    assert found.lower_bound == max(one.lower for one in known)
    assert found.upper_bound == min(one.upper for one in known)
    assert found.lower_bound <= log10_z <= found.upper_bound


def test_ladder_rises_in_one_order_and_then_tries_others():
    model, _ = lattice(0, 14, 6, 1.0)
    problem = prepare(model, "pr", {})
    options = check_options(Options("cpu", "20000B", threads=1))
    rungs = list(ladder(problem, lambda: options, lambda: math.inf, math.inf))
    ibounds = [rung.plan.minibuckets.ibound for rung in rungs]
    orders = [rung.plan.order for rung in rungs]
    rising = [ibound for ibound, order in zip(ibounds, orders, strict=True) if order == orders[0]]
    assert rising == sorted(set(rising))
    assert len(set(orders)) == len(ORDERS)
    assert all(rung.plan.fits for rung in rungs)
    for most in (1, 2, rising[-1] + 3):
        asked = replace(options, ibound=most)
        limited = list(ladder(problem, lambda asked=asked: asked, lambda: math.inf, math.inf))
        assert max(rung.plan.minibuckets.ibound for rung in limited) <= most
    at_once = list(ladder(problem, lambda: options, lambda: 1e-3, math.inf))
    assert all(rung.plan.minibuckets.ibound <= max(ibounds) for rung in at_once)


def ising(side: int, seed: int = 0) -> Model:
    """Return a square lattice with couplings of both signs."""
    rng = np.random.default_rng(seed)
    factors = []
    for row, column in itertools.product(range(side), repeat=2):
        field = rng.normal(0, 0.3)
        factors.append(((row * side + column,), np.exp([field, -field])))
        for r, c in ((row + 1, column), (row, column + 1)):
            if r < side and c < side:
                pull = rng.normal(0, 0.5)
                factors.append(((row * side + column, r * side + c), np.exp([[pull, -pull], [-pull, pull]])))
    return Model.from_arrays([2] * side**2, factors, sense="probability")


def test_gap_of_a_lattice_in_little_memory():
    found = calls.solve(ising(20), "pr", device="cpu", memory="16MB", slices="never", threads=1)
    assert found.upper_bound - found.lower_bound <= 0.6
    exact = calls.solve(ising(20), "pr", device="cpu", threads=1).log10_z
    assert found.lower_bound <= exact <= found.upper_bound
