"""Exact bucket elimination (Dechter 1999): optimum and assignment, partition function, number of solutions."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from elimina.backends import Backend, Run, run_once
from elimina.errors import InternalError, MemoryLimitError, TimeLimitError
from elimina.inference.encode import Encoded, decode_value, encode
from elimina.inference.scales import Scales, root_places, roots
from elimina.planning.plan import Plan, bytes_text, count_text
from elimina.planning.prepare import Problem
from elimina.planning.program import Program, pack
from elimina.result import Result

Progress = Callable[[float], None]


class Execution(NamedTuple):
    """A plan on a backend, with a deadline and a listener; ``part``: the number of this run, and of all."""

    problem: Problem
    plan: Plan
    backend: Backend
    progress: Progress | None = None
    deadline: float | None = None
    part: tuple[int, int] = (0, 1)

    def run(self, encoded: Encoded, semiring: str | None = None) -> Run:
        """Run the plan's program once.

        Raises:
            TimeLimitError: The deadline passed.
        """
        return run_once(self.backend, self.program(semiring), encoded.arena, self.report)

    def program(self, semiring: str | None = None) -> Program:
        """Pack the plan."""
        return pack(self.plan, len(self.problem.model.variables), semiring)

    def check_deadline(self, reached: str) -> None:
        """Keep the time limit.

        Raises:
            TimeLimitError: The deadline passed.
        """
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise TimeLimitError(
                f"the time limit passed with {reached}; exact elimination has no answer before its end: "
                "allow more time, or use another order or device"
            )

    def report(self, share: float) -> None:
        """Pass on the share of this run that is done.

        Raises:
            TimeLimitError: The deadline passed.
        """
        share = (self.part[0] + share) / self.part[1]
        self.check_deadline(f"{share:.0%} of the elimination done")
        if self.progress is not None:
            self.progress(share)


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
    started = time.perf_counter()
    encoded = encode(execution.problem, plan)
    clock = {**seconds, "encode": time.perf_counter() - started}
    execution.check_deadline("the tables encoded")
    answer = {"mpe": _optimum, "pr": _partition, "count": _count}[plan.task](execution, encoded, clock)
    execution.check_deadline("all of the elimination done")
    return answer._replace(stats=statistics(execution, clock))


def statistics(execution: Execution, clock: Mapping[str, float]) -> dict[str, Any]:
    """Figures of a run for ``Result.stats``; the clock has seconds by phase."""
    plan = execution.plan
    return {
        "induced_width": plan.width,
        "largest_table": plan.largest_table,
        "total_cells": plan.work,
        "peak_bytes": plan.peak_bytes,
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": execution.backend.name,
        "dtype": plan.dtype,
    }


def does_not_fit(plan: Plan) -> str:
    """What a plan would need, and which options help."""
    tiers = [(plan.device, plan.peak_bytes, plan.memory_limit)]
    tiers += [(tier, plan.bytes.get(tier, 0), limit) for tier, limit in plan.limits]
    lacking = [tier for tier in tiers if tier[1] > tier[2]] or tiers[:1]
    needs = ", ".join(f"{bytes_text(size)} on {tier} and may use {bytes_text(limit)}" for tier, size, limit in lacking)
    scratch = ", a directory on a large disk (--scratch)" if plan.scratch is None else ""
    return (
        f"the plan needs {needs} "
        f"(induced width {plan.width}, largest table {count_text(plan.largest_table)} cells, {plan.dtype}); more "
        f"memory (--memory){scratch}, a better order (--order, a longer --order-time, another --seed) or evidence "
        "would help; mini-buckets would bound the answer in less"
    )


def _note(clock: dict[str, float], run: Run) -> None:
    for phase, value in run.seconds.items():
        clock[phase] = clock.get(phase, 0.0) + value


def _optimum(execution: Execution, encoded: Encoded, clock: dict[str, float]) -> Result:
    problem, plan = execution.problem, execution.plan
    run = execution.run(encoded)
    _note(clock, run)
    value = decode_value(problem, plan, encoded, roots(plan, run))
    if value is None:
        return Result("infeasible", plan.task)
    assert run.assignment is not None
    chosen = run.assignment.tolist()
    for variable, fixed in problem.fixed.items():
        chosen[variable] = fixed
    score = problem.model.score(chosen)
    _check(plan, value, score, [problem.model.constant, *problem.model.terms(chosen)])
    if problem.model.is_beyond_bound(score):
        return Result("infeasible", plan.task)
    assignment = {v.name: v.label(x) for v, x in zip(problem.model.variables, chosen, strict=True)}
    return Result("optimal", plan.task, score, score, score, assignment)


def _check(plan: Plan, value: int | float, score: int | float, terms: Sequence[int | float]) -> None:
    """The assignment's value on the original model must be the value that elimination found."""
    tolerance = 0.0
    if not plan.dtype.startswith("int"):
        tolerance = (64 + len(terms)) * float(np.finfo(plan.dtype).eps) * max(math.fsum(map(abs, terms)), 1.0)
    if not abs(value - score) <= tolerance:
        raise InternalError(
            f"elimination found the optimum {value!r}, its assignment is worth {score!r} on the model; "
            "please report this"
        )


def _partition(execution: Execution, encoded: Encoded, clock: dict[str, float]) -> Result:
    if encoded.impossible:
        return Result("infeasible", "pr", 0.0, log10_z=-math.inf)
    run = execution.run(encoded)
    _note(clock, run)
    scales = Scales(execution.plan)
    if encoded.exact and not scales.may_underflow(encoded.ranges, run.peaks):
        return _partition_result(math.log10(2) * (encoded.offset + scales.log2_sum(run)))
    encoded = encode(execution.problem, execution.plan, "log-sum-exp")
    run = execution.run(encoded, "log-sum-exp")
    _note(clock, run)
    return _partition_result((encoded.offset + math.fsum(roots(execution.plan, run))) / math.log(10))


def _partition_result(log10_z: float) -> Result:
    if log10_z == -math.inf:
        return Result("infeasible", "pr", 0.0, log10_z=log10_z)
    value = 10.0**log10_z if -307 < log10_z < 308 else None
    return Result("optimal", "pr", value, log10_z=log10_z)


def _count(execution: Execution, encoded: Encoded, clock: dict[str, float]) -> Result:
    """Count modulo 2^64, and modulo as many primes as the number of assignments asks for; then Chinese remainders."""
    if encoded.impossible:
        return Result("optimal", "count", 0)
    sizes = execution.problem.model.sizes
    bits = sum(math.log2(sizes[v]) for v in execution.problem.free) + 1
    count, modulus = 0, 1
    divisors = _moduli(bits)
    program, places = execution.program(), root_places(execution.plan)
    for number, divisor in enumerate(divisors):
        report = execution._replace(part=(number, len(divisors))).report
        run = run_once(execution.backend, program._replace(parameter=divisor % 2**64), encoded.arena, report)
        _note(clock, run)
        residue = functools.reduce(lambda product, root: product * root % divisor, run.zone[places].tolist(), 1)
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
