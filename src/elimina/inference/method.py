"""How an optimum is found: by which of elimination, filtering, mini-buckets and search, and in which turns."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from elimina import arguments
from elimina.backends.cpu import CpuBackend
from elimina.errors import InputError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.inference.account import does_not_fit
from elimina.inference.choose import Options, Planned
from elimina.order import Order, find_order
from elimina.planning.prepare import Problem
from elimina.result import Bounds, Result

if TYPE_CHECKING:
    from elimina.inference.filtering import Listener

OptimumMethod = Literal["auto", "eliminate", "filter", "mbe", "search"]
METHODS: tuple[OptimumMethod, ...] = get_args(OptimumMethod)

LARGE_WORK = 10**8
"""Cells of a quick order's buckets from which filtering is tried first."""

SHORTEST_TRY, LONGEST_TRY = 0.2, 60.0
"""Seconds of that try."""

FIRST_TRY = 2.0
"""Seconds of it where the tables would not fit: search comes next."""

LONG_SECONDS = 2.0
"""Estimated time of a plan from which search is tried first, for no longer than that."""

_SHARE = 1e-9
"""Seconds of it for each of these cells, where the tables would fit."""


class Search(NamedTuple):
    """How the optimum is looked for.

    Attributes:
        method: ``filter``, ``search``, ``mbe``, ``eliminate``: only so; ``auto``: filtering and search first where
            elimination takes long or its tables do not fit; if they do, for no longer than it would take; and again,
            where no plan fits.
        upper_bound: A total that is known to be reached; None if none is.
        listener: See ``filtered_optimum`` and ``searched_optimum``.
        gap: The gap of the bounds that is close enough.
    """

    method: OptimumMethod = "auto"
    upper_bound: int | None = None
    listener: Listener | None = None
    gap: float = 0.0

    def check(self, task: str, has_checkpoint: bool = False) -> None:
        """Check what does not depend on a model.

        Raises:
            TypeError: The method is no text, or the bound no integer.
            InputError: There is no such method, it is not for the task, or the bound is of no use to it.
        """
        arguments.choice("method", self.method, METHODS)
        if self.upper_bound is not None:
            arguments.integer("upper_bound", self.upper_bound, taken="an integer, as the costs are, or None")
        is_known = self.method == "filter" or self.upper_bound is not None
        methods: dict[str, tuple[str, ...]] = {
            "filter": ("mpe",),
            "search": ("mpe", "mmap"),
            "mbe": ("mpe", "mmap", "pr"),
        }
        if task not in methods.get(self.method, (task,)) or (task != "mpe" and is_known):
            raise InputError(
                "the methods filter and search and an upper bound go with the task mpe, the method mbe with mpe, mmap "
                f"and pr; not with {task}"
            )
        if has_checkpoint and (self.method in ("mbe", "search") or self.is_asked_for):
            raise InputError("a checkpoint keeps what elimination knows, not what other methods do; leave one out")
        if self.method in ("eliminate", "mbe") and self.upper_bound is not None:
            raise InputError("an upper bound goes with the methods auto, filter and search; others make no use of it")

    @property
    def is_asked_for(self) -> bool:
        """Whether filtering or search is the only way."""
        return self.method in ("filter", "search") or (self.method == "auto" and self.upper_bound is not None)

    def is_end(self, found: Result, deadline: float | None) -> bool:
        """Whether nothing else is to be tried: it is exact, or close enough, or time is up, or the user's patience."""
        is_over = deadline is not None and time.monotonic() > deadline
        is_close = Bounds(0.0, found.lower_bound, found.upper_bound).gap <= self.gap
        return found.status != "bounded" or is_close or "interrupted" in found.stats or is_over

    def try_filtering(
        self, problem: Problem, options: Options, deadline: float | None, spent: Mapping[str, float]
    ) -> Result | None:
        """Filter before a plan is made, if that may be better (as long as it takes, where it is asked for).

        Raises:
            UnsupportedError: Filtering is asked for, and not possible.
        """
        from elimina.inference.filtering import why_unsupported

        most = math.inf
        if not self.is_asked_for:
            if options.device == "cuda" or options.dtype is not None or why_unsupported(problem) is not None:
                return None
            rough = _rough_order(problem, options)
            if rough.total_cells < LARGE_WORK:
                return None
            fits = 2 * rough.largest_table < _memory(options)
            most = max(SHORTEST_TRY, min(LONGEST_TRY, rough.total_cells * _SHARE)) if fits else FIRST_TRY
        result = self._filter(problem, options, deadline, most)
        return result.replace(stats={**result.stats, "seconds": {**spent, **result.stats["seconds"]}})

    def for_a_while(
        self, planned: Planned, options: Options, deadline: float | None, tried: Result | None
    ) -> Result | None:
        """Search before a plan that takes long runs, or before one that does not fit is cut into slices.

        Args:
            planned: Without slices and scratch files.
            options: How to search.
            deadline: By ``time.monotonic``.
            tried: What is known from before.

        Returns:
            What is known then.
        """
        plan, most = planned.plan, LONGEST_TRY
        if plan.fits:
            if plan.device == "cuda" or options.dtype is not None or plan.seconds < LONG_SECONDS:
                return tried
            most = min(plan.seconds, most)
        return self._search_on(planned.problem, options, most, deadline, tried)

    def to_the_end(self, planned: Planned, options: Options, deadline: float | None, tried: Result | None) -> Result:
        """Filter and search by longer and longer turns, or search, as long as it takes: nothing else fits.

        Raises:
            MemoryLimitError: Not even the factors fit the memory, or the costs are too large for both.
        """
        from elimina.inference.filtering import why_unsupported

        problem = planned.problem
        if tried is None or options.device == "cuda" or why_unsupported(problem) is not None:
            try:
                return self.by_search(problem, options, deadline, tried)
            except (MemoryLimitError, UnsupportedError) as error:
                raise MemoryLimitError(does_not_fit(planned.plan)) from error
        found, most = tried, LONGEST_TRY
        while not self.is_end(found, deadline):
            found = self._filter_on(problem, options, most / 4, deadline, found)
            most *= 2
            if not self.is_end(found, deadline):
                found = self._search_on(problem, options, most, deadline, found) or found
        return found

    def by_search(self, problem: Problem, options: Options, deadline: float | None, tried: Result | None) -> Result:
        """Search, as long as it takes, with what a try knows.

        Raises:
            UnsupportedError: The costs are too large for it.
            MemoryLimitError: Not even the factors fit the memory.
        """
        from elimina.inference.knowledge import Limits
        from elimina.inference.search import searched_optimum

        limits = Limits(deadline, self.gap, self.upper_bound)
        return searched_optimum(problem, options, limits, tried, self.listener)

    def _search_on(
        self, problem: Problem, options: Options, most: float, deadline: float | None, known: Result | None
    ) -> Result | None:
        """Search for so many seconds; what was known where that is not possible."""
        until = time.monotonic() + most
        try:
            return self.by_search(problem, options, until if deadline is None else min(until, deadline), known)
        except (UnsupportedError, TimeLimitError, MemoryLimitError):
            return known

    def _filter_on(
        self, problem: Problem, options: Options, most: float, deadline: float | None, known: Result
    ) -> Result:
        """Filter for so many seconds, with the best value known; the better bounds of both."""
        sign = 1 if problem.model.sense == "min-cost" else -1
        upper = self.upper_bound if known.value is None else int(known.value)
        found = self._replace(upper_bound=upper)._filter(problem, options, deadline, most)
        if found.status != "bounded":
            return found
        if found.value is None or (known.value is not None and sign * found.value > sign * known.value):
            found = found.replace(value=known.value, assignment=known.assignment)
        lowers, uppers = (
            [end for end in ends if end is not None]
            for ends in ((found.lower_bound, known.lower_bound), (found.upper_bound, known.upper_bound))
        )
        return found.replace(lower_bound=max(lowers, default=None), upper_bound=min(uppers, default=None))

    def _filter(self, problem: Problem, options: Options, deadline: float | None, most: float) -> Result:
        if self.is_asked_for and (options.device == "cuda" or options.tables == "sparse"):
            from elimina.inference.filtered_rows import optimum_on_rows

            until = deadline if most == math.inf else min(time.monotonic() + most, deadline or math.inf)
            return optimum_on_rows(problem, options, until, self.upper_bound, self.gap, self.listener)
        left = math.inf if deadline is None else deadline - time.monotonic()
        from elimina.inference.filtering import Limits, filtered_optimum

        limits = Limits(_memory(options), min(most, left), self.upper_bound, options.seed, self.gap)
        return filtered_optimum(problem, limits, self.listener)


def _memory(options: Options) -> int:
    return CpuBackend(options.threads).memory() if options.memory is None else options.memory


def _rough_order(problem: Problem, options: Options) -> Order:
    number = {v: n for n, v in enumerate(problem.free)}
    scopes = [[number[v] for v in group.scope] for group in problem.groups]
    sizes = [problem.model.sizes[v] for v in problem.free]
    return find_order(sizes, scopes, method="min-fill", iterations=1, seed=options.seed)
