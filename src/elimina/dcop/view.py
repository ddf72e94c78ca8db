"""An agent's knowledge: its own variables, its neighbours, and the cost functions that contain its variables."""

from __future__ import annotations

import zlib
from typing import Literal, NamedTuple, get_args

from elimina.dcop.problem import Problem
from elimina.model import Sense
from elimina.table import Table

Heuristic = Literal["max-degree", "min-degree", "most-connected", "random"]
HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
"""Heuristic of the root and of the next visit.

The neighbour with most neighbours (GpuBE paper, section 6), with fewest, with fewest and then most of them visited, or
a random one.
"""


class Settings(NamedTuple):
    """Settings that all agents agree upon beforehand.

    Attributes:
        sense: ``min-cost`` or ``max-cost``.
        is_integer: True if all costs are integers.
        ibound: The most variables of a table in a message; None: as many as it takes.
        heuristic: Ranks variables.
        seed: Random seed of the heuristic ``random``.
        memory: Bytes that each agent may use; None: no limit.
        most_cells: Largest number of cells of a message's table (MB-DPOP); None: no limit.
        is_filtered: True if tables within the i-bound are bounds only, by which rows of exact ones are left out.
    """

    sense: Sense
    is_integer: bool
    ibound: int | None = None
    heuristic: Heuristic = "max-degree"
    seed: int = 0
    memory: int | None = None
    most_cells: int | None = None
    is_filtered: bool = False

    def rank(self, variable: int, degree: int) -> int:
        """Return the higher, the closer to the root."""
        if self.heuristic == "random":
            return zlib.crc32(f"{self.seed} {variable}".encode())
        return degree if self.heuristic == "max-degree" else -degree


class View(NamedTuple):
    """An agent's own part of a problem; variables are known by their numbers.

    Attributes:
        name: The agent's.
        settings: Likewise known to all others.
        variables: Its own ones.
        owners: Name of the owner of each own variable, and of each variable that shares a cost function with one.
        sizes: Their numbers of values.
        constraints: The cost functions in which own variables take part.
    """

    name: str
    settings: Settings
    variables: tuple[int, ...]
    owners: dict[int, str]
    sizes: dict[int, int]
    constraints: tuple[Table, ...]


def views(problem: Problem, settings: Settings) -> list[View]:
    """Give each agent its part of a problem; functions without variables belong to no agent."""
    model = problem.model
    own: list[list[int]] = [[] for _ in problem.agents]
    for variable, owner in enumerate(problem.owners):
        own[owner].append(variable)
    functions: list[list[Table]] = [[] for _ in problem.agents]
    for table in model.factors:
        for owner in {problem.owners[v] for v in table.scope}:
            functions[owner].append(table)
    result = []
    for profile, variables, tables in zip(problem.agents, own, functions, strict=True):
        known = dict.fromkeys([*variables, *(v for table in tables for v in table.scope)])
        owners = {v: problem.agents[problem.owners[v]].name for v in known}
        sizes = {v: model.variables[v].size for v in known}
        result.append(View(profile.name, settings, tuple(variables), owners, sizes, tuple(tables)))
    return result
