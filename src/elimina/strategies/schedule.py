"""Time budgets of the strategies for optima, and the conditions under which each is tried."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import devices_of
from elimina.backends.gpu_start import outlasts_gpu_start
from elimina.backends.registry import find_cuda
from elimina.display import count_text
from elimina.errors import DeviceError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.methods.paused_search import FIRST_CONSISTENCY_SECONDS, PausedSearch
from elimina.planning.machine import cpu_machine, speeds
from elimina.planning.options import Options
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import QUICK_SECONDS
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.host import backend_of, sharing_threads, turn_share
from elimina.running.planned_problem import PlannedProblem
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

if TYPE_CHECKING:
    from elimina.backends.cuda.backend import CudaBackend
    from elimina.strategies.call import Call

logger = logging.getLogger("elimina")

LARGE_WORK, MANY_VARIABLES = 10**8, 3000
"""Cells of a quick order's buckets from which other strategies come first; variables above which it takes more cells,
in proportion: before it begins, local search takes 2e-5 s for each variable, others 3e-5 s and more."""

SHORTEST_TRY, LONGEST_TRY = 0.2, 1.0
"""Seconds of that try, which is as long as the elimination: SPOT5 ends within them, colourings not in a minute."""

FIRST_TRY, SECOND_TRY = 0.3, 2.0
"""Seconds of filtering before soft local consistency has more time where the tables would not fit, and after it."""

LONGEST_SEARCH = 60.0
"""Most seconds of search before a plan, and of each search in turn with filtering at first."""

AT_ONCE = 1.0
"""Most seconds of a short search before a plan is made."""

FIRST_GLANCE = 0.02
"""Seconds of soft local consistency before anything else: it proves easy optima at once."""

FIRST_IMPROVED = 0.05
"""Seconds of local search after that: a good assignment narrows all that follows."""

WORTH_A_TRY, TRY_SHARE = 0.1, 4.0
"""Estimated seconds of an elimination before which a short search comes; seconds of this search for each of them."""

_VARIABLE_SECONDS = 3e-5
"""Seconds of cost shifting and of a consistent root for each variable (1e-5 to 3e-5 on circuits and mastermind): no
shorter elimination waits for them."""

FAR = 100.0
"""Estimated seconds of an elimination from which soft local consistency goes on for a number of nodes."""

GLANCE_ORDER = 0.1
"""Seconds of an order search that tells such eliminations from short ones."""

VERY_FAR = 1e5
"""Estimated seconds with a quick order from which that search is left out: it would not make them short."""

FIRST_NODES, LONGEST_NODES = 1 << 14, 1.0
"""Nodes of that turn with one thread, whatever the machine's speed, and its most seconds."""

LONG_TURN, SHORT_TURN = 4.0, 1.0
"""Seconds of soft local consistency before a plan is made: where messages have few variables, and elsewhere."""

WORTH_A_TURN = 5.0
"""Estimated seconds of an elimination before which the short one comes."""

FEW_VARIABLES, LOOSE_SHARE = 8, 0.65
"""Variables of messages of `AT_ONCE` seconds up to which they are few: a number, and a share of the largest table's."""

OUT_OF_REACH = 2.0**10
"""Cells of the largest table, in bytes of the memory, from which a plan is made in the order that was found quickly."""

HOPELESS_SECONDS = 1e7
"""Estimated seconds from which an elimination without slices is not tried in slices, which take longer. A search for an
order takes seconds and seldom makes an elimination a hundred times as fast (two of 56 hard files, of 2^300 cells)."""

SEARCHED_FROM_SECONDS = 2.0
"""Estimated time of a plan from which search is tried first, for about as long."""

BOUNDED_FROM_SECONDS = 2.0
"""Estimated seconds of a sum's elimination from which quick bounds come first: they take 0.05 to 0.4 s."""

SLOW_MEMORY = 2.0
"""Times by which new memory may take longer than is estimated, as it does on virtual machines: search has as much
more."""

LONGEST_CLUSTERS, CLUSTERS_SHARE = 40.0, 0.5
"""Seconds of passes over clusters on a GPU: the most, and a share of the time that is left."""


