"""Strategies that search for an optimum, alternating soft local consistency and AND/OR search."""

from __future__ import annotations

import logging
import math

from elimina.methods.and_or_search import searched_optimum
from elimina.methods.paused_search import FIRST_CONSISTENCY_SECONDS, PausedSearch
from elimina.methods.search_state import SearchLimits
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.host import turn_share
from elimina.strategies.call import Call
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Strategy

logger = logging.getLogger("elimina")

TURN_NODES = 1 << 14
"""Number of nodes in a turn of soft local consistency with one thread, if elimination is hard. Unlike a time limit, a
node limit does not depend on the speed of the machine."""


def by_search(
    problem: Problem,
    options: CheckedOptions,
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
        rounds: Largest number of rounds of mini-buckets. 0: only the first turn of soft local consistency; 1: only one
            round of mini-buckets.
        first_turn: Seconds of the first turn of soft local consistency; None: the default.
        nodes: Largest number of nodes of each turn.
    """
    turn = turn_share(options) * FIRST_CONSISTENCY_SECONDS if first_turn is None else first_turn

    def work(budget: Budget) -> Result:
        limits = SearchLimits(
            budget.deadline,
            run.gap,
            options.upper_bound,
            nodes=nodes,
            rounds=rounds,
            first_turn=turn,
            is_alone=rounds == 1,
        )
        remaining = options.after_growth(budget.growth_bytes)
        return searched_optimum(problem, remaining, limits, budget.best_result, budget.report, paused=paused)

    return Strategy(run, "search", work, seconds=seconds)


def requested_search(facts: Facts, row: Row) -> Strategy:
    """Return the search that the option ``method`` requests."""
    if facts.options.needs_gpu:
        logger.info("soft local consistency first, on the CPU; the GPU eliminates the mini-buckets that follow")
    return by_search(facts.problem, facts.options, facts.call, facts.paused, row.budget(facts))


def search_before_running(facts: Facts, row: Row) -> Strategy:
    """Return a search on the problem of a plan."""
    return by_search(facts.planned.problem, facts.options, facts.call, facts.paused, row.budget(facts))


def first_turn_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that starts a search by soft local consistency; its state is stored for later turns."""
    facts.paused.clear(facts.problem)
    facts.paused.first_order = facts.quick_order.order
    return turn_of_search(facts, row)


def turn_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that runs a search by soft local consistency for the row's time budget, or resumes it."""
    return by_search(
        facts.problem, facts.host_options, facts.call, facts.paused, rounds=0, first_turn=row.budget(facts)
    )


def second_turn_of_search(facts: Facts, _: Row) -> Strategy:
    """Return a strategy that resumes soft local consistency for the default length of a first turn."""
    return by_search(facts.problem, facts.host_options, facts.call, facts.paused, rounds=0)


def nodes_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that runs soft local consistency within a node limit and the row's time budget."""
    options, turn = facts.host_options, row.budget(facts)
    nodes = int(TURN_NODES * facts.turn_share * options.host_threads)
    return by_search(facts.problem, options, facts.call, facts.paused, rounds=0, first_turn=turn, nodes=nodes)


def round_of_search(facts: Facts, row: Row) -> Strategy:
    """Return a search with one round of mini-buckets, in the best order so far and with the row's time budget."""
    options = replace(facts.host_options, order=facts.searched_order.order)
    return by_search(facts.problem, options, facts.call, facts.paused, row.budget(facts), rounds=1)
