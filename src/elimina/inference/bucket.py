"""Exact bucket elimination (Dechter 1999): optimum and assignment, partition function, number of solutions."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from elimina._core import exact_count
from elimina.errors import MemoryLimitError
from elimina.inference.checkpoint import State
from elimina.inference.encode import Encoder, decode_value
from elimina.inference.execution import Execution, check_value, does_not_fit, partition_result, statistics
from elimina.inference.minibucket import meet, result_between
from elimina.inference.scales import TOLERANCES, Scales, root_places, roots, rounding
from elimina.inference.sweep import Sweep
from elimina.model import Model
from elimina.result import Result

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from elimina.inference.slice_bounds import SliceBounds
    from elimina.planning.program import Program


_LONG_COUNT = 512
"""Bits of the number of assignments above which one run in long integers is faster than one for every 31 bits."""

_LONG_INTEGER_BYTES = 48
"""Bytes of a long integer besides its bits."""


def eliminate(execution: Execution, seconds: Mapping[str, float]) -> Result:
    """Answer the plan's task.

    Args:
        execution: Plan and backend to run.
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
    finally:
        if execution.checkpoint is not None:
            execution.checkpoint.flush()
    return answer.replace(stats={**statistics(execution, clock), **answer.stats, **resumed})


def _resumed(execution: Execution) -> dict[str, int]:
    """Return the figures of a checkpoint's savings: whole slices, and steps of an unfinished one."""
    if execution.checkpoint is None:
        return {}
    steps = execution.checkpoint.steps.get("done", 0)
    return {"resumed_slices": execution.state["done"], "resumed_steps": steps}


def _optimum(execution: Execution, clock: dict[str, float]) -> Result:
    problem, plan = execution.problem, execution.plan
    sign = problem.model.sign
    state: State = {"best": None, "chosen": [], "skipped": 0, "least": None, "slack": 0.0, **execution.state}
    started = time.perf_counter()
    bounds = None if plan.slicing is None else _slice_bounds(execution, state)
    clock["bounds"] = time.perf_counter() - started
    _tell_best(execution, state, bounds)
    sweep = Sweep(execution, clock)
    numbers = _sequence(execution, bounds, sweep.count)[state["done"] :]
    sweep.done = state["done"]

    def is_promising(number: int) -> bool:
        best = state["best"]
        return bounds is None or best is None or not bounds.is_hopeless(number, sign * best)

    for part in sweep.run(numbers, wanted=is_promising):
        if part is None:
            state.update(done=state["done"] + 1, skipped=state["skipped"] + 1)
            continue
        value = None
        if part.run is not None:
            value = decode_value(part.problem, plan, part.encoded, roots(plan, part.run))
        slack = 0.0
        if value is not None and part.run is not None and not plan.dtype.startswith("int"):
            slack = rounding(plan, math.fsum(roots(plan, part.run)), part.encoded.constants)
            least = sign * value - slack
            state["least"] = least if state["least"] is None else min(least, state["least"])
        if value is not None and (state["best"] is None or sign * value < sign * state["best"]):
            assert part.run is not None
            assert part.run.assignment is not None
            values = part.run.assignment.tolist()
            state.update(best=value, chosen=part.problem.complete(range(len(values)), values), slack=slack)
            _tell_best(execution, state, bounds)
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
    check_value(plan.dtype, best, score, [problem.model.constant, *problem.model.terms(chosen)], state["slack"])
    if plan.dtype.startswith("int"):
        return _valued(problem.model, score, chosen).replace(stats=stats)
    bound = sign * score if state["least"] is None else min(sign * score, state["least"])
    return _valued(problem.model, sign * bound, chosen, TOLERANCES[plan.dtype]).replace(stats=stats)


def _valued(model: Model, bound: int | float, chosen: Sequence[int], tolerance: float = 0.0) -> Result:
    """Return the answer from a bound and an assignment; the model's own upper bound may rule the assignment out."""
    found = result_between(model, bound, chosen, tolerance)
    is_none = found.value is None and (meet(bound, model.score(chosen), tolerance) or model.is_beyond_bound(bound))
    return Result("infeasible", "mpe") if is_none else found


def _tell_best(execution: Execution, state: State, bounds: SliceBounds | None) -> None:
    """Report the best assignment of the slices that have run, and the bound on all of them."""
    if execution.learn is None or execution.plan.slicing is None:
        return
    model, sign = execution.problem.model, execution.problem.model.sign
    bound = None if bounds is None else sign * (bounds.costs.min().item() - bounds.slack)
    value = None if state["best"] is None else model.score(state["chosen"])
    if (bound is None and value is None) or (value is not None and (math.isinf(value) or model.is_beyond_bound(value))):
        return
    assignment = None if value is None else model.states_at(state["chosen"])
    ends = model.ends(bound, value)
    execution.learn(Result("bounded", "mpe", value, *ends, assignment, stats=statistics(execution, {})))


def first_state(execution: Execution) -> State:
    """Return the state before the first slice, which several runs may share: see ``Execution.known``."""
    state: State = {"best": None, "chosen": [], **execution.state}
    if execution.problem.described.is_optimum and execution.plan.slicing is not None:
        _slice_bounds(execution, state)
    return state


