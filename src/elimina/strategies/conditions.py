"""Conditions of the schedule: predicates over facts, with their thresholds."""

from __future__ import annotations

import math

import numpy as np

from elimina.errors import MemoryLimitError
from elimina.number_texts import bytes_text, counted, seconds_text
from elimina.planning.listed_tables import seconds_written
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import is_rough_enough
from elimina.running.estimate_memory import (
    FLOAT_BYTES,
    QUICK_ORDER_FACTOR,
    are_dense_tables_small,
    can_write_tables,
)
from elimina.running.host import host_memory
from elimina.running.memory_shares import can_copy, cells_of
from elimina.running.sparse_plans import MIN_WRITING_SECONDS
from elimina.strategies.facts import SHORT_ELIMINATION_SECONDS, Facts, memory_of
from elimina.strategies.row import Condition, no

LONG_ELIMINATION_CELLS = 10**8
"""Number of cells in the buckets of the quick order above which other strategies come before elimination. Eliminating
so many cells takes a tenth of a second."""

LONG_ELIMINATION_VARIABLES = 3000
"""Number of variables above which ``LONG_ELIMINATION_CELLS`` grows in proportion: other strategies need at least 2e-5 s
(local search) per variable."""

SEARCH_START_SECONDS_PER_VARIABLE = 3e-5
"""Seconds per variable that search takes before its first node, for cost shifting and a consistent root (1e-5 to 3e-5
on circuits and mastermind). Shorter eliminations come before search."""

LARGE_MODEL_VARIABLES = 200_000
"""Number of variables above which posteriors are estimated before the order search: the search takes 0.1 s or more."""

HARD_ELIMINATION_SECONDS = 100.0
"""Estimated seconds of an elimination above which soft local consistency runs before it with a limit on nodes."""

SECOND_TURN_ELIMINATION_SECONDS = 5.0
"""Estimated seconds of an elimination above which soft local consistency gets a second turn before it."""

MINI_BUCKET_SECONDS, FEW_VARIABLES, FEW_VARIABLES_SHARE = 1.0, 8, 0.65
"""Time limit of a round of mini-buckets, in seconds. A round is not worthwhile if mini-buckets that take this time have
at most ``FEW_VARIABLES`` variables, and at most the share ``FEW_VARIABLES_SHARE`` of the variables of the largest
table."""

UNREACHABLE_CELLS_PER_BYTE = 2.0**10
"""Number of cells of the largest table, per byte of memory, above which no better order is searched for: a search
seldom reduces a table by so much."""

ZEROS_SHARE = 0.25
"""Share of zeros among the tables' cells above which sparse tables may be much smaller than dense ones."""

SEARCHED_ORDER_FACTOR = 4.0
"""No order is expected to fit if the order found by a search needs more than this multiple of the memory limit: a
longer search saves only about a factor of two."""

MAX_SLICED_PLAN_SECONDS = 1e7
"""Estimated seconds of an elimination above which slices are not tried, because they take even longer. The search for
an order of slices takes seconds, and seldom makes an elimination a hundred times as fast (on two of 56 hard files, with
2^300 cells)."""

SEARCHED_FROM_SECONDS = 2.0
"""Estimated seconds of a plan above which search is tried before the plan runs, for about the same time."""

BOUNDED_FROM_SECONDS = 2.0
"""Estimated seconds of a sum's elimination above which quick bounds come first: they take 0.05 to 0.4 s."""

MAX_TRIAL_VARIABLES = 1_000
"""Largest number of variables for a trial plan, which then takes milliseconds."""

MAX_PRODUCT_SPEEDUP = 50.0
"""Largest factor by which an elimination is expected to be quicker if its steps are matrix products."""

LARGE_TABLES_CELLS_PER_VARIABLE = 1e3
"""A model's tables can be large only if they have more cells per variable than this."""

SLOW_TABLES_CELLS_PER_SECOND = 1e6
"""Mini-buckets of large tables are hardly optimised if the tables have more cells per second of the remaining time: an
optimisation evaluates them dozens of times, at about 1e-8 s a cell."""

