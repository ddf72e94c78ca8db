"""The schedule of all tasks, those included whose answer takes a question within the question."""

from __future__ import annotations

from elimina.strategies.count_optima import COUNT_OPTIMA
from elimina.strategies.k_best import K_BEST
from elimina.strategies.marginal_map import MARGINAL_MAP
from elimina.strategies.portfolio import Solver
from elimina.strategies.schedule import SCHEDULE, Rows, scheduled
from elimina.strategies.strategy import Portfolio

TASKS: dict[str, Rows] = {**SCHEDULE, "mmap": MARGINAL_MAP, "count-optima": COUNT_OPTIMA, "kbest": K_BEST}
"""Rows by task."""


def task_portfolio(solver: Solver) -> Portfolio:
    """Return the strategies that answer a solver's question."""
    return scheduled(solver, TASKS.get(solver.question.task))
