"""Limits of a search, and the bounds and the best assignment so far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from elimina._core import stopped
from elimina.errors import TimeLimitError
from elimina.methods.paused_search import FIRST_CONSISTENCY_SECONDS
from elimina.problem.preparation import Problem
from elimina.result import Bounds, Result, optimistic_bound
from elimina.running.bounded_results import bounds_meet, result_between
from elimina.running.combination import NO_PLAN, bounds_beyond
from elimina.running.phases import timed

FIRST_ROUND_SECONDS = 0.05
"""Estimated time of the first round's mini-buckets."""

Listener = Callable[[Result], None]
"""Function that is called with the bounds and the best assignment so far."""


class SearchLimits(NamedTuple):
    """Conditions that end a search before the optimum is proven.

    Attributes:
        deadline: Deadline by ``time.monotonic``; None: no deadline.
        gap: Largest gap between the bounds at which the search ends.
        upper_bound: Total of a known assignment; None: no assignment is known.
        nodes: Largest number of nodes that each round searches.
        rounds: Number of rounds after which the search ends; 0: after the first turn of soft local consistency.
        messages: Estimated seconds of the first round's mini-buckets; each round may take ten times as long as the
            previous one.
        first_turn: Seconds of the first turn of soft local consistency.
        is_alone: True to run without soft local consistency.
    """

    deadline: float | None = None
    gap: float = 0.0
    upper_bound: int | float | None = None
    nodes: float = math.inf
    rounds: float = math.inf
    messages: float = FIRST_ROUND_SECONDS
    first_turn: float = FIRST_CONSISTENCY_SECONDS
    is_alone: bool = False

    @property
    def seconds(self) -> float:
        """Seconds until the deadline; 0 after it, infinity if there is none."""
        return math.inf if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class SearchState:
    """Bounds, best assignment and statistics of searches for an optimum, in the units of the problem's model.

    Args:
        problem: Problem of the task ``mpe``.
        limits: Limits of the gap and the time.
        listener: Function to call with the result so far; None: no calls.
    """

    def __init__(self, problem: Problem, limits: SearchLimits, listener: Listener | None) -> None:
        self.problem, self.limits, self.listener = problem, limits, listener
        self.sign = problem.model.sign
        self.chosen: list[int] | None = None
        self.assignment: dict[str, Any] | None = None
        self.score: int | float | None = limits.upper_bound
        self.bound: int | float | None = None
        self.is_empty = False
        # True once the search is complete, even if rounding errors separate the bounds.
        self.is_exhausted = False
        self.stats: dict[str, Any] = {**NO_PLAN, "nodes": 0, "rounds": 0, "turns": 0, "profile": []}
        self.clock: dict[str, float] = {}
        self.started = time.monotonic()

    def add_result(self, result: Result) -> None:
        """Store the bound and the assignment of another strategy's result, if they are better."""
        bound = optimistic_bound(result, self.sign)
        if bound is not None:
            self.raise_to(bound)
        if result.assignment is not None:
            self.add_assignment(self.problem.model.indices_of(result.assignment))

    @property
    def is_over(self) -> bool:
        """True if the search is complete, the bounds are close enough, the time is up, or the call has to end."""
        is_done = self.is_empty or self.is_exhausted or self.is_close
        return is_done or stopped() or self.limits.seconds <= 0

    @property
    def is_close(self) -> bool:
        """True if there are an assignment and a bound whose gap is small enough."""
        if self.chosen is None or self.score is None or self.bound is None:
            return False
        return bounds_meet(self.bound, self.score) or self.bounds_with(self.score).gap <= self.limits.gap

    def end(self, is_in_doubt: bool) -> None:
        """Mark the search as complete.

        Args:
            is_in_doubt: True if an assignment may have been rejected only because of rounding.
        """
        self.is_exhausted = True
        limits = [limit for limit in (self.problem.model.upper_bound, self.limits.upper_bound) if limit is not None]
        worst = min((self.sign * limit for limit in limits), default=math.inf)
        bound = -math.inf if self.bound is None else self.sign * self.bound
        is_beyond = math.isfinite(worst) and (bound >= worst or bounds_meet(bound, float(worst)))
        self.is_empty = self.chosen is None and (is_beyond or not is_in_doubt)

    def add_assignment(self, chosen: list[int]) -> None:
        """Store an assignment if it is allowed, the best one so far, and no worse than the given upper bound."""
        score = self.problem.model.score(chosen)
        if math.isinf(score) or self.problem.model.is_beyond_bound(score):
            return
        limit = self.limits.upper_bound
        if limit is not None and self.sign * score > self.sign * limit and not bounds_meet(limit, score):
            return
        if self.score is None or self.chosen is None or self.sign * score < self.sign * self.score:
            self.chosen, self.score = chosen, score
            self.assignment = self.problem.model.states_at(chosen)

    def raise_to(self, value: int | float) -> None:
        """Store a bound, in the model's units, if it is better than the previous one."""
        if self.bound is None or self.sign * value > self.sign * self.bound:
            self.bound = value

    def bounds_with(self, best: int | float | None) -> Bounds:
        """Return the bounds for the value of the best assignment."""
        ends = self.problem.model.ends(self.bound, best)
        return Bounds(round(time.monotonic() - self.started, 3), *ends, self.stats["nodes"])

    def report(self) -> None:
        """Report the bounds and the assignment, and add them to the profile."""
        # The user's upper bound is not reported, because possibly no assignment has this total.
        bounds = self.bounds_with(None if self.chosen is None else self.score)
        if not self.stats["profile"] or self.stats["profile"][-1][1:3] != bounds[1:3]:
            self.stats["profile"].append(bounds)
        if self.listener is not None and (self.bound is not None or self.chosen is not None):
            value = None if self.chosen is None else self.score
            ends = (bounds.lower, bounds.upper)
            stats = {**self.stats, "profile": list(self.stats["profile"]), "method": "search", "seconds": {}}
            self.listener(Result("bounded", "mpe", value, *ends, self.assignment, stats=stats))

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager that adds its seconds to a phase of the clock."""
        return timed(self.clock, name)

    def result(self) -> Result:
        """Return the result of the search so far.

        Raises:
            TimeLimitError: There is no bound yet.
        """
        if self.bound is None and not self.is_empty:
            raise TimeLimitError("the time limit passed before anything was known; allow more time")
        answer = result_between(self.problem.model, None if self.is_empty else self.bound, self.chosen)
        limit = self.limits.upper_bound
        if self.is_empty and limit is not None:
            ends = bounds_beyond(limit, self.sign, self.problem.model.is_integer)
            answer = answer.replace(lower_bound=ends[0], upper_bound=ends[1])
        clock = {name: round(seconds, 6) for name, seconds in self.clock.items()}
        return answer.replace(stats={**self.stats, "method": "search", "seconds": clock})
