"""The Python package of MiniZinc runs the registered solver: where both are installed (``pip install minizinc``)."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

minizinc = pytest.importorskip("minizinc")
if shutil.which("minizinc") is None:
    pytest.skip("there is no minizinc", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")

from tests.cli.conftest import elimina  # noqa: E402, F401

MODEL = "array[1..4] of var 0..9: x; constraint sum(x) = 20; constraint forall(i in 1..3)(x[i] < x[i + 1]);"


@pytest.fixture
def solver(elimina, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HOME", str(tmp_path))  # MiniZinc prefers a solver of the same name in the user's home
    assert elimina("install-minizinc", "--folder", tmp_path).code == 0
    return minizinc.Solver.load(tmp_path / "elimina.msc")


def instance_of(solver, text):
    model = minizinc.Model()
    model.add_string(text)
    return minizinc.Instance(solver, model)


def test_an_optimum(solver):
    result = instance_of(solver, f"{MODEL} solve maximize x[1];").solve(timeout=timedelta(seconds=60), processes=2)
    assert (result.status.name, result["objective"], sum(result["x"])) == ("OPTIMAL_SOLUTION", 3, 20)


def test_all_solutions(solver):
    result = instance_of(solver, f"{MODEL} constraint x[4] = 9; solve satisfy;").solve(all_solutions=True)
    expected = {(a, b, c) for c in range(9) for b in range(c) for a in range(b) if a + b + c == 11}
    assert {tuple(one.x[:3]) for one in result.solution} == expected


def test_no_solution(solver):
    assert instance_of(solver, f"{MODEL} constraint x[1] > 5; solve satisfy;").solve().status.name == "UNSATISFIABLE"
