"""pyDCOP's YAML files.

Intentional constraints and cost functions of variables are Python expressions, evaluated by
``elimina.dcop.formats.expression``. An extensional constraint has a cost for every tuple, or a default. Each value of a
variable with a ``noise_level`` gets a random cost from 0 to this level. It is drawn by NumPy's default generator from
the seed ``[NOISE_SEED, zlib.crc32(the variable's name)]``, so a file is always the same problem. External variables
have their initial value. Owners: see ``elimina.dcop.formats.pydcop_agents``; without agents, each variable gets a
separate agent. Keys that the format does not have are ignored, as by pyDCOP, unless they look misspelt.
Source: the documentation of pyDCOP 0.1, "YAML file formats".
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.dcop.formats import columns
from elimina.dcop.formats.build import LARGEST_DOMAIN, Builder, Domain, functions, is_worst, listed
from elimina.dcop.formats.expression import Expressions
from elimina.dcop.formats.pydcop_agents import AgentReader, owners
from elimina.dcop.formats.yamltree import MappingNode, SequenceNode, YamlFile, YamlNode
from elimina.dcop.problem import Problem
from elimina.errors import InputError, MemoryLimitError, UnsupportedError
from elimina.io.codecs import Codec
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable, texts_of
from elimina.number_texts import counted


def read_tuples(
    file: YamlFile, values: MappingNode, domains: Sequence[Domain], *, has_blanks: bool
) -> tuple[NDArray[np.int32], list[int | float]]:
    """Read the mapping cost -> tuples of a constraint.

    Args:
        file: The file of the constraint.
        values: The mapping.
        domains: Domains of the variables of a tuple.
        has_blanks: True if each tuple is a single value, in which blanks may occur.

    Returns:
        Rows of positions in the domains, of shape (n, len(domains)), and n costs.

    Raises:
        TextError: A cost is not a number, a tuple has another length, or a value is not in its domain.
    """
    texts: list[str] = []
    costs: list[int | float] = []
    for key, node in values.entries.values():
        text = file.text(node, "tuples of values")
        if len(domains) == 1 and "|" not in text:
            text = str(file.value(node, "a value"))
        texts.append(text)
        costs += [file.number(key, "a cost")] * (text.count("|") + 1)
    rows = np.empty((len(costs), len(domains)), dtype=np.int32)
    if not texts:
        return rows, costs
    width = len(domains) + 1
    joined = "|".join(texts)
    words = joined.replace("|", " | ").split() if not has_blanks else _apart(joined)
    is_regular = len(words) == width * len(costs) - 1 and words[width - 1 :: width].count("|") == len(costs) - 1
    try:
        if not is_regular:
            _find_fault(file, values, texts, domains, has_blanks=has_blanks)
        for axis, domain in enumerate(domains):
            rows[:, axis] = [domain.codes[word] for word in words[axis::width]]
    except KeyError:
        _find_fault(file, values, texts, domains, has_blanks=has_blanks)
    return rows, costs


def _apart(text: str) -> list[str]:
    """Split a text at each ``|``; return the stripped pieces, with the separators between them."""
    words = [word for piece in text.split("|") for word in (piece.strip(), "|")]
    return words[:-1]


def _find_fault(
    file: YamlFile, values: MappingNode, texts: Sequence[str], domains: Sequence[Domain], *, has_blanks: bool
) -> None:
    """Raise TextError at the tuple that does not fit."""
    nodes: list[YamlNode] = [listed for _, listed in values.entries.values()]
    for node, text in zip(nodes, texts, strict=True):
        for constraint_text in text.split("|"):
            words = [constraint_text.strip()] if has_blanks else constraint_text.split()
            if len(words) != len(domains):
                file.fail(
                    node,
                    f"expected {counted(len(domains), 'value')} in a tuple, found {constraint_text.strip()[:40]!r}",
                )
            file.at(node)
            for domain, word in zip(domains, words, strict=True):
                domain.code(word)


NOISE_SEED = 0
_RANGE = re.compile(r"\s*(-?\d{1,18})\s*\.\.+\s*(-?\d{1,18})\s*")
_SECTIONS = (
    *("name", "description", "objective", "domains", "variables", "external_variables", "constraints", "agents"),
    *("hosting_costs", "routes", "distribution_hints"),
)


def parse(file: YamlFile) -> Problem:
    """Read a problem."""
    reader = _YamlReader(file)
    reader.read()
    return reader.problem()


class _YamlReader:
    """A reader of the sections, in the order of their dependences."""

    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.top = file.root()
        self.builder = Builder()
        self.expressions = Expressions(self.builder)
        self.constraints: list[str] = []

    def read(self) -> None:
        """Read everything but the agents."""
        self.file.check_keys(self.top, _SECTIONS)
        self._field(self.top, "variables", "a problem")
        if "name" in self.top.entries:
            self.builder.name = self.file.text(self.top.entries["name"][1], "a name")
        self._read_objective()
        for name, node in self._section("domains"):
            self._read_domain(name, node)
        for name, node in self._section("variables"):
            self._read_variable(name, node)
        for name, node in self._section("external_variables"):
            self._read_external(name, node)
        for name, node in self._section("variables"):
            self._read_preferences(name, node)
        for name, node in self._section("constraints"):
            self._read_constraint(name, node)

    def problem(self) -> Problem:
        """Read the agents, and return the problem."""
        names = [variable.name for variable in self.builder.variables]
        reader = AgentReader(self.file, self.top, {*names, *self.expressions.external, *self.constraints})
        agents = reader.read()
        if not agents:
            return self.builder.problem([], [None] * len(names))
        here = set(names)
        must_host = {name: agent for name, agent in reader.must_host.items() if name in here}
        host_with = [pair for pair in reader.host_with if here.issuperset(pair)]
        return self.builder.problem(agents, owners(names, list(reader.names), must_host, host_with))

    def _section(self, name: str) -> Iterator[tuple[str, MappingNode]]:
        if name not in self.top.entries or self.file.is_empty(self.top.entries[name][1]):
            return
        for key, node in self.file.mapping(self.top.entries[name][1], name).entries.values():
            self.file.at(key)
            yield key.text, self.file.mapping(node, f"{name}: {key.text[:40]}")

    def _field(self, node: MappingNode, name: str, owner: str) -> YamlNode:
        if name not in node.entries:
            self.file.fail(node, f"expected '{name}' of {owner}, found none")
        field = node.entries[name][1]
        self.file.at(field)
        return field

    def _read_objective(self) -> None:
        if "objective" in self.top.entries:
            node = self.top.entries["objective"][1]
            objective = self.file.text(node, "min or max")
            if objective not in ("min", "max"):
                self.file.fail(node, f"expected the objective min or max, found {objective[:40]!r}")
            self.builder.sense = "min-cost" if objective == "min" else "max-cost"

    def _read_domain(self, name: str, node: MappingNode) -> None:
        self.file.check_keys(node, ("values", "type", "initial_value"))
        field = self._field(node, "values", f"domain {name!r}")
        items = field.items if isinstance(field, SequenceNode) else [field]
        values = [self.file.value(item, "a value (a number, a string or a boolean)") for item in items]
        self.file.at(field)
        if len(values) == 1 and isinstance(values[0], str) and (bounds := _RANGE.fullmatch(values[0])):
            first, last = map(int, bounds.groups())
            if not 0 <= last - first < LARGEST_DOMAIN:
                raise TextError(f"expected 1 to {LARGEST_DOMAIN} values of domain {name!r}, found {values[0].strip()}")
            values = list(range(first, last + 1))
        elif not isinstance(field, SequenceNode):
            raise TextError(f"expected a list of values of domain {name!r}, found {str(values[0])[:40]!r}")
        self.builder.add_domain(Domain.of(name, [v if isinstance(v, str | int) else str(v) for v in values]))
        self.expressions.values[name] = columns.column(values)

    def _domain(self, node: MappingNode, owner: str) -> Domain:
        return self.builder.domain(self.file.text(self._field(node, "domain", owner), "the name of a domain"))

    def _read_variable(self, name: str, node: MappingNode) -> None:
        self.file.check_keys(node, ("domain", "initial_value", "cost_function", "noise_level"))
        domain = self._domain(node, f"variable {name!r}")
        if "initial_value" in node.entries and not self.file.is_empty(node.entries["initial_value"][1]):
            self._initial(node, name, domain)
        self.builder.add_variable(name, domain)

    def _initial(self, node: MappingNode, name: str, domain: Domain) -> int:
        field = self._field(node, "initial_value", f"variable {name!r}")
        return domain.code(str(self.file.value(field, "a value")))

    def _read_external(self, name: str, node: MappingNode) -> None:
        self.file.check_keys(node, ("domain", "initial_value"))
        if name in self.builder.index:
            raise TextError(f"a second variable is named {name!r}")
        domain = self._domain(node, f"variable {name!r}")
        self.expressions.external[name] = (domain, self._initial(node, name, domain))

    def _read_preferences(self, name: str, node: MappingNode) -> None:
        if "cost_function" in node.entries:
            self._add_expression(name, self._field(node, "cost_function", name), only=name)
        if "noise_level" in node.entries:
            level = self.file.number(self._field(node, "noise_level", name), "a noise level")
            if not 0 <= level < math.inf:
                raise TextError(f"expected a noise level of at least 0, found {level}")
            noise = np.random.default_rng([NOISE_SEED, zlib.crc32(name.encode())])
            v = self.builder.index[name]
            self.builder.add_full([v], noise.uniform(0, level, self.builder.variables[v].size))

    def _read_constraint(self, name: str, node: MappingNode) -> None:
        self.constraints.append(name)
        owner = f"constraint {name!r}"
        kind = self.file.text(self._field(node, "type", owner), "a type")
        if kind == "intention":
            for key in ("source", "partial"):
                if key in node.entries:
                    self.file.at(node.entries[key][0])
                    raise UnsupportedError(f"{owner} has a {key!r}, which is not handled")
            self.file.check_keys(node, ("type", "function", "variables"))
            self._add_expression(name, self._field(node, "function", owner))
        elif kind == "extensional":
            self.file.check_keys(node, ("type", "variables", "values", "default"))
            self._read_extension(name, node)
        else:
            raise TextError(f"expected the type 'intention' or 'extensional' of {owner}, found {kind[:40]!r}")

    def _add_expression(self, owner: str, node: YamlNode, only: str | None = None) -> None:
        text = self.file.text(node, "an expression")
        try:
            self.expressions.add(owner, text, only)
        except (TextError, UnsupportedError, MemoryLimitError) as error:
            self.file.at(node)
            raise type(error)(f"{owner!r}: {error}") from None

    def _read_extension(self, name: str, node: MappingNode) -> None:
        field = self._field(node, "variables", f"constraint {name!r}")
        is_list = isinstance(field, SequenceNode)
        items = field.items if isinstance(field, SequenceNode) else [field]
        external = self.expressions.external
        texts = [self.file.text(item, "the name of a variable") for item in items]
        names = [text if text in self.builder.index or text in external else text.strip() for text in texts]
        decisions = self.builder.scope(n for n in names if n not in external)
        domains = [external[n][0] if n in external else self.builder.domain_of[self.builder.index[n]] for n in names]
        values = self.file.mapping(self._field(node, "values", name), f"values of {name!r}")
        rows, costs = read_tuples(self.file, values, domains, has_blanks=not is_list)
        default = self.file.number(node.entries["default"][1], "a cost") if "default" in node.entries else None
        self.file.at(node)
        fixed = {axis: external[n][1] for axis, n in enumerate(names) if n in external}
        if fixed:
            is_consistent = (rows[:, list(fixed)] == list(fixed.values())).all(axis=1)
            rows = rows[is_consistent][:, [axis for axis in range(len(names)) if axis not in fixed]]
            costs = [cost for cost, is_kept in zip(costs, is_consistent.tolist(), strict=True) if is_kept]
        self.builder.add_rows(decisions, rows, costs, default, name)


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
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED else _quoted(name)


def _number(number: float) -> str:
    """Return a number in the form of YAML 1.1, in which a number with an exponent needs a decimal point."""
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
    owned: list[list[str]] = [[] for _ in agents]
    for variable, owner in zip(problem.model.variables, problem.owners, strict=True):
        owned[owner].append(_key(variable.name))
    if any(owned):
        yield "\ndistribution_hints:\n  must_host:\n"
    for agent, variables in zip(agents, owned, strict=True):
        if variables:
            yield f"    {_key(agent.name)}: [{', '.join(variables)}]\n"


CODEC = Codec(("min-cost", "max-cost"), YamlFile, parse, render, holds=("capacities",))
