"""The schedule: the methods that answer a question, in order, with their conditions, budgets and reasons."""

from __future__ import annotations

from elimina.planning.machine import cpu_machine
from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies import estimate_strategies as estimate
from elimina.strategies import optimum_strategies as optimum
from elimina.strategies.facts import Facts
from elimina.strategies.optimum_strategies import LONGEST_SEARCH_SECONDS
from elimina.strategies.portfolio import Solver
from elimina.strategies.posterior_bounds import posterior_bounds
from elimina.strategies.row import Row, walk
from elimina.strategies.strategy import Attempt, Portfolio

Rows = tuple[Row, ...]

# Time budgets that depend on facts.

SHORTEST_FILTER_SECONDS, LONGEST_FILTER_SECONDS = 0.2, 1.0
"""Seconds of the first filtering, which is as long as the elimination: SPOT5 ends within them, colourings not in a
minute."""

ROUND_SECONDS_PER_SECOND = 4.0
"""Seconds of a round of mini-buckets for each estimated second of elimination, which ends soon otherwise."""

FRESH_MEMORY_FACTOR = 2.0
"""Times by which new memory may take longer than is estimated, as it does on virtual machines."""

FIRST_ESTIMATES_SECONDS, FIRST_ESTIMATES_TIME_SHARE = 0.3, 0.25
"""Seconds of estimates before a search for an order, and before a plan that may be exact: the most, and as a share of
the time that remains."""

ESTIMATES_SECONDS = 1.0
"""Seconds of estimates without a time limit: such an answer takes two seconds."""

POSTERIOR_BOUNDS_TIME_SHARE = 0.5
"""Share of the time that remains for bounds on the posterior of one variable."""

FIRST_SUM_ESTIMATES_SECONDS, SUM_ESTIMATES_SECONDS, SUM_ESTIMATES_TIME_SHARE = 1.0, 2.0, 0.25
"""Seconds of estimates of a sum or a count beside its bounds: before a search for an order, and after it without a time
limit; the share of the time that remains is the most in both cases."""

QUICK_BOUNDS_SECONDS, OPTIMISED_BOUNDS_SECONDS = 1.0, 12.0
"""Seconds of bounds on a sum before the search for a good order, and of those that are the answer where there is no
time limit: the gap of a 40 x 40 Ising grid in 64 MB narrows slowly from then on."""

LONGEST_CLUSTERS_SECONDS, CLUSTERS_TIME_SHARE = 40.0, 0.5
"""Seconds of passes over clusters on a GPU: the most, and a share of the time that remains."""


def seconds_of_first_filtering(facts: Facts) -> float:
    """Return the seconds of elimination, within limits."""
    seconds = facts.seconds_in(facts.quick_order)
    return max(SHORTEST_FILTER_SECONDS, min(LONGEST_FILTER_SECONDS, seconds))


def seconds_of_round(facts: Facts) -> float:
    """Return the seconds of a round of mini-buckets: no more than elimination is worth."""
    expected = facts.seconds_in(facts.searched_order)
    return min(when.MINI_BUCKET_SECONDS, ROUND_SECONDS_PER_SECOND * expected)


def seconds_of_plan(facts: Facts) -> float:
    """Return about the seconds that the plan takes."""
    doubtful = (FRESH_MEMORY_FACTOR - 1) * facts.plan.peak_bytes / cpu_machine(1).fresh
    return min(facts.plan.seconds + doubtful, LONGEST_SEARCH_SECONDS)


def seconds_of_first_estimates(facts: Facts) -> float:
    """Return the seconds of estimates before an exact answer is tried."""
    return min(FIRST_ESTIMATES_SECONDS, FIRST_ESTIMATES_TIME_SHARE * facts.call.seconds)


def seconds_of_estimates(facts: Facts) -> float:
    """Return the seconds of estimates that are the answer: all that a time limit leaves."""
    return ESTIMATES_SECONDS if facts.call.deadline is None else facts.call.seconds


def seconds_of_posterior_bounds(facts: Facts) -> float:
    """Return the seconds of bounds on a posterior, after which estimates continue."""
    return POSTERIOR_BOUNDS_TIME_SHARE * facts.call.seconds


def seconds_of_first_sum_estimates(facts: Facts) -> float:
    """Return the seconds of estimates of a sum before an exact answer is tried."""
    return min(FIRST_SUM_ESTIMATES_SECONDS, SUM_ESTIMATES_TIME_SHARE * facts.call.seconds)


