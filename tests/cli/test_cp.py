"""``elimina cp``, and tables of constraint models on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elimina.io.formats import format_of
from tests.cli.conftest import EXAMPLES
from tests.cli.schema import validate

SHIFTS = EXAMPLES / "shifts.xml"
OPB = "min: 2 x1 3 x2 ;\n1 x1 1 x2 >= 1 ;\n"


def test_an_optimum(elimina):
    ran = elimina("cp", SHIFTS)
    lines = dict(line.split(":", 1) for line in ran.out.splitlines())
    assert (ran.code, lines["status"].strip(), lines["value"].strip()) == (0, "optimal", "12")
    assert "people=3" in lines["assignment"]
    for options in (("--free",), ("--lns", "--seed", 3), ("--threads", 2, "--device", "cpu")):
        answer = json.loads(elimina("cp", SHIFTS, "--json", *options).out)
        validate(answer)
        assert (answer["status"], answer["value"]) == ("optimal", 12)


def test_tables_have_the_same_optimum(elimina):
    assert json.loads(elimina("solve", SHIFTS, "--json").out)["value"] == 12
    assert elimina("plan", SHIFTS).code == 0
    assert elimina("convert", SHIFTS, "shifts.wcsp").code == 0
    assert json.loads(elimina("solve", "shifts.wcsp", "--json").out)["value"] == 12


def test_auxiliary_variables_are_in_json_alone(elimina):
    printed, answer = elimina("solve", SHIFTS).out, json.loads(elimina("solve", SHIFTS, "--json").out)
    lines = dict(line.split(": ", 1) for line in printed.splitlines())
    shown = [pair.split("=")[0] for pair in lines["assignment"].split()]
    hidden = [name for name in answer["assignment"] if name not in shown]
    assert hidden
    assert all(name.startswith("_") for name in hidden)
    assert "people" in shown
    assert lines["not shown"].split()[0] == str(len(hidden))


def test_other_formats(elimina, tmp_path):
    (tmp_path / "p.opb").write_text(OPB)
    assert "value:      2\n" in elimina("cp", "p.opb").out
    ran = elimina("cp", EXAMPLES / "queens.fzn", "-o", "answer.txt")
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "answer.txt").read_text().startswith("status:     feasible\n")


def test_limits_and_errors(elimina, tmp_path):
    limited = json.loads(elimina("cp", SHIFTS, "--json", "--time-limit", 1e-9).out)
    assert limited["ended_by"] in (None, "time-limit")
    assert elimina("cp", "no.xml").err == "elimina: cannot read no.xml: No such file or directory\n"
    (tmp_path / "bad.xml").write_text('<instance format="XCSP3">\n<variables>\n<var id="x"/></variables></instance>')
    assert elimina("cp", "bad.xml").err == "elimina: bad.xml:3: the variable x has an empty domain\n"
    assert elimina("solve", "bad.xml").err == "elimina: bad.xml:3: the variable x has an empty domain\n"
    assert elimina("cp", SHIFTS, "--threads", 0).code == 2


@pytest.mark.parametrize(("name", "expected"), [("shifts.xml", True), ("queens.fzn", True), ("pump.bif", False)])
def test_files_of_constraints(name, expected):
    assert (format_of(EXAMPLES / name).content == "constraints") is expected


def test_a_picture_of_constraints(elimina, tmp_path):
    pytest.importorskip("matplotlib")
    assert elimina("plot", SHIFTS, "-o", "shifts.svg").code == 0
    assert elimina("plot", EXAMPLES / "meetings.yaml", "-o", "meetings.svg").code == 0


def test_an_objective_without_bounds(elimina):
    """A value at the end of the range of integers without bounds proves no optimum, as in fzn-elimina."""
    for declared, bound, status in (
        ("int", "int_le(x, 5)", "unbounded"),
        ("int", "int_le(3, x)", "optimal"),
        ("-9..9", "int_le(x, 5)", "optimal"),
    ):
        Path("m.fzn").write_text(f"var {declared}: x :: output_var;\nconstraint {bound};\nsolve minimize x;\n")
        answer = json.loads(elimina("cp", "m.fzn", "--json").out)
        validate(answer)
        proven = answer["value"] if status == "optimal" else None
        assert (answer["status"], answer["lower_bound"]) == (status, proven)
        assert answer["assignment"] == {"x": answer["upper_bound"]}
