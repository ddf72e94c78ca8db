"""Encoding of a model's values in a plan's semiring, written to the factors' part of an arena.

The core reads tables in blocks, so it needs little memory in addition to the arena, even for large tables (for sparse
tables, 16 bytes per listed tuple). The time and memory for a listed factor are proportional to its number of tuples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import EncodedFactors, TableList, rows_sort, rows_sorted
from elimina.model import table as tables_of_models
from elimina.model.table import Ends, Sense, Table, cell_numbers
from elimina.planning.arrays import view_of
from elimina.planning.key_layout import KeyLayout, field_bits
from elimina.planning.listed_tables import listing_table, section
from elimina.planning.number_type import contents_of
from elimina.planning.packed_steps import Factors
from elimina.planning.plan import Plan
from elimina.planning.step import FactorLayout
from elimina.problem.preparation import Problem, allowed_ranges
from elimina.problem.semirings import FLOATS, INTEGERS, SEMIRINGS, Rule, Semiring, floats_of
from elimina.running.rounding import check_sum, check_values
from elimina.running.scaled import ScaledNumber

Array = NDArray[Any]


class Encoded(NamedTuple):
    """Encoded factors.

    Attributes:
        arena: The first ``plan.factor_cells`` elements.
        constants: Numbers whose sum is added to the arena's optimum (of costs, in the model's direction, or of
            logarithms) or, in ``sum-product``, to the base-2 logarithm of the arena's sum.
        ranges: float64 of shape (factors, 2): largest and smallest positive value of each table (``sum-product``).
        impossible: True if the tables show before a run that no assignment is allowed: the model's constant or a factor
            without free variables is forbidden (has probability 0), a table of integer costs has no allowed value, or a
            table of a listed factor allows none of the factor's tuples.
        exact: False if a product of positive numbers left the normal range while factors were joined, so that any
            positive number of the arena may be wrong. True: each number has at most one rounding error per table.
        factor: Factor by which the arena's sum is multiplied (``sum-product``). The constants are its rounded
            logarithm.
    """

    arena: Array
    constants: tuple[int | float, ...]
    ranges: NDArray[np.float64]
    impossible: bool
    exact: bool
    factor: ScaledNumber = ScaledNumber(1.0, 0)

    @property
    def offset(self) -> int | float:
        """Sum of the constants; exact for integers."""
        return self.constants[0] if len(self.constants) == 1 else math.fsum(self.constants)


class Encoder:
    """An encoder that writes a problem's factors to an arena, and rewrites some of them when tables change.

    The best value of each table is subtracted from costs and logarithms. All differences then have the same sign, so
    the relative rounding error of their sums is small, even if the original values would cancel each other.

    Args:
        problem: Problem to encode.
        plan: Plan with the positions of the factors.
        semiring: Semiring of the encoding, with the same dtype and layout; None: the plan's.
        whole: The problem of all slices, if ``problem`` is a slice.
        threads: Number of threads that write large or many factors; the numbers do not depend on it.

    Attributes:
        arena: The first ``plan.factor_cells`` elements.

    Raises:
        InputError: Costs are so large that they or their sum may exceed the range of the plan's dtype.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        semiring: str | None = None,
        whole: Problem | None = None,
        *,
        threads: int = 1,
    ) -> None:
        self._threads = threads
        self._sense = problem.model.sense
        self._ring = SEMIRINGS[semiring or plan.semiring]
        self._rule = self._ring.encoding
        if self._rule == "distances" and plan.dtype in FLOATS:
            check_sum((whole or problem).model, (whole or problem).tables, plan.dtype)
        elif self._rule == "costs" and plan.dtype in FLOATS:
            check_values((whole or problem).tables, self._sense, plan.dtype)
        self._limit = int(plan.forbidden) if plan.dtype in INTEGERS else 0
        self._factors = Factors.packed(plan.factors)
        self._tables, self._listed = problem.tables, problem.tables.listed
        self._changed: dict[int, Table] = {}
        self._lists = {} if plan.sparse is None else _lists(plan.factors)
        # Smallest and largest allowed value of each table of a listed factor, at the factor's tuples.
        self._ends_of_lists: dict[int, tuple[float, float] | None] = {}
        self.arena: Array = np.zeros(plan.factor_cells, dtype=plan.dtype)
        self._ranges, self._exponents, self._exact = self._write(None)

    def replace(self, changed: Mapping[int, Table], numbers: Sequence[int]) -> None:
        """Replace some tables by tables of the same scopes, and rewrite the factors with the given numbers."""
        if self._listed is self._tables.listed:
            self._listed = TableList(self._tables)
        for number, table in changed.items():
            self._listed.replace(number, table)
        self._changed.update(changed)
        ranges, exponents, exact = self._write(np.array(numbers, dtype=np.int64))
        if self._rule == "products":
            rows = list(numbers)
            self._ranges[rows], self._exponents[rows], self._exact[rows] = ranges, exponents, exact

    def _write(self, numbers: NDArray[np.int64] | None) -> tuple[Array, Array, Array]:
        if not self._lists:
            encoded = self._write_dense(numbers)
            return encoded.ranges, encoded.exponents, encoded.exact
        chosen = np.arange(len(self._factors)) if numbers is None else numbers
        is_listed = np.isin(chosen, list(self._lists))
        dense = chosen[~is_listed]
        encoded = self._write_dense(dense)
        ranges, exponents, exact = (
            np.zeros((len(chosen), 2)),
            np.zeros(len(chosen), np.int64),
            np.ones(len(chosen), bool),
        )
        if self._rule == "products":
            ranges[~is_listed], exponents[~is_listed] = encoded.ranges, encoded.exponents
            exact[~is_listed] = encoded.exact
        for position in np.flatnonzero(is_listed).tolist():
            ranges[position], exponents[position], exact[position] = self._write_list(int(chosen[position]))
        return ranges, exponents, exact

    def _write_dense(self, numbers: NDArray[np.int64] | None) -> EncodedFactors:
        return write_factors(
            self._listed, self._sense, self._rule, self._limit, self._factors, self.arena, numbers, self._threads
        )

    def _write_list(self, number: int) -> tuple[Array, int, bool]:
        """Write a listed factor; return the same results as ``write_factors`` for one factor."""
        factor = self._lists[number]
        tables = [self._changed.get(member, self._tables[member]) for member in factor.members]
        written = write_listed(factor, tables, self._sense, self._ring, self._limit, self.arena)
        self._ends_of_lists.update(zip(factor.members, written.ends, strict=True))
        return written.range, written.exponent, written.is_exact

    def encoded(self, problem: Problem) -> Encoded:
        """Return a summary of the written factors.

        Args:
            problem: The problem with the tables that were written last.
        """
        constant, constants = problem.model.constant, [problem.tables[c] for c in problem.constants]
        possible = constant > -math.inf and None not in self._ends_of_lists.values()
        ranges = np.zeros((len(self._factors), 2))
        if self._rule == "products":
            values = [float(table.values) for table in constants]
            exponent = int(self._exponents.sum())
            logs = constant / math.log(2), exponent, *(math.log2(v) for v in values if v > 0)
            possible, exact = possible and all(values), bool(self._exact.all())
            factor = ScaledNumber.product(values, exponent).times(ScaledNumber.from_log2(constant / math.log(2)))
            return Encoded(self.arena, logs, self._ranges.copy(), not possible, exact, factor)
        if self._rule == "support":
            allowed = allowed_ranges(constants, self._sense)
            return Encoded(self.arena, (0,), ranges, not possible or None in allowed, True)
        ends, is_integer = self._ends(), self.arena.dtype.kind == "i"
        # Encoded integers do not show whether a table has an allowed value: they are distances from its best value.
        possible = possible and bool((ends.kinds if is_integer else ends.kinds[list(problem.constants)]).all())
        numbers = self._ring.constants(contents_of(problem, is_integer, ends))
        return Encoded(self.arena, numbers, ranges, not possible, True)

    def _ends(self) -> Ends:
        """Return the smallest and the largest allowed value of each table; for listed factors, at their tuples only."""
        ends = Ends.of(self._listed, self._sense)
        for number, range_ in self._ends_of_lists.items():
            ends.kinds[number] = 0 if range_ is None else 1 if isinstance(range_[0], int) else 2
            if range_ is not None:
                (ends.integers if isinstance(range_[0], int) else ends.floats)[number] = range_
        return ends


