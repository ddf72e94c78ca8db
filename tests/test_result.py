"""How answers read: tables of marginals, and pandas."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.errors import InputError
from elimina.result import Result, marginals_table, probability_text

MARGINALS = {"HR": {"LOW": 0.25, "NORMAL": 0.7500001, "HIGH": 0.0}, "b": {"yes": 1.0}, "c": {"0": 3e-9, "1": 1 - 3e-9}}

WIDE = """\
HR  LOW    0.250000  NORMAL 0.750000  HIGH   0
b   yes    1
c   0      3.00e-09  1      1-3.0e-09"""

NARROW = """\
HR  LOW    0.250000
    NORMAL 0.750000
    HIGH   0
b   yes    1
c   0      3.00e-09
    1      1-3.0e-09"""


def test_tables():
    assert [line.split() for line in marginals_table(MARGINALS, 80).splitlines()] == [
        line.split() for line in WIDE.splitlines()
    ]
    assert [line.split() for line in marginals_table(MARGINALS, 10).splitlines()] == [
        line.split() for line in NARROW.splitlines()
    ]
    assert marginals_table({}, 80) == ""


LABELS = st.text("abcdefgh", min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(LABELS, st.dictionaries(LABELS, st.floats(0, 1), min_size=1, max_size=6), max_size=4),
    st.integers(1, 60),
)
def test_tables_are_aligned_and_complete(marginals, width):
    lines = marginals_table(marginals, width).splitlines()
    found: dict[str, dict[str, str]] = {}
    starts = set()
    for line in lines:
        name, *pairs = ([""] if line.startswith(" ") else []) + line.split()
        if name:
            found[name] = {}
        latest = found[list(found)[-1]]
        latest.update(zip(pairs[::2], pairs[1::2], strict=True))
        starts.add(len(line) - len(line[max(map(len, marginals)) :].lstrip()))
        assert len(line) <= width or len(pairs) == 2
    assert found == {name: {la: probability_text(p) for la, p in v.items()} for name, v in marginals.items()}
    assert len(starts) <= 1


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


def test_text_of_a_result():
    text = str(Result("optimal", "mar", log10_z=-3.5, marginals=MARGINALS))
    lines = text.splitlines()
    assert lines[:3] == ["task:       mar", "status:     optimal", "log10 Z:    -3.5"]
    assert lines[3].startswith("HR  LOW ")
    text = str(Result("optimal", "mpe", value=7, assignment={"a": "x", "b": "y"}))
    assert text.splitlines()[2:] == ["value:      7", "assignment: a=x b=y"]


def test_pandas():
    frame = Result("optimal", "mar", marginals=MARGINALS).to_pandas()
    assert list(frame.columns) == ["variable", "state", "probability"]
    assert list(frame.itertuples(index=False, name=None))[:4] == [
        ("HR", "LOW", 0.25), ("HR", "NORMAL", 0.7500001), ("HR", "HIGH", 0.0), ("b", "yes", 1.0)
    ]  # fmt: skip
    frame = Result("optimal", "mpe", value=7, assignment={"a": "x", "b": "y"}).to_pandas()
    assert frame.to_dict("list") == {"variable": ["a", "b"], "state": ["x", "y"]}
    with pytest.raises(InputError, match="task pr has neither marginals nor an assignment"):
        Result("optimal", "pr", value=0.5).to_pandas()


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"to_pandas needs pandas.*pip install 'elimina\[frames\]'"):
        Result("optimal", "mar", marginals=MARGINALS).to_pandas()
