"""Hints and assumptions: solutions that hints lead to, and cores that need each of their assumptions."""

from __future__ import annotations

import copy
import itertools
import random
from pathlib import Path

import pytest

from elimina import InputError, cp
from tests import calls

from .test_fzn_cli import run


def test_a_hinted_solution_comes_first() -> None:
    """Magic squares of 25 cells: without hints, a search takes hundreds of nodes."""
    m = cp.Model()
    square = [m.int_vars(5, 1, 25) for _ in range(5)]
    m.all_different([x for row in square for x in row])
    for line in [*square, *zip(*square, strict=True)]:
        m.add(m.sum(line) == 65)
    # By de la Loubere's method.
    cells = [[5 * ((i + j + 3) % 5) + (i + 2 * j + 1) % 5 + 1 for j in range(5)] for i in range(5)]
    assert sorted(itertools.chain(*cells)) == list(range(1, 26))
    m.hint({x: value for row, values in zip(square, cells, strict=True) for x, value in zip(row, values, strict=True)})
    result = m.solve(options=cp.SearchOptions(fail_limit=1))
    assert [result[row] for row in square] == cells
    hints = {row[0]: 1 for row in square}
    m.hint(hints)
    assert m.solve(options=cp.SearchOptions(node_limit=100_000)).status == "feasible"


@pytest.mark.parametrize(("free", "restarts"), [(False, "none"), (False, None), (True, None), (False, "constant")])
def test_all_modes_try_hinted_values_first(free: bool, restarts: str | None) -> None:
    m = cp.Model()
    xs = m.int_vars(6, 0, 9)
    m.add(m.sum(xs) == 30)
    values = [9, 0, 3, 7, 2, 9]
    m.hint(dict(zip(xs, values, strict=True)))
    options = cp.SearchOptions(free=free, restarts=restarts, fail_limit=50)
    assert m.solve(options=options)[xs] == values


def test_hints_by_name_by_expression_and_by_condition() -> None:
    m = cp.Model()
    x, y, z = m.int_var(0, 9, "x"), m.int_var(0, 9), m.int_var(0, 9)
    m.hint({"x": 7, 3 - 2 * y: -5, z > 6: 1})
    result = m.solve()
    assert result[[x, y]] == [7, 4]
    assert result[z] > 6
    # The latest hint comes first, and one that cannot hold is passed over.
    m.hint({x: 8, y: 77})
    assert m.solve()[[x, y]] == [8, 4]


def test_a_solution_is_a_hint_for_its_model_and_its_copies() -> None:
    m = cp.Model()
    xs = m.int_vars(8, 0, 9)
    m.add(m.sum(xs) == 41)
    first = m.solve(seed=3, options=cp.SearchOptions(free=True))
    other = copy.copy(m)
    extra = other.int_var(0, 3)
    other.hint(first.assignment)
    assert other.solve()[xs] == first[xs]
    assert other.solve()[extra] in range(4)
    with pytest.raises(InputError, match="another model"):
        cp.Model().hint(first.assignment)


def test_refused_hints() -> None:
    m = cp.Model()
    x = m.int_var(0, 9, "x")
    with pytest.raises(TypeError, match="mapping from variables"):
        m.hint([3])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="whole number"):
        m.hint({x: 1.5})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="beyond 2\\^52"):
        m.hint({x: 2**60})
    with pytest.raises(InputError, match="no variable named 'y'"):
        m.hint({"y": 1})
    with pytest.raises(InputError, match="another model"):
        m.hint({cp.Model().int_var(0, 1): 1})
    with pytest.raises(InputError, match="a hint is for a variable"):
        m.hint({3: 1})  # type: ignore[dict-item]


