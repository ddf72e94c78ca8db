"""The schedule of a sum of products: elimination, estimates and bounds, with their conditions and budgets."""

from __future__ import annotations

from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.schedule import (
    BEGIN,
    BOUNDS_ALONE,
    MEMORY_OF_ESTIMATES,
    PLAN_AND_RUN,
    RUN,
    Rows,
    elimination_by,
)
from elimina.system import loaded_on_use

SUM_ESTIMATES = loaded_on_use("elimina.strategies.sum_estimates", "sum_estimates")
"""Estimates of a sum or a count; their module is imported when their row runs."""

FIRST_SUM_ESTIMATES_SECONDS, SUM_ESTIMATES_SECONDS, SUM_ESTIMATES_TIME_SHARE = 1.0, 2.0, 0.25
"""Times of estimates of a sum or a count: seconds before an order search; seconds after it if there is no time limit;
and the largest share of the remaining time for either."""

QUICK_BOUNDS_SECONDS, OPTIMISED_BOUNDS_SECONDS = 1.0, 12.0
"""Seconds of bounds on a sum before the search for a good order, and of the final bounds if there is no time limit. (On
a 40 x 40 Ising grid in 64 MB, the gap narrows slowly after this time.)"""


def seconds_of_first_sum_estimates(facts: Facts) -> float:
    """Return the time for estimates of a sum before an exact answer is tried."""
    return min(FIRST_SUM_ESTIMATES_SECONDS, SUM_ESTIMATES_TIME_SHARE * facts.call.seconds)


def seconds_of_sum_estimates(facts: Facts) -> float:
    """Return the time for estimates of a sum, after which its bounds are improved."""
    return SUM_ESTIMATES_SECONDS if facts.call.deadline is None else SUM_ESTIMATES_TIME_SHARE * facts.call.seconds


def seconds_of_optimised_bounds(facts: Facts) -> float:
    """Return the time for optimised bounds: all the remaining time if there is a time limit."""
    return OPTIMISED_BOUNDS_SECONDS if facts.call.deadline is None else facts.call.seconds


ESTIMATES_STAND_BESIDE_BOUNDS = (
    when.NO_CHECKPOINT,
    when.ESTIMATES_ARE_ALLOWED,
    when.TABLES_ARE_OPEN,
    when.IBOUND_IS_OPEN,
    when.TABLES_FIT,
    when.ESTIMATES_CAN_BEGIN,
)
"""Conditions under which a sum or a count is estimated in addition to its bounds."""

TIMELY_RUN: Rows = (
    Row("plan", "plain mini-buckets may be larger than optimised ones", eliminate.plan_as_asked, ends="failed"),
    RUN._replace(conditions=(when.PLAN_ENDS_IN_TIME,)),
)
"""A plan that runs only if it is expected to end before the time limit."""

SUM_BOUNDS: Rows = (
    Row(
        "growing mini-buckets",
        "they visit large tables once for each side, and an optimisation visits them dozens of times",
        eliminate.growing_mini_buckets,
        (when.OPTIMISATION_IS_SLOW,),
    ),
    Row(
        "weighted mini-buckets",
        "optimised weights and shifts bound a sum closer than larger mini-buckets",
        eliminate.optimised_bounds,
        seconds=seconds_of_optimised_bounds,
    ),
    Row(
        "plain mini-buckets in the remaining time",
        "the optimisation ends when it gains little",
        eliminate.timely_mini_buckets,
        (when.HAS_TIME_LIMIT, when.TIME_REMAINS),
        rows=TIMELY_RUN,
    ),
)
"""Bounds on a sum, best ones last."""

