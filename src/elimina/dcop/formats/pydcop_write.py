"""Writing pyDCOP's YAML files, without PyYAML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping

from elimina.dcop.formats.functions import functions, is_worst, listed
from elimina.dcop.problem import AgentProfile, Problem
from elimina.errors import InputError
from elimina.model import Model, Variable
from elimina.states import texts_of
from elimina.table import Table

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9_]*)?")
_RESERVED = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ESCAPED = re.compile("[\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff\u2028\u2029\x85]")


def render(problem: Problem) -> Iterator[str]:
    """Yield the file's text; costs read back exactly.

    Raises:
        InputError: A value's name has blanks or a "|", which separate values, or there is a constant cost but no
            variable.
    """
    model = problem.model
    named = list(functions(model, with_constant=True))
    yield f"name: {_quoted(model.name)}\nobjective: {'max' if model.sense == 'max-cost' else 'min'}\n\ndomains:"
    domains: dict[tuple[str, ...], str] = {}
    for variable in model.variables:
        domains.setdefault(_values(variable), f"d{len(domains)}")
    yield "\n" if domains else " {}\n"
    for values, name in domains.items():
        yield f"  {name}:\n    type: {name}\n    values: [{', '.join(values)}]\n"
    yield "\nvariables:" + ("\n" if model.variables else " {}\n")
    for variable in model.variables:
        yield f"  {_key(variable.name)}:\n    domain: {domains[_values(variable)]}\n"
    yield "\nconstraints:" + ("\n" if named else " {}\n")
    for name, table in named:
        yield from _constraint(name, table, model)
    yield from _agents(problem)


def _values(variable: Variable) -> tuple[str, ...]:
    """Return the values as the file has them: a str between quotation marks, an int or bool without."""
    texts = texts_of(variable)
    for text in texts:
        if text.split() != [text] or "|" in text:
            raise InputError(
                f"a pyDCOP file cannot hold the value {text!r} of variable {variable.name!r}; "
                f"it may have no blanks and no '|'"
            )
    if len(texts) == 1 and ".." in texts[0]:
        raise InputError(
            f"a pyDCOP file cannot hold the value {texts[0]!r} of variable {variable.name!r}: it is a range"
        )
    return tuple(_quoted(text) if isinstance(variable.state(x), str) else text for x, text in enumerate(texts))


def _quoted(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED else _quoted(name)


def _number(number: float) -> str:
    """Return a number as YAML 1.1 reads it: one with an exponent has a point."""
    if math.isinf(number):
        return ".inf" if number > 0 else "-.inf"
    text = repr(number)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _cost(cost: float, model: Model) -> str:
    if is_worst(cost, model):
        return ".inf" if model.sense == "min-cost" else "-.inf"
    return _number(cost)


def _constraint(name: str, table: Table, model: Model) -> Iterator[str]:
    tuples, costs, default = listed(name, table, model)
    scope = ", ".join(_key(model.variables[v].name) for v in table.scope)
    yield f"  {name}:\n    type: extensional\n    variables: [{scope}]\n    default: {_cost(default, model)}\n"
    rows_of: dict[int | float, list[str]] = {}
    for row, cost in zip(tuples, costs, strict=True):
        rows_of.setdefault(cost, []).append(row)
    yield "    values:" + ("\n" if rows_of else " {}\n")
    for cost, rows in rows_of.items():
        yield f"      {_cost(cost, model)}: {_quoted(' | '.join(rows))}\n"


def _agents(problem: Problem) -> Iterator[str]:
    agents = problem.agents
    yield "\nagents:" + ("\n" if agents else " {}\n")
    for agent in agents:
        capacity = "" if agent.capacity is None else f"capacity: {_number(agent.capacity)}"
        yield f"  {_key(agent.name)}: {{{capacity}}}\n"
    if any(agent.hosting_costs or agent.default_hosting_cost for agent in agents):
        yield "\nhosting_costs:\n"
        yield from map(_hosting, agents)
    default = {agent.default_route for agent in agents}
    if len(default) > 1:
        raise InputError(f"a pyDCOP file has one default route for all agents, but they have {sorted(default)}")
    if default - {1} or any(agent.routes for agent in agents):
        yield "\nroutes:\n" + "".join(f"  default: {_number(number)}\n" for number in default)
        yield from (f"  {_key(a.name)}: {_costs_of(a.routes)}\n" for a in agents if a.routes)
    owned: list[list[str]] = [[] for _ in agents]
    for variable, owner in zip(problem.model.variables, problem.owners, strict=True):
        owned[owner].append(_key(variable.name))
    if any(owned):
        yield "\ndistribution_hints:\n  must_host:\n"
    for agent, mine in zip(agents, owned, strict=True):
        if mine:
            yield f"    {_key(agent.name)}: [{', '.join(mine)}]\n"


def _hosting(agent: AgentProfile) -> str:
    costs = _costs_of(agent.hosting_costs)
    return f"  {_key(agent.name)}: {{default: {_number(agent.default_hosting_cost)}, computations: {costs}}}\n"


def _costs_of(costs: Mapping[str, float]) -> str:
    return "{" + ", ".join(f"{_key(name)}: {_number(cost)}" for name, cost in costs.items()) + "}"
