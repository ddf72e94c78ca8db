"""``--method mbe`` and ``search``, ``--ibound``, ``--gap``, ``--trace`` and its picture, ``--task mmap``."""

from __future__ import annotations

import itertools
import json
import os
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

import elimina as library


@pytest.fixture
def grid(elimina):
    elimina("generate", "grid", "--side", 6, "-d", 3, "--p2", 0, "grid.wcsp")
    return "grid.wcsp"


def test_mini_buckets(elimina, grid):
    assert "mini-buckets:         i-bound 3:" in elimina("plan", grid, "--ibound", 3).out
    # Whether both partitions are tried depends on the clock, as do orders that are searched for.
    options = ["--method", "mbe", "--ibound", 2, "--shift", "none", "--order", "pseudo-tree", "--partition", "scope"]
    shown = elimina("solve", grid, *options).out
    answer = json.loads(elimina("solve", grid, *options, "--format", "json").out)
    assert f"bounds:     {answer['lower_bound']} to {answer['upper_bound']}" in shown
    best = library.solve(library.read(grid)).value
    assert answer["lower_bound"] <= best <= answer["upper_bound"] == answer["value"]
    assert json.loads(elimina("solve", grid, "--method", "mbe", "--format", "json").out)["value"] == best


def test_mini_buckets_by_content(elimina, grid):
    assert "mini-buckets, by content" in elimina("plan", grid, "--ibound", 2, "--partition", "content").out
    assert "by content" not in elimina("plan", grid, "--ibound", 2, "--partition", "scope").out
    failed = elimina("solve", grid, "--task", "pr", "--method", "mbe", "--partition", "content")
    assert (failed.code, failed.out) == (1, "")
    assert "partition content is for the task mpe: use scope or auto for pr" in failed.err


def test_search(elimina, grid):
    best = library.solve(library.read(grid)).value
    answer = json.loads(elimina("solve", grid, "--method", "search", "--format", "json").out)
    assert (answer["status"], answer["value"], answer["stats"]["method"]) == ("optimal", best, "search")


def test_a_trace_and_its_picture(elimina):
    elimina("generate", "random", "-n", 40, "--p1", 0.5, "--p2", 0, "hard.wcsp")
    options = ["--method", "search", "--time-limit", 2, "--trace", "run.jsonl", "--format", "json"]
    answer = json.loads(elimina("solve", "hard.wcsp", *options).out)
    with open("run.jsonl") as file:
        lines = [json.loads(line) for line in file]
    assert [lines[-1]["lower"], lines[-1]["upper"]] == [answer["lower_bound"], answer["upper_bound"]]
    assert all(one["seconds"] <= other["seconds"] for one, other in itertools.pairwise(lines))
    elimina("plot", "run.jsonl", "-o", "run.svg")
    ids = {element.get("id") for element in xml.parse("run.svg").iter()}
    assert {"lower-bound", "upper-bound", "gap"} <= ids


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "without bounds"),
        ("{]\n", "is not a trace"),
        ('{"a": 1}\n', "is not a trace of bounds, a JSON object with seconds, lower and upper on each line"),
        ('{"seconds": "1", "lower": 1, "upper": 2}\n', "is not a trace"),
        ('{"seconds": 1, "lower": "1", "upper": null}\n', "is not a trace"),
        ('{"seconds": 1, "lower": 1, "upper": true}\n', "is not a trace"),
        ('{"seconds": null, "lower": 1, "upper": 2}\n', "is not a trace"),
        ("3\n", "is not"),
    ],
)
def test_bad_traces(elimina, text, message):
    with open("run.jsonl", "w") as file:
        file.write(text)
    code, _, error = elimina("plot", "run.jsonl", "-o", "run.svg")
    assert code == 1
    assert message in error


def test_a_missing_trace_and_one_that_cannot_be_written(elimina, grid):
    code, _, error = elimina("plot", "missing.jsonl", "-o", "run.svg")
    assert (code, "cannot read missing.jsonl" in error) == (1, True)
    code, _, error = elimina("solve", grid, "--trace", "no/such/folder.jsonl")
    assert (code, "cannot write no/such/folder.jsonl" in error) == (1, True)


