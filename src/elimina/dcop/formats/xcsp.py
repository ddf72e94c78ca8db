"""FRODO's dialect of XCSP 2.1 and XDisCSP 1.0: variables with agents, constraints that refer to relations.

A relation's tuples are separated by "|"; a cost and a colon before a tuple apply to it and to later ones. Semantics
"soft": the tuples have costs, others ``defaultCost``; "conflicts": the tuples are forbidden; "supports": others are.
Tuples hold values, not their positions in the domain; a domain without text has the values 1 to ``nbValues``. A
variable without an agent gets a separate one. ``initialCost`` is added to every cost and ``maximalCost`` is an upper
bound, as in XCSP 2.1; XDisCSP's ``initialCost`` is ignored, as in the optima published for such files. Sources: O.
Roussel and C. Lecoutre, "XML representation of constraint networks: format XCSP 2.1" (2009); the FRODO user manual,
section 4.2.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.dcop.formats.build import (
    LARGEST_DOMAIN,
    Builder,
    Domain,
    constant_of,
    functions,
    is_worst,
    listed,
    parse_cost,
)
from elimina.dcop.problem import AgentProfile, Problem
from elimina.errors import InputError, UnsupportedError
from elimina.io.codecs import Codec
from elimina.io.xml_documents import Document, Element, checked_xml, not_xml
from elimina.model.model import Model
from elimina.model.states import integer_of
from elimina.model.table import Table
from elimina.model.variable import Variable, texts_of
from elimina.number_texts import counted

ROOT = "instance"
_RANGE = re.compile(r"([+-]?\d{1,18})\.\.([+-]?\d{1,18})")
_SECTIONS = ("presentation", "agents", "domains", "variables", "relations", "constraints", "GuiPresentation")


@dataclass(frozen=True)
class _Relation:
    """A relation: its element and arity, the values of one tuple after another, the tuples' costs, the default cost."""

    element: Element
    arity: int
    values: list[str]
    costs: list[int | float]
    default: int | float | None


def parse(document: Document) -> Problem:
    """Read a problem."""
    return _XcspReader(document).problem()


