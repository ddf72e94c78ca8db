"""Writing a model's values into the factor part of an arena, as a plan's semiring wants them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.planning.plan import FactorLayout, Plan
from elimina.planning.prepare import Problem, finite_range
from elimina.semiring import SEMIRINGS, Semiring
from elimina.table import FORBIDDEN, Table

Array = NDArray[Any]


class Encoded(NamedTuple):
    """Factors ready for a backend.

    Attributes:
        arena: The first ``plan.factor_cells`` elements.
        offset: What has to be added to the arena's optimum (costs, in the model's direction), or to the base-2
            logarithm of the
            arena's sum (probabilities).
        ranges: float64 of shape (factors, 2): largest and smallest positive value of each table (``sum-product`` only).
        impossible: Whether a factor without free variables is forbidden (or a product of two tables underflowed: see
            ``exact``).
        exact: False if a product of two positive numbers became 0 while factors were joined.
    """

    arena: Array
    offset: float
    ranges: NDArray[np.float64]
    impossible: bool
    exact: bool


def encode(problem: Problem, plan: Plan, semiring: str | None = None) -> Encoded:
    """Encode for the plan's semiring, or for another one over the same dtype and layout."""
    semiring = semiring or plan.semiring
    ring = SEMIRINGS[semiring]
    if semiring == "count":
        return _encode(problem, plan, ring, _support)
    if semiring == "sum-product":
        return _encode_products(problem, plan)
    if semiring == "log-sum-exp" or problem.model.sense == "probability":
        return _encode(problem, plan, ring, _logarithms)
    if plan.dtype.startswith("int"):
        return _encode_integers(problem, plan)
    return _encode(problem, plan, ring, _costs)


def factor_view(arena: Array, factor: FactorLayout) -> Array:
    """The factor's place in the arena, with its axes; it can be written to."""
    step = arena.itemsize
    return np.lib.stride_tricks.as_strided(
        arena[factor.offset :], factor.sizes, [stride * step for stride in factor.strides], writeable=True
    )


def _aligned(table: Table, values: Array, factor: FactorLayout) -> Array:
    """A table's values with the factor's axes, those that it lacks of length 1."""
    axes = [table.scope.index(v) for v in factor.scope if v in table.scope]
    shape = [size if v in table.scope else 1 for v, size in zip(factor.scope, factor.sizes, strict=True)]
    aligned: Array = values.transpose(axes).reshape(shape)
    return aligned


def _support(problem: Problem, table: Table) -> Array:
    """1 where the table allows the assignment."""
    values = table.dense()
    if problem.model.sense == "probability":
        return np.greater(values, 0)
    sign = 1 if problem.model.sense == "min-cost" else -1
    return np.not_equal(values, sign * (FORBIDDEN if values.dtype.kind == "i" else math.inf))


def _logarithms(problem: Problem, table: Table) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(table.dense().astype(np.float64, copy=False))


def _costs(problem: Problem, table: Table) -> Array:
    values = table.dense()
    if values.dtype.kind != "i":
        return values
    sign = 1 if problem.model.sense == "min-cost" else -1
    return np.where(values == sign * FORBIDDEN, sign * np.inf, values.astype(np.float64))


def _encode(problem: Problem, plan: Plan, ring: Semiring, values_of: Callable[[Problem, Table], Array]) -> Encoded:
    """Encode value by value; tables of a group are combined."""
    arena = np.zeros(plan.factor_cells, dtype=plan.dtype)
    for factor in plan.factors:
        view = factor_view(arena, factor)
        for place, member in enumerate(factor.members):
            table = problem.tables[member]
            aligned = _aligned(table, values_of(problem, table), factor)
            if place == 0:
                np.copyto(view, aligned, casting="unsafe")
            else:
                ring.combine(view, aligned, out=view, casting="unsafe")
    constants = [values_of(problem, problem.tables[c]).item() for c in problem.constants]
    offset = float(problem.model.constant) + math.fsum(constants) if plan.semiring != "count" else 0.0
    impossible = not all(constants) if plan.semiring == "count" else any(map(math.isinf, constants))
    return Encoded(arena, offset, np.zeros((0, 2)), impossible, True)


