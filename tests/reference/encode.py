"""Encodings, ranges and groups of tables in plain NumPy, one factor after another.

Tables are read block by block, so that what is needed besides the arena stays small however large they are (sparse
tables: 24 bytes for each listed row).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model.table import BLOCK_CELLS, Sense, Table, cell_numbers, forbidden_value
from elimina.planning.plan import Plan
from elimina.planning.sparse import blocks
from elimina.planning.step import FactorLayout
from elimina.problem.preparation import Problem
from elimina.problem.table_groups import Group
from elimina.running.encoding import Encoded

Array = NDArray[Any]
Change = Callable[[Array], Array]


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
        self._cells, self._values = cells[order], change(table.values[order])
        self._default = change(np.array([table.default], dtype=table.values.dtype))[0]

    def read(self, box: Sequence[slice]) -> Array:
        """A block of the factor, changed as the semiring wants it; axes that the table lacks have length 1."""
        own = tuple(part if size > 1 else slice(None) for part, size in zip(box, self._shape, strict=True))
        return self._change(self._values[own]) if self._table.rows is None else self._listed(own)

    def _listed(self, box: Sequence[slice]) -> Array:
        """A block of a sparse table: its cells follow one another in the whole."""
        start, shape = 0, []
        for part, size in zip(box, self._shape, strict=True):
            first, last, _ = part.indices(size)
            start = start * size + first
            shape.append(last - first)
        block = np.full(math.prod(shape), self._default, dtype=self._values.dtype)
        low, high = np.searchsorted(self._cells, (start, start + len(block)))
        block[self._cells[low:high] - start] = self._values[low:high]
        return block.reshape(shape)


class Part(NamedTuple):
    """Facts about one encoded factor.

    Attributes:
        offset: The integer cost taken out of it, or the power of two (``sum-product``).
        range: See ``Encoded.ranges``.
        possible: False if all of its costs are forbidden (integer costs only; others show it by themselves).
        exact: See ``Encoded``.
    """

    offset: int = 0
    range: tuple[float, float] = (0.0, 0.0)
    possible: bool = True
    exact: bool = True
    taken: tuple[float, ...] = ()
    """The costs or logarithms taken out of its tables, where these are floats."""


class Encoder(Protocol):
    """Encodes factors one by one, for one semiring."""

    def write(self, factor: FactorLayout, tables: Sequence[Table], view: Array) -> Part:
        """Write the join of tables to a factor's place; the tables' scopes are within the factor's."""
        ...

    def constants(self, problem: Problem, parts: Sequence[Part]) -> tuple[tuple[int | float, ...], bool]:
        """Return ``Encoded.constants``, and whether the tables without a scope allow anything."""
        ...


def encoder(problem: Problem, plan: Plan, semiring: str | None = None) -> Encoder:
    """An encoder of a problem, or of its slices, for the plan's semiring or another one over the same dtype and layout.

    Raises:
        InputError: Costs are so large that their sum may leave the plan's dtype.
    """
    semiring = semiring or plan.semiring
    if semiring == "count":
        return _Support(problem.model.sense)
    if semiring == "sum-product":
        return _Products()
    if semiring == "min-max":
        return _Costs(problem.model.sense, int(plan.forbidden) if plan.dtype.startswith("int") else math.inf)
    if semiring == "log-sum-exp":
        return _Sums(problem.model.sense, is_log=True)
    if plan.dtype.startswith("int"):
        return _Integers(problem.model.sense, int(plan.forbidden))
    if problem.model.sense != "probability":
        _check_sum(problem, plan)
    return _Sums(problem.model.sense)


def encode(problem: Problem, plan: Plan, semiring: str | None = None) -> Encoded:
    """Encode for the plan's semiring, or for another one over the same dtype and layout.

    Raises:
        InputError: Costs are so large that their sum may leave the plan's dtype.
    """
    own = encoder(problem, plan, semiring)
    arena = np.zeros(plan.factor_cells, dtype=plan.dtype)
    parts = [
        own.write(factor, [problem.tables[member] for member in factor.members], factor_view(arena, factor))
        for factor in plan.factors
    ]
    return encoded(own, problem, arena, parts)


def encoded(own: Encoder, problem: Problem, arena: Array, parts: Sequence[Part]) -> Encoded:
    """Put together what an encoder wrote."""
    constants, possible = own.constants(problem, parts)
    return Encoded(
        arena,
        constants,
        np.array([part.range for part in parts], dtype=np.float64).reshape(-1, 2),
        not (possible and all(part.possible for part in parts)),
        all(part.exact for part in parts),
    )