def before_planning(
    problem: Problem,
    rough: Callable[[], Order],
    quick: Callable[[float], Order],
    options: Options,
    run: Call,
    paused: PausedSearch,
) -> Portfolio:
    """Filter and search for a short time before a plan is made, where elimination would take long.

    Args:
        problem: Problem of the task ``mpe``.
        rough: Finds a quick order.
        quick: Searches for a better one for so many seconds.
        options: Planning options; method ``auto``.
        run: Call in progress.
        paused: State of the searches, each of which goes on where the one before ended.
    """
    if options.dtype is not None or options.asks_for_slices or not is_long(rough(), options):
        return Attempt()
    speed = _cells_per_second(options)
    fits, part = 2 * rough().largest_table < _memory(options), turn_share(options)
    is_filtered = problem.model.is_integer and _can_filter(problem, options)
    is_free = options.tables != "sparse" and options.ibound is None and isinstance(options.order, str)
    is_searched = is_free and rough().total_cells >= _VARIABLE_SECONDS * len(problem.free) * CELLS_PER_SECOND
    if options.needs_gpu:
        # It is not opened for what may be known before it has begun. The limit is that of its own memory.
        options = options._replace(device="cpu", memory=None)
    if is_searched:
        paused.clear(problem)
        paused.first_order = rough().order
        logger.info("soft local consistency first, as a quick order has %s cells", count_text(rough().total_cells))
        yield by_search(problem, options, run, paused, rounds=0, first_turn=FIRST_GLANCE)
    yield improving(problem, options, run, paused, part * FIRST_IMPROVED)
    if is_filtered and fits:
        share = max(SHORTEST_TRY, min(LONGEST_TRY, rough().seconds_at(speed)))
        yield _filter_for(part * share, problem, rough(), options, run)
    is_hopeless = rough().seconds_at(speed) >= VERY_FAR
    if is_searched and not is_hopeless:
        yield by_search(problem, options, run, paused, rounds=0)
    # Filtering bounds with mini-buckets, too.
    if is_filtered and not fits and not (is_searched and _is_loose(rough())):
        yield _filter_for(part * FIRST_TRY, problem, rough(), options, run)
    if not is_searched:
        return Attempt()
    order = rough() if is_hopeless else quick(GLANCE_ORDER)
    if order.seconds_at(speed) >= FAR:
        nodes = int(FIRST_NODES * part * options.host_threads)
        logger.info("soft local consistency again, for %s nodes", count_text(nodes))
        yield by_search(problem, options, run, paused, rounds=0, first_turn=LONGEST_NODES, nodes=nodes)
    if order.seconds_at(speed) >= WORTH_A_TRY:
        order = quick(QUICK_SECONDS)
    expected = order.seconds_at(speed)
    if expected < WORTH_A_TRY:
        return Attempt()
    is_loose = _is_loose(order)
    if is_loose:
        logger.info("soft local consistency again: mini-buckets would have few variables")
        yield by_search(problem, options, run, paused, rounds=0, first_turn=LONG_TURN)
    ordered = options._replace(order=order.order)
    # Its own turns are the shorter ones of several threads; its plan and its order take as long as with one.
    seconds = min(AT_ONCE, TRY_SHARE * expected)
    logger.info("search next, for %.3g s: the order found so far has %s cells", seconds, count_text(order.total_cells))
    yield by_search(problem, ordered, run, paused, seconds, rounds=1)
    if is_loose:
        return Attempt()
    # The first order may be far worse than this one.
    fits = 2 * order.largest_table < _memory(options)
    if not fits or expected >= WORTH_A_TURN:
        yield by_search(problem, options, run, paused, rounds=0, first_turn=SHORT_TURN)
        if is_filtered:
            yield _filter_for(part * SECOND_TRY, problem, order, options, run)
    return Attempt()


def is_long(order: Order, options: Options) -> bool:
    """Return whether elimination in a quick order takes so long that other strategies come first."""
    work = LARGE_WORK * max(1, len(order.order) / MANY_VARIABLES)
    # The number of cells may be too large for a float, so that it is compared as it is.
    return order.total_cells >= work * _cells_per_second(options) / CELLS_PER_SECOND


