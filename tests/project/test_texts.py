"""The words of the source keep the rules of the guide of style: see ``tests/texts.py``."""

from __future__ import annotations

import pytest

from tests import texts


@pytest.mark.parametrize("folder", sorted({path.parent for path in texts.PYTHON}), ids=lambda folder: folder.name)
def test_openings_and_terms_of_docstrings(folder):
    found = [offence for path in texts.PYTHON if path.parent == folder for offence in texts.offences(path)]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("folder", sorted({path.parent for path in texts.NATIVE}), ids=lambda folder: folder.name)
def test_openings_and_terms_of_comments_in_cpp_and_cuda(folder):
    found = [offence for path in texts.NATIVE if path.parent == folder for offence in texts.offences(path)]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("folder", sorted({path.parent for path in texts.TESTS}), ids=lambda folder: folder.name)
def test_openings_and_terms_of_tests_and_benchmarks(folder):
    """A test's docstring is a sentence about what holds, so it need not begin with a verb."""
    found = [offence for path in texts.TESTS if path.parent == folder for offence in texts.offences(path)]
    found = [offence for offence in found if offence.rule != "not imperative"]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("page", texts.PAGES, ids=lambda page: page.stem)
def test_terms_of_pages(page):
    found = texts.offences(page)
    assert not found, "\n".join(map(str, found))


SOURCES = (*texts.PYTHON, *texts.NATIVE)
FOLDERS = sorted({str(path.relative_to(texts.ROOT).parent) for path in SOURCES})


@pytest.mark.parametrize("folder", FOLDERS)
def test_comments_and_docstrings_are_not_riddles(folder):
    paths = [path for path in SOURCES if path.parent == texts.ROOT / folder]
    found = [line for path in paths for line in texts.riddles(path)]
    assert not found, "\n".join(found)
    chained = [line for path in paths for line in texts.chained(path)]
    assert not chained, "\n".join(chained)


def test_riddles_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    python, native = tmp_path / "module.py", tmp_path / "code.cpp"
    python.write_text(
        '"""Rows that join what is left."""\n# What is known is told to it.\nx = 1  # the agent is told\n'
    )
    native.write_text("// A value that stands for what is forbidden.\nint x;  // a step is one of its own\n")
    assert [line.split(":")[:2] for path in (python, native) for line in texts.chained(path)] == [
        ["module.py", "1"],
        ["code.cpp", "1"],
    ]
    assert [line.split(":")[1] for line in texts.riddles(python)] == ["2", "3"]
    assert [line.split(":")[1] for line in texts.riddles(native)] == ["2"]
    assert [offence.rule for offence in texts.offences(python)] == ["opening"]


def test_offences_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(
        '"""What it is."""\n'
        "class A:\n"
        '    """A class.\n\n    Attributes:\n        x: Of the search.\n            That is fine.\n    """\n\n'
        "    x = 1\n"
        '    """Where it is."""\n\n'
        "    def f(self):\n"
        '        """Returns nothing."""\n\n'
        "    @property\n"
        "    def g(self):\n"
        '        """The value of ``levelling``."""  # nobody reads this\n'
    )
    assert [str(one).split(": ", 2)[:2] for one in texts.offences(path)] == [
        ["module.py:1", "opening"],
        ["module.py:6", "description"],
        ["module.py:11", "opening"],
        ["module.py:14", "not imperative"],
        ["module.py:18", "term 'nobody'"],
    ]