def write_factors(
    tables: TableList,
    sense: Sense,
    rule: Rule,
    limit: int,
    factors: Factors,
    arena: Array,
    numbers: NDArray[np.int64] | None = None,
    threads: int = 1,
) -> EncodedFactors:
    """Write factors to an arena.

    Args:
        tables: Tables to which the indices in the factors' members refer.
        sense: Sense of the tables.
        rule: Encoding of their values.
        limit: Number for forbidden costs, above all others (``distances`` of integers).
        factors: Positions of the factors.
        arena: Arena to write to.
        numbers: Numbers of the factors to write; None: all.
        threads: Number of threads.

    Returns:
        Figures of the written factors, for ``products``.
    """
    return tables.encode(
        sense,
        rule,
        limit,
        factors.member_starts,
        factors.members,
        factors.starts,
        factors.scopes,
        factors.sizes,
        factors.strides,
        factors.offsets,
        numbers,
        arena,
        tables_of_models.BLOCK_CELLS,
        threads,
    )


def _lists(factors: Sequence[FactorLayout]) -> dict[int, FactorLayout]:
    """Return the listed factors by their numbers."""
    return {number: factor for number, factor in enumerate(factors) if factor.tuples is not None}


def encode(problem: Problem, plan: Plan, semiring: str | None = None, threads: int = 1) -> Encoded:
    """Return a problem's factors, encoded for the plan's semiring or for another one over the same dtype and layout.

    Args:
        problem: Problem to encode.
        plan: Plan with the positions of the factors.
        semiring: Semiring of the encoding; None: the plan's.
        threads: See ``Encoder``.

    Raises:
        InputError: Costs are so large that they or their sum may exceed the range of the plan's dtype.
    """
    return Encoder(problem, plan, semiring, threads=threads).encoded(problem)


