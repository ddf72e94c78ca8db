"""Strategies for optima: elimination, filtering, mini-buckets and search, and their time budgets."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from elimina.backends.cpu import CpuBackend
from elimina.errors import MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.inference.account import does_not_fit
from elimina.inference.choose import Planned
from elimina.inference.options import OptimumMethod, Options
from elimina.order import Order
from elimina.planning.plan import count_text
from elimina.planning.prepare import Problem
from elimina.result import Bounds

if TYPE_CHECKING:
    from elimina.inference.anytime import Run

logger = logging.getLogger("elimina")

LARGE_WORK = 10**8
"""Cells of a quick order's buckets from which filtering is tried first."""

SHORTEST_TRY, LONGEST_TRY = 0.2, 60.0
"""Seconds of that try."""

FIRST_TRY = 2.0
"""Seconds of it where the tables would not fit: search comes next."""

SEARCHED_FROM_SECONDS = 2.0
"""Estimated time of a plan from which search is tried first, for no longer than that."""

_SHARE = 1e-9
"""Seconds of it for each of these cells, where the tables would fit."""


class Search(NamedTuple):
    """Method for an optimum, and when it is good enough.

    Attributes:
        method: ``filter``, ``search``, ``mbe``, ``eliminate``: only so; ``auto``: filtering and search first where
            elimination takes long or its tables do not fit; if they do, for no longer than it would take; and again,
            where no plan fits.
        upper_bound: A total that is known to be reached; None if none is.
        gap: The gap of the bounds that is close enough.
    """

    method: OptimumMethod = "auto"
    upper_bound: int | None = None
    gap: float = 0.0

    def is_end(self, run: Run) -> bool:
        """Return whether nothing else is to be tried: what is known is exact, or close enough, or time is up."""
        found = run.known
        if found is None:
            return False
        is_close = Bounds(0.0, found.lower_bound, found.upper_bound).gap <= self.gap
        return found.status != "bounded" or is_close or run.is_over

    def try_filtering(self, problem: Problem, rough: Callable[[], Order], options: Options, run: Run) -> None:
        """Filter before a plan is made, if that may be better (as long as it takes, where it is asked for).

        Args:
            problem: Problem of the task ``mpe``.
            rough: Finds a quick order.
            options: Planning options.
            run: The call.

        Raises:
            UnsupportedError: Filtering is asked for, and not possible.
        """
        most = math.inf
        if not options.looks_for_optimum:
            if options.dtype is not None or not _can_filter(problem, options):
                return
            order = rough()
            if order.total_cells < LARGE_WORK:
                return
            fits = 2 * order.largest_table < _memory(options)
            most = max(SHORTEST_TRY, min(LONGEST_TRY, order.total_cells * _SHARE)) if fits else FIRST_TRY
            if logger.isEnabledFor(logging.INFO):
                logger.info(f"filter first, for {most:.3g} s: a quick order has {count_text(order.total_cells)} cells")
        self._filter(problem, options, run, most, self.upper_bound)

    def for_a_while(self, planned: Planned, options: Options, run: Run) -> None:
        """Search before a plan that takes long runs, or before one that does not fit is cut into slices.

        Args:
            planned: A plan without slices and scratch files.
            options: Search options.
            run: The call.
        """
        plan, most = planned.plan, LONGEST_TRY
        if plan.fits:
            if plan.device == "cuda" or options.dtype is not None or plan.seconds < SEARCHED_FROM_SECONDS:
                return
            most = min(plan.seconds, most)
        reason = "it may be faster than the plan" if plan.fits else "the plan does not fit"
        logger.info("search first, for %s s: %s", f"{most:.3g}", reason)
        self._search_on(planned.problem, options, run, most)

    def to_the_end(self, planned: Planned, options: Options, run: Run) -> None:
        """Filter and search by longer and longer turns, or search, as long as it takes: nothing else fits.

        Raises:
            MemoryLimitError: Not even the factors fit the memory, or the costs are too large for both.
        """
        problem = planned.problem
        logger.info("search and filter to the end, as no plan fits")
        if run.known is None or not _can_filter(problem, options):
            try:
                self.by_search(problem, options, run)
            except (MemoryLimitError, UnsupportedError) as error:
                raise MemoryLimitError(does_not_fit(planned.plan)) from error
            return
        most = LONGEST_TRY
        while not self.is_end(run):
            value = run.known.value
            self._filter(problem, options, run, most / 4, self.upper_bound if value is None else int(value))
            most *= 2
            if not self.is_end(run):
                self._search_on(problem, options, run, most)

    def by_search(self, problem: Problem, options: Options, run: Run, until: float | None = None) -> None:
        """Search, as long as it takes or until then, with what is known.

        Raises:
            UnsupportedError: The costs are too large for it.
            MemoryLimitError: Not even the factors fit the memory.
        """
        from elimina.inference.knowledge import Limits
        from elimina.inference.search import searched_optimum

        ends = [end for end in (until, run.deadline) if end is not None]
        limits = Limits(min(ends, default=None), self.gap, self.upper_bound)
        run.strategy("search", lambda: searched_optimum(problem, options, limits, run.known, run.learn))

    def _search_on(self, problem: Problem, options: Options, run: Run, most: float) -> None:
        """Search for so many seconds, if that is possible."""
        with contextlib.suppress(UnsupportedError, TimeLimitError, MemoryLimitError):
            self.by_search(problem, options, run, time.monotonic() + most)

    def _filter(self, problem: Problem, options: Options, run: Run, most: float, upper: int | None) -> None:
        if options.looks_for_optimum and (options.device == "cuda" or options.tables == "sparse"):
            from elimina.inference.filtered_rows import optimum_on_rows

            until = run.deadline if most == math.inf else min(time.monotonic() + most, run.deadline or math.inf)
            run.strategy("filter", lambda: optimum_on_rows(problem, options, until, upper, self.gap, run.learn))
            return
        from elimina.inference.filtering import Limits, filtered_optimum

        limits = Limits(_memory(options), min(most, run.seconds), upper, options.seed, self.gap)
        run.strategy("filter", lambda: filtered_optimum(problem, limits, run.learn))


def _can_filter(problem: Problem, options: Options) -> bool:
    from elimina.inference.filtering import why_too_large, why_unsupported

    if options.device == "cuda":
        return False
    return why_unsupported(problem) is None and why_too_large(problem, _memory(options)) is None


def _memory(options: Options) -> int:
    return CpuBackend(options.threads).memory() if options.room is None else options.room