def _cells_per_second(options: Options) -> float:
    """Return the speed of eliminations on the device that is asked for."""
    known = speeds()
    return CELLS_PER_SECOND * (known.gpu_bandwidth / known.bandwidth if options.needs_gpu else 1)


def is_worth_bounds(rough: Order, quick: Callable[[float], Order], options: Options) -> bool:
    """Return whether the elimination of a sum takes so long that quick bounds come first.

    Args:
        rough: Quick order.
        quick: Searches for a better one for so many seconds.
        options: Planning options.
    """
    if not is_long(rough, options) or options.method == "mbe":
        return is_long(rough, options)
    speed = _cells_per_second(options)
    order = rough if rough.seconds_at(speed) >= VERY_FAR else quick(GLANCE_ORDER)
    return order.seconds_at(speed) >= BOUNDED_FROM_SECONDS


def _is_loose(order: Order) -> bool:
    """Return whether mini-buckets would have few variables, since domains are large, and far fewer than buckets."""
    digits = math.log(max(2, order.largest_table)) / (order.width + 1)
    variables = math.log(AT_ONCE * CELLS_PER_SECOND) / digits
    return variables <= min(FEW_VARIABLES, LOOSE_SHARE * (order.width + 1))


def _filter_for(seconds: float, problem: Problem, order: Order, options: Options, run: Call) -> Strategy:
    if logger.isEnabledFor(logging.INFO):
        logger.info(f"filter first, for {seconds:.3g} s: a quick order has {count_text(order.total_cells)} cells")
    return filtering(problem, options, run, seconds)


def is_out_of_reach(order: Order, options: Options) -> bool:
    """Return whether no search would make an order that was searched for quickly fit the memory."""
    return order.largest_table > OUT_OF_REACH and order.largest_table > OUT_OF_REACH * _memory(options)


def clusters_first(planned: PlannedProblem, options: Options, run: Call) -> Portfolio:
    """Bound an optimum whose plan does not fit by passes over clusters on a GPU, if there is one."""
    seconds = min(LONGEST_CLUSTERS, CLUSTERS_SHARE * run.seconds)
    if planned.plan.fits or not options.may_use_gpu or not options.shifts_clusters or not outlasts_gpu_start(seconds):
        return Attempt()
    backend = backend_of(options) if options.needs_gpu else find_cuda()
    if backend is None:
        return Attempt()
    card = cast("CudaBackend", devices_of(backend)[0])
    problem, order = planned.problem, planned.plan.order

    def work(budget: Budget) -> Result:
        from elimina.methods.cost_shifting import shift_tables
        from elimina.methods.gpu_bounds import bounds_on_gpu

        left = options.beside(budget.held)
        original = shift_tables(problem, left, budget.seconds / 4)
        try:
            return bounds_on_gpu(original, order, left, card, budget)
        except DeviceError as error:
            raise UnsupportedError(str(error)) from error

    return (yield Strategy(run, "clusters", work, seconds=seconds))


def search_for_a_while(planned: PlannedProblem, options: Options, run: Call, paused: PausedSearch) -> Portfolio:
    """Search before a plan that takes long runs, or before one that does not fit is cut into slices.

    Args:
        planned: A plan without slices and scratch files.
        options: Search options.
        run: Call in progress.
        paused: State of the searches before, which goes on.
    """
    plan, most = planned.plan, LONGEST_SEARCH
    if plan.fits:
        if not plan.on_host or options.dtype is not None or plan.seconds < SEARCHED_FROM_SECONDS:
            return Attempt()
        in_doubt = (SLOW_MEMORY - 1) * plan.peak_bytes / cpu_machine(1).fresh
        most = min(plan.seconds + in_doubt, most)
    reason = "it may be faster than the plan" if plan.fits else "the plan does not fit"
    logger.info("search first, for %s s: %s", f"{most:.3g}", reason)
    return (yield by_search(planned.problem, options, run, paused, most))


