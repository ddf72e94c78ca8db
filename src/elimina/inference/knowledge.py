"""Answers before they are exact: their combination, first bounds in very little time, a hint and local search.

``Knowledge`` is what a search knows by now.

The local search takes tabu moves, and solves large neighbourhoods exactly by elimination, in turns. A neighbourhood is
a connected part of the problem, less the variables without which its induced width is small. It grows, as in variable
neighbourhood search (A. Ouali et al., "Variable neighborhood search for graphical model energy minimization",
Artificial Intelligence 278, 2020), until it yields a better assignment.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from elimina._core import FORBIDDEN_COST, LocalSearch, stopped
from elimina.errors import TimeLimitError
from elimina.inference.encode import distances
from elimina.inference.minibucket import meet, result_between, sum_between
from elimina.inference.options import Options
from elimina.inference.strategy import FIRST_TURN, can_copy, cells_of, threads_within
from elimina.planning.machine import BOUNDED_TABLE_SECONDS
from elimina.planning.prepare import Problem, prepare
from elimina.result import Bounds, Result, timed
from elimina.states import named
from elimina.table import Ends, Sense, forbidden_value

FIRST_SECONDS = 0.05
"""Estimated time of the first round's mini-buckets."""


Listener = Callable[[Result], None]
"""Function that is told what is known by now."""


