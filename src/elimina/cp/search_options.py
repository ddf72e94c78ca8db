"""Settings of a search: orderings, restarts, and limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from elimina import arguments
from elimina.cp.expressions import Operand
from elimina.result import Bounds

MAX_THREADS = 1024
"""Largest number of threads of a search. Machines have fewer cores, and a system can start this many threads."""

Restarts = Literal["luby", "geometric", "linear", "constant", "none"]
RESTARTS: tuple[Restarts, ...] = get_args(Restarts)

VariableOrdering = Literal[
    "input_order",
    "first_fail",
    "anti_first_fail",
    "smallest",
    "largest",
    "occurrence",
    "most_constrained",
    "max_regret",
    "dom_w_deg",
]
VARIABLE_ORDERINGS: tuple[VariableOrdering, ...] = get_args(VariableOrdering)

ValueOrdering = Literal[
    "indomain",
    "indomain_min",
    "indomain_max",
    "indomain_median",
    "indomain_middle",
    "indomain_random",
    "indomain_split",
    "indomain_reverse_split",
    "indomain_interval",
    "outdomain_min",
    "outdomain_max",
]
VALUE_ORDERINGS: tuple[ValueOrdering, ...] = get_args(ValueOrdering)


@arguments.with_checked_methods
@dataclass(frozen=True)
class SearchOptions:
    """Settings of a search for experts: options of ``Model.solve`` besides its arguments.

    By default the search is a portfolio: a short phase by the model's orderings; then restarts, large neighbourhoods
    as soon as there is a solution, and lower bounds, in turn. ``restarts``, ``free`` and ``lns`` force one of them. A
    search for all solutions follows the model's orderings, without restarts.

    Attributes:
        node_limit: Largest number of nodes. A node is a decision, or its opposite, with propagation.
        fail_limit: Largest number of failures.
        restarts: Restart after a number of failures: ``luby``, Luby's sequence times the scale; ``geometric``,
            the scale times powers of the growth; ``linear``; ``constant``; ``none``. Nogoods exclude subtrees that
            were refuted before (Lecoutre et al., JSAT 2007), so every search ends, and no solution comes twice. The
            search follows the model's orderings, unless it is ``free``.
        restart_scale: Number of failures that scales the restarts, those of the portfolio included.
        restart_growth: Growth factor of ``geometric`` restarts.
        free: Choose the variable of the last conflict, then variables by failures of their constraints (dom/wdeg),
            try the values of the last solution first, and restart.
        lns: With an objective, alternate search near the best solution (large neighbourhood search, Shaw 1998) with
            search everywhere, which can still prove the optimum. Variables that keep their values are chosen at random
            or by propagation (Perron et al., CP 2004).
        gap: End the search once the bounds are this close, relative to the one closer to 0: 0.01 or ``"1%"``.
        on_bounds: Function to call with new bounds (``elimina.Bounds``) of the objective.
        log: Function to call with a line of text at each improvement: time, value, bound, gap, and the part of the
            search that made it: ``hints``, ``orderings``, ``free search``, ``neighbourhood``, ``target`` or
            ``elimination``. If only the bound changed, this part is ``bound``, or ``proof`` at the proof of optimality.
            The logger ``elimina`` has these lines at its level INFO.
        assumptions: Conditions and Booleans that have to hold in this search only. If there is no solution,
            ``Result.core`` has those that contradict each other and the constraints; none of them can be left out,
            unless the time limit comes first.
        progress: Function to call with the figures of the search so far (as in ``Result.stats``), now and then.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> queens = m.int_vars(8, 0, 7, "q")
        >>> for step in (-1, 0, 1):
        ...     m.all_different(queen + step * row for row, queen in enumerate(queens))
        >>> m.solve(options=cp.SearchOptions(restarts="none")).status
        'feasible'
    """

    node_limit: int | None = None
    fail_limit: int | None = None
    restarts: Restarts | None = None
    restart_scale: float = 100
    restart_growth: float = 1.5
    free: bool = False
    lns: bool = False
    gap: float | str = 0.0
    on_bounds: Callable[[Bounds], object] | None = None
    log: Callable[[str], object] | None = None
    assumptions: Sequence[Operand] = ()
    progress: Callable[[dict[str, Any]], object] | None = None


DEFAULT_OPTIONS = SearchOptions()
