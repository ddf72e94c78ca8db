"""``elimina solve --task mar`` and ``elimina plan --task mar``."""

from __future__ import annotations

import json
import math

import pytest

from elimina.io.marginals import read_marginals


@pytest.fixture
def asia(tmp_path):
    path = tmp_path / "rain.uai"
    path.write_text("BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.75 0.25\n4\n1 0 0.5 0.5\n")
    return path


def test_human(elimina, asia):
    code, out, err = elimina("solve", asia, "--task", "mar", "--evidence", "x1=0")
    assert (code, err) == (0, "")
    assert "structure:  junction tree\n" in out
    assert out.splitlines()[-2:] == ["x0  0 0.857143  1 0.142857", "x1  0 1         1 0"]


def test_json_of_a_query_with_soft_evidence(elimina, asia):
    out = elimina("solve", asia, "--task", "mar", "--evidence", "x1=0:0.5|1:1", "--query", "x0", "--format", "json")
    answer = json.loads(out.out)
    assert answer["marginals"] == {"x0": {"0": pytest.approx(0.375 / 0.5625), "1": pytest.approx(0.1875 / 0.5625)}}
    assert answer["log10_z"] == pytest.approx(math.log10(0.5625))


def test_uai(elimina, asia, tmp_path):
    (tmp_path / "seen").write_text("1 1 0\n")
    arguments = ("solve", asia, "--task", "mar", "--evidence", "seen", "--format", "uai", "-o", "out.MAR")
    assert elimina(*arguments) == (0, "", "")
    assert [list(m) for m in read_marginals(tmp_path / "out.MAR")] == [pytest.approx([6 / 7, 1 / 7]), [1, 0]]


def test_impossible_evidence(elimina, asia):
    arguments = ("solve", asia, "--task", "mar", "--evidence", "x0=0,x1=1")
    assert "status:     infeasible\n" in elimina(*arguments).out
    ran = elimina(*arguments, "--format", "uai")
    assert ran.code == 1
    assert "the evidence is impossible" in ran.err


def test_plan(elimina, asia):
    out = elimina("plan", asia, "--task", "mar").out
    assert "junction tree:        1 cliques on 1 levels, 4 cells\n" in out
    assert "cliques are not stored" in out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--query", "y"], "the model has no variable 'y'"),
        (["--query", ""], "the query is empty"),
        (["--query", "x0", "--format", "uai"], "leave --query out"),
        (["--evidence", "x0=0:x"], "is no likelihood"),
    ],
)
def test_what_is_refused(elimina, asia, options, problem):
    ran = elimina("solve", asia, "--task", "mar", *options)
    assert ran.code == 1
    assert problem in ran.err
    assert ran.err.count("\n") == 1
