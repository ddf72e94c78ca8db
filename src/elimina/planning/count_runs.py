"""Runs of a count, one for each modulus; the product of the moduli exceeds the number of allowed assignments."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.model.table import Table, forbidden_value
from elimina.planning.machine import PRIME_RUN
from elimina.planning.plan import Plan
from elimina.problem.preparation import Problem

_WORD_BITS = 64
"""Number of bits of the count that the first run determines, modulo 2^64."""

_PRIME_BITS = 31
"""Number of bits of the count that each further run determines, modulo a prime just below 2^31."""

_MAX_BOUNDED_TABLES = 4096
"""Largest number of tables of a problem for which a bound on the number of solutions is computed."""

_MAX_BOUNDED_CELLS = 1 << 16
"""Largest number of cells of a table that contributes to the bound."""


def moduli(bits: float) -> Sequence[int]:
    """Return 2^64, followed by primes below 2^31 until their product has enough bits."""
    result, covered, candidate = [2**_WORD_BITS], float(_WORD_BITS), 2**_PRIME_BITS - 1
    while covered < bits:
        if _is_prime(candidate):
            result.append(candidate)
            covered += math.log2(candidate)
        candidate -= 2
    return result


def prime_runs(bits: float) -> int:
    """Return the number of primes in ``moduli(bits)`` without finding them: each has slightly less than 31 bits."""
    return math.floor((bits - _WORD_BITS) / _PRIME_BITS) + 1 if bits > _WORD_BITS else 0


def with_count_runs(plan: Plan, problem: Problem) -> Plan:
    """Return the plan with the estimated seconds of all runs; only counts take several runs."""
    if not problem.described.is_count:
        return plan
    primes = prime_runs(count_bits(problem))
    return plan._replace(seconds=plan.seconds * (1 + PRIME_RUN * primes)) if primes else plan


def count_bits(problem: Problem) -> float:
    """Return an upper bound on the number of bits of the number of allowed assignments.

    The bound multiplies, variable by variable, the largest number of values that a table allows given values of its
    other variables. A variable whose value a table determines from others contributes a factor of 1.
    """
    sizes = problem.model.sizes
    bits = sum(math.log2(sizes[v]) for v in problem.free) + 1
    if bits <= _WORD_BITS or len(problem.tables) > _MAX_BOUNDED_TABLES:
        return bits
    tables = [
        table for table in problem.tables if table.rows is None and table.scope and table.cells <= _MAX_BOUNDED_CELLS
    ]
    return min(bits, _sequence_bits(problem.free, sizes, _largest_degrees(tables, problem)) + 1)


def _largest_degrees(tables: Sequence[Table], problem: Problem) -> list[dict[int, int]]:
    """Return, for each table and each of its variables, the largest number of allowed values given the others."""

    @functools.cache
    def degrees(cells: bytes, shape: tuple[int, ...]) -> tuple[int, ...]:
        support = np.frombuffer(cells, dtype=bool).reshape(shape)
        return tuple(int(support.sum(axis=axis).max()) for axis in range(len(shape)))

    def support(table: Table) -> NDArray[np.bool_]:
        return np.asarray(table.values != forbidden_value(problem.model.sense, table.values.dtype))

    return [
        dict(zip(table.scope, degrees(support(table).tobytes(), table.values.shape), strict=True)) for table in tables
    ]


def _sequence_bits(variables: Sequence[int], sizes: Sequence[int], degrees: Sequence[dict[int, int]]) -> float:
    """Return the bits of the bound on a count: a product of numbers of values, one variable after another.

    A table bounds the number of values of one of its variables if all its other variables are earlier in the sequence.
    Among the variables that are bounded in this way, the one with the fewest values is next. If there is none, the next
    variable is one that no table determines from others, as long as there are such variables.
    """
    readers: dict[int, list[int]] = {v: [] for v in variables}
    for number, degree in enumerate(degrees):
        for v in degree:
            readers[v].append(number)
    functions = {v for degree in degrees for v, values in degree.items() if values <= 1}
    waiting = iter(sorted(variables, key=lambda v: (v in functions, v)))
    missing = [len(degree) for degree in degrees]
    following: list[tuple[float, int]] = []
    remaining = set(variables)
    bits = 0.0

    def offer(number: int) -> None:
        for v, values in degrees[number].items():
            if v in remaining:
                heapq.heappush(following, (math.log2(max(1, values)), v))

    for number, count in enumerate(missing):
        if count == 1:
            offer(number)
    while remaining:
        if following:
            more, variable = heapq.heappop(following)
        else:
            variable = next(waiting)
            more = math.log2(sizes[variable])
        if variable not in remaining:
            continue
        remaining.remove(variable)
        bits += more
        for number in readers[variable]:
            missing[number] -= 1
            if missing[number] == 1:
                offer(number)
    return bits


def _is_prime(odd: int) -> bool:
    """Return whether an odd number is prime, by Miller-Rabin.

    The bases 2, 7 and 61 decide every number below 4759123141 (Jaeschke 1993).
    """
    shift = (odd - 1 & -(odd - 1)).bit_length() - 1
    for base in (2, 7, 61):
        power = pow(base, odd - 1 >> shift, odd)
        if power in (1, odd - 1):
            continue
        if not any((power := power * power % odd) == odd - 1 for _ in range(shift - 1)):
            return False
    return True
