"""A distributed problem, a model of costs whose variables belong to agents, and what each agent knows of it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from elimina.errors import InputError
from elimina.model import Model
from elimina.table import Sense, Table


@dataclass(frozen=True)
class AgentProfile:
    """Properties of an agent in a file besides the variables that it owns.

    Attributes:
        name: Name, unique in its problem.
        capacity: Room for computations, in the file's unit; None if it is not limited.
        hosting_costs: Cost of hosting a variable's computation, by the variable's name.
        default_hosting_cost: Cost of hosting any other variable's computation.
        routes: Cost of a message to another agent, by its name.
        default_route: Cost of a message to any other agent.
    """

    name: str
    capacity: float | None = None
    hosting_costs: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    default_hosting_cost: float = 0
    routes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    default_route: float = 1


class Problem:
    """A distributed constraint optimisation problem (GpuBE paper, section 2.2): a model and an owner for each variable.

    Attributes:
        model: Variables and cost functions; its sense is ``min-cost`` or ``max-cost``.
        agents: Agents in index order; an agent may own several variables, or none.
        owners: Index of the agent that owns each variable of the model.
    """

    def __init__(self, model: Model, agents: Sequence[AgentProfile], owners: Sequence[int]) -> None:
        """Check that every variable has an owner.

        Raises:
            InputError: The model is one of probabilities, two agents share a name, or a variable's owner is unknown.
        """
        if model.sense == "probability":
            raise InputError(
                "a distributed problem has costs, but the model is one of probabilities; convert it first "
                "(elimina convert MODEL OUT.wcsp)"
            )
        self.model, self.agents, self.owners = model, tuple(agents), tuple(owners)
        names = [agent.name for agent in self.agents]
        if len(set(names)) != len(names):
            raise InputError(f"two agents are named {next(name for name in names if names.count(name) > 1)!r}")
        if len(self.owners) != len(model.variables):
            raise InputError(
                f"{len(self.owners)} owners are given for {len(model.variables)} variables; one each is needed"
            )
        for variable, owner in zip(model.variables, self.owners, strict=True):
            if not 0 <= owner < len(self.agents):
                raise InputError(
                    f"variable {variable.name!r} belongs to agent {owner}, but there are {len(self.agents)}"
                )

    @classmethod
    def from_model(cls, model: Model, agents: int | None = None) -> Problem:
        """Give the variables of a model to agents.

        Args:
            model: Model of costs.
            agents: Number of agents, "a0" and so on, that get variables in turn; None: each variable gets an agent of
                its own, which has the variable's name.

        Raises:
            InputError: The model is one of probabilities, or there is no agent for its variables.
        """
        count = len(model.variables)
        if agents is None:
            return cls(model, [AgentProfile(variable.name) for variable in model.variables], range(count))
        if agents < min(count, 1):
            raise InputError(f"{count} variables need at least 1 agent, not {agents}")
        return cls(model, [AgentProfile(f"a{i}") for i in range(agents)], [v % agents for v in range(count)])


Heuristic = Literal["max-degree", "min-degree", "most-connected", "random"]
HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
"""Heuristic of the root and of the next visit.

The neighbour with most neighbours (GpuBE paper, section 6), with fewest, with fewest and then most of them visited, or
a random one.
"""


class Settings(NamedTuple):
    """Settings that all agents share before they start.

    Attributes:
        sense: ``min-cost`` or ``max-cost``.
        is_integer: True if all costs are integers.
        ibound: The most variables of a table in a message; None: as many as it takes.
        heuristic: Heuristic that ranks the variables for the pseudo-tree.
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
        """Return the rank of a variable: variables of higher rank are closer to the root."""
        if self.heuristic == "random":
            return zlib.crc32(f"{self.seed} {variable}".encode())
        return degree if self.heuristic == "max-degree" else -degree


class AgentView(NamedTuple):
    """An agent's own part of a problem; variables are known by their numbers.

    Attributes:
        name: Name of the agent.
        settings: Likewise known to all others.
        variables: Variables of the agent.
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


def views(problem: Problem, settings: Settings) -> list[AgentView]:
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
        result.append(AgentView(profile.name, settings, tuple(variables), owners, sizes, tuple(tables)))
    return result