def seconds_of_sum_estimates(facts: Facts) -> float:
    """Return the seconds of estimates of a sum, after which its bounds are improved."""
    return SUM_ESTIMATES_SECONDS if facts.call.deadline is None else SUM_ESTIMATES_TIME_SHARE * facts.call.seconds


def seconds_of_clusters(facts: Facts) -> float:
    """Return the seconds of passes over clusters."""
    return min(LONGEST_CLUSTERS_SECONDS, CLUSTERS_TIME_SHARE * facts.call.seconds)


def seconds_of_optimised_bounds(facts: Facts) -> float:
    """Return the seconds of optimised bounds: all that a time limit leaves."""
    return OPTIMISED_BOUNDS_SECONDS if facts.call.deadline is None else facts.call.seconds


# Rows of all tasks.


def _provide_bounds(facts: Facts, row: Row) -> Attempt:
    facts.solver.provide_bounds(row.memory_share)
    return Attempt()


def _complete_hint(facts: Facts, _: Row) -> Attempt:
    assert facts.options.hint is not None
    facts.solver.complete(facts.options.hint)
    return Attempt()


FIRST_BOUNDS = Row(
    "first bounds at the end of the call",
    "a call that is ended early still answers; other copies of tables come beside these",
    _provide_bounds,
    (when.HAS_FIRST_BOUNDS,),
    memory_share=0.125,
)
BOUNDS_ALONE = Row(
    "first bounds",
    "nothing else answers without the memory for elimination",
    eliminate.bounds_of_tables,
    (when.HAS_FIRST_BOUNDS, when.ESTIMATES_ARE_ALLOWED, when.ELIMINATION_DID_NOT_FIT),
    ends="always",
    memory_share=0.125,
)
HINT = Row(
    "hint",
    "an assignment narrows all that follows, and the answer is never worse",
    _complete_hint,
    (when.HINT_IS_GIVEN,),
)
BEGIN: Rows = (FIRST_BOUNDS, HINT)

RUN = Row(
    "run the plan",
    "nothing else has answered",
    eliminate.run_plan,
    ends="always",
)
PLAN_AND_RUN: Rows = (
    Row("plan", "elimination is the method", eliminate.plan_as_asked, ends="failed"),
    RUN,
)

# The optimum.

BEFORE_PLANNING: Rows = (
    Row(
        "soft local consistency",
        "it proves easy optima at once",
        optimum.first_turn_of_search,
        (when.SEARCH_IS_QUICKER,),
        seconds=0.02,
        is_shared=True,
    ),
    Row(
        "local search",
        "a good assignment narrows all that follows",
        optimum.local_search,
        seconds=0.05,
        is_shared=True,
    ),
    Row(
        "filter",
        "SPOT5 ends within a second",
        optimum.filtered_elimination,
        (when.CAN_FILTER, when.QUICK_ORDER_FITS),
        seconds=seconds_of_first_filtering,
        is_shared=True,
    ),
    Row(
        "soft local consistency again",
        "it has the first turn of any search",
        optimum.second_turn_of_search,
        (when.SEARCH_IS_QUICKER, when.ELIMINATION_IS_NOT_HOPELESS),
    ),
    Row(
        "filter for bounds",
        "filtering bounds with mini-buckets, too, before soft local consistency has more time",
        optimum.filtered_elimination,
        (when.CAN_FILTER, when.QUICK_ORDER_DOES_NOT_FIT, when.FILTER_IS_FIRST),
        seconds=0.3,
        is_shared=True,
    ),
    Row(
        "with a better order",
        "easy problems have ended by now",
        conditions=(when.SEARCH_IS_QUICKER,),
        rows=(
            Row(
                "soft local consistency for a number of nodes",
                "nodes prove many optima whose elimination is hard; a second is the most on slow machines",
                optimum.nodes_of_search,
                (when.ELIMINATION_IS_HARD,),
                seconds=1.0,
                is_shared=True,
            ),
            Row(
                "before a search for the plan's order",
                "the plan takes longer than these",
                conditions=(when.ELIMINATION_IS_NOT_SHORT,),
                rows=(
                    Row(
                        "soft local consistency for long",
                        "large domains leave mini-buckets few variables, so it bounds better than they do",
                        optimum.turn_of_search,
                        (when.MINI_BUCKETS_ARE_LOOSE,),
                        seconds=4.0,
                        is_shared=True,
                    ),
                    Row(
                        "search by mini-buckets",
                        "a search by the messages of small tables ends many problems before a plan is made",
                        optimum.round_of_search,
                        seconds=seconds_of_round,
                    ),
                    Row(
                        "soft local consistency for a second",
                        "the plan is long, or does not fit",
                        optimum.turn_of_search,
                        (when.MINI_BUCKETS_ARE_TIGHT, when.SECOND_TURN_IS_WORTH_IT),
                        seconds=1.0,
                        is_shared=True,
                    ),
                    Row(
                        "filter for long",
                        "the plan is long, or does not fit",
                        optimum.filtered_elimination,
                        (when.MINI_BUCKETS_ARE_TIGHT, when.SECOND_TURN_IS_WORTH_IT, when.CAN_FILTER),
                        seconds=2.0,
                        is_shared=True,
                    ),
                ),
            ),
        ),
    ),
)
"""Rows before a plan is made."""

