"""Optima of float costs that cancel each other, against exact rationals: bounds hold, and every search ends."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, Model
from elimina.planning import checked_options
from elimina.running.rounding import TOLERANCES
from tests import calls
from tests.simulated import simulate

WAYS = [
    {"method": "eliminate"},
    {"method": "eliminate", "dtype": "float32"},
    {"method": "mbe"},
    {"method": "mbe", "ibound": 1, "shift": "tables"},
    {"method": "mbe", "ibound": 1, "shift": "none"},
    {"method": "search"},
    {"method": "search", "shift": "none"},
    {"method": "search", "ibound": 1, "shift": "buckets"},
    {"method": "auto"},
]


def exact(model: Model) -> Fraction | None:
    """The optimum, bound of the model included; None if nothing is allowed."""
    sign = 1 if model.sense == "min-cost" else -1
    totals = []
    for assignment in itertools.product(*map(range, model.sizes)):
        terms = [model.constant, *(factor.at(assignment) for factor in model.factors)]
        if not any(math.isinf(term) for term in terms):
            totals.append(sign * sum(map(Fraction, terms)))
    if model.upper_bound is not None:
        totals = [total for total in totals if total < sign * Fraction(model.upper_bound)]
    return sign * min(totals) if totals else None


def check(model: Model, result, tolerance: float) -> None:
    """Check the bounds; and the optimum, where it is said to be one."""
    expected = exact(model)
    if expected is None:
        assert result.value is None
        return
    slack = Fraction(1.01 * tolerance) * max(1, abs(expected))
    if model.upper_bound is not None and abs(expected - Fraction(model.upper_bound)) <= slack:
        return
    assert result.status in ("optimal", "bounded")
    assert result.lower_bound is None or Fraction(result.lower_bound) <= expected + slack
    assert result.upper_bound is None or Fraction(result.upper_bound) >= expected - slack
    if result.status == "optimal":
        assert abs(Fraction(result.value) - expected) <= slack
    if result.assignment is not None:
        assert model.score([v.index(result.assignment[v.name]) for v in model.variables]) == result.value


def unary_costs_that_cancel() -> Model:
    """Two constants of 1e17 and -1e17, and what decides."""
    return Model.from_arrays([2, 2], [([0], [1e17, 1e17]), ([1], [-1e17, -1e17]), ([0, 1], [[3.0, 1], [2, -1]])])


@pytest.mark.parametrize("options", [way for way in WAYS if "ibound" not in way])
def test_constants_that_cancel_decide_nothing(options):
    result = calls.solve(unary_costs_that_cancel(), device="cpu", time_limit=60, **options)
    assert (result.status, result.value, result.lower_bound) == ("optimal", -1.0, -1.0)


@pytest.mark.parametrize("options", WAYS)
def test_bounds_widen_where_sums_lose_what_decides(options):
    """One of both states costs 1e17, whichever it is, and -1e17 makes up for it."""
    factors = [([0], [0, 1e17]), ([0], [0, -1e17]), ([0, 1], [[3.0, 1], [2, -1]])]
    model = Model.from_arrays([2, 2], factors)
    result = calls.solve(model, device="cpu", time_limit=60, **options)
    assert result.status == "bounded"
    assert -1000 < result.lower_bound <= -1 or options.get("dtype")
    check(model, result, 0.0)


def test_integers_beyond_the_floats_digits_are_exact():
    """A float among the factors makes floats of all: what integers differ by stays."""
    factors = [([0], [2**60 + 1, 2**60]), ([1], [-(2**60), 5 - 2**60]), ([0, 1], [[0.5, 0.25], [0.0, 4.0]])]
    model = Model.from_arrays([2, 2], factors)
    result = calls.solve(model, device="cpu", method="eliminate")
    assert result.status == "optimal"
    assert [v.index(result.assignment[v.name]) for v in model.variables] == [1, 0]


def test_differences_that_no_float_holds_are_refused():
    model = Model.from_arrays([2], [([0], [1.5e308, -1.5e308])])
    with pytest.raises(InputError, match="scale them down"):
        calls.solve(model, device="cpu", method="eliminate")


@st.composite
def cancelling(draw) -> Model:
    """Models whose costs have magnitudes far apart, and cancel each other."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    magnitudes = draw(st.sampled_from([(1.0,), (1.0, 1e6), (1e-3, 1.0, 1e9), (1.0, 1e15, 1e17), (1.0, 1e300)]))
    costs = st.builds(
        lambda size, sign, part: size * sign * part,
        st.sampled_from(magnitudes),
        st.sampled_from([-1, 1]),
        st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]) | st.floats(0.0, 1.0),
    )
    is_maximum = draw(st.booleans())
    worst = -math.inf if is_maximum else math.inf
    factors = []
    for _ in range(draw(st.integers(1, 6))):
        scope = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=3, unique=True))
        cells = math.prod(sizes[v] for v in scope)
        values = st.just([draw(costs)] * cells) | st.lists(costs, min_size=cells, max_size=cells)
        table = [worst if draw(st.integers(0, 9)) == 0 else cost for cost in draw(values)]
        factors.append((scope, np.reshape(table, [sizes[v] for v in scope])))
    return Model.from_arrays(
        sizes,
        factors,
        sense="max-cost" if is_maximum else "min-cost",
        constant=draw(st.sampled_from([0.0, 0.5, 1e15, -1e17])),
        upper_bound=draw(st.sampled_from([None, None, 5, -1e15, 1e15 + 0.5])),
    )


@settings(max_examples=300, deadline=None)
@given(cancelling(), st.sampled_from(WAYS))
def test_no_bound_passes_the_optimum(model, options):
    try:
        result = calls.solve(model, device="cpu", time_limit=60, **options)
    except InputError as error:
        if "float32 cannot hold" in str(error):
            return
        raise
    check(model, result, TOLERANCES[options.get("dtype", "float64")])


@settings(max_examples=60, deadline=None)
@given(cancelling(), st.sampled_from([None, "float32"]))
def test_no_bound_of_slices_passes_the_optimum(model, dtype):
    """Each slice has constants of its own."""
    with pytest.MonkeyPatch.context() as patch:
        simulate(patch, 1 << 30)
        patch.setattr(checked_options, "MAX_SLICES", 1 << 16)
        try:
            result = calls.solve(model, method="eliminate", device="cuda", memory=200, dtype=dtype, tables="dense")
        except elimina.MemoryLimitError:
            return
        except InputError as error:
            if "float32 cannot hold" in str(error):
                return
            raise
    check(model, result, TOLERANCES[dtype or "float64"])
