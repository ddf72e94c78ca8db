"""The documentation tells the truth: its Python runs, its links lead somewhere, no key is missing."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import tomllib
from contextlib import contextmanager
from pathlib import Path

import pytest

import elimina
import elimina.cp
from tests import pages

ROOT = Path(__file__).parents[2]
RUN = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "decisions"),
]
MODULES = {"elimina.cp.tsplib", "elimina.errors"}  # described as a whole
CLUSTER = "tcp://host:8786"  # the address in the documentation
FOLDERS = ("bench", "core", "docs", "examples", "src", "tests")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(page for folder in ("bench", "docs", "examples") for page in (ROOT / folder).rglob("*.md"))]
)


def name_of(page):
    return str(page.relative_to(ROOT).with_suffix(""))


@contextmanager
def cluster_for(page):
    """Return a function that replaces the address of a cluster in a page's commands by that of a real one."""
    if CLUSTER not in page.read_text() or not pages.is_here("distributed"):
        yield str
        return
    from tests.distributed.clusters import cluster_of

    with cluster_of(2) as client:
        yield lambda text: text.replace(CLUSTER, client.scheduler.address)


@pytest.mark.filterwarnings("default::DeprecationWarning")  # other packages raise it as they are imported
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with cluster_for(page) as replaced:
        runner = pages.Runner(tmp_path, replaced)
        for block in pages.blocks(page):
            if block.not_run or block.missing():
                continue
            printed = runner.run(block)
            if block.printed is not None:
                assert pages.agrees(block.printed, printed), f"{page.name}:{block.line}\n{printed}"


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_blocks_that_are_not_run_have_a_reason(page):
    for block in pages.blocks(page):
        assert block.not_run is None or block.not_run in pages.NOT_RUN, f"{page.name}:{block.line}"


def test_what_a_block_prints_is_compared():
    assert pages.agrees("value: 3\ntime: 2 ms\n", "value:   3\ntime: 17 s\n")
    assert pages.agrees("a: 1 ...\n...\nb: 2\n", "a: 1 2 3\nx\ny\nb: 2\n")
    assert pages.agrees("memory: 2.0 KiB\nof 1.0 GiB ...\n", "memory: 2010 bytes\nof 1.01 GiB more\n")
    assert not pages.agrees("memory: 2.0 KiB\n", "memory: 880 bytes\n")
    assert not pages.agrees("value: 3\n", "value: 4\n")
    assert not pages.agrees("value: 3\n", "value: 3\nmore\n")


def test_the_examples_of_constraints():
    queens = elimina.cp.read(ROOT / "examples" / "queens.fzn")
    assert elimina.solve(queens.to_model(), "count").value == 92
    assert runpy.run_path(ROOT / "examples" / "job_shop.py")["schedule"]().value == 55


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_source_files_that_pages_name_exist(page):
    known = [f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    for name in re.findall(r"`([\w./-]+\.(?:py|cpp|hpp|cu|cuh))`", page.read_text()):
        assert "NAME" in name or any(path.endswith(f"/{name}") for path in known), name


def test_every_example_is_shown():
    shown = "".join(page.read_text() for page in RUN)
    listed = (ROOT / "examples" / "README.md").read_text()
    for path in (ROOT / "examples").iterdir():
        if path.suffix not in (".md", ".pyc") and path.is_file():
            assert f"`{path.name}`" in listed, path
            assert path.name in shown + listed.partition("written by")[2].partition("|")[0], path


def test_results_stay_short():
    results = (ROOT / "bench" / "RESULTS.md").read_text()
    assert max(section.count("\n") for section in results.split("\n## ")) <= 28


def test_the_changelog_says_each_thing_once():
    """A merge may bring an older list back beside the present one."""
    releases = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]
    for release in releases:
        lines = [line for line in release.splitlines() if line.startswith(("### ", "- "))]
        openings = [line[:40] for line in lines]
        assert len(set(openings)) == len(openings), sorted(line for line in openings if openings.count(line) > 1)


def test_every_decision_is_listed():
    folder = ROOT / "docs" / "decisions"
    text = (folder / "index.md").read_text()
    for page in folder.glob("0*.md"):
        number, _, title = page.read_text().split("\n", 1)[0].removeprefix("# ").partition(". ")
        assert f"- [{int(number):04}]({page.name}): {title}\n" in text


def test_the_index_lists_every_page():
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w/-]+\.md)", (docs / "index.md").read_text()))
    for page in docs.rglob("*.md"):
        name = str(page.relative_to(docs))
        assert name in linked or name == "index.md" or re.match(r"decisions/(0|tried)", name), name


def test_the_readme_names_the_pages_for_users_of_each_package():
    text = (ROOT / "README.md").read_text()
    for page in (ROOT / "docs" / "coming-from").glob("*.md"):
        assert f"(docs/coming-from/{page.name})" in text, page.name


def test_the_index_lists_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (ROOT / "docs" / "index.md").read_text()
    for extra in extras.keys() - {"test", "dev"}:
        assert re.search(rf"^\| .*`{extra}`.* \|", text, re.MULTILINE), extra


def test_the_reference_describes_functions_and_not_modules_of_their_names():
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE):
            assert name in MODULES or not (ROOT / "src" / f"{name.replace('.', '/')}.py").exists(), name


def test_the_reference_names_every_key():
    text = "".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md"))
    result = elimina.solve(elimina.Model([], []))
    for key in [*json.loads(result.to_json()), *result.stats, *result.stats["seconds"]]:
        assert re.search(rf"\b{key}\b", text), key
    for package in ("elimina", "elimina.cp", "elimina.dcop", "elimina.distributed", "elimina.io", "elimina.viz"):
        for name in importlib.import_module(package).__all__:
            assert re.search(rf"\b{name}\b", text), f"{package}.{name}"


def test_the_diffs_of_extensions_touch_few_files():
    """A file of its own, a row, a test, a page, and at most two others; files that are changed exist, others do not."""
    text = (ROOT / "docs" / "extending.md").read_text()
    diffs = re.findall(r"^```diff\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert diffs
    for diff in diffs:
        files = re.findall(r"^--- (\S+)\n\+\+\+ b/(\S+)$", diff, re.MULTILINE)
        assert len([name for _, name in files if name != "CHANGELOG.md"]) <= 6, files
        for old, name in files:
            assert (ROOT / name).exists() == (old != "/dev/null"), name


def test_the_diffs_of_extensions_apply_to_the_code():
    """Lines of each hunk before or after its change are in the file, white space aside: an example may be there."""
    text = (ROOT / "docs" / "extending.md").read_text()
    for diff in re.findall(r"^```diff\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        file = r"^--- a/\S+\n\+\+\+ b/(\S+)\n(.*?)(?=^--- |^new file|\Z)"
        changed = re.findall(file, diff, re.DOTALL | re.MULTILINE)
        hunks = [
            (name, hunk.splitlines()[1:])
            for name, body in changed
            if not name.endswith(".md")
            for hunk in re.split(r"^(?=@@)", body, flags=re.MULTILINE)[1:]
        ]
        assert hunks
        for sign in ("-", "+"):
            missing = [
                name
                for name, lines in hunks
                if _words_of(line[1:] for line in lines if line[:1] in ("", " ", sign))
                not in _words_of((ROOT / name).read_text().splitlines())
            ]
            if not missing:
                break
        assert not missing


def _words_of(lines):
    return "\n".join(" ".join(line.split()) for line in lines)