LARGE_TABLES_CELLS_PER_SECOND = 1e5
"""Small mini-buckets come first if large tables have more cells per second of the remaining time."""

LARGE_TABLES_SECONDS = 12.0
"""Remaining time that is assumed for large tables if there is no time limit."""

ESTIMATE_CELL_SECONDS, ESTIMATES_TIME_SHARE = 4e-8, 0.25
"""Time until the first estimate: in seconds per cell of all tables, and as its largest share of the remaining time."""

LATE_PLAN_FACTOR = 4.0
"""Ratio of an elimination's estimated time to the remaining time above which it is expected to end too late: estimates
are seldom wrong by more."""


# --- conditions on the options ---

HAS_FIRST_BOUNDS = Condition(
    "its tables bound the answer", lambda facts: facts.description.has_first_bounds and not facts.options.exact
)
HAS_NO_BOUNDS = Condition("there are no bounds yet", lambda facts: facts.call.best_result is None)
NO_CHECKPOINT = Condition("no checkpoint is kept", lambda facts: not facts.has_checkpoint)
METHOD_IS_AUTO = Condition("the method is open", lambda facts: facts.options.solving.is_open)
METHOD_IS_MBE = Condition("mini-buckets are asked for", lambda facts: facts.options.solving.bounds)
MAY_BE_BOUNDED = Condition(
    "bounds may stand for the sum", lambda facts: facts.options.solving.may_bound and not facts.options.exact
)
ESTIMATES_ARE_ALLOWED = Condition(
    "estimates are allowed", lambda facts: facts.options.solving.is_open and not facts.options.exact
)
EXACT_IS_ASKED = Condition(
    "an exact answer is asked for", lambda facts: facts.options.solving.is_open and facts.options.exact
)
SEARCH_IS_ASKED = Condition(
    "search is asked for, or an upper bound that it alone can use",
    lambda facts: facts.options.solving.searches or facts.needs_search,
)
OPTIMUM_IS_ASKED = Condition(
    "filtering is asked for, or an upper bound is given", lambda facts: facts.options.looks_for_optimum
)
HINT_IS_GIVEN = Condition("an assignment is given", lambda facts: facts.options.hint is not None)
DTYPE_IS_OPEN = Condition("the number type is open", lambda facts: facts.options.dtype is None)
SLICES_ARE_OPEN = Condition("no slices or files are asked for", lambda facts: not facts.options.asks_for_slices)
SLICES_ARE_AUTO = Condition("slices are allowed", lambda facts: facts.options.slices == "auto")
ORDER_IS_OPEN = Condition("the order is open", lambda facts: isinstance(facts.options.order, str))
IBOUND_IS_OPEN = Condition("the i-bound is open", lambda facts: facts.options.ibound is None)
NOT_SPARSE = Condition("tables may be dense", lambda facts: facts.options.tables != "sparse")
TABLES_ARE_OPEN = Condition(
    "no slices, files or tuples are asked for", lambda facts: not facts.options.names_another_way
)
SHIFTS_BUCKETS = Condition("costs may be shifted between mini-buckets", lambda facts: facts.options.matches_moments)
ON_HOST = Condition("no GPU is asked for", lambda facts: not facts.options.needs_gpu)
MAY_USE_GPU = Condition("a GPU may be used", lambda facts: facts.options.may_use_gpu)
CLUSTERS_ARE_SHIFTED = Condition("costs are shifted between clusters", lambda facts: facts.options.shifts_clusters)
ANY_METHOD = Condition("any method may find the optimum", lambda facts: facts.has_open_method)


# --- elimination in a quick order ---


def is_long(order: Order, facts: Facts) -> bool:
    """Return whether elimination in an order takes so long that other strategies come first."""
    work = LONG_ELIMINATION_CELLS * max(1, len(order.order) / LONG_ELIMINATION_VARIABLES)
    # The number of cells may be an integer beyond the range of floats, so it is compared without a division.
    return order.total_cells >= work * facts.cells_per_second / CELLS_PER_SECOND


