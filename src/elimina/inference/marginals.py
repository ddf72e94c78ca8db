"""The posteriors of variables, once: evidence is taken out of the tables before anything is planned."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import NamedTuple

from elimina.errors import MemoryLimitError
from elimina.inference.answer import Answer
from elimina.inference.bucket import eliminate
from elimina.inference.choose import Planned, plan_problem
from elimina.inference.execution import Execution, does_not_fit, statistics
from elimina.inference.options import Options
from elimina.inference.propagator import Propagator
from elimina.inference.shield import uncollected
from elimina.inference.structure import Structure
from elimina.model import Model
from elimina.planning.plan import Plan
from elimina.planning.prepare import prepare
from elimina.result import Result
from elimina.states import State


class Inquiry(NamedTuple):
    """Posteriors that are asked for.

    Attributes:
        model: A probability model, with a leaf for each piece of soft evidence.
        evidence: Variable index -> value index.
        asked: The variables whose marginals go into the result.
        complete: True if the evidence's probability is asked for too.
        structure: Structure whose elimination gives them.
    """

    model: Model
    evidence: Mapping[int, int]
    asked: tuple[int, ...]
    complete: bool
    structure: Structure


def posteriors(inquiry: Inquiry, execution: Execution, options: Options, seconds: Mapping[str, float]) -> Result:
    """Run the plan of an inquiry's structure.

    Args:
        inquiry: Posteriors that are asked for.
        execution: The structure's problem, its plan, and where to run it.
        options: Options of the elimination that finds the evidence's probability where the structure does not give it.
        seconds: Time spent so far by phase; it goes into the result's statistics.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
    """
    if not execution.plan.fits:
        raise MemoryLimitError(does_not_fit(execution.plan))
    clock = dict(seconds)
    answer = _propagate(execution, clock)
    started = time.perf_counter()
    log10_z = _log10_z(inquiry, answer, execution, options)
    clock["evidence"] = time.perf_counter() - started
    stats = {**statistics(execution, clock), "structure": inquiry.structure.name}
    if log10_z == -math.inf:
        return Result("infeasible", "mar", log10_z=log10_z, stats=stats)
    return Result("exact", "mar", log10_z=log10_z, marginals=_marginals(inquiry, execution.plan, answer), stats=stats)


def _propagate(execution: Execution, clock: dict[str, float]) -> Answer:
    outputs = _marginal_outputs(execution.plan)
    planned = Planned(execution.problem, execution.plan, execution.backend, {})
    clock.update(encode=0.0, run=0.0)
    for semiring in ("sum-product", "log-sum-exp"):
        started = time.perf_counter()
        propagator = Propagator(planned, semiring)
        encoded = time.perf_counter()
        answer = propagator.run(outputs, progress=execution.report)
        propagator.close()
        clock["encode"] += encoded - started
        clock["run"] += time.perf_counter() - encoded
        if answer.sound:
            break
    return answer


def _log10_z(inquiry: Inquiry, answer: Answer, execution: Execution, options: Options) -> float | None:
    """Return minus infinity for evidence that proves impossible; None if the structure does not yield log10 Z."""
    model, evidence, structure = inquiry.model, inquiry.evidence, inquiry.structure
    log_sum = float(answer.log_sum)
    left_out = [model.factors[f].restrict(evidence) for f in structure.left_out]
    constants = [float(table.values) for table in left_out if not table.scope]
    if log_sum == -math.inf or not all(constants):
        return -math.inf
    if structure.trees == 1 and len(constants) == len(left_out):
        return (log_sum + sum(map(math.log, constants)) + structure.log_states) / math.log(10)
    if not evidence:
        return (float(model.constant) + structure.log_states) / math.log(10)
    if not inquiry.complete:
        return None
    planned = plan_problem(prepare(model, "pr", evidence), options)
    found = eliminate(execution._replace(problem=planned.problem, plan=planned.plan, backend=planned.backend), {})
    return found.log10_z


def _marginal_outputs(plan: Plan) -> list[int]:
    """Return the outputs that are marginals; the others are the sums of whole trees."""
    return [number for number, output in enumerate(plan.outputs) if output.scope]


@uncollected()
def _marginals(inquiry: Inquiry, plan: Plan, answer: Answer) -> dict[str, dict[State, float]]:
    variables = [plan.outputs[number].scope[0] for number in _marginal_outputs(plan)]
    found = dict(zip(variables, answer.lists(), strict=True))
    wanted = inquiry.structure.wanted
    asked = [(v, inquiry.model.variables[v]) for v in inquiry.asked]
    values = [
        found[wanted[v]] if v in wanted else [float(x == inquiry.evidence.get(v, 0)) for x in range(variable.size)]
        for v, variable in asked
    ]
    states = [variable.all_states for _, variable in asked]
    return dict(zip([variable.name for _, variable in asked], map(dict, map(zip, states, values)), strict=True))
