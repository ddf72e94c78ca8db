"""Placement of agents on workers."""

from __future__ import annotations

from collections.abc import Sequence

from elimina.dcop.problem import Problem


def in_sequence(problem: Problem) -> list[int]:
    """Return the agents' indices, depth first through the graph of those that share cost functions.

    It begins in each component with the agent of most neighbours and goes on to such ones, as the agents' own token
    does by default, so agents that follow each other are mostly near each other in the pseudo-tree.
    """
    neighbours: list[set[int]] = [set() for _ in problem.agents]
    for table in problem.model.factors:
        owners = {problem.owners[v] for v in table.scope}
        for owner in owners:
            neighbours[owner] |= owners - {owner}
    degrees = [len(near) for near in neighbours]
    sequence: dict[int, None] = {}
    for root in sorted(range(len(neighbours)), key=degrees.__getitem__, reverse=True):
        waiting = [root]
        while waiting:
            agent = waiting.pop()
            if agent not in sequence:
                sequence[agent] = None
                waiting.extend(sorted(neighbours[agent] - sequence.keys(), key=lambda a: (degrees[a], a)))
    return list(sequence)


def divide(sequence: Sequence[int], weights: Sequence[int], count: int) -> list[list[int]]:
    """Cut a sequence of agents into parts that weigh about the same.

    Args:
        sequence: Agents.
        weights: Weights of all agents, in index order.
        count: Number of parts; some may be empty.
    """
    parts: list[list[int]] = [[] for _ in range(count)]
    total, reached = sum(weights[agent] for agent in sequence), 0
    for agent in sequence:
        # The middle of an agent decides where it belongs.
        parts[min(count - 1, (2 * reached + weights[agent]) * count // max(1, 2 * total))].append(agent)
        reached += weights[agent]
    return parts