def _quick_order_text(facts: Facts) -> str:
    return f"elimination is long: a quick order has {counted(facts.quick_order.total_cells, 'cell', is_rounded=True)}"


def _order_text(facts: Facts) -> str:
    return f"the order found so far takes an estimated {seconds_text(facts.seconds_in(facts.searched_order))}"


ELIMINATION_IS_LONG = Condition(_quick_order_text, lambda facts: is_long(facts.quick_order, facts))
ELIMINATION_IS_HOPELESS = Condition("elimination in the quick order would take days", lambda facts: facts.is_hopeless)
ELIMINATION_IS_NOT_HOPELESS = no(ELIMINATION_IS_HOPELESS, "elimination in the quick order would not take days")
ELIMINATION_IS_HARD = Condition(
    lambda facts: f"elimination takes an estimated {seconds_text(facts.seconds_in(facts.glance_order))}",
    lambda facts: facts.seconds_in(facts.glance_order) >= HARD_ELIMINATION_SECONDS,
)
QUICK_ELIMINATION_IS_NOT_SHORT = Condition(
    lambda facts: f"the quick order takes an estimated {seconds_text(facts.seconds_in(facts.quick_order))}",
    lambda facts: facts.seconds_in(facts.quick_order) >= SHORT_ELIMINATION_SECONDS,
)
ELIMINATION_IS_NOT_SHORT = Condition(
    _order_text, lambda facts: facts.seconds_in(facts.searched_order) >= SHORT_ELIMINATION_SECONDS
)
TABLES_FIT = Condition(
    "its tables fit into memory if they are written out",
    lambda facts: can_write_tables(facts.problem, facts.memory_bytes),
)


def _table_cells(facts: Facts) -> float:
    return float(facts.problem.groups.cells(facts.problem.model.size_array).sum())


ESTIMATES_CAN_BEGIN = Condition(
    "an estimate can visit all tables in time",
    lambda facts: ESTIMATE_CELL_SECONDS * _table_cells(facts) <= ESTIMATES_TIME_SHARE * facts.call.seconds,
)


def _has_large_tables(facts: Facts, cells_per_second: float) -> bool:
    seconds = LARGE_TABLES_SECONDS if facts.call.deadline is None else facts.call.seconds
    return _table_cells(facts) > max(LARGE_TABLES_CELLS_PER_VARIABLE * facts.variables, cells_per_second * seconds)


OPTIMISATION_IS_SLOW = Condition(
    "mini-buckets of its tables are hardly optimised in time",
    lambda facts: _has_large_tables(facts, SLOW_TABLES_CELLS_PER_SECOND),
)
TABLES_ARE_LARGE = Condition(
    "its tables are large", lambda facts: _has_large_tables(facts, LARGE_TABLES_CELLS_PER_SECOND)
)
TABLES_STAY_SMALL = Condition(
    "its tables take little more memory if they are written out", lambda facts: are_dense_tables_small(facts.problem)
)
TABLES_DO_NOT_FIT = no(TABLES_FIT, "its tables do not fit into memory if they are written out")
QUICK_ORDER_FITS = Condition(
    "its tables fit into memory", lambda facts: 2 * facts.quick_order.largest_table < facts.memory_bytes
)
QUICK_ORDER_DOES_NOT_FIT = no(QUICK_ORDER_FITS, "its tables do not fit into memory")


QUICK_ORDER_IS_FAR_TOO_LARGE = Condition(
    "no search makes the quick order's tables fit",
    lambda facts: FLOAT_BYTES * facts.quick_order.total_cells > QUICK_ORDER_FACTOR * facts.memory_bytes,
)


def _is_far_too_large(facts: Facts) -> bool:
    if QUICK_ORDER_IS_FAR_TOO_LARGE.holds(facts):
        return True
    # A small quick order makes the search unnecessary: a search never returns a larger order.
    max_cells = SEARCHED_ORDER_FACTOR * facts.memory_bytes / FLOAT_BYTES
    return facts.quick_order.total_cells > max_cells and facts.searched_order.total_cells > max_cells


