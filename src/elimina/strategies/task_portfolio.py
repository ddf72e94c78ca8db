"""The portfolio of each task."""

from __future__ import annotations

from collections.abc import Callable

from elimina.strategies.count_optima import count_optima
from elimina.strategies.marginal_map import marginal_map
from elimina.strategies.portfolio import Solver
from elimina.strategies.strategy import Portfolio

PORTFOLIOS: dict[str, Callable[[Solver], Portfolio]] = {"mmap": marginal_map, "count-optima": count_optima}
"""Portfolios of tasks that elimination, after search or bounds, does not answer by itself."""


def task_portfolio(solver: Solver) -> Portfolio:
    """Return the strategies that answer a solver's question."""
    return PORTFOLIOS.get(solver.question.task, Solver.portfolio)(solver)
