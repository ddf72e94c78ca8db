"""Exact bucket elimination (Dechter 1999): optimum and assignment, partition function, number of solutions."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elimina.errors import InternalError, MemoryLimitError
from elimina.inference.encode import decode_value
from elimina.inference.execution import Execution
from elimina.inference.scales import Scales, root_places, roots
from elimina.inference.sweep import Sweep
from elimina.planning.plan import Plan, bytes_text, count_text, seconds_text
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.inference.checkpoint import State
    from elimina.inference.slice_bounds import SliceBounds

_NAMES_SHOWN = 5


def eliminate(execution: Execution, seconds: Mapping[str, float]) -> Result:
    """Answer the plan's task.

    Args:
        execution: What to run, and where.
        seconds: Time spent so far by phase; it goes into the result's statistics.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
        InternalError: The assignment's value, recomputed on the model, is not the value found.
    """
    plan = execution.plan
    if not plan.fits:
        raise MemoryLimitError(does_not_fit(plan))
    clock = dict(seconds)
    resumed = _resumed(execution)
    try:
        answer = {"mpe": _optimum, "pr": _partition, "count": _count}[plan.task](execution, clock)
        execution.check_deadline("all of the elimination done")
    finally:
        if execution.checkpoint is not None:
            execution.checkpoint.flush()
    return answer._replace(stats={**statistics(execution, clock), **answer.stats, **resumed})


def _resumed(execution: Execution) -> dict[str, int]:
    """What a checkpoint saves: whole slices, and steps of one that was not finished."""
    if execution.checkpoint is None:
        return {}
    steps = execution.checkpoint.steps.get("done", 0)
    return {"resumed_slices": execution.state["done"], "resumed_steps": steps}


def statistics(execution: Execution, clock: Mapping[str, float]) -> dict[str, Any]:
    """Figures of a run for ``Result.stats``; the clock has seconds by phase."""
    plan = execution.plan
    slicing = plan.slicing
    sliced = {} if slicing is None else {"slices": slicing.number, "sliced": list(slicing.names)}
    return {
        "induced_width": plan.width,
        "largest_table": plan.largest_table,
        "total_cells": plan.work,
        "peak_bytes": plan.peak_bytes,
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": execution.backend.name,
        "dtype": plan.dtype,
        **sliced,
    }


def does_not_fit(plan: Plan) -> str:
    """What a plan would need, and which options help."""
    whole = plan if plan.slicing is None else plan.slicing.unsliced
    tiers = [(whole.device, whole.peak_bytes, whole.memory_limit)]
    tiers += [(tier, whole.bytes.get(tier, 0), limit) for tier, limit in whole.limits]
    lacking = [tier for tier in tiers if tier[1] > tier[2]] or tiers[:1]
    needs = ", ".join(f"{bytes_text(size)} on {tier} and may use {bytes_text(limit)}" for tier, size, limit in lacking)
    scratch = ", a directory on a large disk (--scratch)" if whole.scratch is None else ""
    return (
        f"the plan needs {needs} "
        f"(induced width {whole.width}, largest table {count_text(whole.largest_table)} cells, {whole.dtype}); more "
        f"memory (--memory){scratch}, a better order (--order, a longer --order-time, another --seed) or evidence "
        f"would help; {_slices_needed(plan)}mini-buckets would bound the answer in less (--method mbe)"
    )


def _slices_needed(plan: Plan) -> str:
    slicing = plan.slicing
    if slicing is None:
        return ""
    names = ", ".join(slicing.names[:_NAMES_SHOWN]) + (", ..." if len(slicing.names) > _NAMES_SHOWN else "")
    return (
        f"fixing {len(slicing.names)} variables ({names}) would do it in {count_text(slicing.number)} slices of "
        f"{bytes_text(plan.peak_bytes)}, estimated at {seconds_text(plan.seconds)}, which --slices {slicing.number} "
        "allows; "
    )


def _optimum(execution: Execution, clock: dict[str, float]) -> Result:
    problem, plan = execution.problem, execution.plan
    sign = 1 if problem.model.sense == "min-cost" else -1
    state: State = {"best": None, "chosen": [], "skipped": 0, **execution.state}
    started = time.perf_counter()
    bounds = None if plan.slicing is None else _slice_bounds(execution, state)
    clock["bounds"] = time.perf_counter() - started
    sweep = Sweep(execution, clock)
    for part in sweep.run(_promising(plan, sweep, state, bounds, sign)):
        value = None
        if part.run is not None:
            value = decode_value(part.problem, plan, part.encoded, roots(plan, part.run))
        if value is not None and (state["best"] is None or sign * value < sign * state["best"]):
            assert part.run is not None
            assert part.run.assignment is not None
            chosen = part.run.assignment.tolist()
            for variable, fixed in part.problem.fixed.items():
                chosen[variable] = fixed
            state.update(best=value, chosen=chosen)
        state["done"] += 1
        execution.save(state)
    best, chosen = state["best"], state["chosen"]
    made, kept = sweep.rows
    stats = {} if plan.sparse is None else {"rows_made": made, "rows_filtered": made - kept}
    if bounds is not None:
        stats["slices_skipped"] = state["skipped"]
    if best is None:
        return Result("infeasible", plan.task, stats=stats)
    score = problem.model.score(chosen)
    check_value(plan.dtype, best, score, [problem.model.constant, *problem.model.terms(chosen)])
    if problem.model.is_beyond_bound(score):
        return Result("infeasible", plan.task, stats=stats)
    assignment = {v.name: v.label(x) for v, x in zip(problem.model.variables, chosen, strict=True)}
    return Result("optimal", plan.task, score, score, score, assignment, stats=stats)


def _slice_bounds(execution: Execution, state: State) -> SliceBounds | None:
    """What bounds the slices, kept in the state: it decides in which sequence they run; and a first solution."""
    from elimina.inference.slice_bounds import SliceBounds, bound_slices

    if state["done"] == 0 and "bounds" not in state:
        found = bound_slices(execution)
        state["bounds"] = None if found is None else [found[0].costs.tolist(), found[0].slack]
        if found is not None and found[1] is not None:
            state.update(best=execution.problem.model.score(found[1]), chosen=found[1])
    known = state.get("bounds")
    return None if known is None else SliceBounds(np.array(known[0]), known[1])


def _promising(plan: Plan, sweep: Sweep, state: State, bounds: SliceBounds | None, sign: int) -> Iterator[int]:
    """The slices that are left, but for those that turn out to be no better than the best one so far."""
    sequence: Sequence[int] = range(sweep.count)
    if bounds is not None and plan.slicing is not None:
        sequence = bounds.sequence(plan.slicing.sizes)
    sweep.done = state["done"]
    for number in sequence[sweep.done :]:
        if bounds is not None and state["best"] is not None and bounds.is_hopeless(number, sign * state["best"]):
            state.update(done=state["done"] + 1, skipped=state["skipped"] + 1)
            sweep.done += 1
        else:
            yield number


def check_value(dtype: str, value: int | float, score: int | float, terms: Sequence[int | float]) -> None:
    """The assignment's value on the original model must be the value that elimination found.

    Args:
        dtype: It was computed in.
        value: What was found.
        score: What the assignment is worth.
        terms: That make up the score, for the tolerance of floats.

    Raises:
        InternalError: They differ.
    """
    tolerance = 0.0
    if not dtype.startswith("int"):
        tolerance = (64 + len(terms)) * float(np.finfo(dtype).eps) * max(math.fsum(map(abs, terms)), 1.0)
    if not abs(value - score) <= tolerance:
        raise InternalError(
            f"elimination found the optimum {value!r}, its assignment is worth {score!r} on the model; "
            "please report this"
        )


def _partition(execution: Execution, clock: dict[str, float]) -> Result:
    plan = execution.plan
    scales = Scales(plan)
    sweep = Sweep(execution, clock)
    count, done = sweep.count, execution.state["done"]
    # A number for each slice that has run, in both sweeps; None where it has to run again.
    logs: list[float | None] = execution.state.get("logs", [])[:done]
    sweep.done = min(done, count)
    for part in sweep.run(range(sweep.done, count)):
        if part.run is None:
            logs.append(-math.inf)
        elif part.encoded.exact and not scales.may_underflow(part.encoded.ranges, part.run.peaks):
            logs.append(part.encoded.offset + scales.log2_sum(part.run))
        else:
            logs.append(None)
        execution.save({"logs": logs, "done": len(logs)})
    del sweep
    left = [number for number, log in enumerate(logs[:count]) if log is None][len(logs) - count :]
    for part in Sweep(execution, clock, "log-sum-exp").run(left) if left else ():
        total = -math.inf if part.run is None else part.encoded.offset + math.fsum(roots(plan, part.run))
        logs.append(total / math.log(2))
        execution.save({"logs": logs, "done": len(logs)})
    return partition_result(math.log10(2) * _log2_sum([log for log in logs if log is not None]))


def _log2_sum(logs: Sequence[float]) -> float:
    """Base-2 logarithm of the sum of numbers given by theirs."""
    top = max(logs, default=-math.inf)
    return top if top == -math.inf else top + math.log2(math.fsum(2.0 ** (log - top) for log in logs))


def partition_result(log10_z: float) -> Result:
    """The answer to the task ``pr``."""
    if log10_z == -math.inf:
        return Result("infeasible", "pr", 0.0, log10_z=log10_z)
    value = 10.0**log10_z if -307 < log10_z < 308 else None
    return Result("optimal", "pr", value, log10_z=log10_z)


def _count(execution: Execution, clock: dict[str, float]) -> Result:
    """Count modulo 2^64, and modulo as many primes as the number of assignments asks for; then Chinese remainders."""
    sizes = execution.problem.model.sizes
    bits = sum(math.log2(sizes[v]) for v in execution.problem.free) + 1
    divisors = _moduli(bits)
    sweep, places = Sweep(execution, clock), root_places(execution.plan)
    state: State = {"residues": [0] * len(divisors), **execution.state}
    for number, divisor in enumerate(divisors):
        left = range(max(0, state["done"] - number * sweep.count), sweep.count)
        sweep.done = left.start
        for part in sweep.run(left, divisor % 2**64, (number, len(divisors))):
            if part.run is not None:
                product = functools.reduce(lambda x, root: x * root % divisor, part.run.zone[places].tolist(), 1)
                residues = list(state["residues"])
                residues[number] = (residues[number] + product) % divisor
                state = {**state, "residues": residues}
            state = {**state, "done": state["done"] + 1}
            execution.save(state)
    count, modulus = 0, 1
    for residue, divisor in zip(state["residues"], divisors, strict=True):
        count += modulus * ((residue - count) * pow(modulus, -1, divisor) % divisor)
        modulus *= divisor
    return Result("optimal", "count", count)


def _moduli(bits: float) -> Sequence[int]:
    """2^64, and primes below 2^31 until their product has so many bits."""
    result, covered, candidate = [2**64], 64.0, 2**31 - 1
    while covered < bits:
        if _is_prime(candidate):
            result.append(candidate)
            covered += math.log2(candidate)
        candidate -= 2
    return result


def _is_prime(odd: int) -> bool:
    """Miller-Rabin with the bases 2, 7 and 61, which decide every number below 4759123141 (Jaeschke 1993)."""
    shift = (odd - 1 & -(odd - 1)).bit_length() - 1
    for base in (2, 7, 61):
        power = pow(base, odd - 1 >> shift, odd)
        if power in (1, odd - 1):
            continue
        if not any((power := power * power % odd) == odd - 1 for _ in range(shift - 1)):
            return False
    return True
