"""A quick solution whose cost bounds the optimum: the lower the bound, the narrower the integers that are exact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elimina.model import Sense, forbidden_value
from elimina.planning.prepare import Problem, allowed_ranges
from elimina.table import Table

_VISITS = 20000
"""Variables visited at most: about a third of a second."""

_LARGEST_TABLE = 1 << 22
_PENALTY = 1 << 40


def incumbent_cost(problem: Problem) -> int | None:
    """Cost of an allowed assignment above the sum of the tables' least costs; None if none was found.

    Each variable in turn takes its best value given the others, until none changes; then a few are set at random and it
    starts again from there. Always the same result for a problem.
    """
    if any(table.cells > _LARGEST_TABLE for table in problem.tables):
        return None
    search = _Search(problem)
    best: int | None = None
    while search.visits < _VISITS:
        cost = search.descend()
        if best is None or cost < best:
            best = cost
            search.keep()
        search.kick()
        if not problem.free:
            break
    return best if best is not None and best < _PENALTY else None


class _Search:
    def __init__(self, problem: Problem) -> None:
        self._random = np.random.default_rng(0)
        self._free = problem.free
        self._sizes = problem.model.sizes
        sense = problem.model.sense
        pairs = zip(problem.tables, allowed_ranges(problem.tables, sense), strict=True)
        self._tables = [(table.scope, _distances(table, sense, known)) for table, known in pairs]
        self._touching: dict[int, list[tuple[tuple[int, ...], NDArray[np.int64]]]] = {v: [] for v in problem.free}
        for scope, values in self._tables:
            for v in scope:
                self._touching[v].append((scope, values))
        self._chosen = dict.fromkeys(problem.free, 0)
        self._kept = dict(self._chosen)
        self.visits = 0

    def descend(self) -> int:
        """Reach a local optimum (or the limit on visits); return its cost."""
        changed = True
        while changed and self.visits < _VISITS:
            changed = False
            for v in self._free:
                costs = np.zeros(self._sizes[v], dtype=np.int64)
                for scope, values in self._touching[v]:
                    costs += values[tuple(slice(None) if u == v else self._chosen[u] for u in scope)]
                value = int(costs.argmin())
                if costs[value] < costs[self._chosen[v]]:
                    self._chosen[v] = value
                    changed = True
            self.visits += len(self._free)
        return sum(int(values[tuple(self._chosen[u] for u in scope)]) for scope, values in self._tables)

    def keep(self) -> None:
        """Remember the present assignment."""
        self._kept = dict(self._chosen)

    def kick(self) -> None:
        """Go back to the kept assignment, some variables set at random."""
        self._chosen = dict(self._kept)
        for v in self._random.permutation(self._free)[: max(2, len(self._free) // 20)].tolist():
            self._chosen[v] = int(self._random.integers(self._sizes[v]))


def _distances(table: Table, sense: Sense, bounds: tuple[float, float] | None) -> NDArray[np.int64]:
    """Costs above the table's least one, at most a penalty, which is also what forbidden ones have."""
    if bounds is None:
        return np.full(table.sizes, _PENALTY, dtype=np.int64)
    values = table.dense()
    if sense == "min-cost":
        distance = values.view(np.uint64) - np.uint64(int(bounds[0]) % 2**64)
    else:
        distance = np.uint64(int(bounds[1]) % 2**64) - values.view(np.uint64)
    forbidden = forbidden_value(sense, np.int64)
    return np.where(values == forbidden, _PENALTY, np.minimum(distance, np.uint64(_PENALTY)).astype(np.int64))
