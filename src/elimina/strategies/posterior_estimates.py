"""Strategies that estimate posteriors."""

from __future__ import annotations

from elimina.methods.posterior_estimation import PosteriorEstimation, quick_posteriors
from elimina.result import Result
from elimina.strategies.estimate_strategies import estimates
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Portfolio


def posterior_estimates(facts: Facts, row: Row) -> Portfolio:
    """Begin or resume estimates of posteriors."""
    return estimates(facts, row, _begin)


def first_posteriors(facts: Facts, seconds: float) -> Result | None:
    """Return a quick estimate; None if it would take longer than ``seconds``."""
    return quick_posteriors(facts.solver.inquiry, seconds)


def _begin(facts: Facts, memory: int) -> PosteriorEstimation:
    solver = facts.solver
    return PosteriorEstimation(solver.inquiry, facts.options, memory, lambda: solver.rough_order().order)