OPTIMUM_PLANS: Rows = (
    Row(
        "plan without slices",
        "search may be faster than slices",
        eliminate.plan_whole,
        (when.TRIES_OTHERS_FIRST,),
        ends="failed",
    ),
    Row(
        "plan",
        "elimination is asked for, or slices are",
        eliminate.plan_as_asked,
        (when.PLAN_IS_ASKED,),
        ends="failed",
    ),
    Row(
        "before the plan runs",
        "the plan is at hand if they do not answer",
        eliminate.searches_before_running,
        (when.TRIES_OTHERS_FIRST, when.PLAN_HAS_SMALL_STEPS),
        rows=(
            Row(
                "clusters on a GPU",
                "passes over clusters bound problems whose plan does not fit, if there is a GPU",
                optimum.clusters,
                (when.PLAN_DOES_NOT_FIT, when.MAY_USE_GPU, when.CLUSTERS_ARE_SHIFTED),
                seconds=seconds_of_clusters,
            ),
            Row(
                "search before slices",
                "slices take longer than a plan that fits",
                optimum.search_before_running,
                (when.PLAN_DOES_NOT_FIT,),
                seconds=LONGEST_SEARCH_SECONDS,
            ),
            Row(
                "search before the plan runs",
                "it may be faster than the plan, and at most doubles its time",
                optimum.search_before_running,
                (when.PLAN_FITS, when.PLAN_IS_LONG),
                seconds=seconds_of_plan,
            ),
        ),
    ),
    Row(
        "plan in slices",
        "slices need less memory",
        eliminate.plan_in_slices,
        (
            when.TRIES_OTHERS_FIRST,
            when.PLAN_HAS_SMALL_STEPS,
            when.PLAN_DOES_NOT_FIT,
            when.SLICES_ARE_AUTO,
            when.PLAN_IS_WITHIN_REACH,
        ),
    ),
    Row(
        "search and filter to the end",
        "no plan fits",
        optimum.search_to_the_end,
        (when.ANY_METHOD, when.PLAN_DOES_NOT_FIT),
        seconds=LONGEST_SEARCH_SECONDS,
        ends="always",
    ),
    Row(
        "search to the end",
        "search has bounds at any time, elimination only at its end",
        optimum.search_to_the_end,
        (when.TRIES_OTHERS_FIRST, when.PLAN_ENDS_TOO_LATE),
        seconds=LONGEST_SEARCH_SECONDS,
        ends="answered",
    ),
    RUN,
)
"""Rows that plan and run, for each choice of tables."""

ELIMINATE_OPTIMUM: Rows = (
    Row(
        "mini-buckets",
        "the user asks for bounds",
        eliminate.mini_buckets,
        (when.METHOD_IS_MBE,),
        ends="always",
        rows=OPTIMUM_PLANS,
    ),
    Row("elimination", "it is exact", eliminate.elimination, ends="always", rows=OPTIMUM_PLANS),
)

OPTIMUM: Rows = (
    *BEGIN,
    Row(
        "search",
        "the user asks for it",
        optimum.requested_search,
        (when.NO_CHECKPOINT, when.SEARCH_IS_ASKED),
        ends="always",
    ),
    Row(
        "filter",
        "the user asks for it, or gives an upper bound, which filtering uses best",
        optimum.filtered_elimination,
        (when.NO_CHECKPOINT, when.OPTIMUM_IS_ASKED),
        ends="always",
    ),
    Row(
        "before a plan is made",
        "the search for an order and the plan take a second, and easy problems less",
        conditions=(
            when.NO_CHECKPOINT,
            when.METHOD_IS_AUTO,
            when.NO_SHORT_PLAN_ON_TUPLES,
            when.DTYPE_IS_OPEN,
            when.SLICES_ARE_OPEN,
            when.ELIMINATION_IS_LONG,
        ),
        rows=BEFORE_PLANNING,
    ),
    *ELIMINATE_OPTIMUM,
)

# Sums, marginals and counts.

