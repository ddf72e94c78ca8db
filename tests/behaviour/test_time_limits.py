"""A time limit has one meaning in every call: a number of seconds above 0."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import elimina
from elimina import cp, dcop, distributed
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import solve_tsp

EXAMPLES = Path(__file__).parents[2] / "examples"
NETWORK = EXAMPLES / "pump.bif"


def diagram() -> elimina.InfluenceDiagram:
    return elimina.InfluenceDiagram.read(EXAMPLES / "heating.bifxml")


def constraints(objectives: int) -> cp.Model:
    """Return a model of two variables."""
    model = cp.Model()
    x, y = model.int_var(0, 9, "x"), model.int_var(0, 9, "y")
    with model.named("order"):
        model.add(x < y)
    for aim in (x, y)[:objectives]:
        model.minimize(aim)
    return model


def agents() -> dcop.Problem:
    return dcop.Problem.from_model(elimina.read(EXAMPLES / "radio.wcsp"))


def tour(time_limit: Any) -> Any:
    distances = [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
    return solve_tsp(TourProblem("four", distances), time_limit=time_limit)


CALLS: dict[str, Callable[[Any], Any]] = {
    "InfluenceDiagram.observation_gains": lambda limit: diagram().observation_gains("Heat", time_limit=limit),
    "InfluenceDiagram.solve": lambda limit: diagram().solve(time_limit=limit),
    "fit": lambda limit: elimina.fit(NETWORK, [{"Season": "dry"}], time_limit=limit),
    "report": lambda limit: elimina.report(NETWORK, time_limit=limit),
    "sample": lambda limit: elimina.sample(NETWORK, 2, time_limit=limit),
    "solve": lambda limit: elimina.solve(NETWORK, "mar", time_limit=limit),
    "cp.Model.conflict": lambda limit: constraints(0).conflict(time_limit=limit),
    "cp.Model.propagated": lambda limit: constraints(0).propagated(time_limit=limit),
    "cp.Model.solutions": lambda limit: list(constraints(0).solutions(time_limit=limit)),
    "cp.Model.solve": lambda limit: constraints(0).solve(time_limit=limit),
    "cp.Model.solve of several objectives": lambda limit: constraints(2).solve(time_limit=limit),
    "cp.solve_tsp": tour,
    "dcop.solve": lambda limit: dcop.solve(agents(), time_limit=limit),
}
ON_CLUSTERS = {"distributed.solve_agents", "distributed.solve_optimum", "distributed.solve_slices"}


def limited_calls(module: ModuleType) -> Iterator[str]:
    """Yield the names of a module's public functions and methods with a time limit."""
    prefix = module.__name__.removeprefix("elimina").removeprefix(".")
    for name in module.__all__:
        thing = getattr(module, name)
        functions = {name: thing}
        if inspect.isclass(thing):
            functions |= {
                f"{name}.{key}": f for key, f in inspect.getmembers(thing, inspect.isfunction) if key[0] != "_"
            }
        for key, function in functions.items():
            if inspect.isfunction(function) and "time_limit" in inspect.signature(function).parameters:
                yield f"{prefix}.{key}" if prefix else key


@pytest.mark.parametrize("limit", [0, 0.0, -1, float("nan")])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_time_limit_is_above_0(call: Callable[[Any], Any], limit: float) -> None:
    with pytest.raises(elimina.InputError, match=r"time_limit is .*(above 0|takes a number of seconds)"):
        call(limit)


def test_every_call_with_a_time_limit_is_tested() -> None:
    limited = {name for module in (elimina, cp, dcop, distributed) for name in limited_calls(module)}
    assert limited <= {*CALLS, *ON_CLUSTERS}
