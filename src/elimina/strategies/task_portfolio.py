"""The schedule of each task: the rows of the module that belongs to the task."""

from __future__ import annotations

from importlib import import_module

from elimina.strategies.portfolio import Solver
from elimina.strategies.schedule import Rows, scheduled
from elimina.strategies.strategy import Portfolio

MODULES = {
    "mpe": "elimina.strategies.optimum_schedule",
    "pr": "elimina.strategies.sum_schedule",
    "mar": "elimina.strategies.marginal_schedule",
    "count": "elimina.strategies.count_schedule",
    "mmap": "elimina.strategies.marginal_map",
    "count-optima": "elimina.strategies.count_optima",
    "kbest": "elimina.strategies.k_best",
    "bottleneck": "elimina.strategies.bottleneck",
}
"""Modules with the ``ROWS`` of tasks that methods other than elimination can also answer, imported on first use."""


def rows_of(task: str) -> Rows:
    """Return the rows of a task."""
    rows: Rows = import_module(MODULES.get(task, "elimina.strategies.schedule")).ROWS
    return rows


def task_portfolio(solver: Solver) -> Portfolio:
    """Return the strategies for a solver's question."""
    return scheduled(solver, rows_of(solver.question.task))
