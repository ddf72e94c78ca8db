"""The core's scanner: what it reads, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina._core import Text, TextError


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.sampled_from([" ", "\n", "\t \r\n"]))
def test_integers_of_64_bits_are_exact(numbers, gap):
    text = Text(gap.join(map(str, numbers)).encode())
    assert text.integers(len(numbers), "a number").tolist() == numbers
    assert text.at_end()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_reals_are_exact(numbers):
    text = Text(" ".join(map(repr, numbers)).encode())
    np.testing.assert_array_equal(text.reals(len(numbers), "a number"), numbers)


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("1", 1.0),
        ("+1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-5", 1e-5),
        ("1E+5", 1e5),
        ("-0", 0.0),
        ("5e-324", 5e-324),
    ],
)
def test_spellings_of_reals(spelling, value):
    assert Text(spelling.encode()).real("a number") == value


@pytest.mark.parametrize(
    "junk", ["nan", "inf", "-inf", "1e400", "1e-400", "0x10", "1,5", "1..5", "--1", "+-1", "e5", "1e", "1_0"]
)
def test_junk_is_no_real(junk):
    with pytest.raises(TextError, match="expected a number"):
        Text(junk.encode()).real("a number")


@pytest.mark.parametrize(
    "junk", ["9223372036854775808", "-9223372036854775809", "1.0", "1e3", "x", "29-1", "-", "+", "1\x002"]
)
def test_junk_is_no_integer(junk):
    with pytest.raises(TextError, match="expected a number"):
        Text(junk.encode()).integer("a number")


def test_a_minus_may_be_glued_to_the_number_before():
    text = Text(b"29-1 -7-8", glued_minus=True)
    assert text.integers(4, "a number").tolist() == [29, -1, -7, -8]


def test_the_line_of_an_error():
    text = Text(b"1 2\n3\n\n  x y\n")
    assert text.integers(3, "a number").tolist() == [1, 2, 3]
    with pytest.raises(TextError, match="found 'x'"):
        text.integer("a number")
    assert text.line == 4


def test_the_line_of_an_early_end_is_the_last_one_with_text():
    text = Text(b"1\n2\n\n\n")
    text.integers(2, "a number")
    with pytest.raises(TextError, match="but the file ends here"):
        text.integer("a number")
    assert text.line == 2


@pytest.mark.parametrize("count", [3, 10**12, 2**63, 2**64 - 1])
def test_nothing_is_allocated_for_numbers_that_cannot_be_there(count):
    with pytest.raises(TextError, match="only 3 bytes follow"):
        Text(b"1 2").integers(count, "a number")
    with pytest.raises(TextError, match="bytes follow"):
        Text(b"1 2").tuples(count, np.array([2, 2]))
    with pytest.raises(TextError, match="bytes follow"):
        Text(b"1 2").lists(count, 2, "lists")


def test_quotes_comments_and_marks():
    style = {"blanks": ",", "marks": "{}", "quotes": True, "block_comments": True, "line_comments": True}
    text = Text(b'a,{"b c" /* x\n y */} // z\n # w\n d#e', **style)
    assert [text.token("a word") for _ in range(5)] == [b"a", b"{", b"b c", b"}", b"d#e"]
    assert text.line == 4
    for unfinished in (b"/* x", b'"x', b'"x\n"'):
        with pytest.raises(TextError, match="has no end"):
            Text(unfinished, **style).token("a word")


def test_comments_end_a_word():
    style = {"block_comments": True, "line_comments": True, "marks": ";", "quotes": True}
    text = Text(b'a//b;\nc/* ; */d/e#f "g//h" 12/**/3.5//x', **style)
    words = [b"a", b"c", b"d/e#f", b"g//h"]
    assert [text.token("a word") for _ in words] == words
    assert text.integer("a number") == 12
    assert text.real("a number") == 3.5
    assert text.at_end()
    assert Text(b"a//b", block_comments=True).token("a word") == b"a//b"
    assert Text(b"a/*b*/").token("a word") == b"a/*b*/"


def test_skipping_past_a_mark():
    text = Text(b'"a; b" http://c "d; e\nf;', marks=";", quotes=True, line_comments=True)
    text.skip_past(";", "';'")
    text.skip_past(";", "';'")
    assert text.line == 2
    with pytest.raises(TextError, match="expected ';' after it, but the file ends here"):
        text.skip_past(";", "';' after it")


def test_lists_are_of_distinct_numbers_in_range():
    offsets, members = Text(b"2 1 0 0 1 2").lists(3, 3, "lists")
    assert offsets.tolist() == [0, 2, 2, 3]
    assert members.tolist() == [1, 0, 2]
    for bad in (b"1 3", b"1 -1", b"2 1 1", b"-1", b"4 0 1 2 0"):
        with pytest.raises(TextError):
            Text(bad).lists(1, 3, "lists")


def test_lists_of_items():
    def items(data, **options):
        return Text(data, blanks=",", marks="{}[]", quotes=True).bracket_items(**options)

    assert items(b"1, 2 3]").dtype == np.int64
    assert items(b'1 "2.5"]').tolist() == [1.0, 2.5]
    assert items(b"1 a 2.5]") == [b"1", b"a", b"2.5"]
    assert items(b"1 2}", as_words=True) == [b"1", b"2"]
    assert items(b'"]" x]') == [b"]", b"x"]
    assert len(items(b"]")) == 0
    for bad in (b"1 2", b"1 [2]]", b"1e999]"):
        with pytest.raises(TextError):
            items(bad)
