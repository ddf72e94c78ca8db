"""Numbers as texts."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.number_texts import bytes_text, count_text, counted, ends_text, number_text, probability_text, seconds_text


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1))
def test_probabilities_keep_their_size(probability):
    text = probability_text(probability)
    value = 1 - float(text[2:]) if text.startswith("1-") else float(text)
    assert value == pytest.approx(probability, rel=6e-3, abs=6e-7 if probability >= 5e-7 else 0)
    assert (text in ("0", "1")) == (probability in (0, 1))
    assert len(text) <= 10


def test_impossible_evidence_has_no_probabilities():
    assert probability_text(math.nan) == "nan"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (999_999, "999,999"), (10**6, "1.00e6"), (9_994_999, "9.99e6"), (9_999_999, "1.00e7"),
        (999_999_999, "1.00e9"), (123456789, "1.23e8"), (10**400 - 1, "1.00e400"), (10**400, "1.00e400"),
    ],
)  # fmt: skip
def test_counts_as_text(number, text):
    assert count_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**20 - 60, "1023.9 KiB"), (2**20 - 1, "1.0 MiB"),
        (2**30 - 1, "1.0 GiB"), (3 * 2**30, "3.0 GiB"), (10**100, "9.31e90 GiB"),
    ],
)  # fmt: skip
def test_bytes_as_text(number, text):
    assert bytes_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0.0 us"), (8.7e-5, "87 us"), (0.0032, "3.2 ms"), (0.44, "440 ms"), (59.2, "59 s"), (90, "1.5 min"),
        (14400, "4.0 h"), (4e5, "4.6 days"), (3.2e8, "10 years"), (1e30, "3e+22 years"),
        (float("inf"), "more than 1e+300 years"),
    ],
)  # fmt: skip
def test_seconds_as_text(number, text):
    assert seconds_text(number) == text


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (3, None, "3 to unknown"), (None, 9630, "unknown to 9630"), (0, 10**196, "0 to 1e196"),
        (-125 * 10**30, 2689226840840601600, "-1.25e32 to 2689226840840601600"), (10**20, 1.5, "1e20 to 1.5"),
        (2**80, 2**81 + 1, f"{2**80} to {2**81 + 1}"), (-(10**20), 3 * 10**6, "-1e20 to 3000000"),
    ],
)  # fmt: skip
def test_bounds_as_text(lower, upper, text):
    assert ends_text(lower, upper) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells"), (1_234_567, "1,234,567 cells")]
)
def test_one_thing_is_no_plural(number, text):
    assert counted(number, "cell") == text
    assert counted(number, "cell", is_rounded=True) == text.replace("1,234,567", "1.23e6")


def test_texts_of_models_with_one_of_each():
    """Nothing that a model of one variable, one factor and one state shows has a plural after the number 1."""
    certain = elimina.Model.from_arrays([1], [((0,), [1.0])], sense="probability")
    binary = elimina.Model.from_arrays([2], [((0,), [0.5, 0.0])], sense="probability")
    table = elimina.Table([0], [0.5], sizes=[2], rows=[[1]], default=0.0)
    shown = [certain, binary, table, elimina.JunctionTree(binary)]
    shown += [elimina.plan(binary, task) for task in ("mpe", "pr", "mar", "count")]
    shown += [elimina.solve(binary, task) for task in ("mpe", "pr", "mar", "count")]
    texts = [str(one) for one in shown]
    for call in (lambda: elimina.Model(binary.variables, binary.factors, children=[]), lambda: certain.states_at([])):
        with pytest.raises(elimina.InputError) as error:
            call()
        texts.append(str(error.value))
    plurals = re.compile(r"(?<![\d.,])1 [a-z-]+s\b")
    assert not [text for text in texts if plurals.search(text)]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (-0.1 - 0.2, "-0.3"),
        (-0.6 + 0.1 + 0.2, "-0.3"),
        (1 / 3, "0.3333333333333333"),
        (-1.162688731093076, "-1.162688731093076"),
        (2.0**60, "1.152921504606847e+18"),
        (math.inf, "inf"),
        (-0.0, "-0.0"),
    ],
)
def test_rounding_noise_of_decimals_is_not_shown(number, text):
    assert number_text(number) == text