class CostDistances(NamedTuple):
    """A problem of the task ``mpe`` as costs to minimise.

    Attributes:
        costs: Sums of distances for each cell of the problem's groups, one group after another. Distances are from the
            best value of each table; int64, or float64 with infinity for 'forbidden'.
        offset: Total if all distances are 0, negated if totals are maximised.
        possible: False if no assignment is allowed because of the constant, a single table, or (for float costs) the
            tables of a single group.
    """

    costs: Array
    offset: int | float
    possible: bool


def distances(problem: Problem, forbidden: int) -> CostDistances:
    """Join the tables of each group of a problem to one table of costs.

    Args:
        problem: Problem of the task ``mpe``.
        forbidden: Number for forbidden integer costs, above all allowed distances.

    Raises:
        InputError: Costs are so large that their sum may exceed the range of float64.
    """
    model, tables = problem.model, problem.tables.listed
    factors = Factors.side_by_side(problem.groups, model.sizes)
    limit = forbidden if model.is_integer else None
    if limit is None:
        check_sum(model, problem.tables, "float64")
    costs: Array = np.empty(int(factors.spans.sum()), dtype=np.float64 if limit is None else np.int64)
    write_factors(tables, model.sense, "distances", limit or 0, factors, costs)
    offset, are_allowed = _offset(tables, model.sense, limit, model.constant)
    possible = model.constant > -math.inf and bool(are_allowed.all())
    if limit is None and possible and len(factors):
        # The tables of a group may contradict each other, even if each of them has allowed values.
        possible = bool(np.logical_or.reduceat(np.isfinite(costs), factors.offsets).all())
    return CostDistances(costs, offset, possible)