def test_assumptions_hold_in_one_search_only() -> None:
    m = cp.Model()
    x, y = m.int_vars(2, 0, 9)
    b = m.bool_var()
    m.add(x + y == 9)
    m.add(x >= 6, only_if=b)
    assert calls.search(m, assumptions=[b, y <= 5])[b] == 1
    result = calls.search(m, assumptions=[x >= 0, b, (y > 4) | (y > 7), x != 3])
    assert result.status == "infeasible"
    assert [str(assumption) for assumption in result.core] == [str(b), f"({y} >= 5) | ({y} >= 8)"]
    assert m.solve().core == ()
    m.minimize(x)
    assert calls.search(m, assumptions=[b]).value == 6
    assert m.solve().value == 0


def test_a_model_without_a_solution_has_an_empty_core() -> None:
    m = cp.Model()
    x = m.int_var(0, 9)
    m.add(x > 9)
    result = calls.search(m, assumptions=[x > 3])
    assert (result.status, result.core) == ("infeasible", ())


def test_refused_assumptions() -> None:
    m = cp.Model()
    x = m.int_var(0, 9)
    with pytest.raises(InputError, match="a condition is 0 or 1"):
        calls.search(m, assumptions=[x])
    with pytest.raises(InputError, match="another model"):
        calls.search(m, assumptions=[cp.Model().int_var(0, 9) > 3])


WARM = """array [1..3] of int: v = [5, 1, 4];
var 1..9: x :: output_var; var 1..9: y :: output_var; var 1..9: z :: output_var;
var bool: b :: output_var;
constraint int_lin_le([1, 1, 1], [x, y, z], 10);
"""


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        ("warm_start([x, y, z], v)", [5, 1, 4]),
        ("warm_start_int([x, y], [3, 9])", [3, 1, 1]),
        ("warm_start([b], [true]) :: warm_start_bool([b], [false])", [1, 1, 1, 1]),
        ("warm_start_array([warm_start([z], [6]), warm_start([z], [2])])", [1, 1, 6]),
        ("seq_search([warm_start([y], [4]), int_search([x, y, z], input_order, indomain_max)])", [5, 4, 1]),
    ],
)
def test_warm_starts_of_flatzinc(tmp_path: Path, annotation: str, values: list[int]) -> None:
    result = run(tmp_path, f"{WARM}solve :: {annotation} satisfy;")
    assert result.stderr == ""
    shown = dict(line.rstrip(";").split(" = ") for line in result.stdout.splitlines() if "=" in line)
    assert [int(shown[name]) for name in "xyz"] == values[:3]
    assert len(values) == 3 or shown["b"] == "true"


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        ("warm_start([x], v)", "expected as many values as variables in a warm_start, found 3 for 1"),
        ("warm_start([x], [y])", "expected numbers or Booleans as the values of a warm_start"),
    ],
)
def test_malformed_warm_starts(tmp_path: Path, annotation: str, problem: str) -> None:
    result = run(tmp_path, f"{WARM}solve :: {annotation} satisfy;")
    assert result.returncode == 1
    assert problem in result.stderr


def test_warm_starts_lead_to_the_optimum_of_a_schedule(tmp_path: Path) -> None:
    rng = random.Random(5)
    costs = [rng.randint(1, 9) for _ in range(5)]
    xs = ", ".join(f"x{i}" for i in range(5))
    text = (
        "".join(f"var 0..9: x{i};\n" for i in range(5))
        + f"var 0..2000: cost :: output_var;\nconstraint int_lin_le([{', '.join(['-1'] * 5)}], [{xs}], -25);\n"
        + f"constraint int_lin_eq([{', '.join(map(str, costs))}, -1], [{xs}, cost], 0);\n"
    )
    best, remaining = [0] * 5, 25
    for i in sorted(range(5), key=costs.__getitem__):
        best[i] = min(9, remaining)
        remaining -= best[i]
    total = sum(cost * x for cost, x in zip(costs, best, strict=True))
    hint = f"warm_start([{xs}], [{', '.join(map(str, best))}])"
    result = run(tmp_path, f"{text}solve :: {hint} minimize cost;", "-a")
    assert result.stdout.split(";")[0] == f"cost = {total}"
    assert result.stdout.endswith("==========\n")
