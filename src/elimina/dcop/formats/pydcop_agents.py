"""The agents of a pyDCOP file: capacities, and hints for the distribution.

Hosting costs and routes are ignored, because the owner of each variable is chosen before the agents start.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence

from elimina.dcop.formats.yamltree import MappingNode, ScalarNode, SequenceNode, YamlFile, YamlNode
from elimina.dcop.problem import AgentProfile


def owners(
    variables: Sequence[str],
    agents: Sequence[str],
    must_host: Mapping[str, str],
    host_with: Sequence[tuple[str, str]],
) -> list[str]:
    """Choose the owner of each variable.

    A variable that an agent must host belongs to it. Variables that are to be hosted together belong to the agent of
    the first of them that already has one. The other variables are assigned one after another, each with those that are
    to be hosted with it. The owner is the first of the agents with the fewest variables so far. With enough agents,
    each of them gets at most one such group.

    Args:
        variables: Variables in the order of the file.
        agents: Agents in the order of the file, at least one.
        must_host: Mapping from variables to the agents that must own them.
        host_with: Pairs of variables that belong to one agent.
    """
    group = {name: name for name in variables}

    def leader(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]
            name = group[name]
        return name

    for first, second in host_with:
        group[leader(second)] = leader(first)
    load = dict.fromkeys(agents, 0)
    agent_of_group: dict[str, str] = {}
    for name in variables:
        if name in must_host:
            load[must_host[name]] += 1
            agent_of_group.setdefault(leader(name), must_host[name])
    free = [name for name in variables if name not in must_host]
    for name in free:
        if leader(name) in agent_of_group:
            load[agent_of_group[leader(name)]] += 1
    queue = [(load[agent], position) for position, agent in enumerate(agents)]
    heapq.heapify(queue)
    sizes: dict[str, int] = {}
    for name in free:
        sizes[leader(name)] = sizes.get(leader(name), 0) + 1
    for name in free:
        if leader(name) not in agent_of_group:
            count, position = heapq.heappop(queue)
            agent_of_group[leader(name)] = agents[position]
            heapq.heappush(queue, (count + sizes[leader(name)], position))
    return [must_host[name] if name in must_host else agent_of_group[leader(name)] for name in variables]


class AgentReader:
    """A reader of the agents of a file.

    Attributes:
        names: Capacity of each agent (None: not limited) by its name, in the order of the file.
        must_host: Variable or constraint -> the agent that hosts it.
        host_with: Pairs of variables or constraints that are to be hosted together.
    """

    def __init__(self, file: YamlFile, top: MappingNode, computations: Collection[str]) -> None:
        self.file, self.top, self.computations = file, top, computations
        self.names: dict[str, float | None] = {}
        self.must_host: dict[str, str] = {}
        self.host_with: list[tuple[str, str]] = []

    def read(self) -> list[AgentProfile]:
        """Read the agents and the hints; return the agents.

        Raises:
            TextError: An agent or a hint is malformed; ``file`` then has its line and column.
        """
        self._read_agents()
        for section, node in self._entries("distribution_hints", "must_host", "host_with"):
            if section.text in ("must_host", "host_with") and not self.file.is_empty(node):
                self._read_hint(section.text, node)
        return [AgentProfile(name, capacity) for name, capacity in self.names.items()]

    def _entries(self, section: str, *fields: str) -> Iterator[tuple[ScalarNode, YamlNode]]:
        if section in self.top.entries and not self.file.is_empty(self.top.entries[section][1]):
            node = self.file.mapping(self.top.entries[section][1], section)
            self.file.check_keys(node, fields)
            yield from node.entries.values()

    def _items(self, node: YamlNode, what: str) -> Iterator[tuple[YamlNode, str]]:
        """Yield the nodes and names in a list, or those of a single name."""
        for item in node.items if isinstance(node, SequenceNode) else [node]:
            yield item, self.file.text(item, what)

    def _agent(self, node: YamlNode, name: str) -> str:
        if name not in self.names:
            self.file.fail(node, f"expected the name of an agent, found {name[:40]!r}")
        return name

    def _computation(self, node: YamlNode, name: str) -> str:
        if name not in self.computations:
            self.file.fail(node, f"expected the name of a variable or constraint, found {name[:40]!r}")
        return name

    def _read_agents(self) -> None:
        listed_agents = self.top.entries["agents"][1] if "agents" in self.top.entries else None
        if isinstance(listed_agents, SequenceNode):
            for item, name in self._items(listed_agents, "the name of an agent"):
                if name in self.names:
                    self.file.fail(item, f"a second agent is named {name[:40]!r}")
                self.names[name] = None
            return
        for key, node in self._entries("agents"):
            self.names[key.text] = None
            if self.file.is_empty(node):
                continue
            fields = self.file.mapping(node, f"agents: {key.text[:40]}").entries
            if "capacity" in fields and not self.file.is_empty(fields["capacity"][1]):
                self.names[key.text] = self.file.number(fields["capacity"][1], "a capacity")

    def _read_hint(self, kind: str, node: YamlNode) -> None:
        for key, listed in self.file.mapping(node, kind).entries.values():
            first = self._agent(key, key.text) if kind == "must_host" else self._computation(key, key.text)
            for item, name in self._items(listed, "the name of a variable or constraint"):
                self._computation(item, name)
                if kind == "host_with":
                    self.host_with.append((first, name))
                elif self.must_host.setdefault(name, first) != first:
                    self.file.fail(item, f"agents {self.must_host[name]!r} and {first!r} both must host {name!r}")
