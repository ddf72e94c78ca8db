"""``elimina solve --task mar`` and ``elimina plan --task mar``."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pytest

import elimina as library
from elimina import Model, Table, Variable, write
from elimina.io.cases import read_cases
from elimina.io.evidence import parse_assignments
from elimina.io.posteriors import read_marginals

CASES = "x1,x0\n0,?\n,1\n1,0\n"


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
    assert "junction tree:        1 clique on 1 level, 4 cells\n" in out
    assert "cliques are not stored" in out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--query", "y"], "the model has no variable 'y'"),
        (["--query", ""], "the query is empty"),
        (["--query", "x0", "--format", "uai"], "leave --query out"),
        (["--evidence", "x0=0:x"], "is not a likelihood"),
    ],
)
def test_what_is_refused(elimina, asia, options, problem):
    ran = elimina("solve", asia, "--task", "mar", *options)
    assert ran.code == 1
    assert problem in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("rows", [None, 1])
def test_cases(elimina, asia, tmp_path, monkeypatch, rows):
    if rows is not None:
        monkeypatch.setattr("elimina.cli.cases._CELLS_AT_ONCE", rows)
        monkeypatch.setattr("elimina.methods.batch._MAX_CASES", rows)
    (tmp_path / "cases.csv").write_text(CASES)
    assert elimina("solve", asia, "--task", "mar", "--cases", "cases.csv", "-o", "out.csv") == (0, "", "")
    head, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "x0=0,x0=1,x1=0,x1=1,log10_evidence"
    found = [[float(cell) if cell else None for cell in line.split(",")] for line in lines]
    assert found[0] == pytest.approx([6 / 7, 1 / 7, 1, 0, math.log10(7 / 8)])
    assert found[1] == pytest.approx([0, 1, 0.5, 0.5, math.log10(0.25)])
    assert found[2] == [None, None, None, None, -math.inf]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.csv", "out.csv", "rain.uai"]


@pytest.mark.parametrize("evidence", ["x0=1", "x1=0:0.25|1:1", "x0=0,x1=1"])
def test_evidence_holds_in_all_cases(elimina, asia, tmp_path, evidence):
    (tmp_path / "cases.csv").write_text(CASES)
    arguments = ("solve", asia, "--task", "mar", "--cases", "cases.csv", "--evidence", evidence, "-o", "out.npz")
    assert elimina(*arguments) == (0, "", "")
    model = library.read(asia)
    tree = library.JunctionTree(model, evidence=parse_assignments(evidence, model))
    expected = tree.batch(read_cases(tmp_path / "cases.csv", model))
    impossible = np.isneginf(expected.log10_evidence)
    assert impossible.any()
    with np.load(tmp_path / "out.npz") as found:
        assert found["log10_evidence"] == pytest.approx(expected.log10_evidence)
        posteriors = np.hstack([expected.marginals["x0"], expected.marginals["x1"]])
        assert found["posteriors"][~impossible] == pytest.approx(posteriors[~impossible])
        assert np.isnan(found["posteriors"][impossible]).all()


def test_digits_of_cases(elimina, asia, tmp_path):
    (tmp_path / "cases.csv").write_text(CASES)
    arguments = ["solve", asia, "--cases", "cases.csv", "--digits", 3]
    assert elimina(*arguments, "--task", "mar", "-o", "short.csv").code == 0
    assert elimina(*arguments[:-2], "--task", "mar", "-o", "long.csv").code == 0
    rows, exact = ([r.split(",") for r in (tmp_path / f).read_text().splitlines()] for f in ("short.csv", "long.csv"))
    assert rows[0] == exact[0]
    assert rows[1:] == [[x and f"{float(x):.3g}" for x in row] for row in exact[1:]]
    assert elimina(*arguments, "--task", "mpe", "-o", "out.csv").code == 2
    assert "leave digits out" in elimina(*arguments, "--task", "mar", "-o", "out.npz").err
    ran = elimina("solve", asia, "--task", "mar", "--digits", 3)
    assert (ran.code, "--digits: it is about the file of posteriors" in ran.err) == (2, True)


def test_extra_columns_of_cases(elimina, asia, tmp_path):
    rows = CASES.splitlines()
    (tmp_path / "cases.csv").write_text("\n".join(f"{'ID' if n == 0 else n},{row}" for n, row in enumerate(rows)))
    arguments = ["solve", asia, "--task", "mar", "--cases", "cases.csv", "-o", "out.csv"]
    ran = elimina(*arguments)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "the model has no variable 'ID'" in ran.err
    assert "--ignore-extra" in ran.err
    assert elimina(*arguments, "--ignore-extra") == (0, "", "")
    extra = (tmp_path / "out.csv").read_text()
    (tmp_path / "cases.csv").write_text(CASES)
    assert elimina(*arguments) == (0, "", "")
    assert (tmp_path / "out.csv").read_text() == extra
    ran = elimina("solve", asia, "--task", "mar", "--ignore-extra")
    assert (ran.code, "--ignore-extra: it is about the columns of cases" in ran.err) == (2, True)


def test_cases_with_a_query(elimina, asia, tmp_path):
    (tmp_path / "cases.csv").write_text(CASES)
    arguments = ("solve", asia, "--task", "mar", "--cases", "cases.csv", "--query", "x1,x1", "-o", "out.npz")
    assert elimina(*arguments) == (0, "", "")
    with np.load(tmp_path / "out.npz") as found:
        assert found["columns"].tolist() == ["x1=0", "x1=1"]
        assert found["posteriors"][:2].tolist() == [[1, 0], [0.5, 0.5]]


@pytest.mark.parametrize("evidence", ["", "x0=1", "x1=0:0.25|1:1", "x0=0,x1=1"])
def test_probabilities_and_best_assignments_of_cases(elimina, asia, tmp_path, evidence):
    (tmp_path / "cases.csv").write_text(CASES)
    options = ["--cases", "cases.csv", *(["--evidence", evidence] if evidence else [])]
    model = library.read(asia)
    tree = library.JunctionTree(model, evidence=parse_assignments(evidence, model) if evidence else None)
    cases = read_cases(tmp_path / "cases.csv", model)
    assert elimina("solve", asia, "--task", "pr", *options, "-o", "sums.csv") == (0, "", "")
    head, *lines = (tmp_path / "sums.csv").read_text().split()
    assert head == "log10_evidence"
    assert [float(line) for line in lines] == pytest.approx(tree.batch(cases).log10_evidence)
    assert elimina("solve", asia, "--task", "mpe", *options, "-o", "best.csv") == (0, "", "")
    head, *lines = (tmp_path / "best.csv").read_text().split()
    assert head == "x0,x1,log10_probability"
    best = tree.mpe_batch(cases)
    impossible = np.isneginf(best.log10_probability)
    assert impossible.any()
    assert elimina("solve", asia, "--task", "mmap", "--query", "x1", *options, "-o", "map.csv") == (0, "", "")
    head, *map_lines = (tmp_path / "map.csv").read_text().split()
    assert head == "x1,log10_probability"
    states_of_one = tree.map_batch(cases, ["x1"])
    for row, line in enumerate(map_lines):
        state, log = line.split(",")
        assert state == ("" if impossible[row] else str(states_of_one.indices[row, 0]))
        assert float(log) == pytest.approx(states_of_one.log10_probability[row])
    for row, line in enumerate(lines):
        *states, log = line.split(",")
        assert states == ["", ""] if impossible[row] else best.indices[row].astype(str).tolist()
        assert float(log) == pytest.approx(best.log10_probability[row])


def test_no_cases(elimina, asia, tmp_path):
    (tmp_path / "cases.csv").write_text("x1\n")
    assert elimina("solve", asia, "--task", "mar", "--cases", "cases.csv", "-o", "out.csv").code == 0
    assert (tmp_path / "out.csv").read_text().count("\n") == 1
    assert elimina("solve", asia, "--task", "mpe", "--cases", "cases.csv", "-o", "out.csv").code == 0
    assert (tmp_path / "out.csv").read_text() == "x0,x1,log10_probability\n"
    arguments = ["solve", asia, "--task", "mmap", "--query", "x1", "--cases", "cases.csv", "-o", "out.csv"]
    assert elimina(*arguments).code == 0
    assert (tmp_path / "out.csv").read_text() == "x1,log10_probability\n"


@pytest.mark.parametrize("task", ["mar", "pr", "mpe", "mmap"])
def test_cases_without_a_file_are_printed(elimina, asia, tmp_path, task):
    (tmp_path / "cases.csv").write_text("x0\n1\n0\n")
    arguments = ["solve", asia, "--task", task, "--cases", "cases.csv", *(["--query", "x1"] * (task == "mmap"))]
    assert elimina(*arguments, "-o", "out.csv") == (0, "", "")
    expected = (0, (tmp_path / "out.csv").read_text(), "")
    assert expected[1].count("\n") == 3
    assert elimina(*arguments) == expected
    assert elimina(*arguments, "-o", "-") == expected


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--task", "count", "-o", "o.csv"], 2, "--task count: use --task mar, pr, mpe or mmap"),
        (["--task", "mmap", "-o", "o.csv"], 2, "add --query"),
        (["--task", "mpe", "-o", "o.npz"], 1, "assignments are written to .csv"),
        (["--task", "pr", "-o", "o.csv", "--query", "x1"], 2, "--query cannot be combined"),
        (["--task", "mpe", "-o", "o.csv", "--local", "1"], 2, "leave --cluster and --local out"),
        (["--task", "mar", "-o", "o.csv", "--evidence", "z=1"], 1, "the model has no variable 'z'"),
        (["--task", "mar", "-o", "o.csv", "--format", "json"], 2, "--format: leave them out; the suffix of -o"),
        (["--task", "mar", "-o", "o.csv", "--json"], 2, "--json: leave them out; the suffix of -o"),
        (["--task", "mar", "-o", "o.csv", "--gap", "1%"], 2, "--gap: leave them out; all cases are"),
        (["--task", "mar", "-o", "o.csv", "--scratch", ".", "--slices", "9"], 2, "with --slices, --scratch: leave"),
        (["--task", "mar", "-o", "o.txt"], 1, "posteriors are written to"),
        (["--task", "mar", "-o", "o.csv", "--query", "z"], 1, "the model has no variable 'z'"),
        (["--task", "mar", "-o", "o.csv", "--memory", "200B", "--exact"], 1, "the plan needs"),
    ],
)
def test_what_does_not_go_with_cases(elimina, asia, tmp_path, options, code, problem):
    (tmp_path / "cases.csv").write_text(CASES)
    ran = elimina("solve", asia, "--cases", "cases.csv", *options)
    assert ran.code == code
    assert problem in ran.err
    assert not list(tmp_path.glob("*o.*"))


def test_bad_cases(elimina, asia, tmp_path):
    (tmp_path / "cases.csv").write_text("x1\n7\n")
    ran = elimina("solve", asia, "--task", "mar", "--cases", "cases.csv", "-o", "o.csv")
    assert ran.code == 1
    assert "cases.csv:2: " in ran.err


@pytest.fixture
def small(tmp_path):
    """A network whose variable ``size`` has digits as states, and its evidence file, which holds indices."""
    variables = [Variable("wet", 2, ["no", "yes"]), Variable("size", 3, ["1", "2", "0"])]
    tables = [Table([0], [0.75, 0.25]), Table([0, 1], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])]
    model = Model(variables, tables, sense="probability", children=[0, 1])
    write(model, tmp_path / "m.bif")
    (tmp_path / "m.evid").write_text("1 1 0")
    (tmp_path / "m.query").write_text("1 1")
    return tmp_path / "m.bif"


def test_evidence_and_queries_accumulate(elimina, small):
    def value(*options):
        return json.loads(elimina("solve", small, "--task", "pr", "--json", *options).out)["value"]

    both = 0.75 * 0.3
    assert value("--evidence", "wet=no", "--evidence", "size=2") == pytest.approx(both)
    assert value("--evidence", "size=2", "--evidence", "wet=no,size=2") == pytest.approx(both)
    assert value("--evidence", small.with_name("m.evid"), "--evidence", "wet=yes") == pytest.approx(0.25 * 0.1)
    assert value("--evidence", "wet=no:1", "--evidence", "size=2:0.5|0:1") == pytest.approx(0.75 * (0.3 * 0.5 + 0.2))
    answer = elimina(
        "solve", small, "--task", "mar", "--json", "--query", small.with_name("m.query"), "--query", "wet,size"
    )
    assert list(json.loads(answer.out)["marginals"]) == ["size", "wet"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["wet=no", "wet=yes"], "evidence gives variable 'wet' two states: 'no' in 'wet=no' and 'yes' in 'wet=yes'"),
        (["m.evid", "size=2"], "evidence gives variable 'size' two states: '1' in 'm.evid' and '2' in 'size=2'"),
        (["wet=no:1", "wet=no:1"], "evidence is about variable 'wet' twice, in 'wet=no:1' and in 'wet=no:1'"),
        (["wet=no", "wet=no:1"], "evidence is about variable 'wet' twice, in 'wet=no' and in 'wet=no:1'"),
        (["wet=no", "dry=no"], "the model has no variable 'dry'"),
        (["wet=no", "size=\u0661"], "variable 'size' has no state"),
    ],
)
def test_evidence_that_contradicts_itself(elimina, small, monkeypatch, given, problem):
    monkeypatch.chdir(small.parent)
    ran = elimina("solve", "m.bif", "--task", "pr", *(word for one in given for word in ("--evidence", one)))
    assert ran.code == 1
    assert problem in ran.err


def test_names_beyond_ascii_in_any_locale(start, tmp_path):
    """Without UTF-8 mode, Python reads the bytes of arguments as surrogates."""
    model = Model(
        [Variable("Größe", 2, ("groß", "klein"))], [Table([0], [0.25, 0.75])], sense="probability", children=[0]
    )
    write(model, tmp_path / "größe.bif")
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    for given, answer in ((("--evidence", "Größe=groß"), "groß  1 "), (("--query", "Größe"), "groß  0.25")):
        process = start("solve", "größe.bif", "--task", "mar", *given, env={**os.environ, **ascii_only})
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert answer in out