def factor_view(arena: Array, factor: FactorLayout) -> Array:
    """The factor's place in the arena, with its axes; it can be written to."""
    step = arena.itemsize
    strides = [stride * step for stride in factor.strides]
    return np.ndarray(factor.sizes, arena.dtype, arena, factor.offset * step, strides)


def _write(view: Array, sources: Sequence[_Source], combine: Callable[[Array, Array], Array]) -> Part:
    """Write tables combined, block by block."""
    first, *others = sources
    for box in blocks(view.shape):
        values = first.read(box)
        for other in others:
            values = combine(values, other.read(box))
        view[box] = values
    return Part()


class _Support:
    """1 where the tables allow the assignment, else 0."""

    def __init__(self, sense: Sense) -> None:
        self._sense = sense

    def _change(self, table: Table) -> Change:
        forbidden = forbidden_value(self._sense, table.values.dtype)
        return lambda values: np.not_equal(values, forbidden)

    def write(self, factor: FactorLayout, tables: Sequence[Table], view: Array) -> Part:
        return _write(view, [_Source(table, factor, self._change(table)) for table in tables], np.logical_and)

    def constants(self, problem: Problem, parts: Sequence[Part]) -> tuple[tuple[int | float, ...], bool]:
        tables = (problem.tables[c] for c in problem.constants)
        return (0,), problem.model.constant > -math.inf and all(self._change(t)(t.values) for t in tables)


class _Costs:
    """Costs as they are, utilities and probabilities negated; the worst where tables are joined."""

    def __init__(self, sense: Sense, forbidden: float) -> None:
        self._sense, self._forbidden = sense, forbidden

    def _change(self, table: Table) -> Change:
        worst, sign = forbidden_value(self._sense, table.values.dtype), 1 if self._sense == "min-cost" else -1
        return lambda values: np.where(values == worst, self._forbidden, sign * values)

    def write(self, factor: FactorLayout, tables: Sequence[Table], view: Array) -> Part:
        part = _write(view, [_Source(table, factor, self._change(table)) for table in tables], np.maximum)
        are_allowed = all(allowed_range(table, self._sense) is not None for table in tables)
        return part._replace(possible=are_allowed or math.isinf(self._forbidden))

    def constants(self, problem: Problem, parts: Sequence[Part]) -> tuple[tuple[int | float, ...], bool]:
        tables = [problem.tables[c] for c in problem.constants]
        values = [t.values.item() for t in tables if t.values.item() != forbidden_value(self._sense, t.values.dtype)]
        return tuple(values), len(values) == len(tables) and problem.model.constant > -math.inf


class _Sums:
    """Costs or negated logarithms as floats: each table's distances from the best value that it has.

    `is_log`: logarithms instead, less the largest. Sums of what is left are of one sign, so that rounding changes them
    by a small part of themselves, however much the tables cancel each other.
    """

    def __init__(self, sense: Sense, *, is_log: bool = False) -> None:
        self._sense, self._is_log = sense, is_log

    def _ends(self, table: Table) -> tuple[float, float] | None:
        """Return the best and the worst value that a table allows; None if it allows nothing."""
        known = allowed_range(table, self._sense)
        return None if known is None else known if self._sense == "min-cost" else known[::-1]

    def _change(self, ends: tuple[float, float] | None, dtype: np.dtype[np.generic]) -> Change:
        if self._sense == "probability":
            high = _logarithm(ends)
            if self._is_log:
                return lambda values: _logarithms(values) - high
            return lambda values: high - _logarithms(values)
        best, forbidden = 0 if ends is None else ends[0], forbidden_value(self._sense, np.int64)
        if dtype.kind == "f":
            if self._sense == "min-cost":
                return lambda values: values.astype(np.float64, copy=False) - best
            return lambda values: best - values.astype(np.float64, copy=False)
        # Integers beyond 2^53 are rounded after the subtraction, which is exact on unsigned words.
        sign, start = 1 if self._sense == "min-cost" else -1, np.uint64(int(best) % 2**64)

        def distances(values: Array) -> Array:
            words = values.view(np.uint64)
            words = words - start if sign == 1 else start - words
            return np.where(values == forbidden, math.inf, words.astype(np.float64))

        return distances

    def write(self, factor: FactorLayout, tables: Sequence[Table], view: Array) -> Part:
        ends = [self._ends(table) for table in tables]
        sources = [
            _Source(table, factor, self._change(known, table.values.dtype))
            for table, known in zip(tables, ends, strict=True)
        ]
        part = _write(view, sources, np.add)
        allowed = [known for known in ends if known is not None]
        taken = [part for best, _ in allowed for part in _floats(self._value(best))]
        return part._replace(taken=tuple(taken))

    def _value(self, number: float) -> float:
        return math.log(number) if self._sense == "probability" else number

    def constants(self, problem: Problem, parts: Sequence[Part]) -> tuple[tuple[int | float, ...], bool]:
        ends = [self._ends(problem.tables[c]) for c in problem.constants]
        values = [*_floats(problem.model.constant), *(value for part in parts for value in part.taken)]
        values += [part for known in ends if known is not None for part in _floats(self._value(known[0]))]
        return tuple(values), None not in ends and problem.model.constant > -math.inf