def distances_of(
    tables: TableList, scope: tuple[int, ...], sizes: tuple[int, ...], sense: Sense, forbidden: int | None
) -> CostDistances:
    """Join tables to one table of the sums of distances from each table's best value.

    Args:
        tables: Tables whose scopes are within ``scope``; all of them have integers if ``forbidden`` is a number.
        scope: Scope of the joined table.
        sizes: Domain sizes of its variables.
        sense: Sense of the tables.
        forbidden: Number for forbidden integer costs, above all allowed distances. None: costs are floats.
    """
    costs: Array = np.empty(math.prod(sizes), dtype=np.float64 if forbidden is None else np.int64)
    tables.join(sense, "distances", forbidden or 0, scope, sizes, costs, tables_of_models.BLOCK_CELLS)
    offset, are_allowed = _offset(tables, sense, forbidden)
    return CostDistances(costs, offset, bool(np.isfinite(costs).any() if forbidden is None else are_allowed.all()))


def tables_of(problem: Problem, costs: Array) -> list[Array]:
    """Return the table of each group from the cells of all groups, one group after another."""
    sizes = problem.model.sizes
    shapes = [tuple([sizes[v] for v in group.scope]) for group in problem.groups]
    ends = itertools.accumulate(map(math.prod, shapes), initial=0)
    return [
        costs[start:end].reshape(shape) for (start, end), shape in zip(itertools.pairwise(ends), shapes, strict=True)
    ]


def largest_of(problem: Problem, costs: Array) -> list[int | float]:
    """Return the largest cost of each group from the cells of all groups, one group after another."""
    cells = problem.groups.cells(problem.model.size_array).astype(np.int64)
    largest: list[int | float] = np.maximum.reduceat(costs, np.cumsum(cells) - cells).tolist() if len(cells) else []
    return largest


def _offset(
    tables: TableList, sense: Sense, forbidden: int | None, constant: float = 0
) -> tuple[int | float, NDArray[np.bool_]]:
    """Return the constant plus the sum of the tables' best values, and a mask of the tables with an allowed value.

    Probabilities are replaced by their logarithms. The sum is negated if totals are maximised.
    """
    sign, is_highest = (1, False) if sense == "min-cost" else (-1, True)
    ends = Ends.of(tables, sense)
    are_allowed = ends.kinds > 0
    if forbidden is not None:
        return sign * (int(constant) + ends.total(highest=is_highest)), are_allowed
    bests = ends.numbers(highest=is_highest)
    values: Iterable[float] = map(math.log, bests) if sense == "probability" else bests
    if (ends.kinds == 1).any():
        values = itertools.chain.from_iterable(map(floats_of, values))
    # Adding 0 turns a negative zero into 0.
    return 0.0 + sign * math.fsum([*floats_of(constant), *values]), are_allowed


def factor_view(arena: Array, factor: FactorLayout) -> Array:
    """Return a view of a factor in the arena with the factor's axes; writing to it changes the arena."""
    return view_of(arena, factor.offset, factor.sizes, factor.strides)


