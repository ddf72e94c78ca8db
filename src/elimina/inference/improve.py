"""Better assignments by local search: tabu moves, and large neighbourhoods that elimination solves exactly.

A neighbourhood is a connected part of the problem, less the variables without which its induced width is small. It
grows, as in variable neighbourhood search (A. Ouali et al., "Variable neighborhood search for graphical model energy
minimization", Artificial Intelligence 278, 2020), until it yields a better assignment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina._core import FORBIDDEN_COST, LocalSearch
from elimina.inference.encode import distances
from elimina.inference.known import NO_PLAN
from elimina.inference.shares import can_copy, cells_of
from elimina.planning.prepare import Problem
from elimina.result import Result
from elimina.states import named


class Improvement:
    """A local search that goes on where its last turn has ended.

    Args:
        problem: Problem of the task ``mpe``, with free variables.
        core: The search of these.
    """

    def __init__(self, problem: Problem, core: LocalSearch) -> None:
        self.problem, self._core = problem, core
        self.start([0] * len(problem.model.variables))

    @staticmethod
    def of(problem: Problem, memory: int, seed: int) -> Improvement | None:
        """Prepare a local search; None if the tables are too large, or forbid everything.

        Args:
            problem: Problem of the task ``mpe``.
            memory: Bytes that it may take.
            seed: Random seed.
        """
        if not problem.free or not can_copy(cells_of(problem), len(problem.groups), memory):
            return None
        given = distances(problem, FORBIDDEN_COST)
        if not given.possible:
            return None
        number = {v: n for n, v in enumerate(problem.free)}
        tables = [table.reshape(-1).astype(np.float64) for table in given.tables]
        if problem.model.is_integer:
            for table in tables:
                table[table >= FORBIDDEN_COST] = math.inf
        sizes = [problem.model.sizes[v] for v in problem.free]
        scopes = [[number[v] for v in group.scope] for group in problem.groups]
        return Improvement(problem, LocalSearch(sizes, scopes, tables, seed))

    def found(self) -> Result | None:
        """Return the best assignment as what is known; None if it is not allowed."""
        model, score = self.problem.model, self.score
        if math.isinf(score) or model.is_beyond_bound(score):
            return None
        lower, upper = (None, score) if model.sense == "min-cost" else (score, None)
        stats = {**NO_PLAN, "method": "local search", "seconds": {}}
        return Result("bounded", "mpe", score, lower, upper, named(model.variables, self.best), stats=stats)

    def start(self, chosen: Sequence[int]) -> None:
        """Go on from a value for each variable of the model."""
        self._core.start([chosen[v] for v in self.problem.free])

    def run(self, seconds: float, cells: float = math.inf) -> bool:
        """Search, and return whether a better assignment was found.

        Args:
            seconds: Time limit.
            cells: Cells of tables that are visited, about.
        """
        return self._core.run(seconds, cells)

    @property
    def score(self) -> int | float:
        """The total of the best assignment found."""
        return self.problem.model.score(self.best)

    @property
    def best(self) -> list[int]:
        """The value of each variable of the model in the best assignment found."""
        chosen = [0] * len(self.problem.model.variables)
        for v, value in (*self.problem.fixed.items(), *zip(self.problem.free, self._core.best, strict=True)):
            chosen[v] = value
        return chosen
