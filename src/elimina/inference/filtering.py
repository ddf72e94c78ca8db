"""The optimum of a problem by elimination that keeps only rows which can be part of a better solution.

Function filtering (M. Sanchez, J. Larrosa, P. Meseguer, "Improving tree decomposition methods with function
filtering", IJCAI 2005; I. Brito, P. Meseguer, "Improving DPOP with function filtering", AAMAS 2010) drops each row of a
bucket whose cost and a lower bound on the rest of the problem exceed an upper bound. How the bounds are made is said in
``docs/decisions/0015-filtering.md``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import FORBIDDEN_COST, minimise_costs
from elimina.display import bytes_text
from elimina.errors import InternalError, MemoryLimitError, UnsupportedError
from elimina.inference.encode import distances
from elimina.inference.known import ends_beyond
from elimina.planning.prepare import Problem, allowed_ranges
from elimina.result import Bounds, Result

MOST_COST = 2**38
"""Sums of costs stay below it, in parts of a thousandth they fit the core's type."""

MOST_CELLS = 2**26
"""Most cells of all tables together: they are kept as dense ones, their sizes rounded up to powers of two."""

_ROW_BYTES = 64
"""Bytes of a tuple in the making: key, cost and bound, in arrays that grow by doubling, and the memory of sorting."""

_LEAST_ROWS = 1 << 12

_COPIES, _TABLE_BYTES, _CELL_BYTES = 10, 380, 8
"""Copies of the tables at the same time (slices that are open, shrunk and divided), and bytes of a table's objects and
of a cell in each: 46 MiB in all of 509_VAC of SPOT5, 8,630 tables of 23 cells."""

_LEAST_COPIES = 1 << 23
"""Bytes of copies that are always allowed."""

Listener = Callable[[Result], None]


class Limits(NamedTuple):
    """Limits of a run.

    Attributes:
        memory: Bytes that tuples may take.
        seconds: After which it stops with bounds.
        upper_bound: A total that is known to be reached (costs; the other way round where they are maximised): what is
            worse is not looked for. None if none is known.
        seed: Random seed of the search for a first solution, and of orders.
        gap: The gap of the bounds that is close enough.
    """

    memory: int
    seconds: float = math.inf
    upper_bound: int | None = None
    seed: int = 0
    gap: float = 0.0


def why_unsupported(problem: Problem) -> str | None:
    """Why a problem cannot be filtered; None if it can."""
    if not problem.described.is_optimum or not problem.model.is_integer:
        return "filtering needs the task mpe and integer costs"
    if _cells(problem) > MOST_CELLS:
        return f"filtering needs tables of at most {MOST_CELLS} cells together"
    ranges = allowed_ranges(problem.tables, problem.model.sense)
    spread = sum([known[1] - known[0] for known in ranges if known is not None])
    if spread >= MOST_COST:
        return f"filtering adds costs up to {MOST_COST}, and the tables' ranges add up to {spread}"
    return None


def why_too_large(problem: Problem, memory: int) -> str | None:
    """Return why the copies that filtering makes of a problem's tables pass a memory limit in bytes, or None."""
    copies = _COPIES * (_TABLE_BYTES * len(problem.tables) + _CELL_BYTES * _cells(problem))
    if copies <= max(memory, _LEAST_COPIES):
        return None
    return f"filtering needs {bytes_text(copies)} for copies of the tables and may use {bytes_text(memory)}"


def _cells(problem: Problem) -> int:
    """Return the cells of all tables over domains that are padded to powers of two."""
    padded = [1 << (size - 1).bit_length() for size in problem.model.sizes]
    return sum([math.prod([padded[v] for v in table.scope]) for table in problem.tables])