def search_to_the_end(problem: Problem, reason: str, options: Options, run: Call) -> Portfolio:
    """Filter and search with growing time budgets, or only search, until the end: no plan fits."""
    logger.info("search and filter to the end, as no plan fits")
    most, paused = LONGEST_SEARCH, PausedSearch()
    while run.known is not None and _can_filter(problem, options.beside(run.held)):
        outcome = yield filtering(problem, options, run, most / 4)
        if outcome.failure is not None:
            return outcome
        most *= 2
        yield by_search(problem, options, run, paused, most)
    found, failure = yield by_search(problem, options, run, paused)
    # Not even the factors fit the memory, or the costs are too large.
    return Attempt(found, failure and MemoryLimitError(reason))


def by_search(
    problem: Problem,
    options: Options,
    run: Call,
    paused: PausedSearch,
    seconds: float = math.inf,
    rounds: float = math.inf,
    first_turn: float = FIRST_CONSISTENCY_SECONDS,
    nodes: float = math.inf,
) -> Strategy:
    """Return a search that starts from the known bounds and assignment.

    Args:
        problem: Problem of the task ``mpe``.
        options: Search options.
        run: Call in progress.
        paused: State of the search before, which goes on.
        seconds: Time budget in seconds.
        rounds: Most rounds of mini-buckets; 0: soft local consistency alone, for its first turn; 1: one of mini-buckets
            alone.
        first_turn: Seconds of this turn for one thread.
        nodes: Most nodes of each turn.
    """

    def work(budget: Budget) -> Result:
        from elimina.methods.and_or_search import searched_optimum
        from elimina.methods.search_state import SearchLimits

        limits = SearchLimits(
            budget.deadline,
            run.gap,
            options.upper_bound,
            nodes=nodes,
            rounds=rounds,
            first_turn=turn_share(options) * first_turn,
            is_alone=rounds == 1,
        )
        left = options.beside(budget.held)
        return searched_optimum(problem, left, limits, budget.known, budget.learn, paused=paused)

    return Strategy(run, "search", work, seconds=seconds)


def improving(problem: Problem, options: Options, run: Call, paused: PausedSearch, most: float) -> Strategy:
    """Return a local search for so many seconds, from the best assignment known; it proves nothing."""

    def work(budget: Budget) -> Result:
        from elimina.methods.local_search import AssignmentSearch

        memory = _memory(options.beside(budget.held))
        kept = paused.within(problem, memory)
        search = kept.improvement
        if search is None:
            search = AssignmentSearch.of(problem, memory, options.seed, sharing_threads(options))
            kept.improvement = search
        if search is not None:
            known = budget.known
            if known is not None and known.assignment is not None:
                search.start(problem.model.indices_of(known.assignment))
            search.run(budget.seconds)
        found = None if search is None else search.found()
        if found is None:
            raise TimeLimitError("local search found no allowed assignment")
        return found

    return Strategy(run, "improve", work, seconds=most)


def filtering(problem: Problem, options: Options, run: Call, most: float) -> Strategy:
    """Return filtered elimination for so many seconds, of assignments that are not worse than the best one known."""

    def work(budget: Budget) -> Result:
        known = budget.known
        upper = options.upper_bound if known is None or known.value is None else int(known.value)
        from elimina.methods.filtering import filtered_optimum, optimum_on_rows
        from elimina.methods.search_state import SearchLimits

        limits, left = SearchLimits(budget.deadline, run.gap, upper), options.beside(budget.held)
        if options.looks_for_optimum and (options.needs_gpu or options.tables == "sparse"):
            return optimum_on_rows(problem, left, limits, budget.learn)
        return filtered_optimum(problem, limits, _memory(left), options.seed, budget.learn)

    return Strategy(run, "filter", work, seconds=most)


def _can_filter(problem: Problem, options: Options) -> bool:
    from elimina.methods.filtering import reason_too_large, reason_unsupported

    if options.needs_gpu:
        return False
    return reason_unsupported(problem) is None and reason_too_large(problem, _memory(options)) is None


def _memory(options: Options) -> int:
    return CpuBackend(options.threads).memory() if options.room is None else options.room
