"""MiniZinc's disjunctive constraints arrive as themselves."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cp.flatzinc_solver import solved

PLAIN = ("disjunctive", lambda s, d, t, e: d == 0 or e == 0 or s + d <= t or t + e <= s)
STRICT = ("disjunctive_strict", lambda s, d, t, e: s + d <= t or t + e <= s)


@pytest.mark.skipif(shutil.which("minizinc") is None, reason="there is no minizinc")
@pytest.mark.parametrize(("name", "apart"), [PLAIN, STRICT])
@pytest.mark.parametrize("least", [0, 1])
def test_solutions(tmp_path: Path, name: str, apart: object, least: int) -> None:
    program = Path(sys.executable).parent / "elimina"
    subprocess.run([program, "install-minizinc", "--folder", tmp_path], check=True, capture_output=True)
    model, flat = tmp_path / "model.mzn", tmp_path / "model.fzn"
    model.write_text(
        f'include "{name}.mzn"; array[1..3] of var 0..3: s; array[1..3] of var {least}..2: d;'
        f"constraint {name}(s, d); solve satisfy;"
    )
    command = ["minizinc", "-c", "--solver", tmp_path / "elimina.msc", "--fzn", flat, "--no-output-ozn", model]
    # MiniZinc prefers a solver of the same id that the user has installed to the one that it is given.
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HOME": str(tmp_path)})
    expected = sum(
        all(apart(s[i], d[i], s[k], d[k]) for i, k in itertools.combinations(range(3), 2))  # type: ignore[operator]
        for s in itertools.product(range(4), repeat=3)
        for d in itertools.product(range(least, 3), repeat=3)
    )
    native = "fzn_disjunctive_strict" if least == 1 else f"fzn_{name}"
    assert f"constraint {native}(" in flat.read_text()
    assert len(solved(flat.read_text())) == expected