ESTIMATES_STAND_BESIDE_BOUNDS = (
    when.NO_CHECKPOINT,
    when.ESTIMATES_ARE_ALLOWED,
    when.TABLES_ARE_OPEN,
    when.IBOUND_IS_OPEN,
    when.TABLES_FIT,
)
"""Conditions of estimates of a sum or a count."""

SUM_PLANS: Rows = (
    Row("plan", "elimination is the only exact method", eliminate.plan_as_asked, ends="failed"),
    Row(
        "estimates of the sum",
        "a number with its error says more than bounds alone, which are improved after it",
        estimate.estimates,
        (*ESTIMATES_STAND_BESIDE_BOUNDS, when.PLAN_DOES_NOT_FIT),
        seconds=seconds_of_sum_estimates,
    ),
    Row(
        "estimates of the sum before a late plan",
        "elimination has no answer before its end",
        estimate.estimates,
        (*ESTIMATES_STAND_BESIDE_BOUNDS, when.PLAN_FITS, when.PLAN_ENDS_TOO_LATE),
        seconds=seconds_of_sum_estimates,
    ),
    Row(
        "optimised mini-buckets instead",
        "optimised weights and shifts bound a sum closer than larger mini-buckets",
        eliminate.sum_bounds,
        (
            when.NO_CHECKPOINT,
            when.ESTIMATES_ARE_ALLOWED,
            when.IBOUND_IS_OPEN,
            when.SHIFTS_BUCKETS,
            when.ON_HOST,
            when.PLAN_DOES_NOT_FIT,
        ),
        seconds=seconds_of_optimised_bounds,
        ends="answered",
    ),
    Row(
        "mini-buckets instead",
        "they bound the sum, as no plan fits",
        eliminate.largest_mini_buckets,
        (when.NO_CHECKPOINT, when.MAY_BE_BOUNDED, when.IBOUND_IS_OPEN, when.PLAN_DOES_NOT_FIT),
        ends="always",
        rows=PLAN_AND_RUN,
    ),
    RUN,
)

BOUNDS_COME_FIRST = (
    when.NO_CHECKPOINT,
    when.MAY_BE_BOUNDED,
    when.ORDER_IS_OPEN,
    when.NOT_SPARSE,
    when.TABLES_CAN_BE_DENSE,
    when.BOUNDS_ARE_QUICKER,
)
"""Conditions of bounds before the search for a good order."""

SUM: Rows = (
    *BEGIN,
    Row(
        "first estimates of the sum",
        "bounds and the search for an order take longer, and a call that is ended early still answers",
        estimate.estimates,
        (*BOUNDS_COME_FIRST, *ESTIMATES_STAND_BESIDE_BOUNDS, when.QUICK_ORDER_DOES_NOT_FIT),
        seconds=seconds_of_first_sum_estimates,
    ),
    Row(
        "optimised mini-buckets instead of a plan",
        "a longer search for an order would not make a plan fit, and takes their time",
        eliminate.sum_bounds,
        (
            *BOUNDS_COME_FIRST,
            when.METHOD_IS_AUTO,
            when.IBOUND_IS_OPEN,
            when.DTYPE_IS_OPEN,
            when.SHIFTS_BUCKETS,
            when.ON_HOST,
            when.SLICES_ARE_OPEN,
            when.QUICK_ORDER_IS_FAR_TOO_LARGE,
            when.NO_PLAN_ON_TUPLES_FITS,
        ),
        seconds=seconds_of_optimised_bounds,
        ends="answered",
    ),
    Row(
        "quick bounds",
        "small mini-buckets bound a large sum before the search for a good order",
        eliminate.sum_bounds,
        (*BOUNDS_COME_FIRST, when.IBOUND_IS_OPEN, when.DTYPE_IS_OPEN, when.SHIFTS_BUCKETS, when.ON_HOST),
        seconds=QUICK_BOUNDS_SECONDS,
    ),
    Row(
        "quick bounds as asked",
        "small mini-buckets bound a large sum before the search for a good order",
        eliminate.quick_bounds,
        (*BOUNDS_COME_FIRST, when.HAS_NO_BOUNDS),
    ),
    Row(
        "optimised mini-buckets",
        "optimised weights and shifts bound a sum closer than larger mini-buckets",
        eliminate.sum_bounds,
        (
            when.NO_CHECKPOINT,
            when.METHOD_IS_MBE,
            when.IBOUND_IS_OPEN,
            when.DTYPE_IS_OPEN,
            when.SHIFTS_BUCKETS,
            when.ON_HOST,
            when.TABLES_CAN_BE_DENSE,
            when.ELIMINATION_IS_LONG,
        ),
        seconds=seconds_of_optimised_bounds,
        ends="answered",
    ),
    Row(
        "mini-buckets",
        "the user asks for bounds",
        eliminate.mini_buckets,
        (when.METHOD_IS_MBE,),
        ends="always",
        rows=SUM_PLANS,
    ),
    Row("elimination", "it is exact", eliminate.elimination, ends="always", rows=SUM_PLANS),
)

