"""Numbers of any size, and sums that are as exact as their tables, against fractions."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from fractions import Fraction

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elimina
from elimina.running.scaled import ScaledNumber, ScaledSum


def exact(number: ScaledNumber) -> Fraction:
    return Fraction(number.fraction) * Fraction(2) ** number.exponent


def total(numbers: Iterable[ScaledNumber]) -> ScaledNumber:
    """Add numbers one at a time, by sums that are made again from their state now and then."""
    added = ScaledSum()
    for place, number in enumerate(numbers):
        added.add(number)
        if place % 3 == 0:
            top, parts = json.loads(json.dumps(added.state))
            added = ScaledSum(top, parts)
    return added.total


@given(
    st.lists(
        st.tuples(
            st.floats(0.5, 1, exclude_max=True) | st.sampled_from([0.0, 0.5, 0.5 + 2**-53]), st.integers(-900, 900)
        ),
        max_size=40,
    ),
    st.randoms(use_true_random=False),
)
def test_sums_are_rounded_once(pairs, rng):
    numbers = [ScaledNumber(fraction, exponent if fraction else 0) for fraction, exponent in pairs]
    exact_sum = sum(map(exact, numbers), Fraction(0))
    top = max((number.exponent for number in numbers), default=0)
    # What lies 2^1074 below the largest number is lost.
    scaled = [exact(number) / Fraction(2) ** top for number in numbers]
    hypothesis.assume(all(part == Fraction(float(part)) for part in scaled))
    found = total(numbers)
    assert float(exact_sum / Fraction(2) ** top) == float(exact(found) / Fraction(2) ** top)
    rng.shuffle(numbers)
    assert total(numbers) == found


def test_products_and_sums_of_any_size():
    rng = random.Random(0)
    for _ in range(200):
        factors = [rng.choice([5e-324, 1e-300, 0.3, 1.0, 21.0, 1e300]) for _ in range(rng.randint(0, 6))]
        number = ScaledNumber.product(factors, rng.randint(-5000, 5000))
        wanted = math.prod(map(Fraction, factors)) * exact(number) / exact(ScaledNumber.product(factors))
        assert abs(exact(number) / wanted - 1) < 1e-15
        assert 0.5 <= number.fraction < 1
        other = ScaledNumber.product([rng.random() + 0.1], number.exponent + rng.randint(-60, 60))
        assert abs(exact(total([number, other])) / (exact(number) + exact(other)) - 1) < 1e-15
        assert abs(exact(number.times(other)) / (exact(number) * exact(other)) - 1) < 1e-15


def test_ends_of_floats():
    assert ScaledNumber.product([1.5], 1023).value == 1.5 * 2.0**1023
    assert ScaledNumber.product([1.0], 1024).value is None
    assert ScaledNumber.product([1.0], -1022).value == 2.0**-1022
    assert ScaledNumber.product([1.0], -1023).value is None
    assert ScaledNumber.product([3.0, 0.0, 2.0]) == ScaledNumber.from_log2(-math.inf) == ScaledSum().total == (0.0, 0)
    assert ScaledNumber.product([0.0]).value == 0
    assert ScaledNumber.product([0.0]).log10 == -math.inf
    assert ScaledNumber.product([1.0], 20_000).log10 == pytest.approx(20_000 * math.log10(2))
    assert ScaledNumber.from_log2(-3.0) == ScaledNumber.product([0.125])


@pytest.mark.parametrize(
    "options",
    [
        elimina.Options(),
        elimina.Options(order="min-fill"),
        elimina.Options(tables="sparse"),
        elimina.Options(dtype="float32"),
        elimina.Options(threads=2, order="min-fill"),
    ],
)
def test_sums_of_whole_numbers_are_exact(options):
    rng = np.random.default_rng(1)
    for _ in range(20):
        first, second = rng.integers(1, 9, 3), rng.integers(1, 9, (3, 4))
        factors = [((0,), first), ((0, 1), second), ((), int(rng.integers(1, 9)))]
        model = elimina.Model.from_arrays([3, 4], factors, sense="probability")
        total = int((first @ second).sum()) * int(factors[2][1])
        result = elimina.solve(model, "pr", options=options)
        assert (result.value, result.log10_z) == (total, math.log10(total))


def test_slices_add_up_to_whole_numbers():
    rng = np.random.default_rng(2)
    size = 6
    tables = [rng.integers(1, 5, (4, 4)) for _ in range(size * (size - 1) // 2)]
    pairs = [(i, j) for i in range(size) for j in range(i)]
    model = elimina.Model.from_arrays([4] * size, zip(pairs, tables, strict=True), sense="probability")
    whole = elimina.solve(model, "pr", options=elimina.Options(order="min-fill"))
    sliced = elimina.solve(model, "pr", memory="4KiB", options=elimina.Options(order="min-fill", slices=1000))
    assert sliced.stats["slices"] > 1
    assert sliced.value == whole.value == int(whole.value)


@pytest.mark.parametrize("constant", [3.0, -1000.0, 900.0, -math.inf])
def test_a_constant_is_a_factor(constant):
    model = elimina.Model.from_arrays([2], [((0,), [1, 2])], sense="probability", constant=constant)
    for options in (elimina.Options(), elimina.Options(order="min-fill")):
        result = elimina.solve(model, "pr", options=options)
        assert result.log10_z == pytest.approx((math.log(3) + constant) / math.log(10), rel=1e-14)
        held = abs(constant) < 700 or constant == -math.inf
        assert result.value == (pytest.approx(3 * math.exp(constant), rel=1e-14) if held else None)