class _XcspReader:
    """A reader of the sections, which may be in any order: each is read after those that it depends on."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.root = document.root(ROOT)
        self.sections: dict[str, Element] = {}
        for section in document.visit(self.root):
            if section.tag in ("predicates", "functions"):
                raise UnsupportedError(f"<{section.tag}> are not handled; write them out as relations")
            if section.tag not in _SECTIONS:
                raise TextError(f"expected a section of an instance, found <{section.tag[:40]}>")
            if section.tag in self.sections:
                raise TextError(f"a second section is named <{section.tag}>")
            self.sections[section.tag] = section
        self.builder = Builder()
        self.relations: dict[str, _Relation] = {}
        self.tables: dict[tuple[object, ...], Table] = {}

    def problem(self) -> Problem:
        """Read all sections, and return the problem."""
        is_dis_csp = self._read_presentation()
        agents = self._read_agents()
        for element in self._elements("domains", "domain"):
            self._read_domain(element)
        owners = [self._read_variable(element, agents) for element in self._elements("variables", "variable")]
        for element in self._elements("relations", "relation", required=False):
            self._read_relation(element)
        for element in self._elements("constraints", "constraint", required=False):
            self._read_constraint(element)
        if "constraints" in self.sections:
            self._read_bounds(self.sections["constraints"], is_dis_csp)
        return self.builder.problem([AgentProfile(name) for name in agents], owners)

    def _elements(self, section: str, tag: str, *, required: bool = True) -> Iterable[Element]:
        if section not in self.sections:
            if required:
                self.document.line = self.root.line
                raise TextError(f"expected <{section}> in <{ROOT}>, found none")
            return
        for element in self.document.visit(self.sections[section]):
            if element.tag != tag:
                raise TextError(f"expected <{tag}> in <{section}>, found <{element.tag[:40]}>")
            yield element

    def _attribute(self, element: Element, name: str) -> str:
        self.document.line = element.line
        if name not in element.attributes:
            raise TextError(f"expected the attribute {name!r} of <{element.tag}>, found none")
        return element.attributes[name]

    def _read_presentation(self) -> bool:
        """Read name and sense; return whether the format is XDisCSP."""
        if "presentation" not in self.sections:
            return False
        element = self.sections["presentation"]
        self.document.line = element.line
        maximize = element.attributes.get("maximize", "false")
        if maximize not in ("true", "false"):
            raise TextError(f"expected maximize='true' or 'false', found {maximize[:40]!r}")
        self.builder.sense = "max-cost" if maximize == "true" else "min-cost"
        self.builder.name = element.attributes.get("name", "")
        kind = element.attributes.get("format", "")
        if kind and not kind.startswith(("XCSP 2", "XDisCSP")):
            raise UnsupportedError(f"format {kind[:40]!r} is not handled; XCSP 2.1 and XDisCSP 1.0 are")
        return kind.startswith("XDisCSP")

    def _read_agents(self) -> dict[str, None]:
        agents: dict[str, None] = {}
        for element in self._elements("agents", "agent", required=False):
            name = self._attribute(element, "name")
            if name in agents:
                raise TextError(f"a second agent is named {name!r}")
            agents[name] = None
        return agents

    def _read_domain(self, element: Element) -> None:
        name = self._attribute(element, "name")
        text = element.attributes.get("nbValues")
        count = None if text is None else int(text) if re.fullmatch(r"\d{1,10}", text) else -1
        if count is not None and not 1 <= count <= LARGEST_DOMAIN:
            raise TextError(f"expected nbValues from 1 to {LARGEST_DOMAIN} of domain {name!r}, found {text!r}")
        words = element.text.split() if element.text or count is None else [f"1..{count}"]
        texts: list[str] = []
        for word in words:
            match = _RANGE.fullmatch(word)
            if match is None:
                texts.append(word)
                continue
            first, last = map(int, match.groups())
            if last - first >= LARGEST_DOMAIN - len(texts):
                raise TextError(f"expected up to {LARGEST_DOMAIN} values of domain {name!r}, found {word}")
            texts += map(str, range(first, last + 1))
        if count is not None and count != len(texts):
            raise TextError(f"domain {name!r} has {counted(len(texts), 'value')}, but nbValues is {count}")
        self.builder.add_domain(Domain.of_texts(name, texts))

    def _read_variable(self, element: Element, agents: dict[str, None]) -> str | None:
        name = self._attribute(element, "name")
        if element.attributes.get("type", "decision") != "decision":
            raise UnsupportedError(f"variable {name!r} is {element.attributes['type']!r}; only decisions are handled")
        self.builder.add_variable(name, self.builder.domain(self._attribute(element, "domain")))
        owner = element.attributes.get("agent")
        if owner is not None and owner not in agents:
            raise TextError(f"expected the name of an agent for variable {name!r}, found {owner[:40]!r}")
        return owner

    def _read_relation(self, element: Element) -> None:
        name = self._attribute(element, "name")
        if name in self.relations:
            raise TextError(f"a second relation is named {name!r}")
        semantics = element.attributes.get("semantics", "soft")
        if semantics not in ("soft", "conflicts", "supports"):
            raise UnsupportedError(f"relation {name!r} has semantics {semantics[:40]!r}, which are not handled")
        worst = math.inf if self.builder.sense == "min-cost" else -math.inf
        listed, default = (worst, 0) if semantics == "conflicts" else (0, worst)
        first: int | float | None = listed
        other_cost: int | float | None = default
        if semantics == "soft":
            first = None
            other_cost = parse_cost(element.attributes["defaultCost"]) if "defaultCost" in element.attributes else None
        arity = self._arity(element)
        texts: list[str] = []
        costs: list[int | float] = []
        cost_of_text: dict[str, int | float] = {}
        text = element.raw_text.rstrip().removesuffix("|")
        for tuple_text in text.split("|") if text.strip() else ():
            head, colon, words = tuple_text.rpartition(":")
            if colon:
                if semantics != "soft":
                    raise TextError(
                        f"relation {name!r} has semantics {semantics!r}, but a cost: {tuple_text.strip()[:40]!r}"
                    )
                if head not in cost_of_text:
                    cost_of_text[head] = self._cost(head, element, text, len(costs))
                first = cost_of_text[head]
            values = words.split()
            arity = len(values) if arity is None else arity
            if len(values) != arity or first is None:
                self.document.line = element.line + _lines_before(text, len(costs))
                expected = (
                    f"{counted(arity, 'value')}"
                    if len(values) != arity
                    else "a cost and a colon before the first tuple"
                )
                raise TextError(f"expected {expected} in relation {name!r}, found {tuple_text.strip()[:40]!r}")
            texts += values
            costs.append(first)
        self.relations[name] = _Relation(element, arity or 0, texts, costs, other_cost)

    def _arity(self, element: Element) -> int | None:
        text = element.attributes.get("arity")
        if text is not None and not re.fullmatch(r"\d{1,5}", text):
            raise TextError(f"expected an arity of <{element.tag}>, found {text[:40]!r}")
        return None if text is None else int(text)

    def _cost(self, word: str, element: Element, text: str, tuple_number: int) -> int | float:
        try:
            return parse_cost(word.strip())
        except TextError:
            self.document.line = element.line + _lines_before(text, tuple_number)
            raise

    def _read_constraint(self, element: Element) -> None:
        reference = self._attribute(element, "reference")
        name = element.attributes.get("name", reference)
        scope = self.builder.scope(self._attribute(element, "scope").split())
        if reference not in self.relations:
            if reference.startswith("global:"):
                raise UnsupportedError(f"constraint {name!r} is {reference[:40]!r}; global constraints are not handled")
            raise TextError(f"expected the name of a relation, found {reference[:40]!r}")
        relation = self.relations[reference]
        if self._arity(element) not in (None, len(scope)):
            raise TextError(
                f"constraint {name!r} has {counted(len(scope), 'variable')}, but arity {element.attributes['arity']}"
            )
        if len(scope) != relation.arity and (relation.costs or relation.arity):
            raise TextError(
                f"constraint {name!r} has {counted(len(scope), 'variable')}, "
                f"but relation {reference!r} has {relation.arity}"
            )
        domains = [self.builder.domain_of[v] for v in scope]
        key = (reference, *(domain.name for domain in domains), *(scope.index(v) for v in scope))
        if (table := self.tables.get(key)) is not None:
            self.builder.tables.append(table.over(list(dict.fromkeys(scope))))
        else:
            self.builder.add_rows(scope, self._rows(relation, domains), relation.costs, relation.default, name)
            self.tables[key] = self.builder.tables[-1]

    def _rows(self, relation: _Relation, domains: list[Domain]) -> NDArray[np.int32]:
        """Return the indices of a relation's values in the domains."""
        rows = np.empty((len(relation.costs), len(domains)), dtype=np.int32)
        for axis, domain in enumerate(domains):
            try:
                rows[:, axis] = [domain.codes[text] for text in relation.values[axis :: len(domains)]]
            except KeyError as error:
                self.document.line = relation.element.line
                domain.code(error.args[0])
        return rows

    def _read_bounds(self, element: Element, is_dis_csp: bool) -> None:
        self.document.line = element.line
        initial = parse_cost(element.attributes.get("initialCost", "0"))
        bound = parse_cost(element.attributes.get("maximalCost", "infinity"))
        if not is_dis_csp:
            self.builder.constant = initial
        if not math.isinf(bound):
            self.builder.upper_bound = bound