COUNT: Rows = (
    *BEGIN,
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=PLAN_AND_RUN),
    Row(
        "estimates of the count",
        "a number with its error says more than bounds alone, which are improved after it",
        estimate.estimates,
        (*ESTIMATES_STAND_BESIDE_BOUNDS, when.ELIMINATION_DID_NOT_FIT),
        seconds=seconds_of_sum_estimates,
    ),
    Row(
        "bounds of the count",
        "mini-buckets bound the sum of products of zeros and ones",
        eliminate.count_bounds,
        (
            when.NO_CHECKPOINT,
            when.ESTIMATES_ARE_ALLOWED,
            when.TABLES_ARE_OPEN,
            when.ON_HOST,
            when.ELIMINATION_DID_NOT_FIT,
        ),
        seconds=seconds_of_optimised_bounds,
        ends="answered",
    ),
    BOUNDS_ALONE,
)

ELIMINATION: Rows = (
    *BEGIN,
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=PLAN_AND_RUN),
    BOUNDS_ALONE,
)

MARGINAL_PLANS: Rows = (
    Row("plan", "elimination is the only exact method", eliminate.plan_as_asked, ends="failed"),
    Row(
        "estimates before the plan runs",
        "a call that is ended early still answers",
        estimate.estimates,
        (when.ESTIMATES_ARE_ALLOWED, when.TABLES_FIT, when.PLAN_FITS, when.PLAN_IS_LONG),
        seconds=seconds_of_first_estimates,
    ),
    Row(
        "estimates instead of a late plan",
        "elimination has no answer before its end",
        estimate.estimates,
        (when.ESTIMATES_ARE_ALLOWED, when.TABLES_FIT, when.PLAN_FITS, when.PLAN_ENDS_TOO_LATE),
        seconds=seconds_of_estimates,
        ends="answered",
    ),
    RUN,
)

ESTIMATES_ARE_ALL = (
    when.ESTIMATES_ARE_ALLOWED,
    when.TABLES_FIT,
    when.ORDER_IS_OPEN,
    when.SLICES_ARE_OPEN,
    when.ORDER_IS_FAR_TOO_LARGE,
    when.NO_PLAN_ON_TUPLES_FITS,
)
"""Conditions of estimates without a search for an order."""

MARGINALS: Rows = (
    HINT,
    Row(
        "first estimates",
        "the search for an order takes longer, and a call that is ended early still answers",
        estimate.estimates,
        (when.ESTIMATES_ARE_ALLOWED, when.TABLES_FIT, when.ORDER_IS_OPEN, when.QUICK_ORDER_DOES_NOT_FIT),
        seconds=seconds_of_first_estimates,
    ),
    Row(
        "bounds on one posterior",
        "they hold always, which no estimate does, and take two bounded sums for each state",
        posterior_bounds,
        (*ESTIMATES_ARE_ALL, when.ONE_POSTERIOR_IS_ASKED, when.HAS_TIME_LIMIT),
        seconds=seconds_of_posterior_bounds,
    ),
    Row(
        "estimates instead of a plan",
        "a longer search for an order would not make a plan fit",
        estimate.estimates,
        ESTIMATES_ARE_ALL,
        seconds=seconds_of_estimates,
        ends="answered",
    ),
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=MARGINAL_PLANS),
    Row(
        "estimates",
        "no plan fits",
        estimate.estimates,
        (when.ESTIMATES_ARE_ALLOWED, when.TABLES_FIT, when.ELIMINATION_DID_NOT_FIT),
        seconds=seconds_of_estimates,
        ends="always",
    ),
)

SCHEDULE: dict[str, Rows] = {"mpe": OPTIMUM, "pr": SUM, "mar": MARGINALS, "count": COUNT}
"""Rows by task; all others are answered by elimination alone."""


def scheduled(solver: Solver, rows: Rows | None = None) -> Portfolio:
    """Return the strategies that answer a solver's question.

    Args:
        solver: Solver that has not begun.
        rows: Rows to walk; None: those of its task.
    """
    solver.begin()
    if rows is None:
        rows = SCHEDULE.get(solver.question.task, ELIMINATION)
    return walk(rows, Facts(solver, solver.options))
