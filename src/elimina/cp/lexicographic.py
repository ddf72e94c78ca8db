"""Several objectives, the most important one first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from elimina.cp.expressions import Expression
from elimina.cp.search_run import deadline_of, remaining_seconds
from elimina.cp.solution import Solution
from elimina.result import Objective, Result, optimistic_bound
from elimina.running.phases import phase_seconds


class Aim(NamedTuple):
    """An expression that is minimised (sign 1) or maximised (sign -1)."""

    expression: Expression
    sign: int


class AimedModel(Protocol):
    """The methods of a constraint model for several objectives."""

    def with_aim(self, aim: Aim, bounds: Sequence[tuple[Aim, int]], start: Solution | None) -> Self:
        """Return a view of the model with one objective, bounds on earlier ones, and a solution to start from."""


M = TypeVar("M", bound=AimedModel)


def solve_in_turn(
    model: M,
    aims: Sequence[Aim],
    time_limit: float | None,
    solve: Callable[[M, float | None, Sequence[Result]], Result],
) -> Result:
    """Optimise each objective among the solutions that keep the values of earlier ones.

    The search ends at the first objective for which no solution, or none with a value within the gap, is found.

    Args:
        model: The model.
        aims: Objectives, the most important one first.
        time_limit: Time limit in seconds for all of them.
        solve: Function that solves a model of one objective within a number of seconds, given the earlier results.
    """
    deadline = deadline_of(time_limit)
    bounds: list[tuple[Aim, int]] = []
    results: list[Result] = []
    incumbent: Solution | None = None
    for aim in aims:
        result = solve(model.with_aim(aim, bounds, incumbent), remaining_seconds(deadline), results)
        results.append(result)
        if not isinstance(result.assignment, Solution):
            break
        incumbent = result.assignment
        bounds.append((aim, incumbent[aim.expression]))
        if result.status != "optimal" and result.ended_by != "gap":
            break
    return _merged(results, aims, incumbent)


def remaining_limit(limit: Any, figure: str, results: Sequence[Result]) -> Any:
    """Return the part of a limit on all searches that earlier ones have not used; None if there is no limit.

    Args:
        limit: The limit, which the first search checks.
        figure: Name of the limited quantity in the statistics.
        results: Results of the earlier searches.
    """
    return max(0, limit - sum(result.stats[figure] for result in results)) if limit is not None and results else limit


def _merged(results: Sequence[Result], aims: Sequence[Aim], incumbent: Solution | None) -> Result:
    """Return the answer to all objectives: the last solution, the status of all, and the bounds of each."""
    first, last = results[0], results[-1]
    stats = dict(last.stats)
    for name in ("nodes", "failures", "solutions", "restarts", "nogoods", "propagations"):
        if name in stats:
            stats[name] = sum(result.stats.get(name, 0) for result in results)
    if "peak_depth" in stats:
        stats["peak_depth"] = max(result.stats.get("peak_depth", 0) for result in results)
    phases: dict[str, float] = {}
    for result in results:
        for phase, seconds in result.stats["seconds"].items():
            phases[phase] = phases.get(phase, 0.0) + seconds
    stats["seconds"] = phase_seconds(phases, phases["total"])
    solutions = [solution for result in results for solution in result.solutions]
    if incumbent is None:
        return first.replace(stats=stats)
    objectives = []
    for number, aim in enumerate(aims):
        value = incumbent[aim.expression]
        # The value is that of the last solution: the search for a later objective may improve an earlier one whose
        # optimum was not proven.
        bound = optimistic_bound(results[number], aim.sign) if number < len(results) else None
        ends = (bound, value) if aim.sign == 1 else (value, bound)
        objectives.append(Objective(value, *ends))
    is_optimal = len(results) == len(aims) and all(result.status == "optimal" for result in results)
    is_unbounded = any(result.status == "unbounded" for result in results)
    ended_by = next((result.ended_by for result in reversed(results) if result.ended_by is not None), None)
    return first.replace(
        status="optimal" if is_optimal else "unbounded" if is_unbounded else "feasible",
        value=objectives[0].value,
        lower_bound=objectives[0].lower_bound,
        upper_bound=objectives[0].upper_bound,
        assignment=incumbent,
        ended_by=None if is_optimal else ended_by,
        stats={**stats, "complete": is_optimal},
        solutions=solutions,
        objectives=tuple(objectives),
    )
