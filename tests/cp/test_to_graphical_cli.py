"""FlatZinc files among the commands for graphical models."""

from __future__ import annotations

from pathlib import Path

import pytest

import elimina
from elimina.cli.commands import run

TEXT = """var 1..4: a; var 1..4: b; var 1..4: c; var 1..4: d; var -9..9: best :: output_var;
array [1..4] of var int: q :: output_array([1..4]) = [a, b, c, d];
constraint fzn_all_different_int(q); constraint int_lin_eq([2, 1, -1], [a, b, best], 3); solve maximize best;"""


@pytest.fixture
def problem(tmp_path: Path) -> str:
    path = tmp_path / "small.fzn"
    path.write_text(TEXT)
    return str(path)


def test_solve_and_plan(problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["solve", problem]) == 0
    printed = capsys.readouterr().out
    assert "value:      8" in printed  # 2 * 4 + 3 - 3
    assert "q[1]=4 q[2]=3" in printed
    assert run(["solve", problem, "--task", "count"]) == 0
    assert "count:      24" in capsys.readouterr().out
    assert run(["plan", problem]) == 0
    assert "4 to eliminate" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("suffix", "goal", "best"), [("wcsp", "minimize", 1), ("cfn", "maximize", 8), ("cfn", "minimize", 1)]
)
def test_convert(problem: str, tmp_path: Path, suffix: str, goal: str, best: int) -> None:
    Path(problem).write_text(TEXT.replace("maximize", goal))
    target = tmp_path / f"small.{suffix}"
    assert run(["convert", problem, str(target)]) == 0
    model = elimina.read(target)
    assert elimina.solve(model, "count").value == 24
    assert elimina.solve(model).value == best


def test_errors_are_one_line(problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.fzn"
    broken.write_text("var 1..4 a;")
    wide = tmp_path / "wide.fzn"
    wide.write_text("var 1..9999999: x; solve satisfy;")
    for arguments, message in (
        (["solve", str(broken)], "broken.fzn:1: expected ':'"),
        (["solve", str(wide)], "variable x has 9,999,999 values"),
        (["convert", problem, str(tmp_path / "x.fzn")], "(constraint models are for elimina"),
        (["convert", problem, str(tmp_path / "x.wcsp")], "use .cfn"),
        (["solve", str(tmp_path / "none.fzn")], "cannot read"),
    ):
        assert run(arguments) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert message in line
