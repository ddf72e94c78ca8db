"""``elimina dcop``."""

from __future__ import annotations

import json

import pytest

import elimina as library


@pytest.fixture
def grid(elimina):
    elimina("generate", "grid", "--side", 4, "-d", 3, "--p2", 0.2, "grid.wcsp")
    return "grid.wcsp"


def test_dpop(elimina, grid):
    best = library.solve(library.read(grid)).value
    shown = elimina("dcop", grid).out
    assert "status:     optimal\n" in shown
    assert f"value:      {best}\n" in shown
    assert "16 on cpu, int16" in shown
    assert "15 visit" in shown
    answer = json.loads(elimina("dcop", grid, "--json", "--heuristic", "random", "--seed", 3, "--threads", 1).out)
    assert (answer["value"], answer["stats"]["agents"], answer["stats"]["messages"]["util"]) == (best, 16, 15)


def test_adpop(elimina, grid):
    best = library.solve(library.read(grid)).value
    answer = json.loads(elimina("dcop", grid, "--algo", "adpop", "--ibound", 1, "--json").out)
    assert answer["lower_bound"] <= best <= answer["value"]
    shown = elimina("dcop", grid, "--algo", "adpop", "--ibound", 1).out
    assert f"bounds:     {answer['lower_bound']} to {answer['upper_bound']}" in shown


def test_mb_dpop(elimina, grid):
    best = library.solve(library.read(grid)).value
    answer = json.loads(elimina("dcop", grid, "--algo", "mb-dpop", "--memory", "1kB", "--json").out)
    assert (answer["status"], answer["value"], answer["stats"]["algorithm"]) == ("optimal", best, "mb-dpop")
    assert answer["stats"]["peak_bytes"] <= 1000
    assert " context)" in elimina("dcop", grid, "--algo", "mb-dpop", "--memory", "1kB").out


def test_filter(elimina, grid):
    best = library.solve(library.read(grid)).value
    answer = json.loads(elimina("dcop", grid, "--filter", 1, "--json").out)
    assert (answer["status"], answer["value"], answer["stats"]["filtering"]) == ("optimal", best, 1)
    shown = elimina("dcop", grid, "--filter", 1).out
    assert f"tuples:     {answer['stats']['rows_sent']} sent of " in shown
    assert "tuples:" not in elimina("dcop", grid).out


def test_faults(elimina, grid):
    best = library.solve(library.read(grid)).value
    network = ["--delay", 0.1, "--jitter", 0.1, "--loss", 0.2, "--duplicate", 0.3, "--crash", "x3@2", "--downtime", 1]
    ran = elimina("dcop", grid, *network, "--delivery", "random")
    assert f"value:      {best}\n" in ran.out
    assert " repeated\n" in ran.out
    assert "3 times without an answer" in elimina("dcop", grid, "--loss", 1, "--retries", 2).err
    never = elimina("dcop", grid, "--crash", "x3@2", "--downtime", "never")
    assert (never.code, never.err.count("\n")) == (1, 1)
    assert "a shorter downtime of crashed agents" in never.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--algo", "adpop"], 1, "adpop needs an i-bound"),
        (["--ibound", 2], 1, "dpop takes no i-bound"),
        (["--algo", "mb-dpop"], 1, "mb-dpop needs a memory limit"),
        (["--memory", "1kB"], 1, "agent 'x"),
        (["--algo", "adpop", "--ibound", 2, "--filter", 2], 1, "filtering needs the algorithm dpop"),
        (["--filter", 0], 2, "--filter"),
        (["--crash", "x3"], 2, "expected an agent and a message number, such as a1@3"),
        (["--crash", "nobody@1"], 1, "there is no agent 'nobody'"),
        (["--delay", "-1"], 2, "is invalid: expected a positive number of seconds"),
        (["--loss", "2"], 2, "--loss"),
    ],
)
def test_errors(elimina, grid, options, code, message):
    ran = elimina("dcop", grid, *options)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


def test_no_file(elimina):
    assert "missing.wcsp" in elimina("dcop", "missing.wcsp").err


def test_unknown_suffixes(elimina):
    ran = elimina("dcop", "problem.txt")
    assert "problem.txt: unknown suffix '.txt'; distributed problems are yaml, yml, xml, json, and models " in ran.err


def test_timelines(elimina, grid, tmp_path):
    assert "timelines are written to .svg and .html files" in elimina("dcop", grid, "--timeline", "a.png").err
    assert elimina("dcop", grid, "--timeline", "a.html").code == 0
    assert "grid.wcsp: dpop, " in (tmp_path / "a.html").read_text()


def test_pseudotrees(elimina, grid, tmp_path):
    assert elimina("plot", grid, "--what", "pseudotree", "--heuristic", "most-connected", "-o", "a.svg").code == 0
    assert "depth 16, width 4, 9 back edges" in (tmp_path / "a.svg").read_text()
    assert "pictures are written to" in elimina("plot", grid, "--what", "pseudotree", "-o", "a.gif").err


def test_a_long_run_says_what_it_takes(elimina, grid, monkeypatch):
    monkeypatch.setattr("elimina.cli.dcop._LONG_SECONDS", 0.0)
    ran = elimina("dcop", grid, "--algo", "mb-dpop", "--memory", "1kB")
    assert ran.err.startswith("elimina: mb-dpop: width 6, ")
    monkeypatch.setattr("elimina.cli.signals._MIN_SECONDS", 1e-9)  # these agents may end within a millisecond
    ran = elimina("dcop", grid, "--time-limit", 1e-9)
    assert (ran.code, ran.err) == (0, "")
    assert "ended by:   time-limit\n" in ran.out


def test_json_is_short_for_a_format(elimina, grid):
    for command in ("solve", "dcop"):
        for given in (("--json",), ("--format", "json"), ("--json", "--format", "json")):
            assert json.loads(elimina(command, grid, *given).out)["status"] == "optimal"
        ran = elimina(command, grid, "--json", "--format", "human")
        assert (ran.code, "contradict each other" in ran.err) == (2, True)


def test_the_answer_goes_to_a_file(elimina, grid, tmp_path):
    assert elimina("dcop", grid, "--json", "-o", "answer.json").out == ""
    assert json.loads((tmp_path / "answer.json").read_text())["status"] == "optimal"
    assert elimina("dcop", grid, "-o", "answer.txt").out == ""
    assert (tmp_path / "answer.txt").read_text().startswith("status:     optimal\n")
    refused = elimina("dcop", grid, "-o", grid)
    assert (refused.code, "is an input of this command" in refused.err) == (1, True)
