"""Strategy that bounds the posterior of one variable if elimination does not fit."""

from __future__ import annotations

import time

from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.combination import within_marginal_bounds
from elimina.running.host import host_memory
from elimina.strategies.facts import Facts
from elimina.strategies.row import Row
from elimina.strategies.strategy import Attempt, Strategy

MAX_BOUNDED_STATES = 8
"""Largest number of states of a variable whose posterior is bounded, because each state takes a share of the time."""

MEMORY_SHARE = 0.5
"""Share of the host's memory for mini-buckets; estimates use the other half."""


def posterior_bounds(facts: Facts, row: Row) -> Strategy | Attempt:
    """Return a strategy that adds bounds to the estimated posterior, from bounds on the sum for each state.

    The outcome is empty if there is no estimate yet, or if the variable has too many states.
    """
    solver, estimate = facts.solver, facts.call.best_result
    inquiry = solver.inquiry
    variable, problem_variable = (wanted[0] for wanted in inquiry.structure.wanted)
    states = inquiry.model.variables[variable].all_states
    if estimate is None or estimate.status != "estimated" or len(states) > MAX_BOUNDED_STATES:
        return Attempt()

    def work(budget: Budget) -> Result:
        from elimina.methods.marginal_bounds import improve_marginal_bounds

        options = facts.options.after_growth(budget.growth_bytes)
        memory_bytes, deadline = int(host_memory(options) * MEMORY_SHARE), time.monotonic() + budget.seconds
        result, name = estimate, inquiry.model.variables[variable].name
        for ends in improve_marginal_bounds(solver.problem, problem_variable, options, memory_bytes, deadline):
            bounds = {state: (low, high) for state, (low, high) in zip(states, ends.tolist(), strict=True)}
            result = within_marginal_bounds(estimate, {name: bounds})
            budget.report(result)
        return result

    return Strategy(facts.call, "bounds", work, seconds=row.budget(facts))