def _encode_integers(problem: Problem, plan: Plan) -> Encoded:
    """Shift each table to start at 0 (maximised costs negated first); the plan's number says 'forbidden'."""
    arena = np.zeros(plan.factor_cells, dtype=plan.dtype)
    limit = int(plan.forbidden)
    sense = problem.model.sense
    sign = 1 if sense == "min-cost" else -1
    offset = sign * int(problem.model.constant)
    impossible = False

    def shifted(table: Table) -> NDArray[np.int64]:
        nonlocal offset, impossible
        bounds = finite_range(table, sense)
        if bounds is None:
            impossible = True
            return np.full(table.sizes, limit, dtype=np.int64)
        least = bounds[0] if sign == 1 else -bounds[1]
        offset += least
        values = table.dense()
        # Costs far apart may leave int64 on the way: differences are taken as unsigned words, where they are exact.
        words, start = values.view(np.uint64), np.uint64(sign * least % 2**64)
        distance = words - start if sign == 1 else start - words
        return np.where(values == sign * FORBIDDEN, limit, np.minimum(distance, np.uint64(limit)).astype(np.int64))

    for constant in problem.constants:
        shifted(problem.tables[constant])
    for factor in plan.factors:
        view = factor_view(arena, factor)
        for place, member in enumerate(factor.members):
            table = problem.tables[member]
            aligned = _aligned(table, np.ascontiguousarray(shifted(table)), factor)
            if place == 0:
                np.copyto(view, aligned, casting="unsafe")
            else:
                np.minimum(np.add(view, aligned, dtype=np.int64), limit, out=view, casting="unsafe")
    return Encoded(arena, sign * offset, np.zeros((0, 2)), impossible, True)


def _encode_products(problem: Problem, plan: Plan) -> Encoded:
    """Scale each table by a power of two, so that its largest value lies in [1, 2)."""
    arena = np.zeros(plan.factor_cells, dtype=plan.dtype)
    ranges = np.zeros((len(plan.factors), 2))
    constants = [float(problem.tables[c].values) for c in problem.constants]
    impossible = not all(constants)
    offset = float(problem.model.constant) / math.log(2) + sum(math.log2(c) for c in constants if c > 0)
    exact = True
    for number, factor in enumerate(plan.factors):
        product: NDArray[np.float64] | None = None
        for member in factor.members:
            table = problem.tables[member]
            values = table.dense().astype(np.float64, copy=False)
            high = float(values.max())
            exponent = math.frexp(high)[1] - 1 if high > 0 else 0
            offset += exponent
            aligned = _aligned(table, np.ldexp(values, -exponent), factor)
            if product is None:
                product = np.array(np.broadcast_to(aligned, factor.sizes))
            else:
                support = (product > 0) & (aligned > 0)
                product *= aligned
                exact = exact and bool((product[support] > 0).all())
        assert product is not None
        view = factor_view(arena, factor)
        np.copyto(view, product, casting="same_kind")
        stored = np.asarray(view)
        positive = stored[stored > 0]
        exact = exact and positive.size == int(np.count_nonzero(product))
        if positive.size:
            ranges[number] = float(positive.max()), float(positive.min())
    return Encoded(arena, offset, ranges, impossible, exact)


def decode_value(problem: Problem, plan: Plan, encoded: Encoded, roots: list[int | float]) -> int | float | None:
    """The optimum in the model's units from the values of the tree's roots; None if there is no solution.

    Raises:
        InputError: The plan's semiring has no optimum.
    """
    if plan.semiring not in ("min-sum", "max-sum"):
        raise InputError(f"semiring {plan.semiring} has no optimum")
    forbidden = plan.forbidden
    if encoded.impossible or any(root == forbidden for root in roots):
        return None
    if plan.dtype.startswith("int"):
        total = sum(int(root) for root in roots)
        sign = 1 if problem.model.sense == "min-cost" else -1
        return int(encoded.offset) + sign * total
    return encoded.offset + math.fsum(float(root) for root in roots)
