"""The schedule of posterior marginals: elimination, estimates and bounds, with their conditions and budgets."""

from __future__ import annotations

from elimina.planning.machine import BOUNDED_TABLE_SECONDS
from elimina.result import Result
from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies.call import FIRST_BOUNDS_AGE_SECONDS
from elimina.strategies.facts import Facts
from elimina.strategies.posterior_bounds import posterior_bounds
from elimina.strategies.row import Row
from elimina.strategies.schedule import HINT, MEMORY_OF_ESTIMATES, RUN, Rows
from elimina.strategies.strategy import Attempt
from elimina.system import loaded_on_use

FIRST_ESTIMATES_SECONDS, FIRST_ESTIMATES_TIME_SHARE = 0.3, 0.25
"""Largest time of estimates before an order search and before an exact plan: in seconds, and as a share of the
remaining time."""

ESTIMATES_SECONDS = 1.0
"""Seconds of estimates without a time limit; the whole answer then takes about two seconds."""

POSTERIOR_BOUNDS_TIME_SHARE = 0.5
"""Share of the remaining time for bounds on the posterior of one variable."""


# The module of a strategy is imported only when a row of the schedule uses it.
_ESTIMATES = loaded_on_use("elimina.strategies.posterior_estimates", "posterior_estimates")
_first_posteriors = loaded_on_use("elimina.strategies.posterior_estimates", "first_posteriors")


def _provide_estimate(facts: Facts, _: Row) -> Attempt:
    """Provide an estimate in case the call ends without one."""
    cheaper = facts.call.fallback

    def fallback(seconds: float) -> Result | None:
        if facts.call.best_result is not None:
            return None
        result: Result | None = _first_posteriors(facts, seconds)
        return cheaper(seconds) if result is None and cheaper is not None else result

    facts.call.fallback = fallback
    facts.call.fallback_after = max(FIRST_BOUNDS_AGE_SECONDS, BOUNDED_TABLE_SECONDS * len(facts.problem.tables))
    return Attempt()


def seconds_of_first_estimates(facts: Facts) -> float:
    """Return the time for estimates before an exact answer is tried."""
    return min(FIRST_ESTIMATES_SECONDS, FIRST_ESTIMATES_TIME_SHARE * facts.call.seconds)


def seconds_of_estimates(facts: Facts) -> float:
    """Return the time for estimates as the final answer: all the remaining time if there is a time limit."""
    return ESTIMATES_SECONDS if facts.call.deadline is None else facts.call.seconds


def seconds_of_posterior_bounds(facts: Facts) -> float:
    """Return the time for bounds on a posterior, after which estimates continue."""
    return POSTERIOR_BOUNDS_TIME_SHARE * facts.call.seconds


MARGINAL_PLANS: Rows = (
    Row("plan", "elimination is the only exact method", eliminate.plan_as_asked, ends="failed"),
    Row(
        "estimates before the plan runs",
        "a call that is ended early still answers",
        _ESTIMATES,
        (when.ESTIMATES_ARE_ALLOWED, when.PLAN_FITS, when.PLAN_IS_LONG, when.TABLES_FIT),
        seconds=seconds_of_first_estimates,
    ),
    Row(
        "estimates instead of a late plan",
        "elimination has no answer before its end",
        _ESTIMATES,
        (when.ESTIMATES_ARE_ALLOWED, when.PLAN_FITS, when.PLAN_ENDS_TOO_LATE, when.TABLES_FIT),
        seconds=seconds_of_estimates,
        ends="answered",
    ),
    RUN,
)

ESTIMATES_ARE_ALL = (
    when.ESTIMATES_ARE_ALLOWED,
    when.ORDER_IS_OPEN,
    when.SLICES_ARE_OPEN,
    when.ORDER_IS_FAR_TOO_LARGE,
    when.TABLES_FIT,
    when.NO_PLAN_ON_TUPLES_FITS,
)
"""Conditions under which estimates are the answer, without an order search."""

ROWS: Rows = (
    HINT,
    Row(
        "first estimate at the end of the call",
        "a call that is ended early still answers",
        _provide_estimate,
        (when.ESTIMATES_ARE_ALLOWED, when.TABLES_FIT, when.TABLES_STAY_SMALL),
    ),
    Row(
        "first estimates of a large model",
        "an order of elimination, which shows whether a plan fits, takes longer",
        _ESTIMATES,
        (when.ESTIMATES_ARE_ALLOWED, when.HAS_TIME_LIMIT, when.IS_LARGE, when.ORDER_IS_OPEN, when.TABLES_FIT),
        seconds=seconds_of_first_estimates,
    ),
    Row(
        "first estimates",
        "the search for an order takes longer, and a call that is ended early still answers",
        _ESTIMATES,
        (when.ESTIMATES_ARE_ALLOWED, when.ORDER_IS_OPEN, when.QUICK_ORDER_DOES_NOT_FIT, when.TABLES_FIT),
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
        _ESTIMATES,
        ESTIMATES_ARE_ALL,
        seconds=seconds_of_estimates,
        ends="answered",
    ),
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=MARGINAL_PLANS),
    Row(
        "estimates",
        "no plan fits",
        _ESTIMATES,
        (when.ESTIMATES_ARE_ALLOWED, when.ELIMINATION_DID_NOT_FIT, when.TABLES_FIT),
        seconds=seconds_of_estimates,
        ends="always",
    ),
    MEMORY_OF_ESTIMATES,
    Row(
        "exact posteriors by slices",
        "each slice fits into memory, and all of them together are exact",
        _ESTIMATES,
        (when.EXACT_IS_ASKED, when.ELIMINATION_DID_NOT_FIT, when.TABLES_FIT),
        ends="answered",
    ),
)
