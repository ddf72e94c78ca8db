"""Examples in docstrings print what they say."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from tests import texts

SOURCES = texts.ROOT / "src"
MODULES = [path for path in texts.PYTHON if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_examples_of_docstrings(path):
    module = import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