def _floats(number: float) -> tuple[float, ...]:
    """Return floats whose sum is a number: an integer may need two."""
    nearest = float(number)
    if isinstance(number, int) and int(nearest) != number:
        return nearest, float(number - int(nearest))
    return (nearest,)


def _logarithm(ends: tuple[float, float] | None) -> float:
    return 0.0 if ends is None else math.log(ends[0])


def _logarithms(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values, dtype=np.float64)


def _check_sum(problem: Problem, plan: Plan) -> None:
    """Finite costs whose sum is infinite would read as forbidden."""
    ranges = (allowed_range(table, problem.model.sense) for table in problem.tables)
    largest = [max(-float(low), float(high), float(high) - float(low)) for low, high in filter(None, ranges)]
    total = sum(largest, abs(float(problem.model.constant)))
    if total > float(np.finfo(plan.dtype).max):
        way = "use dtype float64" if plan.dtype == "float32" else "scale them down"
        raise InputError(
            f"the costs, up to {max(largest, default=0):.3g} in a table, may add up to {total:.3g}, which {plan.dtype} "
            f"cannot hold; {way}, and write forbidden ones as infinity"
        )


class _Integers:
    """Each table shifted to start at 0 (maximised costs negated first); one number says 'forbidden'."""

    def __init__(self, sense: Sense, limit: int) -> None:
        self._sense, self._limit = sense, limit
        self._sign = 1 if sense == "min-cost" else -1

    def _best(self, table: Table) -> int | None:
        return self._better(finite_range(table, self._sense))

    def _better(self, known: tuple[int, int] | None) -> int | None:
        return None if known is None else known[0] if self._sign == 1 else known[1]

    def _change(self, best: int) -> Change:
        limit, sign = self._limit, self._sign
        forbidden = forbidden_value(self._sense, np.int64)
        # Costs far apart may leave int64 on the way: differences are taken as unsigned words, where they are exact.
        start = np.uint64(best % 2**64)

        def shifted(values: Array) -> Array:
            words = values.view(np.uint64)
            distance = words - start if sign == 1 else start - words
            np.minimum(distance, np.uint64(limit), out=distance)
            distance[values == forbidden] = limit
            return distance.view(np.int64)

        return shifted

    def write(self, factor: FactorLayout, tables: Sequence[Table], view: Array) -> Part:
        bests = [self._best(table) for table in tables]
        pairs = zip(tables, bests, strict=True)
        sources = [_Source(table, factor, self._change(best or 0)) for table, best in pairs]

        def combine(one: Array, other: Array) -> Array:
            total: Array = np.minimum(one + other, self._limit)
            return total

        part = _write(view, sources, combine)
        return part._replace(offset=sum(best or 0 for best in bests), possible=None not in bests)

    def constants(self, problem: Problem, parts: Sequence[Part]) -> tuple[tuple[int | float, ...], bool]:
        bests = [self._best(problem.tables[c]) for c in problem.constants]
        total = int(problem.model.constant) + sum(part.offset for part in parts) + sum(best or 0 for best in bests)
        return (total,), None not in bests


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
        values, exponent = scaled(factor.astype(np.float64, copy=False))
        support = factor > 0
        self.exponent += exponent
        if self.values is not None and self.support is not None:
            values, support = self.values * values, self.support & support
        product, (values, exponent) = values, scaled(values)
        self.exact = self.exact and _is_normal(product, support) and _is_normal(values, support)
        self.values = values
        self.support = support
        self.exponent += exponent


