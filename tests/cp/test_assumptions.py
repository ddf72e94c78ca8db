"""Assumptions of FlatZinc models, and the cores that the solver prints."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from pathlib import Path

import pytest

from tests.cp.test_fzn_cli import run
from tests.seeds import run_seed


def core_of(result: subprocess.CompletedProcess[str]) -> set[str] | None:
    match = re.search(r"^%%%mzn-core: \[(.*)\]$", result.stdout, re.MULTILINE)
    return None if match is None else set(filter(None, match[1].split(", ")))


@pytest.mark.parametrize("number", range(20))
def test_cores_are_minimal(tmp_path: Path, number: int) -> None:
    """Clauses over Booleans, some of which are assumed."""
    rng = random.Random(f"cores {run_seed()} {number}")
    names = [f"b{i}" for i in range(6)]
    clauses = []
    for _ in range(rng.randint(3, 9)):
        chosen = rng.sample(names, rng.randint(1, 3))
        clauses.append([(name, rng.random() < 0.3) for name in chosen])
    assumed = rng.sample(names, rng.randint(1, 5))

    def is_feasible(kept: set[str]) -> bool:
        rows = (dict(zip(names, row, strict=True)) for row in itertools.product((False, True), repeat=len(names)))
        return any(
            all(row[name] for name in kept) and all(any(row[n] == sign for n, sign in clause) for clause in clauses)
            for row in rows
        )

    lines = [f"var bool: {name};" for name in names]
    for clause in clauses:
        sides = [", ".join(name for name, sign in clause if sign == side) for side in (True, False)]
        lines.append(f"constraint bool_clause([{sides[0]}], [{sides[1]}]);")
    form = rng.choice(["constraint fzn_assume([%s]); solve satisfy;", "solve :: assume([%s]) satisfy;"])
    result = run(tmp_path, "\n".join([*lines, form % ", ".join(assumed), ""]))
    core = core_of(result)
    if is_feasible(set(assumed)):
        assert core is None
        assert result.stdout.endswith("----------\n")
        return
    assert result.stdout.endswith("=====UNSATISFIABLE=====\n")
    assert core is not None
    assert core <= set(assumed)
    assert not is_feasible(core)
    assert all(is_feasible(core - {name}) for name in core)


def test_assumptions_of_an_objective(tmp_path: Path) -> None:
    text = (
        "var 0..9: x :: output_var; var bool: a; var bool: b;"
        "constraint int_le_reif(4, x, a); constraint int_le_reif(x, 2, b); constraint elimina_assume([%s]);"
        "solve minimize x;"
    )
    assert run(tmp_path, text % "a").stdout == "x = 4;\n----------\n==========\n"
    assert run(tmp_path, text % "a, true, b").stdout == "%%%mzn-core: [a, b]\n=====UNSATISFIABLE=====\n"
    assert run(tmp_path, text % "b, false").stdout == "%%%mzn-core: [false]\n=====UNSATISFIABLE=====\n"
    assert run(tmp_path, text % "a, b", "-p", "2").stdout == "%%%mzn-core: [a, b]\n=====UNSATISFIABLE=====\n"


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("constraint fzn_assume([x]); solve satisfy;", "expected Booleans in assume"),
        ("constraint fzn_assume(b); solve satisfy;", "expected an array of Booleans in assume"),
        ("solve :: assume(3) satisfy;", "expected an array of Booleans in assume"),
    ],
)
def test_wrong_assumptions(tmp_path: Path, item: str, problem: str) -> None:
    result = run(tmp_path, f"var 0..9: x; var bool: b; {item}")
    assert result.returncode == 1
    assert problem in result.stderr
