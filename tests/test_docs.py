"""What the documentation shows is what happens: its Python runs, its links lead somewhere, no key is missing."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import elimina
import elimina.cp
from tests import pages

ROOT = Path(__file__).parents[1]
RUN = [ROOT / "README.md"]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_tutorial_in_python(capsys):
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "tutorial.md", "python"):
        exec(block, names)
    assert capsys.readouterr().out.endswith("optimal 2 {'a': 1, 'b': 0, 'c': 1}\n")
    rain = names["rain"]
    assert elimina.solve(rain, "pr", evidence={"wet": "yes"}).value == pytest.approx(0.23)
    assert elimina.solve(rain, "mpe", evidence={"wet": "yes"}).assignment == {"rain": "yes", "wet": "yes"}


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = pages.Runner(tmp_path)
    for block in pages.blocks(page):
        if block.not_run or block.missing():
            continue
        printed = runner.run(block)
        if block.printed is not None:
            assert pages.agrees(block.printed, printed), f"{page.name}:{block.line}\n{printed}"


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_blocks_that_are_not_run_have_a_reason(page):
    for block in pages.blocks(page):
        assert block.not_run is None or block.not_run in pages.NOT_RUN, f"{page.name}:{block.line}"


def test_what_a_block_prints_is_compared():
    assert pages.agrees("value: 3\ntime: 2 ms\n", "value:   3\ntime: 17 s\n")
    assert pages.agrees("a: 1 ...\n...\nb: 2\n", "a: 1 2 3\nx\ny\nb: 2\n")
    assert not pages.agrees("value: 3\n", "value: 4\n")
    assert not pages.agrees("value: 3\n", "value: 3\nmore\n")


def test_the_python_of_the_reference():
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "reference.md", "python"):
        exec(block, names)
    assert names["result"].status == "optimal"


def test_the_python_on_constraints(capsys):
    names: dict[str, object] = {}
    for block in blocks(ROOT / "docs" / "constraints.md", "python"):
        exec(block, names)
        for expected in re.findall(r"print\(.*\)  # (.*)", block):
            assert f"{expected}\n" in capsys.readouterr().out
    assert names["result"].status == "optimal"


def test_the_examples_of_constraints():
    queens = elimina.cp.read(ROOT / "examples" / "queens.fzn")
    assert elimina.solve(queens.to_model(), "count").value == 92
    assert runpy.run_path(ROOT / "examples" / "job_shop.py")["schedule"]().value == 55


def test_the_tutorial_on_the_command_line():
    text = (ROOT / "docs" / "tutorial.md").read_text()
    model = elimina.read(ROOT / "examples" / "radio.wcsp")
    assert f"value:      {elimina.solve(model).value}\n" in text
    assert f"value:      {elimina.solve(model, evidence={'x0': 3}).value}\n" in text
    assert f"count:      {elimina.solve(model, 'count').value}\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_decision_is_listed():
    folder = ROOT / "docs" / "decisions"
    text = (folder / "index.md").read_text()
    for page in folder.glob("0*.md"):
        number, _, title = page.read_text().split("\n", 1)[0].removeprefix("# ").partition(". ")
        assert f"- [{int(number):04}]({page.name}): {title}\n" in text


def test_the_reference_names_every_key():
    text = (ROOT / "docs" / "reference.md").read_text()
    result = elimina.solve(elimina.Model([], []))
    for key in [*json.loads(result.to_json()), *result.stats, *result.stats["seconds"]]:
        assert re.search(rf"\b{key}\b", text), key
    for name in elimina.__all__:
        assert re.search(rf"\b{name}\b", text), name
