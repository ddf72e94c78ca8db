"""Number type of a plan: the narrowest one that provably represents all sums of its costs."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

from elimina.errors import InputError
from elimina.model.table import Ends
from elimina.planning.record import MAX_OPERANDS
from elimina.problem.preparation import Problem
from elimina.problem.semirings import FLOATS, INTEGERS, LARGEST, SEMIRINGS, Contents, Dtype

_MAX_VISITS = 100_000_000
"""Largest number of cells that the search visits: about 0.2 s."""

_MAX_TABLE_CELLS = 1 << 22
"""Largest number of cells of a table in the search, which limits its memory."""


def incumbent_cost(problem: Problem) -> int | None:
    """Search for an assignment; return its cost relative to the sum of the tables' least costs.

    Return None if no assignment is found, the task does not add costs, or a table is too large for the search.

    The search is deterministic.
    """
    if not SEMIRINGS[problem.described.semiring].is_additive:
        return None
    if any(table.cells > _MAX_TABLE_CELLS for table in problem.tables):
        return None
    limit = sys.maxsize
    cost: int | None = problem.tables.listed.incumbent(
        problem.model.sense, _MAX_VISITS, _MAX_VISITS, limit, limit, limit
    ).cost
    return cost


class Encoding(NamedTuple):
    """Encoding of a model's values in a semiring.

    Attributes:
        semiring: Name of one of ``SEMIRINGS``.
        dtype: Number type of the arena.
        forbidden: The smallest forbidden integer; for floats, the semiring's zero: infinity, minus infinity or 0.
    """

    semiring: str
    dtype: Dtype
    forbidden: float


_COSTS = "costs that are not integers"

_MIN_OPERANDS = 3
"""Least number of tables in a step for which a narrower dtype is faster."""


def operand_limits(bound: int, dtype: Dtype) -> list[int]:
    """Return how many tables a step may add in each narrower integer type; types with too small limits are left out."""
    limits = [LARGEST[name] // bound for name in INTEGERS[: INTEGERS.index(dtype)]]
    return [min(limit, MAX_OPERANDS) for limit in limits if limit >= _MIN_OPERANDS]


def choose_encoding(problem: Problem, operands: int, bound: int, dtype: str | None, weighted: bool = False) -> Encoding:
    """Choose the semiring and the narrowest dtype in which all results are exact.

    All costs are shifted to be non-negative, so a partial sum that reaches a bound on the optimum stays above it. A
    single number above the bound can therefore stand for 'forbidden'. A dtype is wide enough if it can represent that
    number times the number of tables that a step adds.

    Raises:
        InputError: The dtype does not fit the task, or cannot hold the costs exactly.
    """
    if weighted:
        return Encoding("log-sum-exp", _asked(dtype, ("float64",), "bounds on sums"), -math.inf)
    ring, model = SEMIRINGS[problem.described.semiring], problem.model
    if not ring.integers or not model.is_integer or dtype in FLOATS:
        are_costs = bool(ring.integers) and model.sense != "probability"
        allowed = FLOATS if ring.integers else ring.dtypes
        return Encoding(ring.name, _asked(dtype, allowed, _COSTS if are_costs else ring.numbers), ring.zero)
    if dtype is not None and dtype not in INTEGERS:
        raise InputError(f"dtype {dtype} does not fit integer costs; use one of {', '.join(INTEGERS + FLOATS)}")
    # A semiring that is not additive only compares costs, so each cost has to fit the type, but sums do not.
    return Encoding(ring.name, exact_integer(operands if ring.is_additive else 1, bound, dtype), bound)


def exact_integer(operands: int, bound: int, dtype: str | None = None) -> Dtype:
    """Return the narrowest integer type in which no step overflows, or the given type if it is wide enough.

    Args:
        operands: Largest number of tables in a step.
        bound: Number for 'forbidden', above any sum of allowed costs, which are not negative.
        dtype: Integer type; None: the narrowest one.

    Raises:
        InputError: The type is not wide enough.
    """
    for name in INTEGERS:
        if dtype in (None, name) and max(operands, 2) * bound <= LARGEST[name]:
            return name
    raise InputError(
        f"costs are too large for exact sums: a step may add {max(operands, 2)} numbers of up to {bound:,}, more than "
        f"{dtype or 'int64'} holds; {'' if dtype in (None, 'int64') else 'use a wider integer, '}scale the costs down, "
        "or (task mpe) use dtype float64, which rounds"
    )


def _asked(dtype: str | None, allowed: tuple[Dtype, ...], what: str) -> Dtype:
    if dtype is None:
        return allowed[0]
    for name in allowed:
        if dtype == name:
            return name
    raise InputError(f"dtype {dtype} does not fit {what}; use {' or '.join(allowed)}")


def cost_bound(problem: Problem) -> int:
    """Return a number for 'forbidden' among integer costs shifted to be non-negative; 1 for other models."""
    ring, model = SEMIRINGS[problem.described.semiring], problem.model
    if not ring.integers or not model.is_integer:
        return 1
    return max(ring.bound(contents_of(problem, is_integer=True)), 1)


def contents_of(problem: Problem, is_integer: bool, ends: Ends | None = None) -> Contents:
    """Return the properties of a problem that determine how its values are encoded in a semiring.

    Args:
        problem: Problem to encode.
        is_integer: True if costs remain integers.
        ends: Least and largest values of its tables; None: they are computed.
    """
    model = problem.model
    ends = Ends.of(problem.tables.listed, model.sense) if ends is None else ends
    return Contents(model.sense, is_integer, model.constant, model.upper_bound, ends, problem.constants)
