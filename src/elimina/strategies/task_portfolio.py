"""The schedule of all tasks, those included whose answer takes a question within the question."""

from __future__ import annotations

from importlib import import_module

from elimina.strategies.portfolio import Solver
from elimina.strategies.schedule import SCHEDULE, Rows, scheduled
from elimina.strategies.strategy import Portfolio

MODULES = {
    "mmap": "elimina.strategies.marginal_map",
    "count-optima": "elimina.strategies.count_optima",
    "kbest": "elimina.strategies.k_best",
}
"""Modules with the ``ROWS`` of tasks whose methods other tasks do without: they are loaded where they are asked for."""


def rows_of(task: str) -> Rows | None:
    """Return the rows of a task; None if elimination alone answers it."""
    if task in MODULES:
        rows: Rows = import_module(MODULES[task]).ROWS
        return rows
    return SCHEDULE.get(task)


def task_portfolio(solver: Solver) -> Portfolio:
    """Return the strategies that answer a solver's question."""
    return scheduled(solver, rows_of(solver.question.task))