ORDER_IS_FAR_TOO_LARGE = Condition("no order has tables that fit", _is_far_too_large)


def _asks_for_one_posterior(facts: Facts) -> bool:
    inquiry = facts.solver.inquiry
    variables = inquiry.structure.wanted[0]
    return len(inquiry.asked) == len(variables) == 1 and inquiry.structure.trees == 1 and not inquiry.merged


ONE_POSTERIOR_IS_ASKED = Condition("the posterior of one variable is asked for", _asks_for_one_posterior)
IS_LARGE = Condition(
    lambda facts: f"there are {counted(facts.variables, 'variable', is_rounded=True)}",
    lambda facts: facts.variables >= LARGE_MODEL_VARIABLES,
)
HAS_TIME_LIMIT = Condition("there is a time limit", lambda facts: facts.call.deadline is not None)
TIME_REMAINS = Condition("time remains", lambda facts: facts.call.seconds > 0)
SEARCH_IS_QUICKER = Condition(
    lambda facts: f"search starts before it ends, with {counted(facts.variables, 'variable', is_rounded=True)}",
    lambda facts: (
        facts.options.tables != "sparse"
        and facts.options.ibound is None
        and isinstance(facts.options.order, str)
        and facts.quick_order.total_cells >= SEARCH_START_SECONDS_PER_VARIABLE * facts.variables * CELLS_PER_SECOND
    ),
)


def _is_elimination_short(facts: Facts) -> bool:
    """Return whether elimination is so short that quick bounds are not worthwhile.

    Matrix products take less time than their number of cells suggests, and only a plan shows this. So a trial plan is
    made if elimination may be short.
    """
    seconds = facts.seconds_in(facts.glance_order)
    if seconds < BOUNDED_FROM_SECONDS:
        return True
    if facts.variables > MAX_TRIAL_VARIABLES or seconds > MAX_PRODUCT_SPEEDUP * BOUNDED_FROM_SECONDS:
        return False
    plan = facts.solver.trial_plan(facts.glance_order, facts.options)
    return plan.fits and plan.seconds < BOUNDED_FROM_SECONDS


BOUNDS_ARE_QUICKER = Condition(
    _quick_order_text,
    lambda facts: (
        is_long(facts.quick_order, facts) and (facts.options.solving.bounds or not _is_elimination_short(facts))
    ),
)
SECOND_TURN_IS_WORTH_IT = Condition(
    _order_text,
    lambda facts: (
        2 * facts.searched_order.largest_table >= memory_of(facts.host_options)
        or facts.seconds_in(facts.searched_order) >= SECOND_TURN_ELIMINATION_SECONDS
    ),
)


def is_loose(order: Order) -> bool:
    """Return whether mini-buckets would be loose, because large domains leave few variables in each of them."""
    digits = math.log(max(2, order.largest_table)) / (order.width + 1)
    variables = math.log(MINI_BUCKET_SECONDS * CELLS_PER_SECOND) / digits
    return variables <= min(FEW_VARIABLES, FEW_VARIABLES_SHARE * (order.width + 1))


MINI_BUCKETS_ARE_LOOSE = Condition(
    "mini-buckets would have few variables", lambda facts: is_loose(facts.searched_order)
)
MINI_BUCKETS_ARE_TIGHT = no(MINI_BUCKETS_ARE_LOOSE, "mini-buckets have many variables")
FILTER_IS_FIRST = Condition(
    "filtering gives better bounds than search",
    lambda facts: not (SEARCH_IS_QUICKER.holds(facts) and is_loose(facts.quick_order)),
)


# --- methods ---

CAN_FILTER = Condition("filtering works with these costs", lambda facts: facts.can_filter)


def _can_be_dense(facts: Facts) -> bool:
    return facts.options.tables != "auto" or seconds_written(facts.problem) <= MIN_WRITING_SECONDS


TABLES_CAN_BE_DENSE = Condition("tables are quickly written out", _can_be_dense)


