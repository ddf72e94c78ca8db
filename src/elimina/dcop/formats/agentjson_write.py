"""Writing DCOP JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from elimina.dcop.formats.build import check_listed
from elimina.dcop.formats.functions import functions, is_worst
from elimina.dcop.problem import Problem
from elimina.model import Model


def render(problem: Problem) -> Iterator[str]:
    """Yield the file's text; costs read back exactly.

    Raises:
        MemoryLimitError: A table is too large to be written in full.
        InputError: There is a constant cost but no variable.
    """
    model = problem.model
    named = list(functions(model, with_constant=True))
    for name, table in named:
        check_listed(table.cells, name)
    constraints: list[list[str]] = [[] for _ in model.variables]
    for name, table in named:
        for v in table.scope:
            constraints[v].append(name)
    owned: list[list[str]] = [[] for _ in problem.agents]
    for variable, owner in zip(model.variables, problem.owners, strict=True):
        owned[owner].append(variable.name)
    yield "{\n"
    if model.name:
        yield f'"name": {json.dumps(model.name)},\n'
    if model.sense == "max-cost":
        yield '"objective": "max",\n'
    yield from _section("agents", ((a.name, {"vars": mine}) for a, mine in zip(problem.agents, owned, strict=True)))
    yield ",\n"
    yield from _section("variables", _variables(problem, constraints))
    yield ",\n"
    scopes = ((name, [model.variables[v].name for v in table.scope], table) for name, table in named)
    yield from _section(
        "constraints", ((n, {"scope": s, "vals": _costs(t.dense().ravel(), model)}) for n, s, t in scopes)
    )
    yield "\n}\n"


def _section(name: str, entries: Iterator[tuple[str, Any]]) -> Iterator[str]:
    yield f'"{name}": {{'
    for number, (key, value) in enumerate(entries):
        yield (",\n" if number else "\n") + f"{json.dumps(key)}: {json.dumps(value)}"
    yield "\n}"


def _variables(problem: Problem, constraints: list[list[str]]) -> Iterator[tuple[str, Any]]:
    for v, variable in enumerate(problem.model.variables):
        agent = problem.agents[problem.owners[v]].name
        fields = {
            "id": v,
            "cons": constraints[v],
            "domain": [variable.state(x) for x in range(variable.size)],
            "agent": agent,
            "type": 1,
            "value": None,
        }
        yield variable.name, fields


def _costs(values: Any, model: Model) -> list[Any]:
    worst = "infinity" if model.sense == "min-cost" else "-infinity"
    return [worst if is_worst(cost, model) else cost for cost in values.tolist()]
