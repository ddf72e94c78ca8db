"""The pseudo-tree that agents agree upon, as a tree of the library."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from elimina.dcop.agent import Agent, Finished
from elimina.dcop.messages import Message
from elimina.dcop.problem import Problem
from elimina.dcop.traversal import Traversal
from elimina.dcop.view import Heuristic, Settings, views
from elimina.errors import InternalError
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
        InternalError: It is no pseudo-tree of the problem.
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