class Limits(NamedTuple):
    """Conditions that end a search before the optimum is proven.

    Attributes:
        deadline: By ``time.monotonic``; None: there is none.
        gap: The gap of the bounds that is close enough.
        upper_bound: A total that is known to be reached; None if none is known.
        nodes: Most nodes of the search tree in each round.
        rounds: After which it ends; 0: after the first turn of soft local consistency.
        messages: Estimated seconds of the first round's mini-buckets; each round may take ten times longer than the one
            before.
        first_turn: Seconds of the first turn of soft local consistency.
        is_alone: True if mini-buckets go without turns of soft local consistency.
    """

    deadline: float | None = None
    gap: float = 0.0
    upper_bound: int | float | None = None
    nodes: float = math.inf
    rounds: float = math.inf
    messages: float = FIRST_SECONDS
    first_turn: float = FIRST_TURN
    is_alone: bool = False

    @property
    def seconds(self) -> float:
        """Until the deadline."""
        return math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class Knowledge:
    """Knowledge so far, in the units of the problem's model.

    Args:
        problem: Problem of the task ``mpe``.
        limits: Limits of the gap and the time.
        listener: Called with what is known.
    """

    def __init__(self, problem: Problem, limits: Limits, listener: Listener | None) -> None:
        self.problem, self.limits, self.listener = problem, limits, listener
        self.sign = problem.model.sign
        self.chosen: list[int] | None = None
        self.assignment: dict[str, Any] | None = None
        self.score: int | float | None = limits.upper_bound
        self.bound: int | float | None = None
        self.is_empty = False
        # Nothing is left to be searched, though rounding errors may leave the bounds apart.
        self.is_exhausted = False
        self.stats: dict[str, Any] = {**NO_PLAN, "nodes": 0, "rounds": 0, "turns": 0, "profile": []}
        self.clock: dict[str, float] = {}
        self.started = time.monotonic()

    def learn(self, found: Result) -> None:
        """Take the results of another strategy."""
        bound = found.bound(self.sign)
        if bound is not None:
            self.raise_to(bound)
        if found.assignment is not None:
            self.take(self.problem.model.indices_of(found.assignment))

    @property
    def is_over(self) -> bool:
        """True if the bounds are close enough, the time is up, or the call is to end."""
        is_done = self.is_empty or self.is_exhausted or self.is_close
        return is_done or stopped() or self.limits.seconds <= 0

    @property
    def is_close(self) -> bool:
        """True if the bounds are close enough."""
        if self.chosen is None or self.score is None or self.bound is None:
            return False
        return meet(self.bound, self.score) or self.known(self.score).gap <= self.limits.gap

    def end(self, is_in_doubt: bool) -> None:
        """Note that nothing is left to be searched.

        Args:
            is_in_doubt: True if rounding alone may have made what was found no solution.
        """
        self.is_exhausted = True
        limits = [limit for limit in (self.problem.model.upper_bound, self.limits.upper_bound) if limit is not None]
        worst = min((self.sign * limit for limit in limits), default=math.inf)
        bound = -math.inf if self.bound is None else self.sign * self.bound
        is_beyond = math.isfinite(worst) and (bound >= worst or meet(bound, float(worst)))
        self.is_empty = self.chosen is None and (is_beyond or not is_in_doubt)

    def take(self, chosen: list[int]) -> None:
        """Keep an assignment if it is the best one, and no worse than the total that is known to be reached."""
        score = self.problem.model.score(chosen)
        if math.isinf(score) or self.problem.model.is_beyond_bound(score):
            return
        given = self.limits.upper_bound
        if given is not None and self.sign * score > self.sign * given and not meet(given, score):
            return
        if self.score is None or self.chosen is None or self.sign * score < self.sign * self.score:
            self.chosen, self.score = chosen, score
            self.assignment = self.problem.model.states_at(chosen)

    def raise_to(self, value: int | float) -> None:
        """Keep a bound in the model's units if it is the best one."""
        if self.bound is None or self.sign * value > self.sign * self.bound:
            self.bound = value

    def known(self, best: int | float | None) -> Bounds:
        """Return the bounds, given the value of the best assignment."""
        ends = self.problem.model.ends(self.bound, best)
        return Bounds(round(time.monotonic() - self.started, 3), *ends, self.stats["nodes"])

    def report(self) -> None:
        """Report the bounds and assignment, and keep them for the profile."""
        # A total that was given is not a bound: perhaps nothing reaches it.
        known = self.known(None if self.chosen is None else self.score)
        if not self.stats["profile"] or self.stats["profile"][-1][1:3] != known[1:3]:
            self.stats["profile"].append(known)
        if self.listener is not None and (self.bound is not None or self.chosen is not None):
            value = None if self.chosen is None else self.score
            ends = (known.lower, known.upper)
            stats = {**self.stats, "profile": list(self.stats["profile"]), "method": "search", "seconds": {}}
            self.listener(Result("bounded", "mpe", value, *ends, self.assignment, stats=stats))

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return a context that adds to the clock."""
        return timed(self.clock, name)

    def result(self) -> Result:
        """Return the result of the search so far.

        Raises:
            TimeLimitError: Nothing is.
        """
        if self.bound is None and not self.is_empty:
            raise TimeLimitError("the time limit passed before anything was known; allow more time")
        found = result_between(self.problem.model, None if self.is_empty else self.bound, self.chosen)
        given = self.limits.upper_bound
        if self.is_empty and given is not None:
            ends = ends_beyond(given, self.sign, self.problem.model.is_integer)
            found = found.replace(lower_bound=ends[0], upper_bound=ends[1])
        clock = {name: round(seconds, 6) for name, seconds in self.clock.items()}
        return found.replace(stats={**self.stats, "method": "search", "seconds": clock})


_MOST_CELLS = 1 << 20
"""Most cells of a table that the first assignment is improved on."""

_MOST_LISTED_CELLS = 1 << 16
"""Likewise, of a table that lists its tuples: writing it out takes more than reading it."""

_COPY_BYTES = 8
"""Bytes of a copied cell."""

_DESCENT_CELLS = 30_000_000
"""Cells that the local search for the first assignment visits: about 0.1 s."""

SLACK = 1e-12
"""Rounding of sums of floats, relative to the sum of their sizes."""

NO_PLAN: dict[str, Any] = {
    "induced_width": None,
    "largest_table": 0,
    "total_cells": 0,
    "peak_bytes": 0,
    "device": "cpu",
    "dtype": None,
}
"""Figures of a plan, where there is none."""


def combine(known: Result | None, found: Result, sign: int) -> Result:
    """Return the combination of two answers to one question; the figures are those of the second.

    Args:
        known: Known result; None: there is none.
        found: Newer answer.
        sign: 1 where values are minimised, -1 where they are maximised.
    """
    if known is None or found.status not in ("bounded", "feasible"):
        return found
    if known.status not in ("bounded", "feasible"):
        return known.replace(stats=found.stats)
    lower = max((end for end in (known.lower_bound, found.lower_bound) if end is not None), default=None)
    upper = min((end for end in (known.upper_bound, found.upper_bound) if end is not None), default=None)
    if found.task == "pr" and lower is not None and upper is not None:
        return sum_between(lower, upper).replace(stats=found.stats)
    best = found
    if _is_better(known, found, sign):
        best = known
    bound = lower if sign == 1 else upper
    if best.value is not None and bound is not None and meet(bound, best.value):
        return best.replace(status="optimal", lower_bound=best.value, upper_bound=best.value, stats=found.stats)
    return best.replace(status="bounded", lower_bound=lower, upper_bound=upper, stats=found.stats)


def _is_better(one: Result, other: Result, sign: int) -> bool:
    """Return whether an answer has a better assignment than another one, or one whose value is known to be better."""
    if one.assignment is None or other.assignment is None:
        return other.assignment is None
    ends = [(r.upper_bound if sign == 1 else r.lower_bound) if r.value is None else r.value for r in (one, other)]
    worst = sign * math.inf
    mine, its = (worst if end is None else end for end in ends)
    return sign * mine < sign * its


def ends_beyond(given: int | float, sign: int, is_integer: bool = True) -> tuple[float | None, float | None]:
    """Return the bounds of an optimum that does not reach a given total: the next total, where costs are integers.

    Args:
        given: Total that is not reached.
        sign: 1 where values are minimised, -1 where they are maximised.
        is_integer: True if costs are integers.
    """
    beyond = given + sign if is_integer else given
    return (beyond, None) if sign == 1 else (None, beyond)


def first_bounds(
    problem: Problem, seconds: float, given: float | None = None, memory: float = math.inf
) -> Result | None:
    """Bound an answer by the best value of each table, and by an assignment that is built from these values.

    Args:
        problem: A problem of the task ``mpe``, ``pr``, ``mmap`` or ``count``.
        seconds: Limit after which it is given up: then the answer is None.
        given: A total that the answer of ``mpe`` has to reach; None: any will do.
        memory: Bytes that copies of tables may take; the assignment is improved on those alone.
    """
    found = _first_bounds(problem, seconds, memory)
    if given is None or found is None:
        return found
    sign = 1 if problem.model.sense == "min-cost" else -1
    bound = found.lower_bound if sign == 1 else found.upper_bound
    if bound is None or sign * bound <= sign * given or meet(given, bound):
        return found
    ends = ends_beyond(given, sign, problem.model.is_integer)
    return Result("infeasible", "mpe", None, *ends, stats=found.stats)


def _first_bounds(problem: Problem, seconds: float, memory: float) -> Result | None:
    if seconds <= 0 or BOUNDED_TABLE_SECONDS * len(problem.tables) > seconds:
        return None
    model, tables = problem.model, problem.tables.listed
    sign = 1 if model.sense == "min-cost" else -1
    ends = Ends.of(tables, model.sense)
    best: float = math.inf
    slack: float = 0  # an integer: a float would round totals beyond 2^53
    if ends.are_allowed and model.is_integer:
        best = sign * (int(model.constant) + ends.total(highest=sign == -1))
    elif ends.are_allowed:
        costs = [_cost(value, model.sense) for value in ends.numbers(highest=sign == -1)]
        best = math.fsum([sign * model.constant, *costs])
        slack = SLACK * math.fsum(map(abs, [model.constant, *costs]))
    chosen = [0] * len(model.variables)
    for v, value in problem.fixed.items():
        chosen[v] = value
    cells = int(min(memory, sys.maxsize)) // _COPY_BYTES
    for v, value in tables.incumbent(model.sense, _DESCENT_CELLS, 0, _MOST_CELLS, _MOST_LISTED_CELLS, cells)[0]:
        chosen[v] = value
    return between(problem, best - slack, chosen)


def _cost(value: float, sense: Sense) -> float:
    if sense == "probability":
        return -math.log(value)
    return value if sense == "min-cost" else -value


def between(problem: Problem, least: float, chosen: Sequence[int]) -> Result:
    """Return the answer that the least cost of all tables and an assignment prove.

    Args:
        problem: A problem of the task ``mpe``, ``pr``, ``mmap`` or ``count``.
        least: Lower bound on the cost of an assignment, negated where totals are maximised.
        chosen: A value for each variable.
    """
    model = problem.model
    # A product of a million factors one by one takes half a minute.
    number = math.prod(size**times for size, times in Counter(model.sizes[v] for v in problem.free).items())
    stats = {**NO_PLAN, "method": "first bounds", "seconds": {}}
    if problem.task == "count":
        if math.isinf(least):
            return Result("exact", "count", 0, stats=stats)
        forbidden = {forbidden_value(model.sense, dtype) for dtype in (np.int64, np.float64)}
        is_allowed = forbidden.isdisjoint(problem.tables.listed.values(chosen))
        return Result("bounded", "count", None, int(is_allowed), number, stats=stats)
    if problem.described.is_optimum:
        if math.isinf(least):
            return Result("infeasible", "mpe", stats=stats)
        total: float = least if model.sense == "min-cost" else 0 - least
        if model.is_integer:
            total = math.ceil(total) if model.sense == "min-cost" else math.floor(total)
        return result_between(model, total, chosen, score=problem.model.score(chosen)).replace(stats=stats)
    reached = problem.tables.listed.values(chosen)
    upper = math.log(number) - least
    lower = -math.inf if 0 in reached else math.fsum([model.constant, *map(math.log, reached)]) - SLACK * abs(least)
    if problem.task == "pr":
        return sum_between(min(lower, upper) / math.log(10), upper / math.log(10)).replace(stats=stats)
    if lower == -math.inf:
        return Result("bounded", "mmap", None, None, upper, stats=stats)
    asked = (*problem.kept, *problem.wanted)
    assignment = {model.variables[v].name: model.variables[v].state(chosen[v]) for v in asked}
    return Result("bounded", "mmap", None, min(lower, upper), upper, assignment, stats=stats)


COMPLETION_CELLS, COMPLETION_PASSES = 3e7, 1000
"""Cells that local search visits at most where a hint leaves variables out or is forbidden (about 0.1 s), and how often
it visits each cell at most, on average: small models take milliseconds."""


class Improvement:
    """A local search that continues where its last time budget ended.

    Args:
        problem: Problem of the task ``mpe``, with free variables.
        core: The search of these.
        least: Lower bound on the cost of an assignment, negated where totals are maximised.
    """

    def __init__(self, problem: Problem, core: LocalSearch, least: float) -> None:
        self.problem, self._core, self._least = problem, core, least
        self.start([0] * len(problem.model.variables))

    @staticmethod
    def of(problem: Problem, memory: int, seed: int, threads: int = 1) -> Improvement | None:
        """Prepare a local search; None if the tables are too large, or forbid everything.

        Args:
            problem: Problem of the task ``mpe``.
            memory: Bytes that it may take.
            seed: Random seed.
            threads: Most searches that run side by side, of which the best assignment counts.
        """
        if not problem.free or not can_copy(cells_of(problem), len(problem.groups), memory):
            return None
        given = distances(problem, FORBIDDEN_COST)
        if not given.possible:
            return None
        costs = given.costs.astype(np.float64, copy=False)
        if problem.model.is_integer:
            costs[costs >= FORBIDDEN_COST] = math.inf
        search = LocalSearch(*problem.network, costs, seed, threads_within(problem, threads, memory))
        return Improvement(problem, search, given.offset - _slack(problem))

    def found(self) -> Result | None:
        """Return the best assignment; None if it is not allowed."""
        chosen = self.best
        score = self.problem.model.score(chosen)
        if math.isinf(score) or self.problem.model.is_beyond_bound(score):
            return None
        found = between(self.problem, self._least, chosen)
        return found.replace(stats={**found.stats, "method": "local search"})

    def start(self, chosen: Sequence[int]) -> None:
        """Go on from a value for each variable of the model."""
        self._core.start([chosen[v] for v in self.problem.free])

    def run(self, seconds: float, cells: float = math.inf) -> bool:
        """Search, and return whether a better assignment was found.

        Args:
            seconds: Time limit.
            cells: Cells of tables that each thread visits, about.
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