def filtered_optimum(problem: Problem, limits: Limits, listener: Listener | None = None) -> Result:
    """Find the optimum and an assignment, or bounds on it where time ends before.

    Args:
        problem: Problem of the task ``mpe``.
        limits: Limits of the run.
        listener: Called now and then with what is known.

    Returns:
        ``optimal``; ``infeasible`` (with the bound that was given, if one was); or ``bounded``, when the time was up.

    Raises:
        UnsupportedError: The problem has other than integer costs, or too large ones.
        MemoryLimitError: Copies of its tables do not fit.
        InternalError: The assignment's value, recomputed on the model, is not the value found.
    """
    reason = why_unsupported(problem)
    if reason is not None:
        raise UnsupportedError(f"{reason}; use --method eliminate")
    large = why_too_large(problem, limits.memory)
    if large is not None:
        raise MemoryLimitError(f"{large}; give more memory (--memory), or use --method search")
    started = time.perf_counter()
    costs = _Costs.of(problem)
    upper = costs.upper(limits.upper_bound)

    best: Result | None = None

    def poll(lower: int, cost: int, value: list[int] | None) -> bool:
        nonlocal best
        if value is not None:
            best = costs.solution(value, cost)
        known = costs.bounded(min(lower, upper), best)  # nothing is known beyond the totals that the search accepts
        if listener is not None:
            listener(known)
        return Bounds(0.0, known.lower_bound, known.upper_bound).gap > limits.gap

    clock = {"encode": time.perf_counter() - started}
    if upper <= 0 or not costs.possible:
        found: dict[str, Any] = {"value": [], "cost": FORBIDDEN_COST, "bound": FORBIDDEN_COST}
    elif not costs.sizes:
        found = {"value": [], "cost": 0, "bound": 0}
    else:
        rows = max(_LEAST_ROWS, limits.memory // _ROW_BYTES)
        found = minimise_costs(
            costs.sizes, costs.scopes, costs.tables, 0, upper, limits.seconds, rows, limits.seed, poll
        )
    clock.update(found.get("seconds", {}))
    if found.get("interrupted"):
        raise KeyboardInterrupt
    return costs.result(found, upper, limits).replace(stats=_statistics(found, clock))


def _statistics(found: dict[str, Any], clock: dict[str, float]) -> dict[str, Any]:
    made, kept = found.get("made", 0), found.get("kept", 0)
    return {
        "method": "filter",
        "induced_width": None,
        "largest_table": found.get("largest", 0),
        "total_cells": made,
        "rows_made": made,
        "rows_filtered": made - kept,
        "slices": found.get("slices", 0),
        "eliminations": found.get("eliminations", 0),
        "peak_bytes": found.get("bytes", 0),
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": "cpu",
        "dtype": "int32",
    }


class _Costs(NamedTuple):
    """A problem as distances from the best that each table has, which the core minimises.

    Attributes:
        problem: Problem in its original costs.
        offset: The model's total where all distances are 0.
        sizes: Sizes of the free variables.
        scopes: Their numbers in each group.
        tables: int64, one after another cell, of the problem's groups.
        possible: True if no table forbids everything.
    """

    problem: Problem
    offset: int
    sizes: list[int]
    scopes: list[list[int]]
    tables: list[NDArray[np.int64]]
    possible: bool

    @staticmethod
    def of(problem: Problem) -> _Costs:
        number = {v: n for n, v in enumerate(problem.free)}
        known = distances(problem, FORBIDDEN_COST)
        offset = problem.model.sign * int(known.offset)
        scopes = [[number[v] for v in group.scope] for group in problem.groups]
        tables = [table.reshape(-1) for table in known.tables]
        sizes = [problem.model.sizes[v] for v in problem.free]
        return _Costs(problem, offset, sizes, scopes, tables, known.possible)

    @property
    def sign(self) -> int:
        """1 where costs are minimised, else -1."""
        return self.problem.model.sign

    def upper(self, given: int | None) -> int:
        """Return the least distance of assignments that are not solutions, or worse than a known total."""
        limits = [MOST_COST + 1]
        bound = self.problem.model.upper_bound
        if bound is not None:
            limits.append(math.ceil((bound - self.offset) * self.sign))
        if given is not None:
            limits.append((given - self.offset) * self.sign + 1)
        return min(limits)

    def total(self, distance: int) -> int:
        """Return the total of a distance in the model's units."""
        return self.offset + self.sign * distance

    def result(self, found: dict[str, Any], upper: int, limits: Limits) -> Result:
        """Return the answer in the model's units."""
        distance, bound = found["cost"], found["bound"]
        if distance >= FORBIDDEN_COST:
            if bound >= upper:
                return Result("infeasible", "mpe", None, *self._nothing_better(limits))
            return self.bounded(bound, None)
        best = self.solution(found["value"], distance)
        return best if bound >= distance else self.bounded(bound, best)

    def bounded(self, least: int, best: Result | None) -> Result:
        """Return the result that follows from a bound and the best solution, if there is one."""
        if best is None:
            ends = self.problem.model.ends(self.total(least), None)
            return Result("bounded", "mpe", None, *ends, stats=_statistics({}, {}))
        lower, upper = self.problem.model.ends(self.total(least), best.value)
        return best.replace(status="bounded", lower_bound=lower, upper_bound=upper)

    def solution(self, chosen: Sequence[int], distance: int) -> Result:
        """Return a solution that the core has found, as if it were the best one."""
        model = self.problem.model
        values = [0] * len(model.variables)
        for v, value in {**dict(zip(self.problem.free, chosen, strict=True)), **self.problem.fixed}.items():
            values[v] = value
        score = model.score(values)
        if score != self.total(distance):
            raise InternalError(
                f"filtering found the cost {self.total(distance)}, its assignment is worth {score!r} on the model; "
                "please report this"
            )
        return Result("optimal", "mpe", score, score, score, model.states_at(values), stats=_statistics({}, {}))

    def _nothing_better(self, limits: Limits) -> tuple[float | None, float | None]:
        """Return the bounds where nothing reaches the total that was given."""
        if limits.upper_bound is None:
            return None, None
        return ends_beyond(limits.upper_bound, self.sign)
