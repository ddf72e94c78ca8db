"""Result files of marginals, in both dialects."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.errors import FormatError, InputError
from elimina.io.posteriors import read_marginals, write_marginals


def read(tmp_path, text):
    path = tmp_path / "m.MAR"
    path.write_text(text)
    return read_marginals(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MAR\n2 2 0.1 0.9 3 0 1 0", [[0.1, 0.9], [0, 1, 0]]),
        ("MAR\n1\n2 2 0.1 0.9 3 0 1 0\n", [[0.1, 0.9], [0, 1, 0]]),
        ("MAR 1 3 0.5 0.25 0.25", [[0.5, 0.25, 0.25]]),
        ("MAR 1 1 3 0.5 0.25 0.25", [[0.5, 0.25, 0.25]]),
        ("MAR 1 1 1", [[1]]),
        ("MAR 1 1 1 1", [[1]]),
        ("MAR 0", []),
    ],
)
def test_dialects(tmp_path, text, expected):
    assert [m.tolist() for m in read(tmp_path, text)] == expected


@given(
    st.lists(
        st.lists(
            st.floats(0, 1) | st.floats(0, allow_nan=False, allow_infinity=False) | st.just(5e-324),
            min_size=1,
            max_size=4,
        ),
        max_size=4,
    )
)
def test_round_trip_is_exact(tmp_path_factory, marginals):
    path = tmp_path_factory.getbasetemp() / "round.MAR.gz"
    path.write_bytes(gzip.compress(write_marginals(marginals).encode()))
    assert [m.tolist() for m in read_marginals(path)] == marginals


def test_written_text():
    assert write_marginals([np.array([1 / 3, 2 / 3]), [1]]) == "MAR\n2 2 0.3333333333333333 0.6666666666666666 1 1.0\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected MAR, but the file ends here"),
        ("PR 1", ":1: expected MAR, found 'PR'"),
        ("MAR", "expected a number of variables, but the file ends here"),
        ("MAR\n2 2 0.1 0.9 3 0 1", "from 1 to 2 of variable 1, found 3"),
        ("MAR\n2 2 0.1 0.9 1.5 0 1", "of variable 1, found 1.5"),
        ("MAR\n2 2 0.1 0.9 0", "of variable 1, found 0"),
        ("MAR\n2 2 0.1 0.9 1e18 3", "of variable 1, found 1e+18"),
        ("MAR\n3 2 0.1 0.9 2 0 1", "found the marginals of 2 variables, but the file says 3"),
        ("MAR\n1\n2 2 0.1 0.9", "found the marginals of 1 variable, but the file says 2"),
        ("MAR\n-1", "found the marginals of 0 variables, but the file says -1"),
        ("MAR\n1 2 -0.1\n1.1", "non-negative probabilities of variable 0, found -0.1"),
        ("MAR\n1 2 0.1\nnan", ":3: expected a number, found 'nan'"),
    ],
)
def test_malformed(tmp_path, text, problem):
    with pytest.raises(FormatError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)


def test_what_is_no_marginal_is_not_written(tmp_path):
    for bad in ([], [-0.5, 1.5], [np.nan], [[1.0]], np.inf):
        with pytest.raises(InputError, match="the marginal of variable 1 is not"):
            write_marginals([[1.0], bad])
    with pytest.raises(InputError, match="cannot read"):
        read_marginals(tmp_path / "none.MAR")
