"""Joins and projections of sparse tables, on any device."""

from __future__ import annotations

import bisect
import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.sparse.device import JoinOrder, SparseDevice, SparseTable
from elimina.errors import InputError, MemoryLimitError
from elimina.planning.key_layout import KeyLayout, field_bits, signed
from elimina.problem.semirings import SEMIRINGS

UNLIMITED = 2**63 - 1

_JOINED_TUPLE_COST = 64.0
"""Approximate cost of making and sorting a joint tuple, in units of reading a tuple."""

_MAX_LOG_RUNS = 50.0
"""Natural logarithm of a number of runs that exceeds any number of tuples."""


class DenseLookup(NamedTuple):
    """A dense table to join tuples with: its scope, and an array with an axis for each variable of the scope."""

    scope: tuple[int, ...]
    cells: Any


class TupleFilter(NamedTuple):
    """Condition for keeping a tuple: its value joined with all bounds is not worse than the budget.

    Attributes:
        bounds: Least contribution of the rest of the problem, as dense tables. No cell may improve a total: for min-sum
            they are at least 0, for products at most 1.
        budget: The worst total that is kept.
    """

    bounds: tuple[DenseLookup, ...]
    budget: float


FilterOfScope = Callable[[frozenset[int], Sequence[SparseTable]], TupleFilter | None]
"""Function from a scope, and tables that are not yet joined, to the filter of tuples over the scope; None: keep all."""


class JoinResult(NamedTuple):
    """The result of a join or a projection.

    Attributes:
        rows: The table.
        candidates: Number of tuples considered.
    """

    rows: SparseTable
    candidates: int


