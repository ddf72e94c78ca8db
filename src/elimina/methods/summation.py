"""Error texts and assignments of methods that sum variables out before they maximise."""

from __future__ import annotations

from collections.abc import Mapping

from elimina.model.states import State
from elimina.number_texts import counted
from elimina.problem.preparation import Problem
from elimina.running.advice import does_not_fit
from elimina.running.planned_problem import PlannedProblem


def summation_does_not_fit(planned: PlannedProblem) -> str:
    """Return the error text for a plan that does not fit: its memory, and options that help."""
    problem = planned.problem
    return (
        f"{does_not_fit(planned.plan)}. That is for summing out {counted(len(problem.free), 'variable')}, with "
        f"{len(problem.kept)} that stay; fewer of these would help, too"
    )


def with_observed(problem: Problem, assignment: Mapping[str, State] | None) -> dict[str, State] | None:
    """Add the observed variables to the assignment of a query; None stays None."""
    if assignment is None:
        return None
    variables = problem.model.variables
    observed = {variables[v].name: variables[v].state(problem.fixed[v]) for v in problem.wanted}
    return {**assignment, **observed}
