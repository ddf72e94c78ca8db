"""Objectives in turn beside enumeration, and the log of a search."""

from __future__ import annotations

import itertools
import logging
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from elimina import InputError, cp
from elimina.cli.commands import commands
from tests import calls

from .test_fzn_cli import run

MODES = [
    {},
    {"free": True},
    {"lns": True},
    {"restarts": "none"},
    {"restarts": "luby", "restart_scale": 1},
]


@pytest.mark.parametrize("options", MODES, ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_objectives_in_turn_agree_with_enumeration(seed: int, options: dict[str, object]) -> None:
    rng = random.Random(seed)
    m = cp.Model()
    xs = m.int_vars(4, 0, 4)
    limits = [([rng.randint(-2, 3) for _ in xs], rng.randint(0, 8)) for _ in range(2)]
    for factors, limit in limits:
        m.add(m.sum(f * x for f, x in zip(factors, xs, strict=True)) <= limit)
    rows = [[rng.randint(-2, 2) for _ in xs] for _ in range(3)]
    aims = [m.sum(f * x for f, x in zip(row, xs, strict=True)) for row in rows]
    sign = rng.choice([1, -1])
    (m.minimize if sign > 0 else m.maximize)(aims)

    def dot(row: list[int], values: tuple[int, ...]) -> int:
        return sum(f * x for f, x in zip(row, values, strict=True))

    solutions = [
        values
        for values in itertools.product(range(5), repeat=4)
        if all(dot(factors, values) <= limit for factors, limit in limits)
    ]
    best = (min if sign > 0 else max)([dot(row, values) for row in rows] for values in solutions)
    result = m.solve(threads=rng.choice([1, 2]), options=cp.SearchOptions(**options))  # type: ignore[arg-type]
    assert result.status == "optimal"
    assert [objective.value for objective in result.objectives] == result[aims] == best
    assert all(o.lower_bound == o.value == o.upper_bound and o.gap == 0 for o in result.objectives)
    assert (result.value, result.lower_bound, result.upper_bound) == (best[0], best[0], best[0])
    assert result.stats["complete"]


def test_a_limit_leaves_later_objectives_without_bounds() -> None:
    m = cp.Model()
    xs = m.int_vars(30, 0, 9)
    rng = random.Random(1)
    for _ in range(20):
        m.add(m.sum(rng.randint(1, 9) * x for x in rng.sample(xs, 6)) >= 60)
    total, first = m.sum(rng.randint(3, 9) * x for x in xs), xs[0] - 5
    m.minimize([total, first])
    result = m.solve(options=cp.SearchOptions(restarts="none", fail_limit=1))
    assert (result.status, result.ended_by) == ("feasible", "failure-limit")
    assert result.objectives[0].gap > 0
    assert result.objectives[1] == (result[first], None, result[first])


def test_a_gap_ends_each_objective() -> None:
    m = cp.Model()
    x, y = m.int_vars(2, 0, 1000)
    m.add(x + y >= 1000)
    m.minimize([3 * x + 2 * y, y - x])
    result = m.solve(options=cp.SearchOptions(gap=0.5))
    assert len(result.objectives) == 2
    assert result.objectives[0].value in range(2000, 3001)


def test_infeasible_with_several_objectives() -> None:
    m = cp.Model()
    x = m.int_var(0, 9)
    m.add(x > 9)
    m.minimize([x, -x])
    result = m.solve()
    assert (result.status, result.objectives) == ("infeasible", ())


def test_refused_with_several_objectives() -> None:
    m = cp.Model()
    x = m.int_var(0, 9)
    m.minimize([x, -x])
    with pytest.raises(InputError, match="by one objective, and the model has 2: use solve"):
        next(m.solutions())
    with pytest.raises(InputError, match="add them up with weights"):
        m.to_model()
    with pytest.raises(InputError, match="no objective in the list"):
        m.minimize([])


LINE = re.compile(r" +\d+\.\d\d s  value +([-\d,]+)  bound +([-\d,]+)  gap +(- |\S+ %|-)  ([a-z ]+)")


def numbers(line: str) -> tuple[str, ...]:
    match = LINE.fullmatch(line)
    assert match, line
    return match.groups()


def knapsack() -> cp.Model:
    m = cp.Model()
    taken = m.bool_vars(14)
    weights = [(7 * i) % 31 + 1 for i in range(14)]
    m.add(m.sum(w * x for w, x in zip(weights, taken, strict=True)) <= 60)
    m.maximize(m.sum((w + i % 3) * x for i, (w, x) in enumerate(zip(weights, taken, strict=True))))
    return m


def test_each_improvement_has_a_line() -> None:
    lines: list[str] = []
    values: list[int] = []
    m = knapsack()
    result = m.solve(
        on_solution=lambda solution: values.append(solution[m.objective]), options=cp.SearchOptions(log=lines.append)
    )
    rows = [numbers(line) for line in lines]
    shown = list(dict.fromkeys(int(value) for value, _, _, _ in rows if value != "-"))
    assert shown == values
    assert rows[-1][:2] == (str(result.value), str(result.value))
    parts = {"free search", "neighbourhood", "target", "elimination", "bound", "proof", "orderings", "hints"}
    assert {origin for *_, origin in rows} <= parts


def test_the_logger_has_the_lines(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "elimina"):
        knapsack().solve()
    assert any(LINE.fullmatch(record.getMessage()) for record in caplog.records)
    caplog.clear()
    knapsack().solve()
    assert not caplog.records


def test_the_command_line_shows_the_log(tmp_path: Path) -> None:
    path = tmp_path / "model.opb"
    path.write_text("min: 3 x1 2 x2 4 x3;\n1 x1 1 x2 1 x3 >= 2;\n")
    ran = CliRunner().invoke(commands, ["cp", str(path), "-v"])
    assert ran.exit_code == 0
    assert "value          5  bound          5" in ran.stderr
    assert "value" not in CliRunner().invoke(commands, ["cp", str(path)]).stderr


def test_fzn_elimina_shows_the_log(tmp_path: Path) -> None:
    text = "var 1..9: x :: output_var;\nconstraint int_le(3, x);\n"
    model = f"{text}solve :: int_search([x], input_order, indomain_max) minimize x;"
    result = run(tmp_path, model, "-v", "-f")
    lines = [line.removeprefix("fzn-elimina: ") for line in result.stderr.splitlines()[1:]]
    assert [numbers(line)[0] for line in lines][-1] == "3"
    assert run(tmp_path, model).stderr == ""


def test_refused_log() -> None:
    with pytest.raises(TypeError, match="log is 3"):
        knapsack().solve(options=cp.SearchOptions(log=3))  # type: ignore[arg-type]


def test_a_constant_objective_takes_solutions_of_tables() -> None:
    model = cp.Model()
    x = model.int_var(0, 1)
    cost = model.add_cost([x], {(0,): 0, (1,): 2, (2,): 1})
    model.add((cost == x) == (x == 2))
    model.maximize(0 * x - 3)
    result = calls.search(model, restart_scale=1)
    assert (result.status, result.value, result[x]) == ("optimal", -3, 1)


@pytest.mark.parametrize("figure", ["nodes", "failures", "solutions"])
def test_limits_hold_for_all_objectives_together(figure: str) -> None:
    name = {"nodes": "node_limit", "failures": "fail_limit", "solutions": "solution_limit"}[figure]
    model = cp.Model()
    xs = model.int_vars(6, 0, 9)
    model.all_different(xs)
    model.maximize([xs[0] - xs[1] + xs[2], xs[3] - xs[4], xs[5] - xs[2]])
    complete = calls.search(model)
    limit = complete.stats[figure] // 2
    result = calls.search(model, **{name: limit})
    assert result.ended_by == {"fail_limit": "failure-limit"}.get(name, name.replace("_", "-"))
    # A step of the search may go back over all decisions; each search has a node at least.
    assert result.stats[figure] <= limit + result.stats["peak_depth"] + 3