class SparseTables:
    """Sparse tables of one semiring and dtype on one device.

    The join sum is that of CUBE (Bistaffa, Bombieri and Farinelli: 'An efficient approach for accelerating bucket
    elimination on GPUs', section V), with runs of the eliminated variable instead of stored joint tuples.

    Args:
        device: Device that computes.
    """

    def __init__(self, device: SparseDevice) -> None:
        self.device, self.dtype = device, device.dtype

    def from_dense(self, scope: Sequence[int], cells: Any) -> SparseTable:
        """Return the allowed tuples of a device's dense array; its last axis becomes the least significant variable."""
        layout = KeyLayout.of(scope, cells.shape)
        axes = _axes(layout, [math.prod(cells.shape[axis + 1 :]) for axis in range(cells.ndim)])
        sizes = np.array(cells.shape, dtype=np.int64)
        return SparseTable(layout, *self.device.from_dense(cells.reshape(-1), axes, sizes, layout.words))

    def from_rows(
        self, scope: Sequence[int], sizes: Sequence[int], rows: NDArray[Any], values: NDArray[Any]
    ) -> SparseTable:
        """Pack assignments, in any order, each at most once.

        Args:
            scope: Variables of the table.
            sizes: Domain sizes of these variables.
            rows: Integers of shape (tuples, variables), value indices.
            values: Feasible values, shape (tuples,).
        """
        layout = KeyLayout.of(scope, sizes)
        keys = np.zeros((len(values), layout.words), dtype=np.uint64)
        for axis, (word, shift) in enumerate(layout.fields):
            keys[:, word] |= rows[:, axis].astype(np.uint64) << np.uint64(shift)
        device = self.device
        return self._sorted(layout, device.upload(keys), device.upload(np.ascontiguousarray(values, dtype=self.dtype)))

    def to_dense(self, rows: SparseTable, scope: Sequence[int]) -> Any:
        """Return a dense array of the device with an axis for each variable; cells without a tuple are the zero."""
        sizes = [rows.layout.size(v) for v in scope]
        strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        return self.device.to_dense(rows, rows.layout.terms(scope, strides), math.prod(sizes)).reshape(sizes)

    def arrange(self, rows: SparseTable, layout: KeyLayout) -> SparseTable:
        """Return the tuples in another layout, sorted. Variables that only the new layout has get zero bits."""
        if layout == rows.layout:
            return rows
        keys = self.device.move(rows.keys, rows.layout.segments(layout), layout.words)
        return self._sorted(layout, keys, rows.values)

    def lookup(self, rows: SparseTable, tables: Sequence[DenseLookup], keep: TupleFilter | None = None) -> JoinResult:
        """Join with dense tables over variables of the tuples, and drop tuples that the filter does not keep."""
        layout = rows.layout
        unit_value = SEMIRINGS[self.device.semiring].one_of(self.dtype)
        unit = SparseTable(
            layout,
            self.device.upload(np.zeros((1, layout.words), dtype=np.uint64)),
            self.device.upload(np.array([unit_value], dtype=self.dtype)),
        )
        order = JoinOrder(layout.mask(()), 0, False, UNLIMITED)
        return self._join(rows, unit, order, tables, keep)

    def find(self, rows: SparseTable, values: Mapping[int, int]) -> int | None:
        """Return the index of the tuple with these values; None if it is not listed."""
        layout, key = rows.layout, [0] * rows.layout.words
        for v, (word, shift) in zip(layout.scope, layout.fields, strict=True):
            key[word] |= values[v] << shift

        def key_at(number: int) -> list[int]:
            words: list[int] = self.device.download(rows.keys[number : number + 1])[0].tolist()
            return words

        at = bisect.bisect_left(range(len(rows.values)), key, key=key_at)
        return at if at < len(rows.values) and key_at(at) == key else None

    def project(self, rows: SparseTable, variable: int) -> JoinResult:
        """Eliminate a variable of one table."""
        rows = self.arrange(rows, _with_last(rows.layout, variable)) if rows.layout.scope[-1] != variable else rows
        if rows.layout.fields[-1] != (rows.layout.words - 1, 0):
            rows = self.arrange(rows, KeyLayout.of(rows.layout.scope, rows.layout.sizes))
        keys, values = self.device.project(rows, rows.layout.low())
        return JoinResult(SparseTable(rows.layout.without_last(), keys, values), len(rows.values))

    def semi_join(self, lhs: SparseTable, rhs: SparseTable) -> SparseTable:
        """Return the left table's tuples that match one of the right table.

        The order of the left table's variables may change.
        """
        layout = join_layout(lhs, rhs, None)
        shared = [v for v in lhs.layout.scope if v in rhs.layout.scope]
        lhs_axes = tuple(at for at, v in enumerate(layout.scope) if v in lhs.layout.scope)
        lhs, rhs = self.arrange(lhs, layout), self.arrange(rhs, layout)
        keys, values = self.device.semi_join(lhs, rhs.keys, layout.mask(shared))
        return SparseTable(_sublayout(layout, lhs_axes), keys, values)

    def join(
        self,
        lhs: SparseTable,
        rhs: SparseTable,
        *,
        eliminate: int | None = None,
        last: int | None = None,
        tables: Sequence[DenseLookup] = (),
        keep: TupleFilter | None = None,
        max_tuples: int = UNLIMITED,
    ) -> JoinResult:
        """Join two tables over the union of their scopes, and eliminate a variable.

        Args:
            lhs: Table in any layout.
            rhs: Table in any layout, over the same domain sizes.
            eliminate: Variable to eliminate; None for none. If both tables have it, the joined table is not stored,
                unless few joint tuples are expected.
            last: Least significant variable of the result, in both tables: a later join can eliminate it. Implied by
                ``eliminate``.
            tables: Dense tables over variables of the union that are joined too.
            keep: Filter that drops tuples of the joint table before anything is eliminated; None: all are kept.
            max_tuples: Largest number of tuples of the result.

        Raises:
            MemoryLimitError: The result has more than ``max_tuples`` tuples.
            UnsupportedError: The union does not fit a key.
        """
        variable = last if eliminate is None else eliminate
        common = variable if variable in lhs.layout.scope and variable in rhs.layout.scope else None

        def join_by(low: int | None) -> JoinResult:
            layout = join_layout(lhs, rhs, low)
            shared = [v for v in lhs.layout.scope if v in rhs.layout.scope and v != low]
            lhs_arranged, rhs_arranged = self.arrange(lhs, layout), self.arrange(rhs, layout)
            fused = low is not None and eliminate is not None
            order = JoinOrder(layout.mask(shared), 0 if low is None else layout.low(), fused, max_tuples)
            result = self._join(lhs_arranged, rhs_arranged, order, tables, keep)
            if eliminate is None and common is not None and low is None:
                return result._replace(rows=self.arrange(result.rows, _with_last(result.rows.layout, common)))
            if eliminate is None or fused:
                return result
            return self.project(result.rows, eliminate)._replace(candidates=result.candidates)

        if common is not None and _is_scattered(lhs, rhs, common):
            # If the joint table has too many tuples, the variable is eliminated during the join instead.
            with contextlib.suppress(MemoryLimitError):
                return join_by(None)
        return join_by(common)

    def join_all(
        self,
        inputs: Sequence[SparseTable],
        *,
        eliminate: int | None = None,
        tables: Sequence[DenseLookup] = (),
        guard: FilterOfScope = lambda *_: None,
        max_tuples: int = UNLIMITED,
    ) -> JoinResult:
        """Join one or more tables, such as those of a bucket, and eliminate a variable in the last join.

        The largest table comes first, after its tuples without a match in another table have been removed. The next
        table is always the one that adds the fewest bits to the tuples. A dense table is joined as soon as the tuples
        have its variables.

        Args:
            inputs: Tables in any layouts.
            eliminate: Variable to eliminate; None for none.
            tables: Dense tables over variables of the union that are joined too.
            guard: Function that returns the filter of each joint table's tuples, before anything is eliminated.
            max_tuples: Largest number of tuples of any table that is made.

        Raises:
            InputError: There is no table.
            MemoryLimitError: A table would have more than ``max_tuples`` tuples.
            UnsupportedError: A union does not fit a key.
        """
        if not inputs:
            raise InputError("there is no sparse table to join: give at least one")
        waiting, dense, candidates = list(inputs), list(tables), 0
        rows = waiting.pop(max(range(len(waiting)), key=lambda at: len(waiting[at].values)))
        for next_input in waiting[: len(waiting) if len(waiting) > 1 else 0]:
            # Tables that add no bits are joined before the tuples grow, and need no semi-join.
            if _added_bits(rows, next_input) and not set(rows.layout.scope).isdisjoint(next_input.layout.scope):
                rows = self.semi_join(rows, next_input)
        while waiting:
            at = min(range(len(waiting)), key=lambda at: (_added_bits(rows, waiting[at]), -len(waiting[at].values)))
            next_input = waiting.pop(at)
            scope = frozenset((*rows.layout.scope, *next_input.layout.scope))
            keep = guard(scope, waiting)
            if not waiting:
                options: dict[str, Any] = {"eliminate": eliminate, "keep": keep, "max_tuples": max_tuples}
                result = self.join(rows, next_input, tables=dense, **options)
                return result._replace(candidates=candidates + result.candidates)
            complete = [table for table in dense if scope.issuperset(table.scope)]
            dense = [table for table in dense if not scope.issuperset(table.scope)]
            result = self.join(rows, next_input, last=eliminate, tables=complete, keep=keep, max_tuples=max_tuples)
            rows, candidates = result.rows, candidates + result.candidates
        keep = guard(frozenset(rows.layout.scope), ())
        result = self.lookup(rows, dense, keep) if dense or keep is not None else JoinResult(rows, len(rows.values))
        if eliminate is None:
            return result
        return self.project(result.rows, eliminate)._replace(candidates=result.candidates)

    def _join(
        self,
        lhs: SparseTable,
        rhs: SparseTable,
        order: JoinOrder,
        tables: Sequence[DenseLookup],
        keep: TupleFilter | None,
    ) -> JoinResult:
        layout = lhs.layout
        bounds = keep.bounds if keep is not None else ()
        words = [len(tables), len(bounds) if keep is not None else -1]
        for table in (*tables, *bounds):
            if table.cells.dtype != self.dtype or not table.cells.flags.c_contiguous:
                raise InputError(
                    f"the dense table over {table.scope} is {table.cells.dtype}, it must be contiguous {self.dtype}"
                )
            strides = [math.prod(table.cells.shape[axis + 1 :]) for axis in range(len(table.scope))]
            terms = layout.terms(table.scope, strides)
            words += [self.device.address(table.cells), len(terms), *terms.reshape(-1).tolist()]
        stage = np.array(words, dtype=np.int64)
        budget = keep.budget if keep is not None else 0
        if self.dtype.kind == "i":
            budget = min(math.floor(min(budget, 2.0**62)), int(self.device.parameter) - 1)
        keys, values, candidates = self.device.join(lhs, rhs, order, stage, budget)
        result_layout = layout.without_last() if order.eliminate else layout
        return JoinResult(SparseTable(result_layout, keys, values), candidates)

    def _sorted(self, layout: KeyLayout, keys: Any, values: Any) -> SparseTable:
        if not self.device.is_sorted(keys):
            keys, values = self.device.sort(keys, values)
        return SparseTable(layout, keys, values)


