"""pyDCOP's YAML files.

Intentional constraints and cost functions of variables are Python expressions, evaluated by
``elimina.dcop.formats.expression``. An extensional constraint has a cost for every tuple, or a default. Variables with
a ``noise_level`` get a random cost from 0 to it for each value, drawn by NumPy's default generator from the seed
``[NOISE_SEED, zlib.crc32(the variable's name)]``, so that a file is always the same problem. External variables have
their initial value. Owners: see ``elimina.dcop.formats.hosting``; without agents, each variable gets one of its own.
Source: the documentation of pyDCOP 0.1, "YAML file formats".
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator

import numpy as np

from elimina._core import TextError
from elimina.dcop.formats import columns
from elimina.dcop.formats.agents import AgentReader
from elimina.dcop.formats.build import LARGEST_DOMAIN, Builder, Domain
from elimina.dcop.formats.extension import read_tuples
from elimina.dcop.formats.hosting import owners
from elimina.dcop.formats.intention import Expressions
from elimina.dcop.formats.yamltree import Mapping, Node, Sequence, YamlFile
from elimina.dcop.problem import Problem
from elimina.errors import MemoryLimitError, UnsupportedError

NOISE_SEED = 0
_RANGE = re.compile(r"\s*(-?\d{1,18})\s*\.\.+\s*(-?\d{1,18})\s*")
_SECTIONS = (
    *("name", "description", "objective", "domains", "variables", "external_variables", "constraints", "agents"),
    *("hosting_costs", "routes", "distribution_hints"),
)


def open_text(data: bytes) -> YamlFile:
    """Return the file, not parsed yet."""
    return YamlFile(data)


def parse(file: YamlFile) -> Problem:
    """Read a problem."""
    reader = _Reader(file)
    reader.read()
    return reader.problem()


class _Reader:
    """Reads the sections in the order in which they need one another."""

    def __init__(self, file: YamlFile) -> None:
        self.file = file
        self.top = file.root()
        self.builder = Builder()
        self.expressions = Expressions(self.builder)
        self.constraints: list[str] = []

    def read(self) -> None:
        """Read everything but the agents."""
        self._only(self.top, _SECTIONS)
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
        """Read the agents and finish."""
        names = [variable.name for variable in self.builder.variables]
        reader = AgentReader(self.file, self.top, {*names, *self.expressions.external, *self.constraints})
        agents = reader.read()
        if not agents:
            return self.builder.problem([], [None] * len(names))
        here = set(names)
        must_host = {name: agent for name, agent in reader.must_host.items() if name in here}
        host_with = [pair for pair in reader.host_with if here.issuperset(pair)]
        return self.builder.problem(agents, owners(names, list(reader.names), must_host, host_with))

    def _section(self, name: str) -> Iterator[tuple[str, Mapping]]:
        if name not in self.top.entries or self.file.is_empty(self.top.entries[name][1]):
            return
        for key, node in self.file.mapping(self.top.entries[name][1], name).entries.values():
            self.file.at(key)
            yield key.text, self.file.mapping(node, f"{name}: {key.text[:40]}")

    def _only(self, node: Mapping, fields: tuple[str, ...]) -> None:
        for key, _ in node.entries.values():
            if key.text not in fields:
                self.file.fail(key, f"expected one of {', '.join(fields)}, found {key.text[:40]!r}")

    def _field(self, node: Mapping, name: str, owner: str) -> Node:
        if name not in node.entries:
            self.file.fail(node, f"expected '{name}' of {owner}, found none")
        found = node.entries[name][1]
        self.file.at(found)
        return found

    def _read_objective(self) -> None:
        if "objective" in self.top.entries:
            node = self.top.entries["objective"][1]
            objective = self.file.text(node, "min or max")
            if objective not in ("min", "max"):
                self.file.fail(node, f"expected the objective min or max, found {objective[:40]!r}")
            self.builder.sense = "min-cost" if objective == "min" else "max-cost"

    def _read_domain(self, name: str, node: Mapping) -> None:
        self._only(node, ("values", "type", "initial_value"))
        given = self._field(node, "values", f"domain {name!r}")
        items = given.items if isinstance(given, Sequence) else [given]
        values = [self.file.value(item, "a value (a number, a string or a boolean)") for item in items]
        self.file.at(given)
        if len(values) == 1 and isinstance(values[0], str) and (found := _RANGE.fullmatch(values[0])):
            first, last = map(int, found.groups())
            if not 0 <= last - first < LARGEST_DOMAIN:
                raise TextError(f"expected 1 to {LARGEST_DOMAIN} values of domain {name!r}, found {values[0].strip()}")
            values = list(range(first, last + 1))
        elif not isinstance(given, Sequence):
            raise TextError(f"expected a list of values of domain {name!r}, found {str(values[0])[:40]!r}")
        self.builder.add_domain(Domain.of(name, [v if isinstance(v, str | int) else str(v) for v in values]))
        self.expressions.values[name] = columns.column(values)

    def _domain(self, node: Mapping, owner: str) -> Domain:
        return self.builder.domain(self.file.text(self._field(node, "domain", owner), "the name of a domain"))

    def _read_variable(self, name: str, node: Mapping) -> None:
        self._only(node, ("domain", "initial_value", "cost_function", "noise_level"))
        domain = self._domain(node, f"variable {name!r}")
        if "initial_value" in node.entries and not self.file.is_empty(node.entries["initial_value"][1]):
            self._initial(node, name, domain)
        self.builder.add_variable(name, domain)

    def _initial(self, node: Mapping, name: str, domain: Domain) -> int:
        given = self._field(node, "initial_value", f"variable {name!r}")
        return domain.code(str(self.file.value(given, "a value")))

    def _read_external(self, name: str, node: Mapping) -> None:
        self._only(node, ("domain", "initial_value"))
        if name in self.builder.index:
            raise TextError(f"a second variable is named {name!r}")
        domain = self._domain(node, f"variable {name!r}")
        self.expressions.external[name] = (domain, self._initial(node, name, domain))

    def _read_preferences(self, name: str, node: Mapping) -> None:
        if "cost_function" in node.entries:
            self._add_expression(name, self._field(node, "cost_function", name), only=name)
        if "noise_level" in node.entries:
            level = self.file.number(self._field(node, "noise_level", name), "a noise level")
            if not 0 <= level < math.inf:
                raise TextError(f"expected a noise level of at least 0, found {level}")
            noise = np.random.default_rng([NOISE_SEED, zlib.crc32(name.encode())])
            v = self.builder.index[name]
            self.builder.add_full([v], noise.uniform(0, level, self.builder.variables[v].size))

    def _read_constraint(self, name: str, node: Mapping) -> None:
        self.constraints.append(name)
        owner = f"constraint {name!r}"
        kind = self.file.text(self._field(node, "type", owner), "a type")
        if kind == "intention":
            for key in ("source", "partial"):
                if key in node.entries:
                    self.file.at(node.entries[key][0])
                    raise UnsupportedError(f"{owner} has a {key!r}, which is not handled")
            self._only(node, ("type", "function", "variables"))
            self._add_expression(name, self._field(node, "function", owner))
        elif kind == "extensional":
            self._only(node, ("type", "variables", "values", "default"))
            self._read_extension(name, node)
        else:
            raise TextError(f"expected the type 'intention' or 'extensional' of {owner}, found {kind[:40]!r}")

    def _add_expression(self, owner: str, node: Node, only: str | None = None) -> None:
        text = self.file.text(node, "an expression")
        try:
            self.expressions.add(owner, text, only)
        except (TextError, UnsupportedError, MemoryLimitError) as error:
            self.file.at(node)
            raise type(error)(f"{owner!r}: {error}") from None

    def _read_extension(self, name: str, node: Mapping) -> None:
        given = self._field(node, "variables", f"constraint {name!r}")
        is_list = isinstance(given, Sequence)
        items = given.items if isinstance(given, Sequence) else [given]
        names = [self.file.text(item, "the name of a variable").strip() for item in items]
        external = self.expressions.external
        decisions = self.builder.scope(n for n in names if n not in external)
        domains = [external[n][0] if n in external else self.builder.domain_of[self.builder.index[n]] for n in names]
        values = self.file.mapping(self._field(node, "values", name), f"values of {name!r}")
        rows, costs = read_tuples(self.file, values, domains, has_blanks=not is_list)
        default = self.file.number(node.entries["default"][1], "a cost") if "default" in node.entries else None
        self.file.at(node)
        fixed = {axis: external[n][1] for axis, n in enumerate(names) if n in external}
        if fixed:
            here = (rows[:, list(fixed)] == list(fixed.values())).all(axis=1)
            rows = rows[here][:, [axis for axis in range(len(names)) if axis not in fixed]]
            costs = [cost for cost, is_here in zip(costs, here.tolist(), strict=True) if is_here]
        self.builder.add_rows(decisions, rows, costs, default, name)
