"""Run of a search: its limits, its solutions, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from elimina._core import CpSearch
from elimina.arguments import wrong_type
from elimina.cp.expressions import Expression
from elimina.cp.solution import Solution
from elimina.cp.unbounded import warn_of_missing_bounds
from elimina.errors import InputError
from elimina.result import EndedBy, Result, Status
from elimina.strategies.direct_call import DirectCall
from elimina.system import InWords, memory_errors_in_words

_UNLIMITED = 10**18
"""Limits above it are none."""


class SearchedModel(Protocol):
    """The methods of a constraint model that a run of its search uses."""

    @property
    def objective(self) -> Expression | None:
        """The expression that is minimised or maximised."""

    def solution_of(self, search: CpSearch) -> Solution:
        """Return the latest solution of a search."""

    def unproven_limits(self, incumbent: int | None = None) -> list[str]:
        """Return the names of variables without bounds in the file whose limits a complete search relies on."""

    def is_unbounded(self) -> bool:
        """Return whether every solution can be improved."""


class SearchRun:
    """A run, from the posting of the constraints on.

    Args:
        model: The model to be solved.
        task: ``satisfy``, ``minimise`` or ``maximise``.
        time_limit: Seconds; None if there is no limit.
        node_limit: Number of nodes after which the search ends; None for no limit.
        fail_limit: Number of failures after which the search ends; None for no limit.
    """

    def __init__(
        self, model: SearchedModel, task: str, time_limit: float | None, node_limit: int | None, fail_limit: int | None
    ) -> None:
        self._model, self._task = model, task
        seconds = limit_of("time_limit", time_limit)
        self._call = DirectCall(None if seconds == math.inf else seconds)
        self._nodes = limit_of("node_limit", node_limit)
        self._failures = limit_of("fail_limit", fail_limit)
        self.progress: Callable[[dict[str, Any]], object] | None = None
        self._search: CpSearch | None = None
        self._last: Solution | None = None
        self._solutions: list[Solution] = []
        self._is_complete = False

    @property
    def limits(self) -> tuple[float, float, float]:
        """Remaining seconds, nodes and failures, as the core takes them."""
        return self._call.seconds, self._nodes, self._failures

    @property
    def deadline(self) -> float | None:
        """Time, by ``time.monotonic``, at which the search ends; None if there is no time limit."""
        return self._call.deadline

    def answer(
        self,
        start: Callable[[], CpSearch],
        limit: int | None,
        keep_all: bool,
        on_solution: Callable[[Solution], object] | None,
        is_enough: bool = False,
    ) -> Result:
        """Post the constraints, and search to the end or to a limit.

        Args:
            start: Function that posts the constraints and returns a search that has not begun.
            limit: Number of solutions to end after; None if there is no limit.
            keep_all: True if all solutions are part of the answer.
            on_solution: Function to call with each solution; it ends the search by returning False.
            is_enough: True if so many solutions are all that the task asks for.

        Raises:
            MemoryError: Memory ran out before there was a solution.
        """

        def work() -> Result:
            self._search = search = start()
            self._call.mark("post")
            ended_by = self._search_to_limit(search, limit, keep_all, on_solution)
            return self._result(None if is_enough and ended_by == "solution-limit" else ended_by)

        return self._call.answer(work, self._early_result)

    def _early_result(self, cause: EndedBy) -> Result | None:
        is_lost = cause == "device-error" or (cause == "memory-limit" and self._last is None)
        return None if is_lost else self._result(cause)

    def _search_to_limit(
        self, search: CpSearch, limit: int | None, keep_all: bool, on_solution: Callable[[Solution], object] | None
    ) -> EndedBy | None:
        count, progress, deadline = 0, self.progress, self.deadline

        def report_progress() -> bool:
            if progress is not None:
                progress(search.statistics())
            return True

        while count != limit:
            state = search.next(never_stop if progress is None else report_progress)
            if state != "solution":
                self._is_complete = state == "complete"
                return None if self._is_complete else "interrupt" if state == "stopped" else self._limit_of(search)
            self._last = solution = self._model.solution_of(search)
            count += 1
            if keep_all:
                self._solutions.append(solution)
            if on_solution is not None and on_solution(solution) is False:
                return "interrupt"
            # The core measures the time of the search alone, not that of on_solution.
            if deadline is not None and count != limit and time.monotonic() > deadline:
                return "time-limit"
        return "solution-limit"

    def _limit_of(self, search: CpSearch) -> EndedBy:
        figures = search.statistics()
        if figures["nodes"] >= self._nodes:
            return "node-limit"
        return "failure-limit" if figures["failures"] >= self._failures else "time-limit"

    def _result(self, ended_by: EndedBy | None) -> Result:
        stats = {} if self._search is None else self._search.statistics()
        self._call.mark("post" if self._search is None else "search")
        aim, last = self._model.objective, self._last
        value = None if last is None or aim is None else last[aim]
        names = self._model.unproven_limits(value) if self._is_complete else []
        is_unbounded = bool(names) and last is not None and self._model.is_unbounded()
        if names:
            self._is_complete, ended_by = False, None if is_unbounded else "domain-limit"
        if ended_by == "domain-limit":
            warn_of_missing_bounds(names)
        status: Status = "infeasible" if self._is_complete else "unknown"
        if last is not None:
            status = "feasible" if value is None or not self._is_complete else "optimal"
            status = "unbounded" if is_unbounded else status
        lower = value if status == "optimal" or self._task == "maximise" else None
        upper = value if status == "optimal" or self._task == "minimise" else None
        for name in ("seconds", "interrupted"):
            stats.pop(name, None)
        stats["complete"], stats["seconds"] = self._is_complete, self._call.phase_seconds()
        return Result(
            status, self._task, value, lower, upper, last, ended_by=ended_by, stats=stats, solutions=self._solutions
        )


def memory_in_words(threads: int = 1) -> InWords:
    """Turn a ``MemoryError`` of a search in so many threads, or of propagation, into words."""
    # The number is not checked yet, and may be anything.
    fewer = None if isinstance(threads, int) and threads == 1 else "search in fewer threads"
    return memory_errors_in_words("while it solved the constraint model", fewer)


def limit_of(name: str, limit: Any) -> float:
    """Return a limit as a number; infinity for None.

    Raises:
        InputError: It is not a number, or negative.
    """
    if limit is None:
        return math.inf
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer | np.floating):
        raise wrong_type(name, limit, "a number that is at least 0, or None")
    if not limit >= 0:
        raise InputError(f"{name} is {limit!r}; it must be a number that is at least 0")
    return float(min(limit, _UNLIMITED))


def never_stop() -> bool:
    """Let the search go on: a callback of the core in which Python handles signals."""
    return True
