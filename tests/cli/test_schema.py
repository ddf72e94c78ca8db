"""The one JSON object of all commands and of the Python API."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from elimina import Model, Result, cp, solve
from elimina.cp.tsp import solve_tsp
from elimina.cp.tsplib import read_tsp
from elimina.result import SCHEMA as VERSION
from elimina.result import EndedBy, Status
from tests.cli.schema import SCHEMA, validate
from tests.cli.test_solve import RAIN
from tests.cli.test_tsp import SQUARE


def check(answer, task):
    assert answer["task"] == task
    validate(answer)
    own = {
        "tour": ("tsp",),
        "count": ("count-optima",),
        "ranked": ("kbest",),
        "policies": ("meu",),
        "error": (),
        "marginal_bounds": (),
        "interval": (),
    }
    keys = [key for key in SCHEMA["properties"] if task in own.get(key, (task,))]
    assert list(answer) == keys
    assert answer["schema"] == VERSION
    seconds = answer["stats"]["seconds"]
    if "other" in seconds:
        assert sum(seconds.values()) == pytest.approx(2 * seconds["total"], abs=1e-5)


def test_the_schema_has_the_words_of_the_library():
    assert SCHEMA["properties"]["status"]["enum"] == list(get_args(Status))
    assert SCHEMA["properties"]["ended_by"]["enum"] == [None, *get_args(EndedBy)]
    assert SCHEMA["required"] == [
        key
        for key in SCHEMA["properties"]
        if key not in ("tour", "count", "ranked", "policies", "error", "marginal_bounds", "interval")
    ]
    with pytest.raises(AssertionError, match="status is 'good'"):
        validate(
            {**json.loads(Result("optimal", "mpe").to_json()), "status": "good", "stats": {"seconds": {"total": 0}}}
        )


@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "mmap", "count", "kbest"])
def test_solve(elimina, tmp_path, task):
    (tmp_path / "rain.uai").write_text(RAIN)
    query = ["--query", "x0"] if task == "mmap" else []
    check(json.loads(elimina("solve", "rain.uai", "--task", task, *query, "--json").out), task)


@pytest.mark.parametrize("method", ["eliminate", "mbe", "filter", "search"])
def test_methods(elimina, radio, method):
    check(json.loads(elimina("solve", radio, "--method", method, "--json", "--time-limit", 20).out), "mpe")


@pytest.mark.parametrize(
    "options", [[], ["--algo", "adpop", "--ibound", 1], ["--filter", 1], ["--time-limit", 1e-9], ["--local", 1]]
)
def test_dcop(elimina, tmp_path, options):
    elimina("generate", "grid", "--side", 3, "-d", 3, "grid.wcsp")
    ran = elimina("dcop", "grid.wcsp", "--json", *options)
    assert (ran.code, ran.err) == (0, "")
    check(json.loads(ran.out), "dcop")


@pytest.mark.parametrize("options", [[], ["--time-limit", 1e-9]])
def test_tsp(elimina, tmp_path, options):
    (tmp_path / "square.tsp").write_text(SQUARE)
    check(json.loads(elimina("tsp", "square.tsp", "--json", *options).out), "tsp")
    check(json.loads(solve_tsp(read_tsp(tmp_path / "square.tsp")).to_json()), "tsp")


def test_constraints():
    model = cp.Model()
    x, y = model.int_var(0, 3, "x"), model.int_var(0, 3)
    model.add(x != y)
    found = model.solve()
    check(json.loads(found.to_json()), "satisfy")
    assert json.loads(found.to_json())["assignment"] == {"x": found[x]}
    model.maximize(x + y)
    check(json.loads(model.solve().to_json()), "maximise")
    model.minimize(x - y)
    check(json.loads(model.solve(time_limit=1e-9).to_json()), "minimise")


def test_graphical_models():
    costs = Model.from_arrays([2, 2], [((0, 1), [[3, 1], [1, 3]])], sense="min-cost")
    check(json.loads(solve(costs).to_json()), "mpe")