def first_assignment(problem: Problem, hint: Mapping[int, int], options: Options, memory: int) -> Result | None:
    """Complete a hint to an assignment, and return it; None if it leads to no allowed assignment.

    Args:
        problem: Problem of the task ``mpe``; its evidence comes before the hint.
        hint: Variable -> index of its state.
        options: ``upper_bound``: a worse assignment does not count; ``seed``.
        memory: Bytes that the completion may take.
    """
    model = problem.model
    given = {**hint, **problem.fixed}
    chosen = [given.get(v, 0) for v in range(len(model.variables))]
    if len(given) < len(chosen):
        chosen = _improved(prepare(model, "mpe", given), chosen, options, memory)
    if math.isinf(model.score(chosen)):
        chosen = _improved(problem, chosen, options, memory)
    score = model.score(chosen)
    if math.isinf(score) or model.is_beyond_bound(score):
        return None
    sign = 1 if model.sense == "min-cost" else -1
    limit = options.upper_bound
    if limit is not None and sign * score > sign * limit and not meet(limit, score):
        return None
    lower, upper = (None, score) if sign == 1 else (score, None)
    stats = {**NO_PLAN, "method": "hint", "seconds": {}}
    return Result("bounded", "mpe", score, lower, upper, named(model.variables, chosen), stats=stats)


def _slack(problem: Problem) -> float:
    """Return the largest rounding error of the sum of the tables' least costs."""
    model = problem.model
    if model.is_integer:
        return 0
    bests = Ends.of(problem.tables.listed, model.sense).numbers(highest=model.sense != "min-cost")
    costs = map(math.log, bests) if model.sense == "probability" else bests
    return SLACK * sum(map(abs, costs), abs(model.constant))


def _improved(problem: Problem, chosen: list[int], options: Options, memory: int) -> list[int]:
    search = Improvement.of(problem, memory, options.seed)
    if search is None:
        return chosen
    search.start(chosen)
    search.run(math.inf, min(COMPLETION_CELLS, COMPLETION_PASSES * cells_of(problem)))
    return search.best
