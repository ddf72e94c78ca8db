"""Writing a model's values into the factor part of an arena, as a plan's semiring wants them.

Tables are read block by block, so that what is needed besides the arena stays small however large they are (sparse
tables: 24 bytes for each listed row).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model import forbidden_value
from elimina.planning.plan import FactorLayout, Plan
from elimina.planning.prepare import Problem, allowed_range, finite_range
from elimina.table import Table, blocks, cell_numbers

Array = NDArray[Any]
Change = Callable[[Array], Array]


class Encoded(NamedTuple):
    """Factors ready for a backend.

    Attributes:
        arena: The first ``plan.factor_cells`` elements.
        constants: What has to be added to the arena's optimum (costs, in the model's direction; or logarithms), or to
            the base-2 logarithm of the arena's sum (``sum-product``).
        ranges: float64 of shape (factors, 2): largest and smallest positive value of each table (``sum-product`` only).
        impossible: Whether nothing is allowed, seen before the run: a factor without free variables is forbidden or has
            probability 0 (the model's constant, too), or all integer costs of one table are forbidden.
        exact: False if a product of two positive numbers left the normal range while factors were joined.
    """

    arena: Array
    constants: tuple[int | float, ...]
    ranges: NDArray[np.float64]
    impossible: bool
    exact: bool

    @property
    def offset(self) -> int | float:
        """The sum of the constants; exact for integers."""
        return self.constants[0] if len(self.constants) == 1 else math.fsum(self.constants)


class _Source:
    """A table as it is read: block by block of a factor that has all of its variables."""

    def __init__(self, table: Table, factor: FactorLayout, change: Change) -> None:
        axes = [table.scope.index(v) for v in factor.scope if v in table.scope]
        self._change = change
        self._shape = tuple(n if v in table.scope else 1 for v, n in zip(factor.scope, factor.sizes, strict=True))
        self._table = table
        if table.rows is None:
            self._values = table.values.transpose(axes).reshape(self._shape)
            return
        cells = cell_numbers(table.rows, table.sizes, axes)
        order = np.argsort(cells, kind="stable")
        self._cells, self._values = cells[order], table.values[order]

    def read(self, box: Sequence[slice]) -> Array:
        """A block of the factor, changed as the semiring wants it; axes that the table lacks have length 1."""
        own = tuple(part if size > 1 else slice(None) for part, size in zip(box, self._shape, strict=True))
        return self._change(self._values[own] if self._table.rows is None else self._listed(own))

    def _listed(self, box: Sequence[slice]) -> Array:
        """A block of a sparse table: its cells follow one another in the whole."""
        start, shape = 0, []
        for part, size in zip(box, self._shape, strict=True):
            first, last, _ = part.indices(size)
            start = start * size + first
            shape.append(last - first)
        block = np.full(math.prod(shape), self._table.default, dtype=self._values.dtype)
        low, high = np.searchsorted(self._cells, (start, start + len(block)))
        block[self._cells[low:high] - start] = self._values[low:high]
        return block.reshape(shape)


def encode(problem: Problem, plan: Plan, semiring: str | None = None) -> Encoded:
    """Encode for the plan's semiring, or for another one over the same dtype and layout.

    Raises:
        InputError: Costs are so large that their sum may leave the plan's dtype.
    """
    semiring = semiring or plan.semiring
    if semiring == "count":
        return _encode_support(problem, plan)
    if semiring == "sum-product":
        return _encode_products(problem, plan)
    if semiring == "log-sum-exp" or problem.model.sense == "probability":
        return _encode_sums(problem, plan, _logarithms)
    if plan.dtype.startswith("int"):
        return _encode_integers(problem, plan)
    _check_sum(problem, plan)
    return _encode_sums(problem, plan, _costs(problem))


def factor_view(arena: Array, factor: FactorLayout) -> Array:
    """The factor's place in the arena, with its axes; it can be written to."""
    step = arena.itemsize
    strides = [stride * step for stride in factor.strides]
    return np.ndarray(factor.sizes, arena.dtype, arena, factor.offset * step, strides)


def _fill(
    problem: Problem, plan: Plan, change: Callable[[int], Change], combine: Callable[[Array, Array], Array]
) -> Array:
    """An arena with each group of tables changed (by what their indices give) and combined, block by block."""
    arena = np.zeros(plan.factor_cells, dtype=plan.dtype)
    for factor in plan.factors:
        view = factor_view(arena, factor)
        first, *others = (_Source(problem.tables[m], factor, change(m)) for m in factor.members)
        for box in blocks(factor.sizes):
            values = first.read(box)
            for other in others:
                values = combine(values, other.read(box))
            view[box] = values
    return arena


def _encode_support(problem: Problem, plan: Plan) -> Encoded:
    """1 where the tables allow the assignment, else 0."""

    def change(member: int) -> Change:
        forbidden = forbidden_value(problem.model.sense, problem.tables[member].values.dtype)
        return lambda values: np.not_equal(values, forbidden)

    possible = problem.model.constant > -math.inf and all(
        change(c)(problem.tables[c].values) for c in problem.constants
    )
    return Encoded(_fill(problem, plan, change, np.logical_and), (0,), np.zeros((0, 2)), not possible, True)


def _encode_sums(problem: Problem, plan: Plan, change: Change) -> Encoded:
    """Costs or logarithms as floats."""
    constants = [float(problem.model.constant)]
    constants += [float(change(problem.tables[c].values)) for c in problem.constants]
    return Encoded(
        _fill(problem, plan, lambda _: change, np.add),
        tuple(constants),
        np.zeros((0, 2)),
        any(map(math.isinf, constants)),
        True,
    )


def _logarithms(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values, dtype=np.float64)


def _costs(problem: Problem) -> Change:
    forbidden, worst = (forbidden_value(problem.model.sense, dtype) for dtype in (np.int64, np.float64))

    def change(values: Array) -> Array:
        if values.dtype.kind == "f":
            return values.astype(np.float64, copy=False)
        return np.where(values == forbidden, worst, values.astype(np.float64))

    return change


def _check_sum(problem: Problem, plan: Plan) -> None:
    """Finite costs whose sum is infinite would read as forbidden."""
    ranges = (allowed_range(table, problem.model.sense) for table in problem.tables)
    largest = [max(abs(float(bound)) for bound in known) for known in ranges if known is not None]
    total = sum(largest, abs(float(problem.model.constant)))
    if total > float(np.finfo(plan.dtype).max):
        way = "use dtype float64" if plan.dtype == "float32" else "scale them down"
        raise InputError(
            f"the costs, up to {max(largest, default=0):.3g} in a table, may add up to {total:.3g}, which {plan.dtype} "
            f"cannot hold; {way}, and write forbidden ones as infinity"
        )


def _encode_integers(problem: Problem, plan: Plan) -> Encoded:
    """Shift each table to start at 0 (maximised costs negated first); the plan's number says 'forbidden'."""
    limit = int(plan.forbidden)
    sense = problem.model.sense
    sign = 1 if sense == "min-cost" else -1
    forbidden = forbidden_value(sense, np.int64)
    ranges = [finite_range(table, sense) for table in problem.tables]
    best = [0 if known is None else known[0] if sign == 1 else known[1] for known in ranges]

    def change(member: int) -> Change:
        # Costs far apart may leave int64 on the way: differences are taken as unsigned words, where they are exact.
        start = np.uint64(best[member] % 2**64)

        def shifted(values: Array) -> Array:
            words = values.view(np.uint64)
            distance = words - start if sign == 1 else start - words
            np.minimum(distance, np.uint64(limit), out=distance)
            distance[values == forbidden] = limit
            return distance.view(np.int64)

        return shifted

    def combine(one: Array, other: Array) -> Array:
        total: Array = np.minimum(one + other, limit)
        return total

    offset = int(problem.model.constant) + sum(best)
    return Encoded(_fill(problem, plan, change, combine), (offset,), np.zeros((0, 2)), None in ranges, True)


class _Product:
    """A product of tables, kept in range by powers of two: the true one is ``values`` times 2 to the ``exponent``.

    ``exact`` becomes False once a positive product was lost or rounded beyond its last digits.
    """

    def __init__(self) -> None:
        self.values: NDArray[np.float64] | None = None
        self.support: NDArray[np.bool_] | None = None
        self.exponent = 0
        self.exact = True

    def multiply(self, factor: Array) -> None:
        """Multiply by a table whose axes have the product's length or 1."""
        values, exponent = _scaled(factor.astype(np.float64, copy=False))
        support = factor > 0
        self.exponent += exponent
        if self.values is not None and self.support is not None:
            values, support = self.values * values, self.support & support
        self.exact = self.exact and float(values.min(where=support, initial=math.inf)) >= sys.float_info.min
        self.values, exponent = _scaled(values)
        self.support = support
        self.exponent += exponent


def _scaled(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Values times a power of two that brings the largest one into [1, 2), and the exponent that makes up for it."""
    high = float(values.max())
    exponent = math.frexp(high)[1] - 1 if high > 0 else 0
    return np.ldexp(values, -exponent) if exponent else values, exponent


def _encode_products(problem: Problem, plan: Plan) -> Encoded:
    """Scale each table by a power of two, so that its largest value lies in [1, 2)."""
    arena = np.zeros(plan.factor_cells, dtype=plan.dtype)
    ranges = np.zeros((len(plan.factors), 2))
    constants = [float(problem.tables[c].values) for c in problem.constants]
    exponents, exact = 0, True
    for number, factor in enumerate(plan.factors):
        sources = [_Source(problem.tables[member], factor, lambda values: values) for member in factor.members]
        exponent, kept = _store_product(sources, factor, factor_view(arena, factor))
        ranges[number] = _positive_range(factor, factor_view(arena, factor))
        exponents += exponent
        exact = exact and kept
    return Encoded(
        arena,
        (problem.model.constant / math.log(2), exponents, *(math.log2(c) for c in constants if c > 0)),
        ranges,
        not all(constants) or problem.model.constant == -math.inf,
        exact,
    )


def _store_product(sources: Sequence[_Source], factor: FactorLayout, view: Array) -> tuple[int, bool]:
    """Write a product of tables, its largest value in [1, 2); return its exponent, and whether nothing was lost."""
    exponents = {}
    exact = True
    for number, box in enumerate(blocks(factor.sizes)):
        product = _Product()
        for source in sources:
            product.multiply(source.read(box))
        assert product.values is not None
        assert product.support is not None
        view[box] = product.values
        exact = exact and product.exact and np.array_equal(view[box] > 0, product.support)
        if product.support.any():
            exponents[number] = product.exponent
    exponent = max(exponents.values(), default=0)
    for number, box in enumerate(blocks(factor.sizes)):
        shift = exponents.get(number, exponent) - exponent
        if shift:
            count = np.count_nonzero(view[box])
            np.ldexp(view[box], shift, out=view[box])
            exact = exact and count == np.count_nonzero(view[box])
    return exponent, exact


def _positive_range(factor: FactorLayout, view: Array) -> tuple[float, float]:
    """The largest and the smallest positive value; zeros if there is none."""
    high, low = 0.0, math.inf
    for box in blocks(factor.sizes):
        values = view[box]
        high = max(high, float(values.max()))
        low = min(low, float(values.min(where=values > 0, initial=math.inf)))
    return high, low if high else 0.0


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
    return math.fsum([*encoded.constants, *roots])
