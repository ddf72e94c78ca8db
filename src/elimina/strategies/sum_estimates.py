"""Strategies that estimate a sum or a count."""

from __future__ import annotations

from elimina.methods.sum_estimation import SumEstimation
from elimina.strategies.estimate_strategies import estimates
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Portfolio


def sum_estimates(facts: Facts, row: Row) -> Portfolio:
    """Begin or resume estimates of a sum or a count."""
    return estimates(facts, row, _begin)


def _begin(facts: Facts, memory: int) -> SumEstimation:
    return SumEstimation(facts.solver.problem, facts.task, facts.options, memory)
