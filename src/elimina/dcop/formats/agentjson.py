"""DCOP JSON as F. Fioretto's simulators write it.

An object with "variables" (each with a "domain", a list of values, and its "agent"), "agents" (each with its "vars")
and "constraints" (each with a "scope" and "vals", its costs in row-major order: the last variable varies fastest).
Costs are minimised unless "objective" is "max"; a forbidden one is "infinity" ("-infinity" where costs are maximised).
An entry "id" with a number among the agents, which dcop_sim's generator writes, is ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn, cast

from elimina._core import TextError
from elimina.dcop.formats.build import Builder, Domain, check_listed, functions, is_worst, parse_cost
from elimina.dcop.problem import AgentProfile, Problem
from elimina.io.codecs import Codec
from elimina.model.model import Model
from elimina.model.states import State
from elimina.model.variable import listed_states
from elimina.number_texts import counted
from elimina.option_names import by_interface


class JsonFile:
    """A JSON file; only errors of syntax have a line and a column."""

    def __init__(self, data: bytes) -> None:
        self.line: int | None = None
        self.column: int | None = None
        self._data = data

    def root(self) -> dict[str, Any]:
        """Parse the file, which is one object.

        Raises:
            TextError: The file is not JSON, repeats a key, is too deeply nested, or is not an object.
        """
        try:
            top = json.loads(self._data.decode("utf-8-sig"), object_pairs_hook=_without_repetition)
        except json.JSONDecodeError as error:
            self.line, self.column = error.lineno, error.colno
            raise TextError(f"expected JSON: {error.msg}") from None
        except UnicodeDecodeError as error:
            raise TextError(f"expected UTF-8 text: {error.reason}") from None
        except RecursionError:
            raise TextError("expected JSON of a few levels, found very deep nesting") from None
        except ValueError as error:
            raise TextError(str(error)) from None
        return _object(top, "the file")


def parse(file: JsonFile) -> Problem:
    """Read a problem."""
    top = file.root()
    if "problem" in top and "agents" not in top:
        raise TextError(
            "expected 'agents' of a problem, found a cost function network, which is for "
            + by_interface("elimina.read", "'elimina solve'")
        )
    objective = top.get("objective", "min")
    if objective not in ("min", "max"):
        _fail("the objective 'min' or 'max'", objective)
    builder = Builder("min-cost" if objective == "min" else "max-cost")
    builder.name = _text(top.get("name", ""), "a name")
    listed = {
        name: agent for name, agent in _section(top, "agents").items() if not (name == "id" and type(agent) is int)
    }
    agents = {name: _object(agent, f"agent {name!r}") for name, agent in listed.items()}
    owners = _read_variables(builder, _section(top, "variables"), agents)
    for name, constraint in _section(top, "constraints").items():
        _read_constraint(builder, name, _object(constraint, f"constraint {name!r}"))
    return builder.problem([AgentProfile(name) for name in agents], owners)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise TextError(f"the key {twice[:40]!r} occurs twice in an object")
    return result


def _fail(what: str, value: object) -> NoReturn:
    raise TextError(f"expected {what}, found {json.dumps(value)[:40]}")


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _fail(f"an object for {what}", value)
    result: dict[str, Any] = value
    return result


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        _fail(what, value)
    text: str = value
    return text


def _list(owner: dict[str, Any], key: str, what: str) -> list[Any]:
    value = owner.get(key)
    if not isinstance(value, list):
        _fail(f"a list {key!r} of {what}", value)
    items: list[Any] = value
    return items


def _section(top: dict[str, Any], name: str) -> dict[str, Any]:
    if name not in top:
        raise TextError(f"expected '{name}' of a problem, found none")
    return _object(top[name], repr(name))


def _read_variables(builder: Builder, variables: dict[str, Any], agents: dict[str, dict[str, Any]]) -> list[str | None]:
    owner_of: dict[str, str] = {}
    for name, agent in agents.items():
        for owned in _list(agent, "vars", f"agent {name!r}") if "vars" in agent else ():
            if _text(owned, "the name of a variable") not in variables:
                _fail(f"the name of a variable of agent {name!r}", owned)
            if owner_of.setdefault(owned, name) != name:
                raise TextError(f"variable {owned!r} belongs to agents {owner_of[owned]!r} and {name!r}")
    domains: dict[tuple[tuple[type, State], ...], Domain] = {}
    for name, entry in variables.items():
        variable = _object(entry, f"variable {name!r}")
        values = [_value(value, name) for value in _list(variable, "domain", f"variable {name!r}")]
        key = tuple((type(value), value) for value in values)
        if key not in domains:
            domains[key] = Domain.of(f"of {name}", values)
        builder.add_variable(name, domains[key])
        if "agent" in variable:
            owner = _text(variable["agent"], f"the agent of variable {name!r}")
            if owner_of.setdefault(name, owner) != owner:
                raise TextError(f"variable {name!r} belongs to agents {owner_of[name]!r} and {owner!r}")
    return [owner_of.get(name) for name in variables]


def _value(value: Any, variable: str) -> State:
    if type(value) not in (int, float, str, bool):
        _fail(f"a number, a string or a boolean in the domain of variable {variable!r}", value)
    return str(value) if isinstance(value, float) else cast(State, value)


def _read_constraint(builder: Builder, name: str, constraint: dict[str, Any]) -> None:
    what = f"constraint {name!r}"
    scope = builder.scope(_text(v, f"the name of a variable of {what}") for v in _list(constraint, "scope", what))
    sizes = [builder.variables[v].size for v in scope]
    costs = _list(constraint, "vals", what)
    if len(costs) != math.prod(sizes):
        raise TextError(f"expected {counted(math.prod(sizes), 'cost')} of {what}, found {len(costs)}")
    if not all(type(cost) in (int, float) for cost in costs):
        costs = [_cost(cost, what) for cost in costs]
    builder.add_full(scope, builder.costs(costs).reshape(sizes))


def _cost(value: Any, what: str) -> int | float:
    if isinstance(value, str):
        return parse_cost(value)
    if type(value) not in (int, float):
        _fail(f"a cost of {what}", value)
    number: int | float = value
    return number


def render(problem: Problem) -> Iterator[str]:
    """Yield the file's text, with exact costs.

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
    yield from _rendered(
        "agents", ((a.name, {"vars": variables}) for a, variables in zip(problem.agents, owned, strict=True))
    )
    yield ",\n"
    yield from _rendered("variables", _variables(problem, constraints))
    yield ",\n"
    scopes = ((name, [model.variables[v].name for v in table.scope], table) for name, table in named)
    yield from _rendered(
        "constraints", ((n, {"scope": s, "vals": _costs(t.dense().ravel(), model)}) for n, s, t in scopes)
    )
    yield "\n}\n"


def _rendered(name: str, entries: Iterator[tuple[str, Any]]) -> Iterator[str]:
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
            "domain": listed_states(variable),
            "agent": agent,
            "type": 1,
            "value": None,
        }
        yield variable.name, fields


def _costs(values: Any, model: Model) -> list[Any]:
    worst = "infinity" if model.sense == "min-cost" else "-infinity"
    return [worst if is_worst(cost, model) else cost for cost in values.tolist()]


CODEC = Codec(("min-cost", "max-cost"), JsonFile, parse, render)