SUM_PLANS: Rows = (
    Row("plan", "elimination is the only exact method", eliminate.plan_as_asked, ends="failed"),
    Row(
        "estimates of the sum",
        "a number with its error says more than bounds alone, which are improved after it",
        SUM_ESTIMATES,
        (when.PLAN_DOES_NOT_FIT, *ESTIMATES_STAND_BESIDE_BOUNDS),
        seconds=seconds_of_sum_estimates,
    ),
    Row(
        "estimates of the sum before a late plan",
        "elimination has no answer before its end",
        SUM_ESTIMATES,
        (when.PLAN_FITS, when.PLAN_ENDS_TOO_LATE, *ESTIMATES_STAND_BESIDE_BOUNDS),
        seconds=seconds_of_sum_estimates,
    ),
    Row(
        "optimised mini-buckets instead",
        "optimised weights and shifts bound a sum closer than larger mini-buckets",
        eliminate.sum_bounds,
        (
            when.PLAN_DOES_NOT_FIT,
            when.NO_CHECKPOINT,
            when.ESTIMATES_ARE_ALLOWED,
            when.IBOUND_IS_OPEN,
            when.SHIFTS_BUCKETS,
            when.ON_HOST,
        ),
        ends="answered",
        rows=SUM_BOUNDS,
    ),
    Row(
        "mini-buckets instead",
        "they bound the sum, as no plan fits",
        eliminate.largest_mini_buckets,
        (when.PLAN_DOES_NOT_FIT, when.NO_CHECKPOINT, when.MAY_BE_BOUNDED, when.IBOUND_IS_OPEN),
        ends="always",
        rows=PLAN_AND_RUN,
    ),
    RUN,
)

BEFORE_ORDER: Rows = (
    Row(
        "quick bounds of large tables",
        "small mini-buckets visit each table once for each side, and all that follows visits it many times",
        eliminate.quick_bounds,
        (when.METHOD_IS_AUTO, when.IBOUND_IS_OPEN, when.TABLES_ARE_LARGE),
    ),
    Row(
        "first estimates of the sum",
        "bounds and the search for an order take longer, and a call that is ended early still answers",
        SUM_ESTIMATES,
        (*ESTIMATES_STAND_BESIDE_BOUNDS, when.QUICK_ORDER_DOES_NOT_FIT),
        seconds=seconds_of_first_sum_estimates,
    ),
    Row(
        "optimised mini-buckets instead of a plan",
        "a longer search for an order would not make a plan fit, and takes their time",
        eliminate.sum_bounds,
        (
            when.METHOD_IS_AUTO,
            when.IBOUND_IS_OPEN,
            when.DTYPE_IS_OPEN,
            when.SHIFTS_BUCKETS,
            when.ON_HOST,
            when.SLICES_ARE_OPEN,
            when.QUICK_ORDER_IS_FAR_TOO_LARGE,
            when.NO_PLAN_ON_TUPLES_FITS,
        ),
        ends="answered",
        rows=SUM_BOUNDS,
    ),
    Row(
        "quick bounds",
        "small mini-buckets bound a large sum before the search for a good order",
        eliminate.optimised_bounds,
        (when.IBOUND_IS_OPEN, when.DTYPE_IS_OPEN, when.SHIFTS_BUCKETS, when.ON_HOST),
        seconds=QUICK_BOUNDS_SECONDS,
    ),
    Row(
        "quick bounds as asked",
        "small mini-buckets bound a large sum before the search for a good order",
        eliminate.quick_bounds,
        (when.HAS_NO_BOUNDS,),
    ),
)
"""Rows before the search for a good order."""

ROWS: Rows = (
    *BEGIN,
    Row(
        "before a plan is made",
        "the search for an order and the plan may take longer than bounds, or be in vain",
        conditions=(
            when.NO_CHECKPOINT,
            when.MAY_BE_BOUNDED,
            when.ORDER_IS_OPEN,
            when.NOT_SPARSE,
            when.BOUNDS_ARE_QUICKER,
            when.TABLES_CAN_BE_DENSE,
        ),
        ends="answered",
        rows=BEFORE_ORDER,
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
        ends="answered",
        rows=SUM_BOUNDS,
    ),
    *elimination_by(SUM_PLANS),
    BOUNDS_ALONE._replace(conditions=(*BOUNDS_ALONE.conditions, when.TABLES_FIT)),
    MEMORY_OF_ESTIMATES,
)
