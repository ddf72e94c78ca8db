"""Posterior marginals and joint tables for one query, computed by the structure chosen for it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.display import sample
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.junction_structure import MarginalQuery
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.number_texts import seconds_text
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.order import CELLS_PER_SECOND
from elimina.planning.ordering import rough_order
from elimina.planning.packed_steps import Outputs
from elimina.planning.plan import Plan
from elimina.problem.merging import Merged
from elimina.problem.preparation import Problem, prepare
from elimina.result import MAX_DICT_STATES, Marginals, Result, check_room
from elimina.running.advice import check_fits, check_kept
from elimina.running.execution import Execution, statistics
from elimina.running.plan_choice import plan_problem
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagated_tables import PropagatedTables, normalised
from elimina.running.propagator import Propagator

logger = logging.getLogger("elimina")

CONTRADICTION_SECONDS = 0.1
"""Limit on the estimated seconds of a check for contradictions in evidence that is irrelevant to the query. If the
query itself takes longer, the limit is the time of the query."""


def posteriors(
    inquiry: MarginalQuery, execution: Execution, options: CheckedOptions, seconds: Mapping[str, float]
) -> Result:
    """Run the plan of a query's structure.

    Args:
        inquiry: The requested posteriors.
        execution: Execution of the structure's problem.
        options: Options of the elimination for the evidence's probability, if the structure does not give it.
        seconds: Time spent so far by phase, for the result's statistics.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
    """
    check_fits(execution.plan)
    clock = dict(seconds)
    answer = _propagate(execution, clock)
    started = time.perf_counter()
    log10_z = _log10_z(inquiry, answer, execution, options)
    clock["evidence"] = time.perf_counter() - started
    stats = {**statistics(execution, clock), "structure": inquiry.structure.name}
    if log10_z == -math.inf:
        return Result("infeasible", "mar", log10_z=log10_z, stats=stats)
    marginals = _propagated(inquiry, execution.problem, execution.plan, answer)
    return Result("exact", "mar", log10_z=log10_z, marginals=marginals, stats=stats)


def _propagate(execution: Execution, clock: dict[str, float]) -> PropagatedTables:
    outputs = Outputs.packed(execution.plan.outputs).marginals.tolist()
    planned = PlannedProblem(execution.problem, execution.plan, execution.backend, {})
    clock.update(encode=0.0, run=0.0)
    for semiring in ("sum-product", "log-sum-exp"):
        started = time.perf_counter()
        propagator = Propagator(planned, semiring, once=True)
        encoded = time.perf_counter()
        answer = propagator.run(outputs, progress=execution.report)
        propagator.close()
        clock["encode"] += encoded - started
        clock["run"] += time.perf_counter() - encoded
        if answer.sound:
            break
    return answer


def _log10_z(
    inquiry: MarginalQuery, answer: PropagatedTables, execution: Execution, options: CheckedOptions
) -> float | None:
    """Return log10 Z: minus infinity for impossible evidence; None if it was not requested and needs another run."""
    model, evidence, structure = inquiry.model, inquiry.evidence, inquiry.structure
    log_sum = float(answer.log_sum)
    left_out = [model.factors[f] for f in structure.left_out]
    constants = [float(table.at(evidence)) for table in left_out if evidence.keys() >= set(table.scope)]
    if log_sum == -math.inf or not all(constants):
        return -math.inf
    if structure.trees == 1 and len(constants) == len(left_out):
        return (log_sum + sum(map(math.log, constants)) + structure.log_states) / math.log(10)
    if not evidence:
        return (float(model.constant) + structure.log_states) / math.log(10)
    if not inquiry.complete:
        return -math.inf if _is_contradicted(model, evidence, left_out, execution, options) else None
    planned = plan_problem(prepare(model, "pr", evidence), options)
    execution = execution._replace(problem=planned.problem, plan=planned.plan, backend=planned.backend)
    return eliminate(execution, {}).log10_z


def _is_contradicted(
    model: Model, evidence: Mapping[int, int], left_out: Sequence[Table], execution: Execution, options: CheckedOptions
) -> bool:
    """Return whether the factors that are irrelevant to the query contradict each other.

    Only factors with zeros are checked, as tables of zeros and ones; most networks have few of them. If the check would
    take too long, a warning is logged, and False is returned.

    Args:
        model: A probability model.
        evidence: Variable index -> value index.
        left_out: Factors that affect the evidence's probability, but not the query.
        execution: Execution of the query.
        options: Planning options.
    """
    constraints = [
        table.mapped(lambda values: (values > 0).astype(np.float64))
        for table in left_out
        if not table.values.all() or table.default == 0
    ]
    if not constraints:
        return False
    observed = {v: evidence[v] for table in constraints for v in table.scope if v in evidence}
    problem = prepare(Model(model.variables, constraints, sense="probability"), "pr", observed)
    allowed = max(CONTRADICTION_SECONDS, execution.plan.seconds)
    rough = rough_order(problem, options)
    seconds = rough.seconds_at(CELLS_PER_SECOND)
    if seconds <= allowed:
        planned = plan_problem(problem, replace(options, device="cpu"), order=rough.order)
        seconds = planned.plan.seconds
        if seconds <= allowed and planned.plan.fits:
            run = Execution(problem, planned.plan, planned.backend, deadline=execution.deadline)
            return eliminate(run, {}).status == "infeasible"
    variables = {v for table in left_out for v in table.scope if v in evidence}
    names = [model.variables[v].name for v in sorted(variables)]
    logger.warning(
        "the evidence about %s does not change the answer, and may be impossible: to find out would take about %s; "
        "the task pr tells (%s)",
        sample(names, len(names)),
        seconds_text(seconds),
        option("task", "pr"),
    )
    return False


def _propagated(inquiry: MarginalQuery, problem: Problem, plan: Plan, answer: PropagatedTables) -> Marginals:
    """Return the requested marginals from a propagation."""
    shares, starts = answer.shares()
    begins = np.full(len(problem.model.variables), -1)
    begins[Outputs.packed(plan.outputs).scopes.members] = starts
    return marginals_asked(inquiry, begins, shares)


def marginals_asked(inquiry: MarginalQuery, begins: NDArray[np.int64], shares: NDArray[np.float64]) -> Marginals:
    """Return the queried marginals; an observed state has probability 1, and a large domain stores only this state.

    Args:
        inquiry: The requested posteriors.
        begins: Start of the marginal of each variable of the structure's problem in ``shares``; -1: no marginal.
        shares: Marginals, one variable after another.
    """
    model = inquiry.model
    variables, sources = inquiry.structure.wanted
    begin_of, observed = np.full(len(model.variables), -1), np.zeros(len(model.variables), dtype=np.int64)
    begin_of[_integers(variables)] = begins[_integers(sources)]
    observed[_integers(inquiry.evidence.keys())] = _integers(inquiry.evidence.values())
    asked = _integers(inquiry.asked)
    sizes = model.size_array[asked]
    merged = {v: inquiry.merged[v] for v in inquiry.merged.keys() & inquiry.asked}
    for number in np.flatnonzero(sizes > MAX_DICT_STATES).tolist():
        v = inquiry.asked[number]
        if v in inquiry.evidence and v not in merged:
            merged[v] = Merged(model.variables[v], observed[v : v + 1].copy())
            sizes[number], observed[v] = 1, 0
    is_whole = len(asked) == len(model.variables) and inquiry.complete and not merged
    variables_asked: Sequence[Variable] = model.variables
    if not is_whole:
        variables_asked = [merged[v].variable if v in merged else model.variables[v] for v in inquiry.asked]
    check_room([model.variables[v] for v, size in zip(inquiry.asked, sizes.tolist(), strict=True) if size > 1])
    firsts, probabilities = np.cumsum(sizes) - sizes, shares
    is_in_sequence = len(shares) == sizes.sum() and np.array_equal(begin_of[asked], firsts)
    if not is_in_sequence:
        owners = np.repeat(asked, sizes)
        states, is_found = np.arange(len(owners)) - np.repeat(firsts, sizes), begin_of[owners] >= 0
        probabilities = (states == observed[owners]).astype(np.float64)
        probabilities[is_found] = shares[(begin_of[owners] + states)[is_found]]
    return Marginals(variables_asked, probabilities, {own.variable.name: own for own in merged.values()})


def joint_table(
    model: Model, evidence: Mapping[int, int], variables: Sequence[int], options: CheckedOptions
) -> NDArray[np.float64]:
    """Return the normalised joint posterior of variables, by elimination of the others.

    The axis of an observed variable has length 1.

    Raises:
        MemoryLimitError: The plan does not fit.
    """
    problem = prepare(model, "joint", evidence, tuple(variables))
    planned = plan_problem(problem, options)
    check_kept(planned.plan, options)
    for semiring in ("sum-product", "log-sum-exp"):
        propagator = Propagator(planned, semiring)
        answer = propagator.run([0], log_sum=False)
        propagator.close()
        if answer.sound:
            break
    table = normalised(answer.tables[0].reshape(-1), answer.logarithmic).reshape(answer.tables[0].shape)
    order = [problem.kept.index(v) for v in variables if v in problem.kept]
    sizes = [model.variables[v].size if v in problem.kept else 1 for v in variables]
    return table.transpose(order).reshape(sizes)


def _integers(numbers: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64, len(numbers))
