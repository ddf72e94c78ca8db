"""Run of a search: its limits, its solutions, and its result."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from elimina._core import CpSearch, CpSolver
from elimina.answer_texts import improvement_line
from elimina.arguments import seconds, share, wrong_type
from elimina.cp.expressions import Expression
from elimina.cp.posting import PostedModel
from elimina.cp.search_options import SearchOptions
from elimina.cp.solution import Solution
from elimina.cp.unbounded import warn_of_missing_bounds
from elimina.errors import InputError
from elimina.result import Bounds, EndedBy, Result, Status
from elimina.strategies.direct_call import DirectCall
from elimina.system import InWords, memory_errors_in_words

logger = logging.getLogger("elimina")

_MIN_SECONDS = 1e-9
"""Time limit of a search that starts after the deadline: a time limit has to be above 0."""

_UNLIMITED = 10**18
"""Limit that no search reaches; larger ones are lowered to it."""


class SearchedModel(Protocol):
    """The methods of a constraint model that a run of its search uses."""

    @property
    def objective(self) -> Expression | None:
        """The expression that is minimised or maximised; None if there is none."""

    @property
    def sign(self) -> int:
        """1 if the objective is minimised, -1 if it is maximised."""

    def solution_of(self, values: npt.NDArray[np.int64]) -> Solution:
        """Return a solution with the values of all variables."""

    def posted(self) -> PostedModel:
        """Return everything that was posted."""

    def unproven_limits(self, incumbent: int | None = None) -> list[str]:
        """Return the variables without bounds in the file for which solutions beyond the default limits may exist."""

    def is_unbounded(self) -> bool:
        """Return whether every solution can be improved."""


class SearchRun:
    """A run of a search, from the posting of its constraints.

    Args:
        model: The model to be solved.
        task: ``satisfy``, ``minimise`` or ``maximise``.
        time_limit: Seconds; None if there is no limit.
        options: Limits of nodes and failures, gap and listeners.

    Attributes:
        domains: Solver whose domains are read while the search pauses.
    """

    domains: CpSolver

    def __init__(self, model: SearchedModel, task: str, time_limit: float | None, options: SearchOptions) -> None:
        self._model, self._task = model, task
        self._call = DirectCall(seconds("time_limit", time_limit))
        self._nodes = limit_of("node_limit", options.node_limit)
        self._failures = limit_of("fail_limit", options.fail_limit)
        self._gap = share("gap", options.gap)
        if options.on_bounds is not None and not callable(options.on_bounds):
            raise wrong_type("on_bounds", options.on_bounds, "a function that gets bounds, or None")
        self._progress, self._on_bounds = options.progress, options.on_bounds
        if options.log is not None and not callable(options.log):
            raise wrong_type("log", options.log, "a function that gets a line of text, or None")
        self._log = options.log or (logger.info if logger.isEnabledFor(logging.INFO) else None)
        self._origin = ""
        self._reported: tuple[int | None, int | None] = (None, None)
        self._is_close = False
        self._search: CpSearch | None = None
        self._last: Solution | None = None
        self._solutions: list[Solution] = []
        self._is_complete = False
        self._pauses = 0

    @property
    def limits(self) -> tuple[float, float, float]:
        """Remaining seconds, nodes and failures, in the core's form."""
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
            start: Function that posts the constraints and returns a new search.
            limit: Number of solutions to end after; None if there is no limit.
            keep_all: True if all solutions are part of the answer.
            on_solution: Function to call with each solution; it ends the search by returning False.
            is_enough: True if an answer with ``limit`` solutions is complete.

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
        count, deadline = 0, self.deadline

        def accept(values: npt.NDArray[np.int64], origin: str) -> bool:
            """Record a solution, and return whether the listener of solutions continues the search."""
            nonlocal count
            self._origin = origin
            self._last = solution = self._model.solution_of(values)
            count += 1
            if keep_all:
                self._solutions.append(solution)
            return on_solution is None or on_solution(solution) is not False

        poll = self._poll(search)
        while count != limit:
            state = search.next(poll)
            if state == "paused":
                self._call.mark("search")
                ended_by = self._add_findings(search, accept)
                self._pauses += 1
                self._call.mark("bounds")
                if ended_by is not None or self._is_complete:
                    return ended_by
            elif state != "solution":
                self._is_complete = state == "complete"
                if self._is_complete or self._is_close:
                    return None if self._is_complete else "gap"
                return "interrupt" if state == "stopped" else self._limit_of(search)
            elif not accept(search.solution(), search.origin()):
                return "interrupt"
            if not self._report_bounds(search):
                return "gap"
            # The core only checks the time of the search, so the time of ``on_solution`` is checked here.
            if deadline is not None and count != limit and time.monotonic() > deadline:
                return "time-limit"
        return "solution-limit"

    def _poll(self, search: CpSearch) -> Callable[[], bool]:
        progress = self._progress
        if progress is None and not self._watches_bounds:
            return never_stop

        def report() -> bool:
            if progress is not None:
                progress(search.statistics())
            return self._report_bounds(search)

        return report

    @property
    def _watches_bounds(self) -> bool:
        return self._on_bounds is not None or self._log is not None or self._gap > 0

    def _report_bounds(self, search: CpSearch) -> bool:
        """Report new bounds; return False if they are so close that the search is to end."""
        if self._model.objective is None or not self._watches_bounds:
            return True
        ends = self._bounds(search)
        if ends == self._reported:
            return True
        previous, self._reported = self._reported, ends
        bounds = Bounds(self._call.age, *ends, search.statistics()["nodes"])
        if self._on_bounds is not None:
            self._on_bounds(bounds)
        incumbent = 1 if self._model.sign > 0 else 0
        self._write_log(ends, self._origin if ends[incumbent] != previous[incumbent] else "bound")
        self._is_close = 0 < bounds.gap <= self._gap
        return not self._is_close

    def _write_log(self, ends: tuple[int | None, int | None], origin: str) -> None:
        if self._log is not None:
            value, bound = reversed(ends) if self._model.sign > 0 else ends
            self._log(improvement_line(self._call.age, value, bound, Bounds(0.0, *ends).gap, origin))

    def _bounds(self, search: CpSearch | None) -> tuple[int | None, int | None]:
        """Return the lower and the upper bound of the objective; None for a bound that is unknown."""
        aim, last, sign = self._model.objective, self._last, self._model.sign
        if aim is None:
            return None, None
        value: int | None = None if last is None else last[aim]
        bound = None if search is None else search.bound()
        if bound is not None and value is not None:
            bound = min(bound, sign * value)
        proven_bound = None if bound is None or self._model.unproven_limits(sign * bound) else sign * bound
        return (proven_bound, value) if sign > 0 else (value, proven_bound)

    def _add_findings(self, search: CpSearch, accept: Callable[[npt.NDArray[np.int64], str], bool]) -> EndedBy | None:
        """Add bounds and solutions of other methods to the search; return the cause if it has to end, else None."""
        from elimina.cp.bound_schedule import PausedSearch, findings_of

        aim, sign = self._model.objective, self._model.sign
        incumbent = None if self._last is None or aim is None else sign * self._last[aim]
        posted = self._model.posted()
        signed = None if aim is None else sign * aim
        paused = PausedSearch(posted, self.domains, signed, sign, incumbent, self._call, self._pauses)
        for finding in findings_of(paused):
            if finding.solution is not None and aim is not None:
                search.adopt(finding.solution.tolist())
                solution = self._model.solution_of(finding.solution)
                if (self._last is None or sign * solution[aim] < sign * self._last[aim]) and not accept(
                    finding.solution, "elimination"
                ):
                    return "interrupt"
            if finding.lower_bound is not None:
                search.raise_bound(finding.lower_bound)
            if finding.value_costs is not None and signed is not None:
                search.set_costs(*finding.value_costs, signed.constant)
            best = None if self._last is None or aim is None else sign * self._last[aim]
            is_proven = best is not None and finding.lower_bound is not None and finding.lower_bound >= best
            if finding.is_refuted or is_proven:
                self._is_complete = True
                return None
            if finding.ended_by is not None:
                return finding.ended_by
        return None

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
        lower, upper = (value, value) if status == "optimal" else self._bounds(self._search)
        if status == "optimal" and self._reported != (value, value):
            self._write_log((value, value), "proof")
        if status in ("infeasible", "unbounded"):
            lower, upper = (value, None) if self._task == "maximise" else (None, value)
        for name in ("seconds", "interrupted"):
            stats.pop(name, None)
        stats["complete"], stats["seconds"] = self._is_complete, self._call.phase_seconds()
        return Result(
            status, self._task, value, lower, upper, last, ended_by=ended_by, stats=stats, solutions=self._solutions
        )


