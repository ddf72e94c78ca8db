"""The schedule of a count: elimination, then estimates and bounds."""

from __future__ import annotations

from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, BOUNDS_ALONE, PLAN_AND_RUN, Rows
from elimina.strategies.sum_schedule import (
    ESTIMATES_STAND_BESIDE_BOUNDS,
    SUM_ESTIMATES,
    seconds_of_optimised_bounds,
    seconds_of_sum_estimates,
)

ROWS: Rows = (
    *BEGIN,
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=PLAN_AND_RUN),
    Row(
        "estimates of the count",
        "a number with its error says more than bounds alone, which are improved after it",
        SUM_ESTIMATES,
        (when.ELIMINATION_DID_NOT_FIT, *ESTIMATES_STAND_BESIDE_BOUNDS),
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
