"""Schedule of methods that give bounds while a search is paused: their order, conditions, budgets and reasons."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpSearch, CpSolver
from elimina.cp.expressions import Expression
from elimina.cp.lagrangian_bound import MAX_STEPS, LagrangianBound, ValueCosts
from elimina.cp.linear_relaxation import MAX_ENTRIES, LinearRelaxation, TooLarge
from elimina.cp.posting import Declaration, PostedModel, build_solver
from elimina.cp.to_graphical import tabulate
from elimina.cp.views import views_of
from elimina.errors import EliminaError
from elimina.planning.checked_options import CheckedOptions
from elimina.result import EndedBy
from elimina.strategies.answering import answer_question
from elimina.strategies.clock import Clock

logger = logging.getLogger("elimina")

MAX_TABULATED_VARIABLES = 500
"""Largest number of variables of a model that is converted to tables. The conversion adds auxiliary variables, because
a constraint over many variables becomes several tables."""
TABLE_ROWS = 1 << 14
"""Largest number of tuples of a table: elimination takes milliseconds for each table."""
MAX_ELIMINATED_CELLS = 1 << 30
"""Largest number of cells of a table that elimination may need: a table of this size takes seconds."""
LARGEST_FIRST_RELAXATION = 1 << 11
"""Largest number of entries of a relaxation that the first pause builds for an objective without costs; this takes a
hundredth of a second. Bounds on such objectives (a makespan, the number of colours) are seldom close."""
FIRST_STEPS = 64
"""Largest number of steps of the proof of infeasibility by counting, in the first pause. Most such proofs need few
steps, and many searches for one solution end soon after the first pause."""
COSTLY_TERMS = 4
"""An objective that is a sum counts as one with costs if the sum has at least this many variables."""
_WITHOUT_TABLES = (
    *("cumulative", "no_overlap", "transition_times", "diffn", "reservoir"),
    *("circuit", "subcircuit", "inverse", "bin_packing_load", "nvalue", "weighted_circuit"),
)
"""Constraints that need tables of too many variables for elimination."""


class PausedSearch(NamedTuple):
    """A paused search, to which other methods may add bounds and solutions.

    Attributes:
        posted: The model.
        domains: Solver whose domains contain all better solutions.
        aim: Objective to be minimised; None if there is none.
        sign: 1 if the model's objective is minimised; -1 if it is maximised, and ``aim`` is its negation.
        incumbent: Value of ``aim`` in the best solution; None if there is no solution.
        clock: The clock of the call.
        pauses: Number of earlier pauses.
    """

    posted: PostedModel
    domains: CpSolver
    aim: Expression | None
    sign: int
    incumbent: int | None
    clock: Clock
    pauses: int


class Finding(NamedTuple):
    """A result of a method.

    Attributes:
        lower_bound: Lower bound of ``PausedSearch.aim``; None if the method gives none.
        value_costs: Lower bound on the costs of the solutions with a value, for values of variables, without the
            objective's constant; None if the method gives none.
        solution: Values of all variables; None if the method gives none.
        is_refuted: True if there is no better solution.
        ended_by: Reason to end the call; None if it continues.
    """

    lower_bound: int | None = None
    value_costs: ValueCosts | None = None
    solution: npt.NDArray[np.int64] | None = None
    is_refuted: bool = False
    ended_by: EndedBy | None = None


class BoundRow(NamedTuple):
    """A method, its condition and its budget.

    Attributes:
        name: Name in the log.
        reason: Reason for the row and for its budget.
        applies: Function that returns whether the method is worth its time.
        method: Function that yields the method's results within a number of seconds.
        seconds: Time budgets in seconds: one for the first pause, after which many searches end soon, and one for each
            later pause. Relaxations measure processor time.
        time_share: Largest share of the remaining time that the budget may take.
    """

    name: str
    reason: str
    applies: Callable[[PausedSearch], bool]
    method: Callable[[PausedSearch, float], Iterator[Finding]]
    seconds: tuple[float, float]
    time_share: float


def findings_of(search: PausedSearch) -> Iterator[Finding]:
    """Run the rows that apply, in turn, and yield their results."""
    for row in BOUND_ROWS:
        seconds = min(row.seconds[min(search.pauses, 1)], row.time_share * search.clock.seconds)
        if not row.applies(search):
            continue
        logger.info("next: %s, for %.3g s (%s)", row.name, seconds, row.reason)
        yield from row.method(search, seconds)


def _relax(search: PausedSearch, seconds: float) -> Iterator[Finding]:
    # The budget is processor time: on a loaded machine, wall time could run out before the first subgradient steps.
    started = time.thread_time()
    aim = search.aim
    limit = MAX_ENTRIES if search.pauses > 0 or aim is None or _has_costs(search, aim) else LARGEST_FIRST_RELAXATION
    costs = {} if aim is None else aim.terms
    try:
        relaxation = LinearRelaxation(search.posted.constraints, search.domains, costs, limit)
    except TooLarge:
        return
    bound = LagrangianBound(relaxation, lambda: time.thread_time() < started + seconds and search.clock.seconds > 0)
    steps = MAX_STEPS if search.pauses > 0 else FIRST_STEPS
    if search.incumbent is None and bound.proves_infeasibility(steps):
        yield Finding(is_refuted=True)
        return
    if aim is None:
        return
    value = bound.lower_bound(None if search.incumbent is None else search.incumbent - aim.constant)
    if value is not None:
        yield Finding(lower_bound=value + aim.constant, value_costs=bound.value_costs())


def _eliminate(search: PausedSearch, seconds: float) -> Iterator[Finding]:
    deadline = time.monotonic() + seconds
    posted = search.posted
    try:
        solver, _ = build_solver(posted.variables, posted.constraints, None, deadline)
        model = tabulate(posted, solver, TABLE_ROWS, deadline)
        remaining = max(0.0, deadline - time.monotonic())
        options = CheckedOptions(threads=1, device="cpu")
        result = answer_question(model, "mpe", None, None, remaining, options)
    except (EliminaError, MemoryError):
        return
    if result.status == "infeasible":
        yield Finding(is_refuted=True)
        return
    bound = result.lower_bound if search.sign > 0 else result.upper_bound
    lower = None if bound is None or not math.isfinite(bound) else search.sign * bound
    if lower is not None:
        lower = math.ceil(lower - _ROUNDING_SHARE * abs(lower)) if isinstance(lower, float) else lower
    if result.assignment is not None:
        yield Finding(solution=_completed(search, result.assignment))
    yield Finding(lower_bound=lower, ended_by="interrupt" if result.ended_by == "interrupt" else None)


_ROUNDING_SHARE = 1e-9
"""Largest rounding error of a bound of floats, relative to the bound."""


def _completed(search: PausedSearch, assignment: Mapping[str, int]) -> npt.NDArray[np.int64] | None:
    """Complete an assignment to a solution by propagation and search; return None if a short search finds none."""
    posted = search.posted
    names = [posted.names.get(v, f"_{v}") for v in range(len(posted.variables))]
    variables = [
        Declaration(int(assignment[name]), int(assignment[name]), None) if name in assignment else variable
        for name, variable in zip(names, posted.variables, strict=True)
    ]
    # With the objective, the solution has the search's variables: that of a constant objective, too.
    solver, objective = build_solver(variables, posted.constraints, search.aim, None)
    completion = CpSearch((solver,), [], objective, None, None, False, 0, 1.0, math.inf, _MAX_COMPLETION_FAILURES)
    return completion.solution() if completion.next(lambda: True) == "solution" else None


_MAX_COMPLETION_FAILURES = 100
"""Largest number of failures while an assignment is completed. Few suffice: assigned variables determine the rest."""


def _may_relax(search: PausedSearch) -> bool:
    return any(_is_relaxed(name) for name, _ in search.posted.constraints)


def _is_relaxed(name: str) -> bool:
    return "_lin_" in name or name.startswith(
        ("global_cardinality", "count_eq", "circuit", "all_different_", "regular")
    )


def _has_costs(search: PausedSearch, aim: Expression) -> bool:
    """Return whether the objective is a sum of several variables, or one variable that equals such a sum."""
    if len(aim.terms) >= COSTLY_TERMS:
        return True
    return any(
        name == "int_lin_eq" and len(arguments[0]) > COSTLY_TERMS and not set(aim.terms).isdisjoint(arguments[1][:, 0])
        for name, arguments in search.posted.constraints
    )


def _may_tabulate(search: PausedSearch) -> bool:
    posted = search.posted
    return (
        search.aim is not None
        and len(posted.variables) <= MAX_TABULATED_VARIABLES
        and not any(name.startswith(_WITHOUT_TABLES) for name, _ in posted.constraints)
        and _cells_of_largest_clique(search) <= MAX_ELIMINATED_CELLS
        and _cells_of_dense_part(search) <= MAX_ELIMINATED_CELLS
    )


def _cells_of_largest_clique(search: PausedSearch) -> int:
    """Return a lower bound on the largest table of any elimination order, in cells, from the AllDifferent constraints.

    Any two variables of an AllDifferent share a table. Eliminating the first variable of the constraint thus makes a
    table over all its others.
    """
    sizes, result = search.domains.sizes(), 1
    for name, arguments in search.posted.constraints:
        if name.startswith("all_different"):
            variables = {x.var for x in views_of(arguments[0]) if x.var >= 0}
            result = max(result, math.prod(sorted(sizes[var] for var in variables)[:-1]))
    return result


def _cells_of_dense_part(search: PausedSearch) -> int:
    """Return a lower bound on the largest table of any elimination order, in cells, from binary constraints.

    Take any subgraph of the graph of binary constraints. An order eliminates one of its variables first, and the new
    table then has all neighbours of this variable in the subgraph. In a dense subgraph, all variables have many
    neighbours (degeneracy: Lick and White, 1970).
    """
    sizes = np.array(search.domains.sizes())
    neighbours: dict[int, set[int]] = {}
    for _, arguments in search.posted.constraints:
        variables = {int(var) for a in arguments if a.ndim == 2 for var in a[:, 0] if var >= 0 and sizes[var] > 1}
        if len(variables) == 2:
            left, right = variables
            neighbours.setdefault(left, set()).add(right)
            neighbours.setdefault(right, set()).add(left)
    result = 1
    while neighbours:
        var = min(neighbours, key=lambda v: len(neighbours[v]))
        least_sizes = np.sort(sizes[list(neighbours)])[: len(neighbours[var])]
        result = max(result, math.prod(least_sizes.tolist()))
        for neighbour in neighbours.pop(var):
            neighbours[neighbour].discard(var)
    return result


BOUND_ROWS: tuple[BoundRow, ...] = (
    BoundRow(
        "linear relaxation",
        "it bounds sums of costs, refutes rosters by counting, and finds the cheapest values, in tenths of a second",
        _may_relax,
        _relax,
        seconds=(0.5, 1.0),
        time_share=0.1,
    ),
    BoundRow(
        "elimination of tables",
        "knapsacks and chains have small tables; for other models, the bound at the end of the budget is taken",
        _may_tabulate,
        _eliminate,
        seconds=(0.1, 1.0),
        time_share=0.1,
    ),
)
"""The methods, in the order in which they run."""
