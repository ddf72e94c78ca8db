"""Forecast of MB-DPOP: the pseudo-tree and the ancestors to condition on are found, but no table is made."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from elimina._core import Traversal
from elimina.dcop.agent import Agent, Finished
from elimina.dcop.cycles import cut_ancestors
from elimina.dcop.messages import Message
from elimina.dcop.problem import Heuristic, Problem, Settings, views
from elimina.errors import InternalError
from elimina.planning.machine import CONTEXT_SECONDS, cpu_machine
from elimina.planning.plan import count_text, seconds_text
from elimina.tree import Tree, bucket_tree


def agree_on_tree(problem: Problem, heuristic: Heuristic = "max-degree", seed: int = 0) -> Tree:
    """Let agents make their pseudo-tree, and no more.

    Args:
        problem: Problem whose variables belong to agents.
        heuristic: See ``elimina.dcop.solve``.
        seed: Random seed of the heuristic ``random``.
    """
    settings = Settings(problem.model.sense, problem.model.is_integer, heuristic=heuristic, seed=seed)
    agents = {view.name: Agent(view) for view in views(problem, settings)}
    waiting: deque[Message] = deque()
    for agent in agents.values():
        waiting.extend(agent.start())
    while waiting:
        message = waiting.popleft()
        waiting.extend(agents[message.receiver].receive(message))
    return pseudo_tree(problem, agents.values())


def pseudo_tree(problem: Problem, agents: Iterable[Finished]) -> Tree:
    """Return the pseudo-tree that agents have made: in its order children come before their parents.

    Raises:
        InternalError: It is not a pseudo-tree of the problem.
    """
    places = {v: place for agent in agents for v, place in agent.places.items()}
    tree = bucket_tree([table.scope for table in problem.model.factors if table.scope], _order(places))
    for node in tree.nodes:
        parent = tree.nodes[node.parent].variable if node.parent >= 0 else -1
        if parent != places[node.variable].parent:
            raise InternalError(
                f"variable {node.variable} is not a child of {parent} in the pseudo-tree; please report this"
            )
    return tree


def _order(places: Mapping[int, Traversal]) -> list[int]:
    """Return the variables by the roots of their trees, those visited last first."""
    roots: dict[int, int] = {}
    for variable in sorted(places, key=lambda v: places[v].visit):
        parent = places[variable].parent
        roots[variable] = roots[parent] if parent >= 0 else variable
    return sorted(places, key=lambda v: (roots[v], -places[v].visit))


class Forecast(NamedTuple):
    """Cost of a run of MB-DPOP.

    Attributes:
        width: Width of the pseudo-tree.
        contexts: The most values of fixed ancestors that one variable makes its table for.
        tables: Number of tables of all variables.
        operations: Tables read, over all combinations of their variables.
        seconds: Estimated time, on the CPU; infinity if it is beyond a float.
    """

    width: int
    contexts: int
    tables: int
    operations: int
    seconds: float

    def __str__(self) -> str:
        tables = f"{count_text(self.tables)} tables, up to {count_text(self.contexts)} of a variable"
        return f"mb-dpop: width {self.width}, {tables}, about {seconds_text(self.seconds)}"


def forecast(problem: Problem, settings: Settings, threads: int) -> Forecast:
    """Look ahead.

    Args:
        problem: Problem whose variables belong to agents.
        settings: With a limit on a message's cells.
        threads: Number of CPU threads of an agent.
    """
    assert settings.most_cells is not None
    tree, sizes = agree_on_tree(problem, settings.heuristic, settings.seed), problem.model.sizes
    scopes = [table.scope for table in problem.model.factors if table.scope]
    cuts: list[set[int]] = []
    for node in tree.nodes:
        below = {v for child in node.children for v in cuts[child]} - {node.variable}
        cuts.append(cut_ancestors({v: sizes[v] for v in reversed(node.separator)}, below, settings.most_cells))
    contexts = [math.prod(sizes[v] for v in own) for own in cuts]
    tables = combinations = operations = 0
    for number, node in enumerate(tree.nodes):
        made = contexts[number] + _again(tree, cuts, sizes, number)
        cells = math.prod(sizes[v] for v in node.separator if v not in cuts[number]) * sizes[node.variable]
        tables += made
        combinations += made * cells
        operations += made * cells * max(1, len({frozenset(scopes[f]) for f in node.factors}) + len(node.children))
    try:
        seconds = tables * CONTEXT_SECONDS + combinations / cpu_machine(threads).combinations
    except OverflowError:
        seconds = math.inf
    return Forecast(tree.width, max(contexts, default=1), tables, operations, seconds)


def _again(tree: Tree, cuts: Sequence[set[int]], sizes: Sequence[int], number: int) -> int:
    """Return the most tables that a variable makes again once an ancestor knows its value; the last ones are kept."""
    found, ancestor = 0, tree.nodes[number].parent if cuts[number] else -1
    while ancestor >= 0:
        if cuts[ancestor]:
            found += math.prod(sizes[v] for v in cuts[number] - cuts[ancestor])
        ancestor = tree.nodes[ancestor].parent
    return found
