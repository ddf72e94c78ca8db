"""Writing FRODO's dialect of XCSP 2.1; FRODO itself wants values that are integers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import quoteattr

from elimina.dcop.formats.functions import constant_of, functions, is_worst, listed
from elimina.dcop.problem import Problem
from elimina.errors import InputError
from elimina.model import Model, Variable
from elimina.states import integer_of, texts_of
from elimina.table import Table

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 18
"""Digits of an end of a range."""
_NOT_A_VALUE = re.compile(r"[\s|:]|^$|^[+-]?\d{1,18}\.\.[+-]?\d{1,18}$")


def render(problem: Problem) -> Iterator[str]:
    """Yield the file's text; costs read back exactly.

    Raises:
        InputError: A name cannot be written: a variable's or value's with blanks, or a character that XML lacks.
    """
    model = problem.model
    named = list(functions(model, with_constant=False))
    arity = max((len(table.scope) for _, table in named), default=0)
    maximize = "true" if model.sense == "max-cost" else "false"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<instance>\n'
    yield f'<presentation name={_quoted(model.name)} maxConstraintArity="{arity}" maximize="{maximize}"'
    yield ' format="XCSP 2.1_FRODO"/>\n'
    yield f'<agents nbAgents="{len(problem.agents)}">\n'
    yield from (f"<agent name={_quoted(agent.name)}/>\n" for agent in problem.agents)
    yield "</agents>\n"
    domains: dict[tuple[str, ...], str] = {}
    for variable in model.variables:
        domains.setdefault(tuple(texts_of(variable)), f"d{len(domains)}")
    yield f'<domains nbDomains="{len(domains)}">\n'
    for values, name in domains.items():
        yield f'<domain name="{name}" nbValues="{len(values)}">{_escaped(_values(values))}</domain>\n'
    yield f'</domains>\n<variables nbVariables="{len(model.variables)}">\n'
    for variable, owner in zip(model.variables, problem.owners, strict=True):
        domain, agent = domains[tuple(texts_of(variable))], _quoted(problem.agents[owner].name)
        yield f'<variable name={_variable(variable)} domain="{domain}" agent={agent}/>\n'
    yield f'</variables>\n<relations nbRelations="{len(named)}">\n'
    for name, table in named:
        yield _relation(name, table, model)
    yield f'</relations>\n<constraints nbConstraints="{len(named)}"{_bounds(model)}>\n'
    for name, table in named:
        scope = quoteattr(" ".join(model.variables[v].name for v in table.scope))
        yield f'<constraint name="{name}" arity="{len(table.scope)}" scope={scope} reference="r{name[1:]}"/>\n'
    yield "</constraints>\n</instance>\n"


def _quoted(name: str) -> str:
    found = _NOT_XML.search(name)
    if found:
        raise InputError(f"an XML file cannot hold the name {name!r}: it has the character {found.group()!r}")
    return quoteattr(name, {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _variable(variable: Variable) -> str:
    if not variable.name or variable.name.split() != [variable.name]:
        raise InputError(f"an XCSP file cannot hold the variable name {variable.name!r}; it may have no blanks")
    for text in texts_of(variable):
        if _NOT_A_VALUE.search(text) or _NOT_XML.search(text):
            raise InputError(
                f"an XCSP file cannot hold the value {text!r} of variable {variable.name!r}; "
                f"it may have no blanks, '|' or ':', and not be a range"
            )
    return _quoted(variable.name)


def _values(texts: Sequence[str]) -> str:
    if all(len(text) <= _LONGEST and integer_of(text) is not None for text in texts):
        first, last = int(texts[0]), int(texts[-1])
        if [int(text) for text in texts] == list(range(first, last + 1)):
            return f"{first}..{last}"
    return " ".join(texts)


def _cost(cost: float, model: Model) -> str:
    if is_worst(cost, model):
        return "infinity" if model.sense == "min-cost" else "-infinity"
    return repr(cost)


def _bounds(model: Model) -> str:
    constant = constant_of(model)
    text = f' initialCost="{constant!r}"' if constant and not math.isinf(constant) else ""
    return text if model.upper_bound is None else f'{text} maximalCost="{model.upper_bound!r}"'


def _relation(name: str, table: Table, model: Model) -> str:
    tuples, costs, default = listed(name, table, model)
    head = f'<relation name="r{name[1:]}" arity="{len(table.scope)}" nbTuples="{len(tuples)}" semantics="soft"'
    before = [None, *costs[:-1]] if costs else []
    parts = zip(tuples, costs, before, strict=True)
    text = "|".join(row if cost == last else f"{_cost(cost, model)}:{row}" for row, cost, last in parts)
    return f'{head} defaultCost="{_cost(default, model)}">{_escaped(text)}</relation>\n'