def memory_in_words(threads: int = 1) -> InWords:
    """Return a context that turns a ``MemoryError`` of a search or of propagation into an error with advice."""
    # The number of threads has not been checked yet, so it may be of any type.
    fewer = None if isinstance(threads, int) and threads == 1 else "search in fewer threads"
    return memory_errors_in_words("while it solved the constraint model", fewer)


def limit_of(name: str, limit: Any) -> float:
    """Return a limit as a number; infinity for None.

    Raises:
        TypeError: The limit is not a number.
        InputError: The limit is negative.
    """
    if limit is None:
        return math.inf
    if isinstance(limit, bool) or not isinstance(limit, int | float | np.integer | np.floating):
        raise wrong_type(name, limit, "a number that is at least 0, or None")
    if not limit >= 0:
        raise InputError(f"{name} is {limit!r}; it must be a number that is at least 0")
    return float(min(limit, _UNLIMITED))


def deadline_of(time_limit: float | None) -> float | None:
    """Return the time at which a limit of several searches passes; None if there is no limit.

    Raises:
        TypeError: The limit is not a number.
        InputError: The limit is not above 0.
    """
    limit = seconds("time_limit", time_limit)
    return None if limit is None else time.monotonic() + limit


def remaining_seconds(deadline: float | None) -> float | None:
    """Return the time limit of the next search; after the deadline it is tiny, and the search ends at once."""
    return None if deadline is None else max(_MIN_SECONDS, deadline - time.monotonic())


def never_stop() -> bool:
    """Return True: the core calls this so that Python can handle signals during the search."""
    return True
