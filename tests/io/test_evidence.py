"""The dialects of evidence files."""

from __future__ import annotations

import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, UnsupportedError

MODEL = elimina.Model.from_arrays([2, 3, 4, 2, 2, 2, 2], [], sense="probability")


def read(tmp_path, text):
    path = tmp_path / "m.evid"
    path.write_text(text)
    return eio.read_evidence(path, MODEL)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", {}),
        ("0\n", {}),
        ("0\n2 0\n\n", {}),
        ("0\n2 0\n1 1\n", {}),
        ("1\n1 0\n", {1: 0}),
        ("1 6 0\r\n", {6: 0}),
        ("2 2 1 4 1\r\n", {2: 1, 4: 1}),
        ("3\n0 0\n1 2\n2 3\n", {0: 0, 1: 2, 2: 3}),
        ("1\n2 1 1 2 3 \n", {1: 1, 2: 3}),
        ("1\n0\n", {}),
        ("1\n1 0 1", {0: 1}),
        ("/* Evidence */\n2\n 1    1\n 3    0\n", {1: 1, 3: 0}),
        ("2 1 1 1 1", {1: 1}),
    ],
)
def test_dialects(tmp_path, text, expected):
    assert read(tmp_path, text) == {f"x{v}": x for v, x in expected.items()}


MALFORMED = """||x|-1|1|1 0|2 0 1|2 0 1 1|2 0 1 1 1 3|1 9 0|1 -1 0|1 0 2|1 0 -1|0 2 0|0\n2\n|1 0.0 1|2 0 1 0 0|
1 3 0 1 1 1|1 99999999999999999999 0|0\n9 9\n|1 0 1 /* x"""


@pytest.mark.parametrize("text", MALFORMED.split("|"))
def test_malformed(tmp_path, text):
    with pytest.raises(FormatError, match=r"m\.evid"):
        read(tmp_path, text)


def test_several_sets_of_evidence(tmp_path):
    with pytest.raises(UnsupportedError, match="2 sets of evidence"):
        read(tmp_path, "2\n1 0 1\n2 0 0 1 1\n")