def _is_normal(values: Array, support: NDArray[np.bool_]) -> bool:
    """Return whether all values of a support are in the normal range of their type."""
    return bool(values.min(where=support, initial=math.inf) >= np.finfo(values.dtype).tiny)


def scaled(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return values times a power of two that brings the largest one into [1, 2), and the exponent taken out."""
    high = float(values.max())
    exponent = math.frexp(high)[1] - 1 if high > 0 else 0
    return np.ldexp(values, -exponent) if exponent else values, exponent


class _Products:
    """Each factor scaled by a power of two, so that its largest value lies in [1, 2)."""

    def write(self, factor: FactorLayout, tables: Sequence[Table], view: Array) -> Part:
        sources = [_Source(table, factor, lambda values: values) for table in tables]
        exponent, exact = _store_product(sources, factor, view)
        return Part(exponent, _positive_range(factor, view), exact=exact)

    def constants(self, problem: Problem, parts: Sequence[Part]) -> tuple[tuple[int | float, ...], bool]:
        values = [float(problem.tables[c].values) for c in problem.constants]
        offset = sum(part.offset for part in parts)
        logs = (problem.model.constant / math.log(2), offset, *(math.log2(c) for c in values if c > 0))
        return logs, all(values) and problem.model.constant != -math.inf


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
        exact = exact and product.exact and _is_normal(view[box], product.support)
        if product.support.any():
            exponents[number] = product.exponent
    exponent = max(exponents.values(), default=0)
    for number, box in enumerate(blocks(factor.sizes)):
        shift = exponents.get(number, exponent) - exponent
        if shift:
            support = view[box] > 0
            np.ldexp(view[box], shift, out=view[box])
            exact = exact and _is_normal(view[box], support)
    return exponent, exact


def _positive_range(factor: FactorLayout, view: Array) -> tuple[float, float]:
    """The largest and the smallest positive value; zeros if there is none."""
    high, low = 0.0, math.inf
    for box in blocks(factor.sizes):
        values = view[box]
        high = max(high, float(values.max()))
        low = min(low, float(values.min(where=values > 0, initial=math.inf)))
    return high, low if high else 0.0


def group(tables: tuple[Table, ...]) -> tuple[Group, ...]:
    """Put each table into the smallest group whose scope contains its own."""
    by_scope: dict[frozenset[int], list[int]] = {}
    for number, table in enumerate(tables):
        if table.scope:
            by_scope.setdefault(frozenset(table.scope), []).append(number)
    touching: dict[int, list[frozenset[int]]] = {}
    result: dict[frozenset[int], list[int]] = {}
    for scope in sorted(by_scope, key=len, reverse=True):
        holders = [s for s in min((touching.get(v, []) for v in scope), key=len) if scope < s]
        if holders:
            smallest = min(holders, key=lambda s: tables[result[s][0]].cells)
            result[smallest].extend(by_scope[scope])
            continue
        result[scope] = by_scope[scope]
        for v in scope:
            touching.setdefault(v, []).append(scope)
    for members in result.values():
        members.sort(key=lambda number: (-len(tables[number].scope), number))
    return tuple(Group(tables[members[0]].scope, tuple(members)) for members in result.values())


def allowed_range(table: Table, sense: Sense) -> tuple[float, float] | None:
    """Smallest and largest cost that is not forbidden; None if every one is."""
    forbidden = forbidden_value(sense, table.values.dtype)
    known = [] if table.default in (None, forbidden) or len(table.values) == table.cells else [table.default]
    whole = table.values
    parts = [whole] if whole.size <= BLOCK_CELLS else (whole[box] for box in blocks(whole.shape))
    for values in parts if whole.size else ():
        low, high = values.min().item(), values.max().item()
        if forbidden in (low, high):
            allowed = values[values != forbidden]
            known += [allowed.min().item(), allowed.max().item()] if allowed.size else []
        else:
            known += [low, high]
    return (min(known), max(known)) if known else None


def finite_range(table: Table, sense: Sense) -> tuple[int, int] | None:
    """Smallest and largest integer cost that is not forbidden; None if every one is."""
    known = allowed_range(table, sense)
    return None if known is None else (int(known[0]), int(known[1]))