def _lines_before(text: str, tuples: int) -> int:
    """Return the number of line breaks in a relation's text before the end of a tuple."""
    return "|".join(text.split("|", tuples + 1)[: tuples + 1]).rstrip().count("\n")


_MAX_INTEGER_CHARACTERS = 18
"""Largest number of digits of an end of a range."""
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
        yield f'<domain name="{name}" nbValues="{len(values)}">{escape(_values(values))}</domain>\n'
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
    return quoteattr(checked_xml(name), {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


def _variable(variable: Variable) -> str:
    if not variable.name or variable.name.split() != [variable.name]:
        raise InputError(f"an XCSP file cannot hold the variable name {variable.name!r}; it may have no blanks")
    for text in texts_of(variable):
        if _NOT_A_VALUE.search(text) or not_xml().search(text):
            raise InputError(
                f"an XCSP file cannot hold the value {text!r} of variable {variable.name!r}; "
                f"it may have no blanks, '|' or ':', and not be a range"
            )
    return _quoted(variable.name)


def _values(texts: Sequence[str]) -> str:
    if all(len(text) <= _MAX_INTEGER_CHARACTERS and integer_of(text) is not None for text in texts):
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
    previous_costs = [None, *costs[:-1]] if costs else []
    columns = zip(tuples, costs, previous_costs, strict=True)
    text = "|".join(row if cost == last else f"{_cost(cost, model)}:{row}" for row, cost, last in columns)
    return f'{head} defaultCost="{_cost(default, model)}">{escape(text)}</relation>\n'


CODEC = Codec(("min-cost", "max-cost"), Document, parse, render, holds=("upper bound",))