def _is_short_on_tuples(facts: Facts) -> bool:
    options, problem = facts.options, facts.problem
    if options.tables == "dense" or seconds_written(problem) < MIN_WRITING_SECONDS:
        return False
    if not is_long(facts.quick_order, facts):
        return False
    plan = facts.solver.trial_plan(facts.quick_order, options)
    return plan.sparse is not None and plan.fits and plan.seconds < SEARCHED_FROM_SECONDS


def _fits_on_tuples(facts: Facts) -> bool:
    """Return whether the tables list tuples or have many zeros, and a sparse plan fits."""
    tables = facts.problem.tables
    if facts.options.tables == "dense" or not facts.quick_order.is_complete:
        return False
    if not any(table.rows is not None for table in tables):
        with_zeros = [tables[number].values for number in tables.listed.forbidding("probability").tolist()]
        zeros = sum(values.size - np.count_nonzero(values) for values in with_zeros)
        if not zeros or zeros <= ZEROS_SHARE * sum(table.values.size for table in tables):
            return False
    plan = facts.solver.trial_plan(facts.quick_order, facts.options)
    return plan.sparse is not None and plan.fits


NO_PLAN_ON_TUPLES_FITS = no(
    Condition("a plan on sparse tables fits", _fits_on_tuples),
    "no plan on sparse tables fits",
)
NO_SHORT_PLAN_ON_TUPLES = no(
    Condition("a plan on sparse tables is short", _is_short_on_tuples),
    "no plan on sparse tables is short",
)


# --- plans ---

TRIES_OTHERS_FIRST = Condition(
    "any method may find the optimum, and no slices are asked for",
    lambda facts: facts.has_open_method and not facts.options.asks_for_slices,
)
PLAN_IS_ASKED = no(TRIES_OTHERS_FIRST, "elimination is asked for, or slices")
PLAN_FITS = Condition(
    lambda facts: f"the plan needs {bytes_text(facts.plan.peak_bytes)}", lambda facts: facts.plan.fits
)
PLAN_DOES_NOT_FIT = no(PLAN_FITS, "the plan does not fit")
PLAN_HAS_SMALL_STEPS = Condition("its steps fit", lambda facts: not facts.plan.has_large_steps)
PLAN_IS_WITHIN_REACH = Condition(
    lambda facts: f"elimination takes an estimated {seconds_text(facts.plan.seconds)} without slices",
    lambda facts: facts.plan.seconds < MAX_SLICED_PLAN_SECONDS,
)
PLAN_IS_LONG = Condition(
    lambda facts: f"the plan takes an estimated {seconds_text(facts.plan.seconds)} on the host",
    lambda facts: facts.plan.on_host and facts.options.dtype is None and facts.plan.seconds >= SEARCHED_FROM_SECONDS,
)
PLAN_ENDS_TOO_LATE = Condition(
    "elimination would not end in time", lambda facts: facts.plan.seconds > LATE_PLAN_FACTOR * facts.call.seconds
)
PLAN_ENDS_IN_TIME = no(PLAN_ENDS_TOO_LATE, "the plan may end in time")
ELIMINATION_DID_NOT_FIT = Condition(
    "elimination ran out of memory", lambda facts: isinstance(facts.failure, MemoryLimitError)
)


def needs_order_search(facts: Facts) -> bool:
    """Return whether a search should improve the quick order before planning."""
    return not is_rough_enough(facts.problem, facts.options, facts.quick_order)


def is_out_of_reach(order: Order, facts: Facts) -> bool:
    """Return whether an order needs far too much memory: a search is not expected to find an order that fits."""
    reach = UNREACHABLE_CELLS_PER_BYTE
    return order.largest_table > reach and order.largest_table > reach * facts.memory_bytes


def can_search(facts: Facts) -> bool:
    """Return whether the search's copies of the tables fit into memory."""
    problem = facts.problem
    remaining = facts.options.after_growth(facts.call.growth_bytes)
    return can_copy(cells_of(problem), len(problem.groups), host_memory(remaining))
