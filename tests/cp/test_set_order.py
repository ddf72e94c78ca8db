"""Comparisons of sets of integers through our library for MiniZinc, against the order of their ascending elements."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from pathlib import Path

import pytest

from elimina._core import FlatZinc
from tests.cp.flatzinc_solver import solved
from tests.cp.minizinc import needs_minizinc, run

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
UNIVERSES = [
    ([1, 2, 3], [1, 2, 3]),
    ([1, 2, 3], [2, 3, 4]),
    ([-1, 4, 9], [0, 4]),
    ([5], [2, 3, 7]),
    ([1, 2, 3, 40], [0, 1, 2, 3]),
    ([1, 2], [3, 4, 5, 6, 7, 8, 9]),
    ([0, 2], list(range(9))),  # too many elements for ranks
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def compiled(home: Path, text: str) -> str:
    model, target = home / "model.mzn", home / "model.fzn"
    model.write_text(text + " solve satisfy;")
    result = run(home, "-c", "--no-output-ozn", "--fzn", str(target), str(model))
    assert result.returncode == 0, result.stderr
    return target.read_text()


def subsets(universe: list[int]) -> Iterator[tuple[int, ...]]:
    for count in range(len(universe) + 1):
        yield from itertools.combinations(universe, count)


def written(values: list[int]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def declared(name: str, universe: list[int]) -> str:
    """Declare a set whose members are the outputs ``name[0]``, ``name[1]``, ... in the order of the universe."""
    return (
        f"var set of {written(universe)}: {name};"
        f"array[1..{len(universe)}] of var bool: in_{name};"
        f"constraint forall(i in 1..{len(universe)})(in_{name}[i] = ({universe}[i] in {name}));"
    )


def members(solution: dict, name: str, universe: list[int]) -> tuple[int, ...]:
    return tuple(itertools.compress(universe, solution[f"in_{name}"]))


@needs_minizinc
@pytest.mark.parametrize("sign", COMPARE)
@pytest.mark.parametrize(("xs", "ys"), UNIVERSES)
def test_all_pairs_of_subsets(home: Path, sign: str, xs: list[int], ys: list[int]) -> None:
    # Tuples of Python have the order of sets in MiniZinc.
    expected = sorted((x, y) for x in subsets(xs) for y in subsets(ys) if COMPARE[sign](x, y))
    posted = solved(compiled(home, declared("x", xs) + declared("y", ys) + f"constraint x {sign} y;"))
    assert sorted((members(s, "x", xs), members(s, "y", ys)) for s in posted) == expected


@needs_minizinc
@pytest.mark.parametrize("sign", COMPARE)
@pytest.mark.parametrize(("xs", "ys"), UNIVERSES)
def test_truths_of_comparisons(home: Path, sign: str, xs: list[int], ys: list[int]) -> None:
    text = declared("x", xs) + declared("y", ys) + f"var bool: b; constraint b <-> x {sign} y;"
    found = solved(compiled(home, text))
    assert len({(members(s, "x", xs), members(s, "y", ys)) for s in found}) == len(found) == 2 ** (len(xs) + len(ys))
    assert all(s["b"] == COMPARE[sign](members(s, "x", xs), members(s, "y", ys)) for s in found)


@needs_minizinc
@pytest.mark.parametrize("sign", COMPARE)
@pytest.mark.parametrize("constant", [[], [1], [2, 3], [1, 2, 3], [4], [0]])
def test_comparisons_with_constants(home: Path, sign: str, constant: list[int]) -> None:
    xs = [1, 2, 3]
    for text, holds in (
        (f"x {sign} {written(constant)}", lambda x: COMPARE[sign](x, tuple(constant))),
        (f"{written(constant)} {sign} x", lambda x: COMPARE[sign](tuple(constant), x)),
        (f"not (x {sign} {written(constant)})", lambda x: not COMPARE[sign](x, tuple(constant))),
        (f"(card(x) != 1 -> x {sign} {written(constant)})",
         lambda x: len(x) == 1 or COMPARE[sign](x, tuple(constant))),
    ):  # fmt: skip
        found = compiled(home, declared("x", xs) + f"constraint {text};")
        assert sorted(members(s, "x", xs) for s in solved(found)) == sorted(filter(holds, subsets(xs)))


@needs_minizinc
def test_comparisons_of_constants_stay_parameters(home: Path) -> None:
    text = "int: n = if {1, 2} < {1, 3} /\\ {} <= {} /\\ {2} > {1, 3} then 3 else 4 endif; array[1..n] of var bool: x;"
    assert len(solved(compiled(home, text))) == 8


@needs_minizinc
@pytest.mark.parametrize(("size", "universe"), [(3, 6), (4, 8)])
def test_subsets_of_one_cardinality_in_order_need_no_search(home: Path, size: int, universe: int) -> None:
    count = math.comb(universe, size)
    text = compiled(
        home,
        f"array[1..{count}] of var set of 1..{universe}: sets;"
        f"array[1..{count}, 1..{universe}] of var bool: bits;"
        f"constraint forall(i in 1..{count}, j in 1..{universe})(bits[i, j] = (j in sets[i]));"
        f"constraint forall(i in 1..{count})(card(sets[i]) = {size});"
        f"constraint forall(i in 1..{count - 1})(sets[i] < sets[i + 1]);",
    )
    model = FlatZinc(text.encode(), lambda: True)
    search = model.search(False, 0, math.inf, 1, False, lambda: True)
    assert [search.next(lambda: True), search.next(lambda: True)] == ["solution", "complete"]
    assert search.statistics()["failures"] == 0
    (solution,) = solved(text)
    rows = zip(*[iter(solution["bits"])] * universe, strict=True)
    subsets_in_order = [tuple(itertools.compress(range(universe), row)) for row in rows]
    assert subsets_in_order == list(itertools.combinations(range(universe), size))
