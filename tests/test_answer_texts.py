"""Texts of answers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.answer_texts import marginals_table
from elimina.number_texts import probability_text

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
    cells: dict[str, dict[str, str]] = {}
    starts = set()
    for line in lines:
        name, *pairs = ([""] if line.startswith(" ") else []) + line.split()
        if name:
            cells[name] = {}
        latest = cells[list(cells)[-1]]
        latest.update(zip(pairs[::2], pairs[1::2], strict=True))
        starts.add(len(line) - len(line[max(map(len, marginals)) :].lstrip()))
        assert len(line) <= width or len(pairs) == 2
    assert cells == {name: {la: probability_text(p) for la, p in v.items()} for name, v in marginals.items()}
    assert len(starts) <= 1