def _is_scattered(lhs: SparseTable, rhs: SparseTable, variable: int) -> bool:
    """Return whether a join should match a shared variable as it matches the others, instead of pairing runs over it.

    A run has the tuples that differ in this variable alone. Matching makes and sorts every joint tuple. Pairing reads
    each pair of matching runs to its end. The expected costs are compared as if the tables were independent.
    """
    shared = [v for v in lhs.layout.scope if v in rhs.layout.scope]
    joint = math.log(max(1, len(lhs.values))) + math.log(max(1, len(rhs.values)))
    joint -= sum(math.log(lhs.layout.size(v)) for v in shared)
    groups = sum(math.log(lhs.layout.size(v)) for v in shared if v != variable)
    read_tuples = _expected_runs(lhs, variable) * len(rhs.values) + _expected_runs(rhs, variable) * len(lhs.values)
    return math.log(_JOINED_TUPLE_COST) + joint < math.log(max(1.0, read_tuples)) - groups


def _expected_runs(rows: SparseTable, variable: int) -> float:
    """Return the expected number of runs over a variable: sets of tuples that differ in it alone."""
    fields = zip(rows.layout.scope, rows.layout.sizes, strict=True)
    logarithm = sum(math.log(size) for v, size in fields if v != variable)
    if logarithm > _MAX_LOG_RUNS:
        return float(len(rows.values))
    runs = math.exp(logarithm)
    return -runs * math.expm1(-len(rows.values) / runs)


