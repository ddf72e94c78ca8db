"""Owners of variables where a file leaves them to hints (pyDCOP's ``distribution_hints``)."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence


def owners(
    variables: Sequence[str],
    agents: Sequence[str],
    must_host: Mapping[str, str],
    host_with: Sequence[tuple[str, str]],
) -> list[str]:
    """Decide on the owner of each variable.

    A variable that an agent must host belongs to it. Variables that are to be hosted together belong to the agent of
    the first of them that has one by now. Each other variable (with those that are to be hosted with it) belongs, in
    turn, to the agent with the fewest variables, the first such one: with enough agents, one agent a variable.

    Args:
        variables: In the order of the file.
        agents: In the order of the file, at least one.
        must_host: Variable -> agent.
        host_with: Pairs of variables.
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
    queue = [(load[agent], place) for place, agent in enumerate(agents)]
    heapq.heapify(queue)
    sizes: dict[str, int] = {}
    for name in free:
        sizes[leader(name)] = sizes.get(leader(name), 0) + 1
    for name in free:
        if leader(name) not in agent_of_group:
            count, place = heapq.heappop(queue)
            agent_of_group[leader(name)] = agents[place]
            heapq.heappush(queue, (count + sizes[leader(name)], place))
    return [must_host[name] if name in must_host else agent_of_group[leader(name)] for name in variables]
