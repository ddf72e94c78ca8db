"""FlatZinc of constraint models: read back it has the same solutions, and a peer reads the basic constraints."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elimina import InputError, UnsupportedError, cp
from tests.adversary import constraints
from tests.adversary.rules import RULES

from .flatzinc_solver import solved


def solutions_of(text: str, names: list[str]) -> list[tuple[int, ...]]:
    return sorted(tuple(int(solution[name]) for name in names) for solution in solved(text))


def drawn(name: str, seed: int) -> constraints.Built:
    rng = random.Random(f"{name} {seed}")
    domains = [sorted(rng.sample(range(-1, 5), rng.randint(1, 4))) for _ in range(4)] + [[0, 1], [0, 1]]
    data = None
    while data is None:
        data = RULES[name].draw(rng, domains)
    posts: list[list[Any]] = [[name, data]]
    if constraints.has_condition(name, data) and seed % 2:
        x = rng.randrange(6)
        posts[0] += [rng.choice(["iff", "only_if"]), x, rng.choice(domains[x])]
    case: dict[str, Any] = {"domains": domains, "posts": posts, "objective": None, "rule": None}
    return constraints.Built(case)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_model_read_back_has_the_same_solutions(name: str, seed: int, tmp_path: Path) -> None:
    built = drawn(name, seed)
    if name == "no_overlap_2d" and "diffn" in repr(built.model):
        presences = built.posts[0][1][4]
        if presences is not None and any(presence != ["n", 1] for presence in presences):
            with pytest.raises(UnsupportedError, match="optional boxes"):
                built.model.to_flatzinc()
            return
    text = built.model.to_flatzinc()
    names = [f"x{i}" for i in range(6)]
    assert solutions_of(text, names) == sorted(built.solutions)
    path = tmp_path / "model.fzn"
    path.write_text(text)
    again = cp.read(path)
    found = again.solve(all_solutions=True).solutions
    assert sorted({tuple(s[name] for name in names) for s in found}) == sorted(built.solutions)


GECODE = shutil.which("fzn-gecode")


@pytest.mark.skipif(GECODE is None, reason="Gecode is not installed")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["linear", "condition", "product", "maximum", "element", "clause", "lex_less"])
def test_gecode_finds_the_same_solutions(name: str, seed: int, tmp_path: Path) -> None:
    built = drawn(name, seed)
    text = built.model.to_flatzinc().replace("fzn_lex_less_int", "array_int_lt")
    path = tmp_path / "model.fzn"
    path.write_text(text)
    ran = subprocess.run([str(GECODE), "-a", str(path)], capture_output=True, text=True, timeout=60, check=True)
    blocks = ran.stdout.split("----------\n")[:-1]
    found = [
        tuple(int(value) for _, value in sorted(line.rstrip(";").split(" = ") for line in block.splitlines()))
        for block in blocks
    ]
    assert sorted(set(found)) == sorted(built.solutions)


def test_objectives_orderings_and_hints_are_written() -> None:
    m = cp.Model()
    x, y = m.int_var(0, 9, "x[0]"), m.int_var([1, 3, 8], name="set")
    m.add(3 * x + y <= 17)
    m.search([x], "first_fail", "indomain_max")
    m.search([y + 1], "input_order", "indomain_min")
    m.hint({x: 4})
    m.maximize(x + 2 * y)
    text = m.to_flatzinc()
    assert text.splitlines()[:2] == ["var 0..9: x_0 :: output_var;", "var {1, 3, 8}: set_1 :: output_var;"]
    assert "int_search([x_0], first_fail, indomain_max, complete)" in text
    assert ":: warm_start([x_0], [4])" in text
    assert max(s["x_0"] + 2 * s["set_1"] for s in solved(text)) == m.solve().value == 19


def test_a_single_objective() -> None:
    m = cp.Model()
    x = m.int_var(0, 9, "x")
    m.minimize(3 - x)
    assert solved(m.to_flatzinc())[-1]["x"] == 9
    m.minimize([x, -x])
    with pytest.raises(InputError, match="FlatZinc has one objective"):
        m.to_flatzinc()
