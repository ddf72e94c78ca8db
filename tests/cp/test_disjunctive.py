"""MiniZinc's disjunctive constraints arrive as themselves."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.cp.flatzinc_solver import solved
from tests.cp.minizinc import compile_model, needs_minizinc

PLAIN = ("disjunctive", lambda s, d, t, e: d == 0 or e == 0 or s + d <= t or t + e <= s)
STRICT = ("disjunctive_strict", lambda s, d, t, e: s + d <= t or t + e <= s)


@needs_minizinc
@pytest.mark.parametrize(("name", "apart"), [PLAIN, STRICT])
@pytest.mark.parametrize("least", [0, 1])
def test_solutions(tmp_path: Path, name: str, apart: object, least: int) -> None:
    model = tmp_path / "model.mzn"
    model.write_text(
        f'include "{name}.mzn"; array[1..3] of var 0..3: s; array[1..3] of var {least}..2: d;'
        f"constraint {name}(s, d); solve satisfy;"
    )
    text = compile_model(tmp_path, model)
    expected = sum(
        all(apart(s[i], d[i], s[k], d[k]) for i, k in itertools.combinations(range(3), 2))  # type: ignore[operator]
        for s in itertools.product(range(4), repeat=3)
        for d in itertools.product(range(least, 3), repeat=3)
    )
    native = "fzn_disjunctive_strict" if least == 1 else f"fzn_{name}"
    assert f"constraint {native}(" in text
    assert len(solved(text)) == expected