def scaled(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return values divided by a power of two, the largest then in [1, 2), and its exponent (0 if all values are 0)."""
    high = float(values.max())
    exponent = math.frexp(high)[1] - 1 if high > 0 else 0
    return np.ldexp(values, -exponent) if exponent else values, exponent


class ListedFactor(NamedTuple):
    """Properties of a listed factor after it was written.

    Attributes:
        ends: Smallest and largest allowed value of each table at the tuples; None for a table without allowed tuples.
        range: Largest and smallest positive value (``products``).
        exponent: Exponent of the power of two by which values were divided (``products``).
        is_exact: True if no positive product left the normal range (``products``).
    """

    ends: list[tuple[float, float] | None]
    range: Array
    exponent: int
    is_exact: bool


def write_listed(
    factor: FactorLayout, tables: Sequence[Table], sense: Sense, ring: Semiring, limit: int, arena: Array
) -> ListedFactor:
    """Write the join of tables to the position of a listed factor.

    Args:
        factor: Layout of the factor.
        tables: Tables whose scopes are within the factor's; one of them lists the factor's tuples.
        sense: Sense of the tables.
        ring: Semiring of the numbers.
        limit: See ``write_factors``.
        arena: Arena of the factor.
    """
    listed_section = section(arena, factor)
    table = listing_table(tables, factor.scope, sense)
    assert table is not None
    assert table.rows is not None
    if not len(table.rows):
        listed_section.write(listed_section.keys[:0], listed_section.values[:0])
        return ListedFactor([None] * len(tables), np.zeros(2), 0, True)
    values: Array = np.empty(len(table.rows), dtype=arena.dtype)
    # Tuples are represented as values of a single variable, so that the dense encoder can join the tables.
    line = FactorLayout(tuple(range(len(tables))), (0,), (len(values),), (1,), 0, len(values))
    values_of_tuples = TableList([Table((0,), _read_values(member, table.scope, table.rows)) for member in tables])
    encoded = write_factors(values_of_tuples, sense, ring.encoding, limit, Factors.packed([line]), values)
    is_allowed = values != ring.zero_of(values.dtype, limit)
    keys = _keys(listed_section.layout, table.scope, table.rows[is_allowed])
    listed_section.write(*_sorted(keys, values[is_allowed]))
    ends = values_of_tuples.ends(sense)
    if ring.encoding != "products":
        return ListedFactor(ends, np.zeros(2), 0, True)
    return ListedFactor(ends, encoded.ranges[0], int(encoded.exponents[0]), bool(encoded.exact[0]))


class ListedValues:
    """Values of a listed factor that can be changed in place.

    Args:
        arena: Arena of the factor.
        factor: Layout of the factor.

    Attributes:
        values: Value of each of the factor's tuples.
    """

    def __init__(self, arena: Array, factor: FactorLayout) -> None:
        self._section = section(arena, factor)
        self._keys, self.values = self._section.read()

    def at(self, variable: int, weights: Array) -> Array:
        """Return, for each tuple, the weight of the value that the variable has in the tuple."""
        layout = self._section.layout
        at = layout.scope.index(variable)
        word, shift = layout.fields[at]
        field = np.uint64((1 << field_bits(layout.sizes[at])) - 1)
        weights_of_tuples: Array = weights[(self._keys[:, word] >> np.uint64(shift) & field).astype(np.int64)]
        return weights_of_tuples

    def drop(self, zero: float) -> None:
        """Drop the tuples whose values have become ``zero``."""
        is_left = self.values != zero
        self._section.write(self._keys[is_left], self.values[is_left])


def _read_values(table: Table, scope: Sequence[int], rows: NDArray[np.int32]) -> Array:
    """Return a table's values at assignments of a scope, which contains the table's scope."""
    axes = [scope.index(v) for v in table.scope]
    if table.rows is None:
        values_at_rows: Array = table.values[tuple(rows[:, axis] for axis in axes)]
        return values_at_rows
    if table.rows is rows:
        return table.values
    listed = cell_numbers(table.rows, table.sizes, range(len(axes)))
    order = np.argsort(listed, kind="stable")
    listed = listed[order]
    wanted = cell_numbers(rows[:, axes], table.sizes, range(len(axes)))
    values = np.full(len(rows), table.default, dtype=table.values.dtype)
    positions = np.searchsorted(listed, wanted)
    hits = np.flatnonzero(positions < len(listed))
    hits = hits[listed[positions[hits]] == wanted[hits]]
    values[hits] = table.values[order[positions[hits]]]
    return values


def _keys(layout: KeyLayout, scope: Sequence[int], rows: NDArray[np.int32]) -> NDArray[np.uint64]:
    keys = np.zeros((len(rows), layout.words), dtype=np.uint64)
    for v, (word, shift) in zip(layout.scope, layout.fields, strict=True):
        keys[:, word] |= rows[:, scope.index(v)].astype(np.uint64) << np.uint64(shift)
    return keys


def _sorted(keys: NDArray[np.uint64], values: Array) -> tuple[NDArray[np.uint64], Array]:
    if rows_sorted(keys, 1):
        return keys, values
    rows = rows_sort(keys, values, 1)
    return rows.keys, rows.values