def join_layout(lhs: SparseTable, rhs: SparseTable, last: int | None) -> KeyLayout:
    """Return the layout of a join: shared variables, those of the left table only, of the right only, and ``last``.

    Each of these groups keeps the order of the larger table, so that the larger table seldom needs sorting.
    """
    sizes = dict(zip(lhs.layout.scope + rhs.layout.scope, lhs.layout.sizes + rhs.layout.sizes, strict=True))
    larger, smaller = (lhs, rhs) if len(lhs.values) >= len(rhs.values) else (rhs, lhs)
    shared = [v for v in larger.layout.scope if v in smaller.layout.scope and v != last]
    unshared = [v for table in (lhs, rhs) for v in table.layout.scope if v not in shared and v != last]
    scope = (*shared, *unshared, *(() if last is None else (last,)))
    return KeyLayout.of(scope, [sizes[v] for v in scope])


def _added_bits(rows: SparseTable, table: SparseTable) -> int:
    fields = zip(table.layout.scope, table.layout.sizes, strict=True)
    return sum(field_bits(size) for v, size in fields if v not in rows.layout.scope)


def _with_last(layout: KeyLayout, variable: int) -> KeyLayout:
    scope = (*(v for v in layout.scope if v != variable), variable)
    return KeyLayout.of(scope, [layout.size(v) for v in scope])


def _sublayout(layout: KeyLayout, at: tuple[int, ...]) -> KeyLayout:
    scope, sizes = tuple(layout.scope[n] for n in at), tuple(layout.sizes[n] for n in at)
    return KeyLayout(scope, sizes, tuple(layout.fields[n] for n in at), layout.words)


def _axes(layout: KeyLayout, strides: Sequence[int]) -> NDArray[np.int64]:
    axes = [
        [word, shift, signed((1 << field_bits(size)) - 1), stride]
        for (word, shift), size, stride in zip(layout.fields, layout.sizes, strides, strict=True)
    ]
    return np.array(axes, dtype=np.int64).reshape(-1, 4)
