"""Programs that tests and benchmarks hold as text, for processes of their own, use names that exist."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NAME = r"\w+(?: as \w+)?"
STATEMENT = re.compile(rf"^ *from ((?:elimina|tests)[\w.]*) import ({NAME}(?:, {NAME})*)", re.MULTILINE)


def programs_in(path: Path) -> list[str]:
    """Return the strings of a file that import from the project."""
    strings = (node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant))
    return [text for text in strings if isinstance(text, str) and STATEMENT.search(text)]


def unknown_names(program: str) -> Iterator[str]:
    """Yield names that a program imports from the project, and attributes of imported modules, that do not exist."""
    for match in STATEMENT.finditer(program):
        for name, _, alias in (entry.partition(" as ") for entry in match[2].split(", ")):
            module = importlib.import_module(match[1])
            if not hasattr(module, name) and not importlib.util.find_spec(f"{match[1]}.{name}"):
                yield f"{match[1]}.{name}"
                continue
            value = getattr(module, name, None) or importlib.import_module(f"{match[1]}.{name}")
            if isinstance(value, ModuleType):
                used = re.findall(rf"(?<![\w.]){alias or name}\.([A-Za-z]\w*)", program)
                yield from (f"{value.__name__}.{attribute}" for attribute in used if not hasattr(value, attribute))


FILES = [path for folder in ("tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]
PROGRAMS = {path: programs for path in FILES if path != Path(__file__) and (programs := programs_in(path))}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_in_strings_use_names_that_exist(path):
    for program in PROGRAMS[path]:
        assert not list(unknown_names(program)), program


def test_names_that_do_not_exist_are_seen():
    program = "from elimina.backends.cuda import session\nsession.CardSession\nfrom elimina import nothing, solve"
    assert list(unknown_names(program)) == ["elimina.backends.cuda.session.CardSession", "elimina.nothing"]