def _slice_bounds(execution: Execution, state: State) -> SliceBounds | None:
    """Return the bounds of the slices, kept in the state because they decide the sequence, after a first solution."""
    from elimina.inference.slice_bounds import SliceBounds, bound_slices

    if state["done"] == 0 and "bounds" not in state:
        found = bound_slices(execution)
        state["bounds"] = None if found is None else [found[0].costs.tolist(), found[0].slack]
        if found is not None and found[1] is not None:
            state.update(best=execution.problem.model.score(found[1]), chosen=found[1])
    known = state.get("bounds")
    return None if known is None else SliceBounds(np.array(known[0]), known[1])


def _sequence(execution: Execution, bounds: SliceBounds | None, count: int) -> Sequence[int]:
    """Return the slices that are run, in sequence: promising ones first where there are bounds."""
    places = execution.places(count)
    if bounds is None or execution.plan.slicing is None:
        return places
    sequence = bounds.sequence(execution.plan.slicing.sizes)
    return [sequence[place] for place in places]


def _partition(execution: Execution, clock: dict[str, float]) -> Result:
    plan = execution.plan
    scales = Scales(plan)
    sweep = Sweep(execution, clock)
    numbers, done = execution.places(sweep.count), execution.state["done"]
    # A number for each slice that has run, in both sweeps; None where it has to run again.
    logs: list[float | None] = execution.state.get("logs", [])[:done]
    sweep.done = min(done, len(numbers))
    for part in filter(None, sweep.run(numbers[sweep.done :])):
        if part.run is None:
            logs.append(-math.inf)
        elif part.encoded.exact and not scales.may_underflow(part.encoded.ranges, part.run.peaks):
            logs.append(part.encoded.offset + scales.log2_sum(part.run))
        else:
            logs.append(None)
        execution.save({"logs": logs, "done": len(logs)})
        if execution.learn is not None and plan.slicing is not None:
            lower = math.log10(2) * log2_sum([log for log in logs if log is not None])
            execution.learn(Result("bounded", "pr", None, lower, None, stats=statistics(execution, {})))
    del sweep
    left = [number for number, log in zip(numbers, logs, strict=False) if log is None][len(logs) - len(numbers) :]
    # A sweep over nothing would still encode.
    for part in filter(None, Sweep(execution, clock, "log-sum-exp").run(left) if left else ()):
        total = -math.inf if part.run is None else part.encoded.offset + math.fsum(roots(plan, part.run))
        logs.append(total / math.log(2))
        execution.save({"logs": logs, "done": len(logs)})
    return partition_result(math.log10(2) * log2_sum([log for log in logs if log is not None]))


def log2_sum(logs: Sequence[float]) -> float:
    """Base-2 logarithm of the sum of numbers that are given by their base-2 logarithms."""
    top = max(logs, default=-math.inf)
    return top if top == -math.inf else top + math.log2(math.fsum(2.0 ** (log - top) for log in logs))


def _count(execution: Execution, clock: dict[str, float]) -> Result:
    """Count modulo 2^64, and modulo as many primes as the number of assignments asks for; then Chinese remainders."""
    sizes = execution.problem.model.sizes
    bits = sum(math.log2(sizes[v]) for v in execution.problem.free) + 1
    if bits > _LONG_COUNT and _fits_long_integers(execution, bits):
        return _long_count(execution, clock)
    divisors = _moduli(bits)
    sweep, places = Sweep(execution, clock), root_places(execution.plan)
    state: State = {"residues": [0] * len(divisors), **execution.state}
    numbers = execution.places(sweep.count)
    for number, divisor in enumerate(divisors):
        left = numbers[max(0, state["done"] - number * len(numbers)) :]
        sweep.done = len(numbers) - len(left)
        for part in filter(None, sweep.run(left, divisor % 2**64, (number, len(divisors)))):
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
    return Result("exact", "count", count)


def _fits_long_integers(execution: Execution, bits: float) -> bool:
    """Return whether one run in long integers may count: on the CPU, as a whole, and within the memory.

    Messages that coexist are of different subtrees, so that their bits add up to no more than those of the whole; twice
    that where one is made of others.
    """
    plan = execution.plan
    is_whole = plan.slicing is None and plan.sparse is None and plan.stream is None and plan.scratch is None
    is_free = execution.checkpoint is None and execution.share is None and plan.on_host
    most = 2 * plan.largest_table * bits / 8 + (plan.arena_cells - plan.factor_cells) * _LONG_INTEGER_BYTES
    return is_whole and is_free and plan.peak_bytes + most <= plan.memory_limit


def _long_count(execution: Execution, clock: dict[str, float]) -> Result:
    started = time.perf_counter()
    plan, problem = execution.plan, execution.problem
    encoded = Encoder(problem, plan).encoded(problem)
    ready = time.perf_counter()
    clock["encode"] = ready - started
    if encoded.impossible:
        return Result("exact", "count", 0)
    program = execution.program()
    count = b""
    if _allows_anything(execution, program, encoded.arena):
        roots = np.array([output.step for output in plan.outputs], dtype=np.int64)
        count = exact_count(program.words, program.starts, roots, encoded.arena)
    clock["run"] = time.perf_counter() - ready
    execution.report(1.0)
    return Result("exact", "count", int.from_bytes(count, "little"))


def _allows_anything(execution: Execution, program: Program, factors: NDArray[np.generic]) -> bool:
    """Return whether there is a solution: a run in floats tells it long before one in long integers would."""
    possible = program._replace(semiring="max-product", dtype=np.dtype(np.float64))
    session = execution.backend.open(possible, factors.astype(np.float64))
    zone = session.run().zone
    session.close()
    return bool(zone[root_places(execution.plan)].all())


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
