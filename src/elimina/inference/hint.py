"""Warm starts: an assignment that the user gives, of all variables or of some, becomes the first one that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping

from elimina.inference.improve import Improvement
from elimina.inference.known import NO_PLAN
from elimina.inference.minibucket import meet
from elimina.inference.options import Options
from elimina.planning.prepare import Problem, prepare
from elimina.result import Result
from elimina.states import named

COMPLETION_CELLS = 3e7
"""Cells that local search visits where a hint names some variables alone or is forbidden: about 0.1 s."""


def first_assignment(problem: Problem, hint: Mapping[int, int], options: Options, memory: int) -> Result | None:
    """Complete a hint, and return it as what is known; None if it leads to no allowed assignment.

    Args:
        problem: Problem of the task ``mpe``; its evidence comes before the hint.
        hint: Variable -> index of its state.
        options: ``upper_bound``: a worse assignment does not count; ``seed``.
        memory: Bytes that the completion may take.
    """
    model = problem.model
    given = {**hint, **problem.fixed}
    chosen = [given.get(v, 0) for v in range(len(model.variables))]
    if len(given) < len(chosen):
        chosen = _improved(prepare(model, "mpe", given), chosen, options, memory)
    if math.isinf(model.score(chosen)):
        chosen = _improved(problem, chosen, options, memory)
    score = model.score(chosen)
    if math.isinf(score) or model.is_beyond_bound(score):
        return None
    sign = 1 if model.sense == "min-cost" else -1
    limit = options.upper_bound
    if limit is not None and sign * score > sign * limit and not meet(limit, score):
        return None
    lower, upper = (None, score) if sign == 1 else (score, None)
    stats = {**NO_PLAN, "method": "hint", "seconds": {}}
    return Result("bounded", "mpe", score, lower, upper, named(model.variables, chosen), stats=stats)


def _improved(problem: Problem, chosen: list[int], options: Options, memory: int) -> list[int]:
    search = Improvement.of(problem, memory, options.seed)
    if search is None:
        return chosen
    search.start(chosen)
    search.run(math.inf, COMPLETION_CELLS)
    return search.best
