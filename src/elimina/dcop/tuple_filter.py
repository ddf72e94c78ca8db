"""Filtering of UTIL messages: tables within an i-bound, then exact tables of the tuples that may be optimal.

The first phase computes bounds: a lower bound on the cost of each variable's subtree (ADPOP), an upper bound from an
assignment, and, on the way down, a lower bound on the cost outside the subtree (mini-bucket tree elimination:
R. Mateescu, R. Dechter, K. Kask, AAAI 2002). The second phase sends exact tables as lists of tuples, without those
that cannot be part of a better assignment (function filtering: M. Sanchez, J. Larrosa, P. Meseguer, IJCAI 2005; for
DPOP: I. Brito and P. Meseguer, "Improving DPOP with function filtering", AAMAS 2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.sparse.bounds import BoundFilters
from elimina.backends.sparse.device import SparseTable
from elimina.backends.sparse.operations import DenseLookup, SparseTables
from elimina.dcop.dpop import Bucket
from elimina.dcop.engine import Engine, row
from elimina.dcop.problem import Cost, CostsError, Limit, Listed, Send, Utility, Value
from elimina.errors import MemoryLimitError
from elimina.number_texts import bytes_text, counted
from elimina.option_names import option
from elimina.planning.key_layout import KeyLayout

_BYTES_OF_A_ROW = 48
"""Bytes of memory for each row while it is made, including the rows that it is made from."""

_WIDEST = {"int32": 1 << 29, "int64": 1 << 61}
"""Largest number for 'forbidden' in each type."""


_NOTHING = SparseTable(KeyLayout.of((), ()), np.zeros((0, 1), dtype=np.uint64), np.zeros(0, dtype=np.int32))


class _Scale(NamedTuple):
    """Scale of the costs in messages; costs of ``forbidden`` or more cannot be part of a better solution."""

    forbidden: int
    dtype: str

    @staticmethod
    def of(limit: Limit, best: int, spread: int, variable: int) -> _Scale | None:
        """Return the scale of costs above ``best`` up to a spread; None if there is no better solution."""
        largest = spread if limit.worst is None else min(spread, limit.worst - 1 - best)
        if largest < 0:
            return None
        for dtype, widest in _WIDEST.items():
            if largest < widest:
                return _Scale(largest + 1, dtype)
        problem = (
            f"are up to {spread} apart, more than 64-bit integers can hold; scale them down, or leave out "
            f"{option('filtering')}"
        )
        raise CostsError("the subtree of variable", variable, problem)

    def scaled(self, cells: Any, forbidden: int | float) -> NDArray[Any]:
        """Return the cells in this scale; cells of ``forbidden`` or more become its forbidden value."""
        values = np.asarray(cells)
        wide = np.where(values < forbidden, values, np.int64(self.forbidden))
        return np.minimum(wide, self.forbidden).astype(self.dtype)

    def table(self, utility: Utility) -> DenseLookup:
        """Return a received table, or the table of a cost function of the variable, in this scale."""
        return DenseLookup(utility.scope, self.scaled(row(utility, ()), utility.forbidden))

    def rows(self, rows: SparseTable) -> SparseTable:
        """Return received tuples in this scale, without the forbidden ones."""
        is_allowed = rows.values < self.forbidden
        return SparseTable(rows.layout, rows.keys[is_allowed], rows.values[is_allowed].astype(self.dtype))

    def bounds(self, limit: Limit) -> list[DenseLookup]:
        """Return the tables received from the parent in this scale; larger cells become ``forbidden``."""
        return [DenseLookup(scope, self.scaled(cells, math.inf)) for scope, cells in limit.bounds]


class FilterBucket(Bucket):
    """A ``Bucket`` in two phases: tables within the i-bound give bounds, then tuples within the bounds are sent."""

    def _set_up(self) -> None:
        self._spent: int | None = None
        self._costs_below: dict[int, int | None] = {}
        self._limit: Limit | None = None
        self._has_passed = False
        self._listed: dict[int, Listed] = {}
        self._finder: SparseTables | None = None

    def receive_request(self, source: int, body: Cost | Limit | Listed, send: Send) -> None:
        """Process a child's costs or tuples, or a limit from the parent."""
        if isinstance(body, Listed):
            self._listed[source] = body
        elif isinstance(body, Limit):
            self._begin(body)
        else:
            self._costs_below[source] = body.total
            self._add_up(send)

    def becomes_ready(self, send: Send) -> bool:
        """Return whether work is possible: to compute bounds, to send bounds, or to join tuples."""
        if self._limit is None:
            return super().becomes_ready(send)
        if self._is_ready or (self._has_passed and len(self._listed) < len(self._traversal.children)):
            return False
        self._is_ready = True
        return True

    def eliminate(self, engine: Engine, room: int | None, send: Send) -> None:
        """Do the next part of the work: see ``Bucket``."""
        if self._limit is None:
            super().eliminate(engine, room, send)
            return
        if not self._has_passed:
            self._has_passed, self._is_ready = True, False
            for child in self._traversal.children:
                send(child, self._limit_of(child, self._limit, engine))
        if not self._traversal.children or self._is_ready:
            self._is_ready = True
            self._send_rows(self._limit, engine, room, send)

    def decide(self, value: Value, send: Send) -> None:
        """Choose a value by bounds, and send its cost to the parent; in a later call, choose the final value."""
        if value.values is None or self._limit is not None:
            super().decide(value, send)
            self._listed = {}
            return
        assignment = self._send_values(value, send)
        assert assignment is not None
        tables, best, _ = self._own_costs()
        cells = [(row(t, tuple(assignment[v] for v in t.scope)).item(), t.forbidden) for t in tables]
        if all(cell < forbidden for cell, forbidden in cells):
            self._spent = int(best) + sum(cell for cell, _ in cells)
        self._add_up(send)

    @property
    def held(self) -> int:
        """Bytes of the stored tables and rows."""
        rows = (listed.rows for listed in self._listed.values())
        return super().held + sum(int(table.keys.nbytes + table.values.nbytes) for table in rows)

    @property
    def combinations(self) -> int:
        """Largest number of combinations of a mini-bucket; tuples are joined on the CPU."""
        return super().combinations if self._limit is None else 0

    def _add_up(self, send: Send) -> None:
        """Send the cost of the subtree's values to the parent once all children have sent theirs.

        A root then starts the second phase with this cost as the limit, unless the cost equals the root's bound.
        """
        if len(self._costs_below) < len(self._traversal.children):
            return
        costs = [self._spent, *self._costs_below.values()]
        total = None if None in costs else sum(cost for cost in costs if cost is not None)
        if self._traversal.parent >= 0:
            send(self._traversal.parent, Cost(total))
        elif total is not None and total == self.bound:
            self.decide(Value(None), send)
        else:
            self._begin(Limit(total, 0, (), 0))

    def _begin(self, limit: Limit) -> None:
        self._limit, self._is_ready = limit, False

    def _limit_of(self, child: int, limit: Limit, engine: Engine) -> Limit:
        """Return the limit on a child's tuples: bounds of all other tables, over its message's variables."""
        own_tables, own_best, _ = self._own_costs()
        sibling_utils = [util for sibling, util in self._child_utils.items() if sibling != child]
        tables = [*own_tables, *(table for util in sibling_utils for table in util.tables)]
        best = limit.best + int(own_best) + sum(int(util.best) for util in sibling_utils)
        spread = limit.spread + sum(int(table.spread) for table in tables)
        scale = _Scale.of(limit, best + int(self._child_utils[child].best), spread, self._variable)
        if scale is None:
            assert limit.worst is not None
            return Limit(limit.worst, limit.worst, (), 0)
        bounds = [*scale.bounds(limit), *map(scale.table, tables)]
        # No downward table is larger than the largest upward one.
        max_cells = max((bound.cells.size for bound in bounds), default=1)
        guard = BoundFilters(engine.rows(*scale).device, scale.forbidden, bounds, {}, [], 0, max_cells)
        keep = guard(frozenset(self._needs(child)), ())
        best += scale.forbidden - 1 - int(keep.budget)
        return Limit(limit.worst, best, tuple((table.scope, table.cells) for table in keep.bounds), spread)

    def _send_rows(self, limit: Limit, engine: Engine, room: int | None, send: Send) -> None:
        """Join the children's tuples, without those beyond the limits; at a root, the best one is the optimum."""
        own_tables, own_best, _ = self._own_costs()
        best = int(own_best) + sum(listed.best for listed in self._listed.values())
        spread = sum(int(table.spread) for table in own_tables) + sum(listed.spread for listed in self._listed.values())
        scale = _Scale.of(limit, limit.best + best, limit.spread + spread, self._variable)
        # ``_costs`` adds the children's tuples to these tables when a value is chosen.
        self._tables = own_tables
        if scale is None or not all(len(listed.rows.values) for listed in self._listed.values()):
            message = _NOTHING
        else:
            message = self._joined(scale, limit, engine, room)
        if self._traversal.parent >= 0:
            self.effort = self.effort._replace(rows=self.effort.rows + len(message.values))
            send(self._traversal.parent, Listed(message, best, spread))
        elif len(message.values):
            self.bound = best + int(message.values[0])
            self.decide(Value(()), send)
        else:
            self.bound = math.inf if limit.worst is None else limit.worst
            self.decide(Value(None), send)

    def _joined(self, scale: _Scale, limit: Limit, engine: Engine, room: int | None) -> SparseTable:
        """Return the variable's message as tuples; those that cannot be optimal are dropped at once."""
        tables = self._finder = engine.rows(*scale)
        tables_to_join: list[SparseTable] = []
        bounds_of_part: dict[int, list[DenseLookup]] = {}
        for child, listed in self._listed.items():
            tables_to_join.append(scale.rows(listed.rows))
            util = self._child_utils[child]
            bound_above = min(int(util.best) - listed.best, scale.forbidden)
            bounds_of_part[id(tables_to_join[-1])] = [
                DenseLookup((), np.array(bound_above, scale.dtype)),
                *map(scale.table, util.tables),
            ]
        joined_variables = {v for table_to_join in tables_to_join for v in table_to_join.layout.scope}
        lookups: list[DenseLookup] = []
        for bound in sorted(map(scale.table, self._tables), key=lambda bound: -len(bound.scope)):
            if joined_variables.issuperset(bound.scope):
                lookups.append(bound)
            else:
                joined_variables.update(bound.scope)
                tables_to_join.append(tables.from_dense(bound.scope, np.ascontiguousarray(bound.cells)))
                bounds_of_part[id(tables_to_join[-1])] = [bound]
        guard = BoundFilters(tables.device, scale.forbidden, scale.bounds(limit), bounds_of_part, lookups, 0)
        available_bytes = engine.memory() if room is None else min(room, engine.memory())
        try:
            joined = tables.join_all(
                tables_to_join,
                eliminate=self._variable,
                tables=[DenseLookup(bound.scope, np.ascontiguousarray(bound.cells)) for bound in lookups],
                guard=guard,
                max_tuples=max(available_bytes // _BYTES_OF_A_ROW, 1),
            )
        except MemoryLimitError as error:
            raise MemoryLimitError(
                f"needs more than the {bytes_text(available_bytes)} that are left for the tuples of a message over "
                f"{counted(len(joined_variables) - 1, 'variable')}"
            ) from error
        effort, rows = self.effort, len(joined.rows.values)
        self.effort = effort._replace(
            operations=effort.operations + joined.candidates * len(tables_to_join),
            bytes=max(effort.bytes, self.held + _BYTES_OF_A_ROW * rows),
            width=max(effort.width, len(joined_variables) - 1),
            cells=max(effort.cells, rows),
            mini_buckets=1,
            dtypes=effort.dtypes | {scale.dtype},
        )
        return joined.rows

    def _costs(self, assignment: dict[int, int]) -> NDArray[np.generic]:
        """Return costs as ``Bucket`` does; values that no tuple of a child allows cost more than all others."""
        total: NDArray[Any] = super()._costs(assignment)
        if self._limit is None or self._finder is None:
            return total
        worst = np.iinfo(np.int64).max
        for listed in self._listed.values():
            for x in range(len(total)):
                at = self._finder.find(listed.rows, {**assignment, self._variable: x})
                total[x] = worst if at is None or total[x] == worst else total[x] + listed.rows.values[at]
        return total

    def _needs(self, child: int) -> Iterable[int]:
        """Return the variables that a child's subtree depends on."""
        return self._listed[child].rows.layout.scope if child in self._listed else super()._needs(child)
