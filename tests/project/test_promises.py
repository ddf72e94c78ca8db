"""The list of promises names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROMISES = (ROOT / "tests" / "promises.md").read_text(encoding="utf-8")
NAMED = re.findall(r"^ +- `(\S+?)((?:::\w+)+)`$", PROMISES, re.MULTILINE)


def test_every_promise_has_a_test() -> None:
    promises = re.split(r"^\d+\. ", PROMISES, flags=re.MULTILINE)[1:]
    assert len(promises) == 23
    assert all("`tests/" in promise for promise in promises)
    assert len(NAMED) == PROMISES.count("    - `")


@pytest.mark.parametrize(("path", "names"), NAMED)
def test_a_test_that_is_named_exists(path: str, names: str) -> None:
    body: list[ast.stmt] = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    for name in names.split("::")[1:]:
        found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name]
        assert found, f"{path} has no {name}"
        body = found[0].body
