"""Number of allowed assignments, by elimination modulo several primes or with long integers."""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina._core import exact_count
from elimina.planning.count_runs import count_bits, moduli
from elimina.planning.packed_steps import Steps
from elimina.result import Result
from elimina.running.encoding import Encoder
from elimina.running.execution import Execution
from elimina.running.scales import root_places
from elimina.running.sweep import Sweep

if TYPE_CHECKING:
    from elimina.planning.program import Program
    from elimina.running.checkpoint import State

_MIN_LONG_COUNT_BITS = 512
"""Bits of the number of assignments above which one run with long integers is faster than a run per 31 bits."""

_LONG_INTEGER_BYTES = 48
"""Bytes of a long integer in addition to its bits."""


def count(execution: Execution, clock: dict[str, float]) -> Result:
    """Count modulo 2^64 and modulo enough primes; combine the results by the Chinese remainder theorem."""
    bits = count_bits(execution.problem)
    if bits > _MIN_LONG_COUNT_BITS and _fits_long_integers(execution, bits):
        return _long_count(execution, clock)
    divisors = moduli(bits)
    sweep, root_cells = Sweep(execution, clock), root_places(execution.plan)
    state: State = {"residues": [0] * len(divisors), **execution.state}
    numbers = execution.slice_numbers(sweep.count)
    for number, divisor in enumerate(divisors):
        remaining = numbers[max(0, state["done"] - number * len(numbers)) :]
        sweep.done = len(numbers) - len(remaining)
        for slice_ in filter(None, sweep.run(remaining, divisor % 2**64, (number, len(divisors)))):
            if slice_.run is not None:
                product = functools.reduce(lambda x, root: x * root % divisor, slice_.run.zone[root_cells].tolist(), 1)
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
    """Return whether one run with long integers is possible: on the CPU, for a dense plan that fits without slices.

    Messages in memory at the same time belong to different subtrees, so the bits of their counts add up to at most the
    bits of the final count. A message and its operands are in memory together, so twice as many bits are needed.
    """
    plan = execution.plan
    is_free = execution.checkpoint is None and execution.share is None and plan.on_host
    message_bytes = 2 * plan.largest_table * bits / 8 + (plan.arena_cells - plan.factor_cells) * _LONG_INTEGER_BYTES
    return plan.is_plain and is_free and plan.peak_bytes + message_bytes <= plan.memory_limit


def _long_count(execution: Execution, clock: dict[str, float]) -> Result:
    started = time.perf_counter()
    plan, problem = execution.plan, execution.problem
    encoded = Encoder(problem, plan, threads=execution.backend.threads).encoded(problem)
    ready = time.perf_counter()
    clock["encode"] = ready - started
    if encoded.impossible:
        return Result("exact", "count", 0)
    program = execution.program()
    count = b""
    if _allows_anything(execution, program, encoded.arena):
        roots = np.array([output.step for output in plan.outputs], dtype=np.int64)
        steps = Steps.packed(plan.steps)
        count = exact_count(steps.words, steps.starts, roots, encoded.arena)
    clock["run"] = time.perf_counter() - ready
    execution.report(1.0)
    return Result("exact", "count", int.from_bytes(count, "little"))


def _allows_anything(execution: Execution, program: Program, factors: NDArray[np.generic]) -> bool:
    """Return whether an assignment is allowed, by a run with floats, which is far faster than long integers."""
    possible = program._replace(semiring="min-sum", dtype=np.dtype(np.float64), parameter=math.inf)
    session = execution.backend.open(possible, np.where(factors == 0, math.inf, 0.0))
    zone = session.run().zone
    session.close()
    return bool(np.isfinite(zone[root_places(execution.plan)]).all())