def test_no_trace_replaces_what_is_read(elimina, grid):
    answer = "hint.json"
    for name, text in (("known.evid", "1 0 1"), ("order.txt", "0 1 2"), (answer, '{"assignment": {}}')):
        Path(name).write_text(text)
    files = {"known.evid": "--evidence", "order.txt": "--order", answer: "--hint"}
    before = {name: Path(name).read_bytes() for name in (grid, *files)}
    for name, option in files.items():
        for output, named in (("--trace", "--trace"), ("-o", "-o")):
            for target in (name, grid):
                if (output, target) == ("-o", answer):  # a better answer may replace the hint
                    continue
                code, _, error = elimina("solve", grid, option, name, output, f"./{target}")
                problem = f"cannot write {target}: it is an input of this command; name another file ({named})"
                assert (code, problem in error) == (1, True)
    assert {name: Path(name).read_bytes() for name in before} == before
    code, _, error = elimina("solve", grid, "--trace", "out", "-o", "./out")
    assert (code, "--trace and -o both name ./out; name two files" in error) == (1, True)
    assert elimina("solve", grid, "--trace", os.devnull, "-o", os.devnull).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ibound", "0"], "is invalid: expected auto or a number of variables from 1 on"),
        (["--ibound", "-1"], "is invalid: expected auto or a number of variables from 1 on"),
        (["--gap", "much"], "invalid gap"),
        (["--gap", "-1"], "invalid gap"),
        (["--shift", "some"], "is not one of"),
    ],
)
def test_wrong_options(elimina, grid, options, message):
    code, _, error = elimina("solve", grid, *options)
    assert code == 2
    assert message in error


def test_an_ibound_needs_a_method(elimina, grid):
    code, _, error = elimina("solve", grid, "--ibound", 3)
    assert (code, "an i-bound is for the methods mbe and search" in error) == (1, True)


def test_gaps_in_percent(elimina, grid):
    assert elimina("solve", grid, "--method", "search", "--gap", "50%").code == 0


def test_marginal_map(elimina):
    elimina("generate", "grid", "--side", 3, "-d", 2, "--p2", 0, "grid.wcsp")
    elimina("convert", "grid.wcsp", "grid.uai")
    with open("grid.uai.query", "w") as file:
        file.write("3 4 0 7\n")
    named = json.loads(elimina("solve", "grid.uai", "--task", "mmap", "--query", "x4,x0,x7", "--format", "json").out)
    answer = elimina("solve", "grid.uai", "--task", "mmap", "--query", "grid.uai.query", "--format", "uai").out
    assert answer.split() == ["MMAP", "3", *(str(named["assignment"][name]) for name in ("x0", "x4", "x7"))]
    assert "log score:" in elimina("solve", "grid.uai", "--task", "mmap", "--query", "x4").out
    code, _, error = elimina("solve", "grid.uai", "--task", "mmap")
    assert (code, "needs a query" in error) == (1, True)
    misfit = "bad.query is not a query file"
    for content, problem in ((b"2 1\n", misfit), (b"\xff\xd7 1", misfit), (b"1 99", "bad.query: the model has no")):
        Path("bad.query").write_bytes(content)
        code, _, error = elimina("solve", "grid.uai", "--task", "mmap", "--query", "bad.query")
        assert (code, problem in error) == (1, True)


def test_bounds_on_sums(elimina):
    elimina("generate", "grid", "--side", 5, "-d", 2, "--p2", 0, "grid.wcsp")
    elimina("convert", "grid.wcsp", "grid.uai")
    exact = library.solve(library.read("grid.uai"), "pr").log10_z
    mbe = ["solve", "grid.uai", "--task", "pr", "--method", "mbe", "--ibound", 2]
    answer = json.loads(elimina(*mbe, "--format", "json").out)
    assert answer["lower_bound"] <= exact <= answer["upper_bound"]
    assert (answer["status"], answer["log10_z"]) == ("bounded", None)
    assert f"log10 Z:    {answer['lower_bound']} to {answer['upper_bound']}\n" in elimina(*mbe).out
    assert "i-bound 2:" in elimina("plan", "grid.uai", "--task", "pr", "--ibound", 2).out
    code, _, error = elimina(*mbe, "--format", "uai")
    assert (code, "format uai cannot hold bounds" in error) == (1, True)
    answer = json.loads(elimina(*mbe[:-1], 5, "--format", "json").out)
    assert (answer["status"], answer["log10_z"]) == ("exact", pytest.approx(exact))
