"""MiniZinc itself with our solver, on models of our own: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cp.minizinc import needs_minizinc, run

MODELS = Path(__file__).parent / "models"
DONE, IMPOSSIBLE = "==========", "=====UNSATISFIABLE====="

ALL = {
    "letters": (6, "A=3 B=9 C=1 D=2 "),
    "shifts": (60, "[2, 2, 2, 3, 3, 1, 1]"),
    "friends": (3, "[1..2, 3..4]"),
    "teams": (13, "[{dig, cook}, {dig, cook, sing}, {cook}] {dig, cook, sing} 1 sing"),
    "choices": (3, "[5, 0, 3] false 1"),
}
"""Return the number of solutions, and one of them."""

BEST = {"route": "length 16", "plan": "end 7", "boxes": "6 in 3", "loops": "[4, 3, 1, 2] 0", "open": "4 16"}
BEST["crew"] = "{1,2,3,5,6} 75"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def solutions(printed: str) -> tuple[list[str], str]:
    """The solutions, and what comes after them."""
    *found, ending = printed.split("----------\n")
    return [text.removesuffix("\n") for text in found], ending.removesuffix("\n")


@needs_minizinc
@pytest.mark.parametrize("name", ALL)
def test_all_solutions(home: Path, name: str) -> None:
    count, one = ALL[name]
    result = run(home, "-a", str(MODELS / f"{name}.mzn"))
    found, ending = solutions(result.stdout)
    assert (len(found), len(set(found)), ending, result.stderr) == (count, count, DONE, "")
    assert one in found


@needs_minizinc
@pytest.mark.parametrize("options", [[], ["-f"], ["-i", "-r", "3"]])
@pytest.mark.parametrize("name", BEST)
def test_the_best_solution(home: Path, name: str, options: list[str]) -> None:
    result = run(home, *options, str(MODELS / f"{name}.mzn"))
    found, ending = solutions(result.stdout)
    assert (found[-1], ending, result.stderr) == (BEST[name], DONE, "")
    assert len(found) == 1 or "-i" in options


@needs_minizinc
def test_data_and_a_number_of_solutions(home: Path) -> None:
    model = str(MODELS / "square.mzn")
    result = run(home, "-n", "2", model, "-D", "n = 4;")
    found, ending = solutions(result.stdout)
    assert (len(set(found)), ending) == (2, "")
    assert solutions(run(home, "-a", model, "-D", "n = 3;").stdout)[1] == DONE
    cells = json.loads(run(home, "--output-mode", "json", model, "-D", "n = 3;").stdout.split("----------")[0])["cell"]
    assert sorted(map(sorted, cells)) == [[1, 2, 3]] * 3


@needs_minizinc
def test_other_endings(home: Path) -> None:
    assert run(home, str(MODELS / "pigeons.mzn")).stdout.strip() == IMPOSSIBLE
    assert run(home, str(MODELS / "endless.mzn")).stdout.strip().endswith("=====UNBOUNDED=====")
    result = run(home, str(MODELS / "waves.mzn"))
    assert result.returncode == 1
    assert "unsupported: the constraint float_sin" in result.stderr
    assert result.stdout.strip() == "=====ERROR====="


@needs_minizinc
def test_floats(home: Path) -> None:
    assert run(home, str(MODELS / "water.mzn")).stdout == f"litres = 1.5;\n----------\n{DONE}\n"
    result = run(home, "-s", str(MODELS / "market.mzn"))
    assert "apples 2, pears 3: cost 9.3" in result.stdout
    assert "objective=9.3" in result.stdout


@needs_minizinc
def test_statistics_and_a_time_limit(home: Path) -> None:
    result = run(home, "-s", str(MODELS / "plan.mzn"))
    figures = dict(line.split(": ", 1)[1].split("=") for line in result.stdout.splitlines() if "mzn-stat: " in line)
    assert figures["objective"] == "7"
    assert {"nodes", "failures", "propagations", "solveTime", "restarts", "flatTime"} <= set(figures)
    result = run(home, "--time-limit", "1500", "-a", str(MODELS / "square.mzn"), "-D", "n = 9;")
    assert result.returncode == 0
    assert DONE not in result.stdout


@needs_minizinc
def test_flags_of_our_own(home: Path) -> None:
    assert run(home, "--device", "cpu", str(MODELS / "plan.mzn")).stdout.startswith("end 7\n")
    result = run(home, "--device", "none", str(MODELS / "plan.mzn"))
    assert "invalid choice: 'none'" in result.stderr
