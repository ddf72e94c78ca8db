from __future__ import annotations

from pathlib import Path

import pytest

from elimina.errors import FormatError
from elimina.planning.order import read_order

NAMES = ["a", "b", "c", "7", "3"]


def test_names_and_indices_mix(tmp_path: Path) -> None:
    file = tmp_path / "x.order"
    # "3" is a name (of variable 4), so it is not an index; "0" is.
    file.write_text("\ufeff3 # an order\r\nc\n0\tb 7\n")
    assert read_order(file, NAMES) == (4, 2, 0, 1, 3)


def test_toulbar2_clusters_are_eliminated_leaves_first(tmp_path: Path) -> None:
    file = tmp_path / "x.cov"
    file.write_text("0 -1 2\n1 -1 0 1\n2 1 1 3\n3 1 1 4\n")
    order = read_order(str(file), ["v", "w", "x", "y", "z"])
    assert order == (4, 3, 0, 1, 2)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.order", "a b c 7\n", "1 of 5 variables are missing: '3'"),
        ("x.order", "a b\nc 7 a 3\n", ":2: variable 'a' appears again; its first place is line 1"),
        ("x.order", "a b d\n", ":1: expected a variable's name or index, found 'd'"),
        ("x.order", "a b c 7 3 12\n", ":1: there is no variable 12"),
        ("x.order", " 99 111 -1\n", "there is no variable 99"),
        ("x.order", "", "5 of 5 variables are missing"),
        ("x.cov", "0 -1 a b c 7 3\n1\n", ":2: expected cluster, parent and variables"),
        ("x.cov", "0 -1 a b\n0 -1 c 7 3\n", ":2: cluster '0' appears again"),
        ("x.cov", "0 4 a b\n", ":1: the parent '4' of cluster '0' is on no line above"),
        ("x.cov", "0 -1 a b\n1 0 b c\n2 1 a 7 3\n", ":3: variable 0 is in cluster '2'"),
        ("x.cov", "0 -1 a b\n1 0 b c\n", "2 of 5 variables are missing"),
    ],
)
def test_malformed_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(FormatError) as caught:
        read_order(file, NAMES)
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read as text"):
        read_order(tmp_path / "absent.order", NAMES)
    with pytest.raises(FormatError, match=r"cannot be read as text: Is a directory$"):
        read_order(tmp_path, NAMES)
    binary = tmp_path / "binary.order"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="cannot be read as text"):
        read_order(binary, NAMES)
