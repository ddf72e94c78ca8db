"""The schedule of the optimum: search, filtering and elimination, with their conditions and budgets."""

from __future__ import annotations

from functools import partial

from elimina.planning.machine import cpu_machine
from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, RUN, Rows, elimination_by
from elimina.system import loaded_on_use

# The module of a strategy is imported only when a row of the schedule uses it.
_search = partial(loaded_on_use, "elimina.strategies.search_strategies")
_LOCAL_SEARCH = loaded_on_use("elimina.strategies.local_search_strategy", "local_search")
_FILTERING = loaded_on_use("elimina.strategies.filtering_strategy", "filtered_elimination")
_CLUSTERS = loaded_on_use("elimina.strategies.cluster_strategy", "clusters")
_SEARCH_TO_THE_END = loaded_on_use("elimina.strategies.final_search", "search_to_the_end")

LONGEST_SEARCH_SECONDS = 60.0
"""Largest time of search before a plan, in seconds; search that alternates with filtering begins with twice as much."""

SHORTEST_FILTER_SECONDS, LONGEST_FILTER_SECONDS = 0.2, 1.0
"""Least and largest seconds of the first filtering. Within these limits, it gets as much time as elimination would
take. Filtering solves files of SPOT5 within a second, but not colourings within a minute."""

ROUND_SECONDS_PER_SECOND = 1.0
"""Largest time of a round of mini-buckets, relative to the estimated time of elimination: an unsuccessful round then at
most doubles the time."""

FRESH_MEMORY_FACTOR = 2.0
"""Factor by which access to newly allocated memory may be slower than estimated, as on virtual machines."""

LONGEST_CLUSTERS_SECONDS, CLUSTERS_TIME_SHARE = 40.0, 0.5
"""Largest time of passes over clusters on a GPU: in seconds, and as a share of the remaining time."""


def seconds_of_first_filtering(facts: Facts) -> float:
    """Return the time for the first filtering: the estimated time of elimination, within limits."""
    seconds = facts.seconds_in(facts.quick_order)
    return max(SHORTEST_FILTER_SECONDS, min(LONGEST_FILTER_SECONDS, seconds))


def seconds_of_round(facts: Facts) -> float:
    """Return the time for a round of mini-buckets, which is short if elimination is short."""
    expected = facts.seconds_in(facts.searched_order)
    return min(when.MINI_BUCKET_SECONDS, ROUND_SECONDS_PER_SECOND * expected)


def seconds_of_plan(facts: Facts) -> float:
    """Return the time for a search before the plan runs: about as long as the plan takes."""
    doubtful = (FRESH_MEMORY_FACTOR - 1) * facts.plan.peak_bytes / cpu_machine(1).fresh
    return min(facts.plan.seconds + doubtful, LONGEST_SEARCH_SECONDS)


def seconds_of_clusters(facts: Facts) -> float:
    """Return the time for passes over clusters."""
    return min(LONGEST_CLUSTERS_SECONDS, CLUSTERS_TIME_SHARE * facts.call.seconds)


BEFORE_PLANNING: Rows = (
    Row(
        "soft local consistency",
        "it proves easy optima at once",
        _search("first_turn_of_search"),
        (when.SEARCH_IS_QUICKER,),
        seconds=0.02,
        is_shared=True,
    ),
    Row(
        "local search",
        "a good assignment narrows all that follows",
        _LOCAL_SEARCH,
        seconds=0.05,
        is_shared=True,
    ),
    Row(
        "filter",
        "SPOT5 ends within a second",
        _FILTERING,
        (when.CAN_FILTER, when.QUICK_ORDER_FITS),
        seconds=seconds_of_first_filtering,
        is_shared=True,
    ),
    Row(
        "soft local consistency again",
        "it has the first turn of any search",
        _search("second_turn_of_search"),
        (when.SEARCH_IS_QUICKER, when.ELIMINATION_IS_NOT_HOPELESS),
    ),
    Row(
        "filter for bounds",
        "filtering bounds with mini-buckets, too, before soft local consistency has more time",
        _FILTERING,
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
                _search("nodes_of_search"),
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
                        _search("turn_of_search"),
                        (when.MINI_BUCKETS_ARE_LOOSE,),
                        seconds=4.0,
                        is_shared=True,
                    ),
                    Row(
                        "search by mini-buckets",
                        "a search by the messages of small tables ends many problems before a plan is made",
                        _search("round_of_search"),
                        seconds=seconds_of_round,
                    ),
                    Row(
                        "soft local consistency for a second",
                        "the plan is long, or does not fit",
                        _search("turn_of_search"),
                        (when.MINI_BUCKETS_ARE_TIGHT, when.SECOND_TURN_IS_WORTH_IT),
                        seconds=1.0,
                        is_shared=True,
                    ),
                    Row(
                        "filter for long",
                        "the plan is long, or does not fit",
                        _FILTERING,
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
                _CLUSTERS,
                (when.PLAN_DOES_NOT_FIT, when.MAY_USE_GPU, when.CLUSTERS_ARE_SHIFTED),
                seconds=seconds_of_clusters,
            ),
            Row(
                "search before slices",
                "slices take longer than a plan that fits",
                _search("search_before_running"),
                (when.PLAN_DOES_NOT_FIT,),
                seconds=LONGEST_SEARCH_SECONDS,
            ),
            Row(
                "search before the plan runs",
                "it may be faster than the plan, and at most doubles its time",
                _search("search_before_running"),
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
            when.PLAN_DOES_NOT_FIT,
            when.TRIES_OTHERS_FIRST,
            when.PLAN_HAS_SMALL_STEPS,
            when.SLICES_ARE_AUTO,
            when.PLAN_IS_WITHIN_REACH,
        ),
    ),
    Row(
        "search and filter to the end",
        "no plan fits",
        _SEARCH_TO_THE_END,
        (when.PLAN_DOES_NOT_FIT, when.ANY_METHOD),
        seconds=LONGEST_SEARCH_SECONDS,
        ends="always",
    ),
    Row(
        "search to the end",
        "search has bounds at any time, elimination only at its end",
        _SEARCH_TO_THE_END,
        (when.PLAN_ENDS_TOO_LATE, when.TRIES_OTHERS_FIRST),
        seconds=LONGEST_SEARCH_SECONDS,
        ends="answered",
    ),
    RUN,
)
"""Rows that make a plan and run it; they may run again with finer slices or dense tables."""

ELIMINATE_OPTIMUM = elimination_by(OPTIMUM_PLANS)

ROWS: Rows = (
    *BEGIN,
    Row(
        "search",
        "the user asks for it",
        _search("requested_search"),
        (when.NO_CHECKPOINT, when.SEARCH_IS_ASKED),
        ends="always",
    ),
    Row(
        "filter",
        "the user asks for it, or gives an upper bound, which filtering uses best",
        _FILTERING,
        (when.NO_CHECKPOINT, when.OPTIMUM_IS_ASKED),
        ends="always",
    ),
    Row(
        "before a plan is made",
        "the search for an order and the plan take a second, and easy problems less",
        conditions=(
            when.NO_CHECKPOINT,
            when.METHOD_IS_AUTO,
            when.DTYPE_IS_OPEN,
            when.SLICES_ARE_OPEN,
            when.ELIMINATION_IS_LONG,
            when.NO_SHORT_PLAN_ON_TUPLES,
        ),
        rows=BEFORE_PLANNING,
    ),
    *ELIMINATE_OPTIMUM,
)
