"""Examples in docstrings print what they say, and each public function and class has one."""

from __future__ import annotations

import ast
import doctest
import inspect
import shutil
from importlib import import_module

import pytest

from tests import texts
from tests.pages import is_here

SOURCES = texts.ROOT / "src"
PACKAGES = ("elimina", "elimina.cp", "elimina.dcop", "elimina.distributed", "elimina.io", "elimina.viz")
WITHOUT_EXAMPLES = {
    "elimina.ClusterError",  # needs workers that fail
    "elimina.DcopError",  # needs agents that fail
    "elimina.InternalError",  # has no known cause
    "elimina.dcop.Agent",  # is made by solve
    *(f"elimina.distributed.{name}" for name in import_module("elimina.distributed").__all__),  # need a cluster
}
NEEDS = {
    "elimina.viz": "matplotlib",
    "pgmpy": "pgmpy",
    "pyagrum": "pyagrum",
    ".yaml": "yaml",
    "pandas": "pandas",
}
"""Text of an example -> the module that it needs."""


def docstrings(path):
    """Yield the docstrings of a file that have examples, each with its module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node)
            if text is not None and ">>> " in text:
                module = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
                yield pytest.param(module, text, id=f"{path.stem}:{getattr(node, 'name', '')}")


EXAMPLES = [example for path in texts.PYTHON for example in docstrings(path)]


@pytest.mark.filterwarnings("default::DeprecationWarning")  # other packages raise it as they are imported
@pytest.mark.parametrize(("module", "text"), EXAMPLES)
def test_an_example_prints_what_it_says(module, text, tmp_path, monkeypatch):
    if missing := [need for part, need in NEEDS.items() if part in text and not is_here(need)]:
        pytest.skip(f"{missing[0]} is not installed")
    shutil.copytree(texts.ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(text, dict(vars(import_module(module))), module, None, None)
    results = doctest.DocTestRunner().run(example)
    assert results.attempted > 0
    assert results.failed == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_each_public_object_has_an_example(package):
    module = import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            documented = ">>> " in (inspect.getdoc(thing) or "")
            assert documented != (f"{package}.{name}" in WITHOUT_EXAMPLES), name
