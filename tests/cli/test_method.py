"""``elimina solve --method`` and ``--upper-bound``."""

from __future__ import annotations

import json


def test_filtering(elimina):
    elimina("generate", "grid", "--side", 12, "-d", 4, "--p2", 0.3, "grid.wcsp")
    shown = elimina("solve", "grid.wcsp", "--method", "filter").out
    best = int(shown.partition("value:")[2].split()[0])
    assert "of them filtered" in shown
    code, out, _ = elimina("solve", "grid.wcsp", "--upper-bound", best - 1)
    assert (code, f"bounds:     {best} to unknown" in out) == (0, True)
    answer = json.loads(elimina("solve", "grid.wcsp", "--upper-bound", best - 1, "--format", "json").out)
    assert (answer["status"], answer["value"], answer["lower_bound"]) == ("infeasible", None, best)


def test_an_upper_bound_in_the_costs_of_the_file(elimina, tmp_path):
    text = "{problem {n <100.00} variables {a 2 b 2} functions {f {scope [a b] costs [13.25 12.5 12.75 14]}}}"
    (tmp_path / "m.cfn").write_text(text)
    assert "value:      12.5\n" in elimina("solve", "m.cfn", "--upper-bound", 12.5).out
    assert "bounds:     12.25 to unknown" in elimina("solve", "m.cfn", "--upper-bound", "12.25").out
    code, _, err = elimina("solve", "m.cfn", "--upper-bound", "1O")
    assert (code, "'1O' is invalid: expected a cost, such as 1400 or 12.5" in err) == (2, True)


def test_bounds_when_the_time_is_up(elimina):
    elimina("generate", "random", "-n", 60, "--p1", 0.5, "--p2", 0, "hard.wcsp")
    answer = json.loads(elimina("solve", "hard.wcsp", "--time-limit", 1.5, "--format", "json").out)
    assert answer["status"] == "bounded"
    assert answer["lower_bound"] < answer["upper_bound"] == answer["value"]
    assert len(answer["assignment"]) == 60
