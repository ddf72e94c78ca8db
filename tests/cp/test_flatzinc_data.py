"""Real FlatZinc files and MiniZinc models: every solution by the independent evaluator, and the known answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elimina._core import FlatZinc
from tests.conftest import DATA
from tests.cp.minizinc import compile_model, needs_minizinc
from tests.reference import flatzinc as reference

FOLDER = DATA / "minizinc"
SECONDS = 1.0
OPTIMA = {"golomb_04": 6, "golomb_05": 11, "golomb_06": 17, "golomb_07": 25, "golomb_08": 34}
COUNTS = {
    "nqueens_4": 2,
    "nqueens_8": 92,
    "langford_2_3": 2,
    "langford_2_4": 2,
    "langford_2_7": 52,
    "langford_2_8": 300,
    "magicsq_3": 8,
    "costas_6": 58,
}
UNSUPPORTED = {"alldifferent_partition"}  # it has set variables
SLOW = {
    "nqueens_100",
    "nqueens_50",
    "qcp-25-264-0_ext",
    "qcp-20-187-0_ext",
}  # no solution in a second by their own search

FILES = sorted(FOLDER.glob("flatzinc_derived/*.fzn")) + sorted(FOLDER.glob("jacop-fzn/**/*.fzn"))


def search(text: str, limit: int | None, seconds: float = SECONDS) -> tuple[str, list[reference.Values]]:
    """Return how the search ended and what it found, with all variables shown."""
    model = FlatZinc(reference.reveal(text).encode(), lambda: True)
    solver = model.search(False, 0, seconds, 1, False, lambda: True)
    printed, count, state = b"", 0, "limit"
    while count != limit and (state := solver.next(lambda: True)) == "solution":
        printed, count = printed + model.show(solver), count + 1
    return state, reference.parse_solutions(printed.decode())


def published(path: Path) -> tuple[str, int]:
    """The reference output: how many solutions, and how it ends."""
    lines = path.read_text().splitlines()
    return next((line for line in reversed(lines) if line.startswith("=====")), ""), lines.count("----------")


@pytest.mark.data
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_solution_fulfils_the_constraints(path: Path) -> None:
    text = path.read_text()
    if path.stem in UNSUPPORTED:
        with pytest.raises(ValueError, match="unsupported: the set variable"):
            search(text, 1)
        return
    model = reference.read(reference.reveal(text))
    optimises = model.goal[0] != "satisfy"
    patience = SECONDS if optimises or path.stem in SLOW else 20
    state, found = search(text, None if optimises else 2, patience)
    assert found or state == "complete" or path.stem in SLOW
    for solution in found:
        assert reference.violated(model, solution) == []
    if optimises and found and state == "complete" and path.stem in OPTIMA:
        assert reference.evaluate(model.goal[1], model, found[-1]) == OPTIMA[path.stem]
    if (out := path.with_suffix(".out")).exists() and state == "complete":
        ending, count = published(out)
        assert ("UNSAT" in ending) == (not found)
        assert not found or count > 0


@pytest.mark.data
@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_known_numbers_of_solutions(data_dir: Path, name: str, count: int) -> None:
    state, found = search((data_dir / "minizinc" / "flatzinc_derived" / f"{name}.fzn").read_text(), None, 20)
    assert (state, len(found)) == ("complete", count)


# Their headers name the objective. Radiation's depends on bounds that depend on MiniZinc's version.
MODELS = [
    "2DPacking",
    "cutstock",
    "golomb",
    "jobshop2x2",
    "oss",
    "perfsq",
    "photo",
    "template_design",
    "trucking",
    "warehouses",
]


@pytest.mark.data
@needs_minizinc
@pytest.mark.parametrize("name", MODELS)
def test_objectives_of_minizincs_own_tests(data_dir: Path, tmp_path: Path, name: str) -> None:
    model = data_dir / "minizinc" / "libminizinc-tests" / "examples" / f"{name}.mzn"
    text = compile_model(tmp_path, model)
    state, found = search(text, None, 20)
    read = reference.read(reference.reveal(text))
    assert state == "complete"
    assert all(reference.violated(read, solution) == [] for solution in found)
    expected = int(re.search(r"objective: (\d+)", model.read_text())[1])
    assert reference.evaluate(read.goal[1], read, found[-1]) == expected
