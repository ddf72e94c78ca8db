"""Strategies for an optimum: search, local search, filtering, clusters on a GPU."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, cast

from elimina.backends.device_group import devices_of
from elimina.backends.gpu_start import outlasts_gpu_start
from elimina.backends.registry import find_cuda
from elimina.errors import DeviceError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.methods.paused_search import FIRST_CONSISTENCY_SECONDS, PausedSearch
from elimina.methods.search_state import SearchLimits
from elimina.planning.options import Options
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.advice import does_not_fit
from elimina.running.budget import Budget
from elimina.running.host import backend_of, sharing_threads, turn_share
from elimina.strategies.facts import Facts, can_filter, memory_of
from elimina.strategies.row import Row
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

if TYPE_CHECKING:
    from elimina.backends.cuda.backend import CudaBackend
    from elimina.strategies.call import Call

logger = logging.getLogger("elimina")

LONGEST_SEARCH_SECONDS = 60.0
"""Largest time of search, in seconds, before a plan runs; search in turn with filtering begins with twice that."""

FILTER_TIME_SHARE = 0.25
"""Time of filtering, relative to that of the search before it, if they run in turn."""

TURN_NODES = 1 << 14
"""Nodes of soft local consistency with one thread, if elimination is hard: the same on machines of any speed."""


# Search.


def by_search(
    problem: Problem,
    options: Options,
    run: Call,
    paused: PausedSearch,
    seconds: float = math.inf,
    rounds: float = math.inf,
    first_turn: float | None = None,
    nodes: float = math.inf,
) -> Strategy:
    """Return a search that starts from the bounds and the assignment so far.

    Args:
        problem: Problem of the task ``mpe``.
        options: Search options.
        run: Call in progress.
        paused: State of an earlier search, from which this one resumes.
        seconds: Time budget in seconds.
        rounds: Largest number of rounds of mini-buckets. 0: only soft local consistency runs, for its first turn; 1:
            only a round of mini-buckets runs.
        first_turn: Seconds of the first turn of soft local consistency; None: the usual time.
        nodes: Largest number of nodes of each turn.
    """
    turn = turn_share(options) * FIRST_CONSISTENCY_SECONDS if first_turn is None else first_turn

    def work(budget: Budget) -> Result:
        from elimina.methods.and_or_search import searched_optimum

        limits = SearchLimits(
            budget.deadline,
            run.gap,
            options.upper_bound,
            nodes=nodes,
            rounds=rounds,
            first_turn=turn,
            is_alone=rounds == 1,
        )
        remaining = options.beside(budget.held)
        return searched_optimum(problem, remaining, limits, budget.best_result, budget.report, paused=paused)

    return Strategy(run, "search", work, seconds=seconds)


def requested_search(facts: Facts, row: Row) -> Strategy:
    """Return the search that the user asks for by the option ``method``."""
    if facts.options.needs_gpu:
        logger.info("soft local consistency first, on the CPU; the GPU eliminates the mini-buckets that follow")
    return by_search(facts.problem, facts.options, facts.call, facts.paused, row.budget(facts))


def search_before_running(facts: Facts, row: Row) -> Strategy:
    """Return a search of a planned problem."""
    return by_search(facts.planned.problem, facts.options, facts.call, facts.paused, row.budget(facts))


def first_turn_of_search(facts: Facts, row: Row) -> Strategy:
    """Return the first turn of soft local consistency, which keeps its state for later turns."""
    facts.paused.clear(facts.problem)
    facts.paused.first_order = facts.quick_order.order
    return turn_of_search(facts, row)


def turn_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a turn of soft local consistency for the row's seconds."""
    return by_search(
        facts.problem, facts.host_options, facts.call, facts.paused, rounds=0, first_turn=row.budget(facts)
    )


def second_turn_of_search(facts: Facts, _: Row) -> Strategy:
    """Return a turn of soft local consistency that is as long as the first one of any search."""
    return by_search(facts.problem, facts.host_options, facts.call, facts.paused, rounds=0)


def nodes_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a turn of soft local consistency for a number of nodes, and for the row's seconds at most."""
    options, turn = facts.host_options, row.budget(facts)
    nodes = int(TURN_NODES * facts.turn_share * options.host_threads)
    return by_search(facts.problem, options, facts.call, facts.paused, rounds=0, first_turn=turn, nodes=nodes)


