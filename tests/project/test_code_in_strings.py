"""Programs that tests and benchmarks hold as text, for processes of their own, import what exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME = r"\w+(?: as \w+)?"
STATEMENT = re.compile(rf"^ *from ((?:elimina|tests)[\w.]*) import ({NAME}(?:, {NAME})*)", re.MULTILINE)


def imports_in(path: Path) -> list[tuple[str, str]]:
    """Return what the strings of a file import from the project: modules, and names in them."""
    strings = (node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant))
    statements = (match for text in strings if isinstance(text, str) for match in STATEMENT.finditer(text))
    return [(match[1], name.split(" as ")[0]) for match in statements for name in match[2].split(", ")]


IMPORTS = {path: imports_in(path) for folder in ("tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))}


@pytest.mark.parametrize("path", [path for path, names in IMPORTS.items() if names], ids=lambda path: path.stem)
def test_code_in_strings_imports_what_exists(path):
    for module, name in IMPORTS[path]:
        is_name = hasattr(importlib.import_module(module), name)
        assert is_name or importlib.util.find_spec(f"{module}.{name}"), f"from {module} import {name}"
