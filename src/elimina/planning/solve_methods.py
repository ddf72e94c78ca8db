"""Methods of ``solve``: their names and properties."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

OptimumMethod = Literal["auto", "eliminate", "filter", "mbe", "search"]
METHODS: tuple[OptimumMethod, ...] = get_args(OptimumMethod)


class SolveMethod(NamedTuple):
    """Properties of a method, for code that distinguishes methods.

    Attributes:
        is_open: True if the schedule chooses between several methods.
        is_for_all_tasks: True if it solves every task; otherwise it solves the tasks with this method in
            ``tasks.Description.methods``.
        may_eliminate: True if an exact plan may give the answer.
        may_bound: True if mini-buckets may give bounds where an exact plan does not fit.
        bounds: True if only mini-buckets give the answer.
        partitions_query: True if mini-buckets are made for the maximisation of ``mmap``.
        seeks_optimum: True if it only solves optimisation tasks, and needs no plan.
        searches: True for branch and bound.
        filters: True if it drops tuples that cannot be part of a better solution.
        runs_on_clusters: True if workers of a cluster can share its work.
    """

    is_open: bool = False
    is_for_all_tasks: bool = False
    may_eliminate: bool = False
    may_bound: bool = False
    bounds: bool = False
    partitions_query: bool = False
    seeks_optimum: bool = False
    searches: bool = False
    filters: bool = False
    runs_on_clusters: bool = False


SOLVE_METHODS: dict[OptimumMethod, SolveMethod] = {
    "auto": SolveMethod(is_open=True, is_for_all_tasks=True, may_eliminate=True, may_bound=True, runs_on_clusters=True),
    "eliminate": SolveMethod(is_for_all_tasks=True, may_eliminate=True, runs_on_clusters=True),
    "filter": SolveMethod(seeks_optimum=True, filters=True),
    "mbe": SolveMethod(may_bound=True, bounds=True, partitions_query=True),
    "search": SolveMethod(partitions_query=True, seeks_optimum=True, searches=True, runs_on_clusters=True),
}
"""Properties of the methods by their names."""