def round_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a search by one round of mini-buckets, in the best order so far, for the row's seconds."""
    options = facts.host_options._replace(order=facts.searched_order.order)
    return by_search(facts.problem, options, facts.call, facts.paused, row.budget(facts), rounds=1)


# Local search.


def improving(problem: Problem, options: Options, run: Call, paused: PausedSearch, seconds: float) -> Strategy:
    """Return a local search for some seconds, from the best assignment so far."""

    def work(budget: Budget) -> Result:
        from elimina.methods.local_search import AssignmentSearch

        memory = memory_of(options.beside(budget.held))
        kept = paused.within(problem, memory)
        search = kept.improvement
        if search is None:
            search = AssignmentSearch.of(problem, memory, options.seed, sharing_threads(options))
            kept.improvement = search
        if search is not None:
            incumbent = budget.best_result
            if incumbent is not None and incumbent.assignment is not None:
                search.start(problem.model.indices_of(incumbent.assignment))
            search.run(budget.seconds)
        result = None if search is None else search.result()
        if result is None:
            raise TimeLimitError("local search found no allowed assignment")
        return result

    return Strategy(run, "improve", work, seconds=seconds)


def local_search(facts: Facts, row: Row) -> Strategy:
    """Return a local search for the row's seconds."""
    return improving(facts.problem, facts.host_options, facts.call, facts.paused, row.budget(facts))


# Filtered elimination.


def filtering(problem: Problem, options: Options, run: Call, seconds: float) -> Strategy:
    """Return filtered elimination for some seconds; it leaves out assignments worse than the best one so far."""

    def work(budget: Budget) -> Result:
        incumbent = budget.best_result
        upper = options.upper_bound if incumbent is None or incumbent.value is None else int(incumbent.value)
        from elimina.methods.filtering import filtered_optimum, optimum_on_rows

        limits, remaining = SearchLimits(budget.deadline, run.gap, upper), options.beside(budget.held)
        if options.looks_for_optimum and (options.needs_gpu or options.tables == "sparse"):
            return optimum_on_rows(problem, remaining, limits, budget.report)
        return filtered_optimum(problem, limits, memory_of(remaining), options.seed, budget.report)

    return Strategy(run, "filter", work, seconds=seconds)


def filtered_elimination(facts: Facts, row: Row) -> Strategy:
    """Return filtered elimination for the row's seconds."""
    return filtering(facts.problem, facts.options, facts.call, row.budget(facts))


# Clusters on a GPU.


def clusters(facts: Facts, row: Row) -> Strategy | Attempt:
    """Return passes over clusters of tables on a GPU; an empty outcome if there is no GPU, or no time to start it."""
    options, seconds = facts.options, row.budget(facts)
    if not outlasts_gpu_start(seconds):
        return Attempt()
    backend = backend_of(options) if options.needs_gpu else find_cuda(options.threads)
    if backend is None:
        return Attempt()
    device = cast("CudaBackend", devices_of(backend)[0])
    problem, order = facts.planned.problem, facts.plan.order

    def work(budget: Budget) -> Result:
        from elimina.methods.cost_shifting import shift_tables
        from elimina.methods.gpu_bounds import bounds_on_gpu

        remaining = options.beside(budget.held)
        original = shift_tables(problem, remaining, budget.seconds / 4)
        try:
            return bounds_on_gpu(original, order, remaining, device, budget)
        except DeviceError as error:
            raise UnsupportedError(str(error)) from error

    return Strategy(facts.call, "clusters", work, seconds=seconds)


# Search until the call ends.


def search_to_the_end(facts: Facts, row: Row) -> Portfolio:
    """Filter and search in turn with growing budgets, then search alone until the call ends."""
    problem, options, run, seconds = facts.planned.problem, facts.options, facts.call, row.budget(facts)
    reason = "" if facts.plan.fits else does_not_fit(facts.plan)
    if not facts.plan.fits:
        # Release the plan: its steps may be very many, and search needs the memory.
        facts.prepared = None
    paused = PausedSearch()
    while run.best_result is not None and can_filter(problem, options.beside(run.held)):
        outcome = yield filtering(problem, options, run, FILTER_TIME_SHARE * seconds)
        if outcome.failure is not None:
            return outcome
        seconds *= 2
        yield by_search(problem, options, run, paused, seconds)
    result, failure = yield by_search(problem, options, run, paused)
    # A failure means that not even the factors fit, or costs are too large; the plan's needs explain it better.
    return Attempt(result, failure and MemoryLimitError(reason))
