"""Integers without bounds: a search within limits of our own proves only what these limits cannot change."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from elimina import cp
from elimina.errors import InputError
from tests.adversary import flatzinc as adversary
from tests.adversary.case import Setting

PROGRAM = str(Path(sys.executable).parent / "fzn-elimina")
X = "var int: x :: output_var; "

PROVEN = [
    ("constraint int_le(3, x); solve minimize x;", "optimal", 3),
    ("var 0..9: y; constraint int_lt(y, x); solve minimize x;", "optimal", 1),
    ("var 0..10: z; constraint int_lin_eq([2, -1], [x, z], -1); solve minimize z;", "optimal", 1),
    ("var 0..9: m; constraint int_le(x, m); constraint int_le(0, x); solve minimize m;", "optimal", 0),
    ("var 2..9: m; constraint int_lin_le([1, -1], [x, m], -2); constraint int_le(0, x); solve minimize m;",
     "optimal", 2),
    ("var 0..90: y; constraint int_times(x, x, y); solve maximize x;", "optimal", 9),
    ("var -90..90: y; constraint int_abs(x, y); solve minimize x;", "optimal", -90),
    ("constraint array_int_maximum(7, [x, 3]); solve maximize x;", "optimal", 7),
    ("var int: y; constraint array_var_int_element(y, [x, 4], 4); constraint int_le(0, x); solve minimize x;",
     "optimal", 0),
    ("constraint jacop_table_int([x, x], [1, 1, 5, 5]); solve maximize x;", "optimal", 5),
    # By cases.
    ("var bool: b; var bool: c; constraint int_eq_reif(x, 0, b); constraint int_eq_reif(x, 5, c); "
     "constraint bool_clause([b, c], []); solve maximize x;", "optimal", 5),
    ("var bool: b; var bool: c; constraint int_eq_reif(x, 0, b); constraint int_eq_reif(x, 5, c); "
     "constraint bool_not(b, c); solve maximize x;", "optimal", 5),
    ("var 0..9: y; constraint int_lt(y, x); constraint int_lt(x, y); solve satisfy;", "infeasible", None),
    ("constraint set_in(x, {2, 5}); solve satisfy;", "feasible", None),
]  # fmt: skip
UNPROVEN = [
    ("var int: y; constraint int_lt(y, x); solve minimize x;", "feasible"),
    ("var int: z; constraint int_lin_eq([2, -1], [x, z], -1); solve minimize z;", "feasible"),
    # Only solutions beyond the limits.
    ("constraint int_le(8000000000000, x); solve satisfy;", "unknown"),
    ("constraint int_le(8000000000000, x); solve minimize x;", "unknown"),
]  # fmt: skip


def model_of(tmp_path: Path, text: str) -> cp.Model:
    (tmp_path / "m.fzn").write_text(X + text)
    return cp.read(tmp_path / "m.fzn")


def printed(tmp_path: Path, text: str, *options: str) -> tuple[str, str]:
    (tmp_path / "m.fzn").write_text(X + text)
    command = [PROGRAM, *options, str(tmp_path / "m.fzn")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return result.stdout, result.stderr


@pytest.mark.parametrize(("text", "status", "value"), PROVEN)
def test_what_the_model_itself_bounds_is_proven(tmp_path: Path, text: str, status: str, value: int | None) -> None:
    result = model_of(tmp_path, text).solve(all_solutions=True)
    assert (result.status, result.value, result.stats["complete"]) == (status, value, True)
    out, err = printed(tmp_path, text, "-a")
    assert out.endswith("=====UNSATISFIABLE=====\n" if status == "infeasible" else "==========\n")
    assert err == ""


@pytest.mark.parametrize(("text", "status"), UNPROVEN)
def test_what_limits_cut_is_no_proof(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, status: str) -> None:
    model = model_of(tmp_path, text)
    result = model.solve(all_solutions=True)
    assert re.search(r"no bounds for .*\bx\b.*: declare bounds in the file, such as var -1000", caplog.text)
    assert (result.status, result.ended_by, result.stats["complete"]) == (status, "domain-limit", False)
    assert result.lower_bound is None or result.upper_bound is None
    out, err = printed(tmp_path, text, "-a")
    assert out.endswith("=====UNKNOWN=====\n" if status == "unknown" else "----------\n")
    assert "the model gives no bounds for " in err
    with pytest.raises(InputError, match=r"the file gives no bounds for .*declare bounds in the file"):
        model.to_model()


def test_the_advice_works(tmp_path: Path) -> None:
    text = UNPROVEN[0][0].replace("var int: y", "var -1000..1000: y")
    assert model_of(tmp_path, text).solve().value == -999


def test_an_objective_that_falls_without_end_is_unbounded(tmp_path: Path) -> None:
    text = "constraint int_le(x, 5); constraint int_lin_le([2, 1], [x, y], 9); solve minimize x;"
    text = f"var 0..3: y; {text}"
    assert model_of(tmp_path, text).solve().status == "unbounded"
    assert printed(tmp_path, text)[0].endswith("=====UNBOUNDED=====\n")


def test_solutions_one_by_one_warn_at_their_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = model_of(tmp_path, UNPROVEN[0][0])
    assert list(model.solutions())
    assert "no bounds for" in caplog.text


def test_variables_that_follow_from_open_ones_are_open(tmp_path: Path) -> None:
    """A second name, and the results of functions, take their bounds from the limits."""
    model = model_of(tmp_path, "var int: y :: output_var; constraint int_lin_eq([1, -1], [x, y], 2); solve satisfy;")
    model.minimize(model.maximum([model["x"], 3]) + model["y"])
    assert model.solve().status == "feasible"


@pytest.mark.parametrize("seed", range(40))
def test_widening_the_limits_changes_no_claim(seed: int) -> None:
    adversary.check(adversary.make(random.Random(seed), Setting()))
