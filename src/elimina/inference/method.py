"""Strategies for optima: elimination, filtering, mini-buckets and search, and their time budgets."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from elimina.backends.cpu import CpuBackend
from elimina.errors import MemoryLimitError
from elimina.inference.choose import Planned
from elimina.inference.options import Options
from elimina.inference.strategy import Attempt, Budget, Portfolio, Strategy
from elimina.order import CELLS_PER_SECOND, Order
from elimina.planning.plan import count_text
from elimina.planning.prepare import Problem
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.inference.anytime import Run

logger = logging.getLogger("elimina")

LARGE_WORK = 10**8
"""Cells of a quick order's buckets from which filtering is tried first."""

SHORTEST_TRY, LONGEST_TRY = 0.2, 60.0
"""Seconds of that try."""

FIRST_TRY, SECOND_TRY = 0.3, 2.0
"""Seconds of it where the tables would not fit: before and after a short search."""

AT_ONCE = 1.0
"""Most seconds of a short search before a plan is made."""

WORTH_A_TRY, TRY_SHARE = 0.1, 4.0
"""Estimated seconds of an elimination before which a short search comes; seconds of this search for each of them."""

_VARIABLE_SECONDS = 3e-4
"""Seconds of cost shifting and of a consistent root for each variable: no shorter elimination waits for them."""

SEARCHED_FROM_SECONDS = 2.0
"""Estimated time of a plan from which search is tried first, for no longer than that."""


def before_planning(
    problem: Problem, rough: Callable[[], Order], quick: Callable[[], Order], options: Options, run: Run
) -> Portfolio:
    """Filter and search for a short time before a plan is made, where elimination would take long.

    Args:
        problem: Problem of the task ``mpe``.
        rough: Finds a quick order.
        quick: Searches for a better one for a short time.
        options: Planning options; method ``auto``.
        run: The call.
    """
    if options.dtype is not None or options.needs_gpu or rough().total_cells < LARGE_WORK:
        return Attempt()
    fits = 2 * rough().largest_table < _memory(options)
    is_filtered = problem.model.is_integer and _can_filter(problem, options)
    if is_filtered:
        share = max(SHORTEST_TRY, min(LONGEST_TRY, rough().seconds_at(CELLS_PER_SECOND)))
        yield _filter_for(share if fits else FIRST_TRY, problem, rough(), options, run)
    if options.tables == "sparse" or options.ibound is not None or not isinstance(options.order, str):
        return Attempt()
    if rough().total_cells < _VARIABLE_SECONDS * len(problem.free) * CELLS_PER_SECOND:
        return Attempt()
    logger.info("soft local consistency first, as a quick order has %s cells", count_text(rough().total_cells))
    yield by_search(problem, options, run, rounds=0)
    order = quick()
    expected = order.seconds_at(CELLS_PER_SECOND)
    if expected < WORTH_A_TRY:
        return Attempt()
    seconds = min(AT_ONCE, TRY_SHARE * expected)
    logger.info("search next, for %.3g s: the order found so far has %s cells", seconds, count_text(order.total_cells))
    yield by_search(problem, options._replace(order=order.order), run, seconds, rounds=1, is_alone=True)
    if is_filtered and not fits:
        yield _filter_for(SECOND_TRY, problem, order, options, run)
    return Attempt()


def _filter_for(seconds: float, problem: Problem, order: Order, options: Options, run: Run) -> Strategy:
    if logger.isEnabledFor(logging.INFO):
        logger.info(f"filter first, for {seconds:.3g} s: a quick order has {count_text(order.total_cells)} cells")
    upper = options.upper_bound
    if run.known is not None and run.known.value is not None:
        upper = int(run.known.value)
    return filtering(problem, options, run, seconds, upper)


def search_for_a_while(planned: Planned, options: Options, run: Run) -> Portfolio:
    """Search before a plan that takes long runs, or before one that does not fit is cut into slices.

    Args:
        planned: A plan without slices and scratch files.
        options: Search options.
        run: The call.
    """
    plan, most = planned.plan, LONGEST_TRY
    if plan.fits:
        if not plan.on_host or options.dtype is not None or plan.seconds < SEARCHED_FROM_SECONDS:
            return Attempt()
        most = min(plan.seconds, most)
    reason = "it may be faster than the plan" if plan.fits else "the plan does not fit"
    logger.info("search first, for %s s: %s", f"{most:.3g}", reason)
    return (yield by_search(planned.problem, options, run, most))


def search_to_the_end(problem: Problem, reason: str, options: Options, run: Run) -> Portfolio:
    """Filter and search by longer and longer turns, or search, as long as it takes: no plan fits, for a reason."""
    logger.info("search and filter to the end, as no plan fits")
    most = LONGEST_TRY
    while run.known is not None and _can_filter(problem, options.beside(run.held)):
        value = run.known.value
        upper = options.upper_bound if value is None else int(value)
        outcome = yield filtering(problem, options, run, most / 4, upper)
        if outcome.failure is not None:
            return outcome
        most *= 2
        yield by_search(problem, options, run, most)
    found, failure = yield by_search(problem, options, run)
    # Not even the factors fit the memory, or the costs are too large.
    return Attempt(found, failure and MemoryLimitError(reason))


def by_search(
    problem: Problem,
    options: Options,
    run: Run,
    seconds: float = math.inf,
    rounds: float = math.inf,
    is_alone: bool = False,
) -> Strategy:
    """Return a search that begins with what is known.

    Args:
        problem: Problem of the task ``mpe``.
        options: Search options.
        run: The call.
        seconds: Time budget.
        rounds: Most rounds of mini-buckets; 0: soft local consistency alone, for its first turn.
        is_alone: True if mini-buckets go without turns of soft local consistency.
    """

    def work(budget: Budget) -> Result:
        from elimina.inference.knowledge import Limits
        from elimina.inference.search import searched_optimum

        limits = Limits(budget.deadline, run.gap, options.upper_bound, rounds=rounds, is_alone=is_alone)
        return searched_optimum(problem, options.beside(budget.held), limits, budget.known, budget.learn)

    return Strategy(run, "search", work, seconds=seconds)


def filtering(problem: Problem, options: Options, run: Run, most: float, upper: int | None) -> Strategy:
    """Return filtered elimination for so many seconds, of assignments that are not worse than a total."""

    def work(budget: Budget) -> Result:
        if options.looks_for_optimum and (options.needs_gpu or options.tables == "sparse"):
            from elimina.inference.filtered_rows import optimum_on_rows

            left = options.beside(budget.held)
            return optimum_on_rows(problem, left, budget.deadline, upper, run.gap, budget.learn)
        from elimina.inference.filtering import Limits, filtered_optimum

        limits = Limits(_memory(options.beside(budget.held)), budget.seconds, upper, options.seed, run.gap)
        return filtered_optimum(problem, limits, budget.learn)

    return Strategy(run, "filter", work, seconds=most)


def _can_filter(problem: Problem, options: Options) -> bool:
    from elimina.inference.filtering import why_too_large, why_unsupported

    if options.needs_gpu:
        return False
    return why_unsupported(problem) is None and why_too_large(problem, _memory(options)) is None


def _memory(options: Options) -> int:
    return CpuBackend(options.threads).memory() if options.room is None else options.room
