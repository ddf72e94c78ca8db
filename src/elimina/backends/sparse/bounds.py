"""Bounds that filter tuples while sparse tables are joined."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import mini_buckets_of_cells
from elimina.backends.protocols import Backend
from elimina.backends.sparse.device import SparseDevice, SparseTable
from elimina.backends.sparse.operations import DenseLookup, TupleFilter
from elimina.planning.arrays import view_of
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import OutsideBounds, TablePlace
from elimina.planning.program import Program
from elimina.planning.sparse import CELLS
from elimina.planning.step import Operand


class TupleBounds:
    """Bounds that filter the tuples of a program, for its current factors.

    Args:
        host: CPU backend that computes the bounds.
        device: Device of the tuples that are filtered.
        program: The program on tuples, of the semiring ``min-sum`` over integers.
        outside: Plan of dense tables that bound the rest of the problem at each step.
        factors: The arena's first elements.
    """

    def __init__(
        self,
        host: Backend,
        device: SparseDevice,
        program: Program,
        outside: OutsideBounds,
        factors: NDArray[np.generic],
    ) -> None:
        self._device, self._outside, self._forbidden = device, outside, int(program.parameter)
        packed = Steps.packed(outside.steps)
        bounding = program._replace(
            words=packed.words, starts=packed.starts, arena_cells=outside.arena_cells, keep=True, decode=False,
            sparse=None, outputs=np.zeros((0, 3), dtype=np.int64),
            work=max(1, sum(step.work for step in outside.steps)),
        )  # fmt: skip
        session = host.open(bounding, factors)
        try:
            session.run()
            self._arena = np.array(session.fetch(0, outside.arena_cells))
        finally:
            session.close()
        self._trees = [sum(int(bound.cells) for bound in self._tables(tree)) for tree in outside.trees]

    @property
    def total(self) -> int:
        """A lower bound on the optimum, in the plan's units."""
        return sum(self._trees)

    def guard(
        self, number: int, joined: Sequence[tuple[Operand, SparseTable]], looked_up: Sequence[Operand]
    ) -> BoundFilters:
        """Return the filter of tuples for a step's output.

        Args:
            number: Number of the step.
            joined: Tables to join as tuples, with their roles in the step.
            looked_up: The step's other tables, each joined as soon as the tuples have all of its variables.
        """
        under = {id(rows): self._under(operand) for operand, rows in joined}
        dense = [bound for operand in looked_up for bound in self._under(operand)]
        others = sum(self._trees) - self._trees[self._outside.tree_of[number]]
        rest = self._tables(self._outside.others[number])
        return BoundFilters(self._device, self._forbidden, rest, under, dense, others)

    def _under(self, operand: Operand) -> list[DenseLookup]:
        if operand.source >= 0:
            return self._tables(self._outside.outputs[operand.source])
        return self._tables((self._outside.factors[operand.factor],))

    def _tables(self, table_places: Iterable[TablePlace]) -> list[DenseLookup]:
        return [
            DenseLookup(table.scope, view_of(self._arena, table.offset, table.sizes, table.strides))
            for table in table_places
        ]


class BoundFilters:
    """Filters of the tuples of one step, made while its tables are joined: see ``FilterOfScope``.

    Args:
        device: Device of the tuples.
        forbidden: Least total that is forbidden.
        rest: Tables that bound the factors outside the step; they have the tuples' dtype, and values from 0 to
            ``forbidden``.
        under: Lower bounds of each table to join, by the table's ``id``.
        dense: Bounds of dense tables, each of which is joined as soon as the tuples have all of its variables.
        others: Bound of all factors that are not connected to the step.
        cells: Largest number of cells of a table that bounds are joined to; None: ``CELLS``.
    """

    def __init__(
        self,
        device: SparseDevice,
        forbidden: int,
        rest: list[DenseLookup],
        under: dict[int, list[DenseLookup]],
        dense: list[DenseLookup],
        others: int,
        cells: int | None = None,
    ) -> None:
        self._device, self._forbidden, self._cells = device, forbidden, CELLS if cells is None else cells
        self._rest, self._under, self._dense, self._others = rest, under, dense, others

    def __call__(self, scope: frozenset[int], waiting: Sequence[SparseTable]) -> TupleFilter:
        """Return a filter for tuples over ``scope``, given the tables that are still to be joined."""
        tables = [*self._rest, *(bound for rows in waiting for bound in self._under[id(rows)])]
        tables += [bound for bound in self._dense if not scope.issuperset(bound.scope)]
        missing = set().union(*(bound.scope for bound in tables)).difference(scope)
        for variable in sorted(missing, key=lambda v: sum(v in bound.scope for bound in tables)):
            tables = self._without(tables, variable, scope)
        tables = [self._sum(mini_bucket) for mini_bucket in _mini_buckets(tables, self._cells)]
        spent = self._others + sum(int(bound.cells) for bound in tables if not bound.scope)
        lookups = [
            DenseLookup(bound.scope, self._device.upload(np.ascontiguousarray(bound.cells)))
            for bound in tables
            if bound.scope and bound.cells.any()
        ]
        # All negative budgets keep no tuple, so -1 stands for them: it fits the dtype.
        return TupleFilter(tuple(lookups), max(-1, self._forbidden - 1 - spent))

    def _without(self, tables: Sequence[DenseLookup], variable: int, scope: Collection[int]) -> list[DenseLookup]:
        result = [bound for bound in tables if variable not in bound.scope]
        # A table that is too large is first minimised over its unneeded variables.
        with_variable = [_shrunk(bound, variable, scope, self._cells) for bound in tables if variable in bound.scope]
        for mini_bucket in _mini_buckets(with_variable, self._cells):
            joined = self._sum(mini_bucket)
            axis = joined.scope.index(variable)
            result.append(DenseLookup(joined.scope[:axis] + joined.scope[axis + 1 :], joined.cells.min(axis=axis)))
        return result

    def _sum(self, tables: Sequence[DenseLookup]) -> DenseLookup:
        if len(tables) == 1:
            return tables[0]
        scope = tuple(dict.fromkeys(v for bound in tables for v in bound.scope))
        total: NDArray[Any] | None = None
        for bound in tables:
            axes = [bound.scope.index(v) for v in scope if v in bound.scope]
            shape = iter(bound.cells.transpose(axes).shape)
            cells = bound.cells.transpose(axes).reshape([next(shape) if v in bound.scope else 1 for v in scope])
            total = cells if total is None else np.minimum(total + cells, self._forbidden)
        assert total is not None
        return DenseLookup(scope, total)


def _shrunk(bound: DenseLookup, variable: int, scope: Collection[int], max_cells: int) -> DenseLookup:
    """Minimise a table over all variables except one and those of a scope, if it has too many cells."""
    if bound.cells.size <= max_cells:
        return bound
    eliminated_axes = [axis for axis, v in enumerate(bound.scope) if v != variable and v not in scope]
    remaining_scope = tuple(v for axis, v in enumerate(bound.scope) if axis not in eliminated_axes)
    return DenseLookup(remaining_scope, bound.cells.min(axis=tuple(eliminated_axes)))


def _mini_buckets(tables: Sequence[DenseLookup], max_cells: int) -> list[list[DenseLookup]]:
    """Partition tables into mini-buckets, each with at most a number of cells."""
    mini_buckets = mini_buckets_of_cells(
        [bound.scope for bound in tables], [bound.cells.shape for bound in tables], max_cells
    )
    return [[tables[number] for number in mini_bucket] for mini_bucket in mini_buckets]
