"""The work of one variable in DPOP: UTIL messages up the pseudo-tree, VALUE messages down.

DPOP: A. Petcu and B. Faltings, "A scalable method for multiagent constraint optimization", IJCAI 2005; its UTIL phase
is bucket elimination in the order of the tree. ADPOP: the same authors, "Approximations in distributed optimization",
CP 2005: buckets are partitioned into mini-buckets. A parent may then receive tables without its variable, which it
passes to its own parent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import TableList, Traversal, mini_buckets
from elimina.dcop.engine import FORBIDDEN_COST, Engine, bucket_dtype, row
from elimina.dcop.problem import Context, CostsError, Label, Send, Settings, Util, Utility, Value
from elimina.errors import MemoryLimitError
from elimina.model.table import Table
from elimina.number_texts import bytes_text, counted
from elimina.problem.preparation import allowed_ranges
from elimina.problem.semirings import FLOATS, INTEGERS, LARGEST
from elimina.running.encoding import distances_of

MAX_SPREAD = 1 << 61
"""Largest difference between integer costs of a function."""

DTYPES = (*INTEGERS, *FLOATS)
"""Number types of messages, the narrowest first."""


class Effort(NamedTuple):
    """Work so far.

    Attributes:
        operations: Number of table reads: one for each table and combination of values.
        bytes: Memory of the largest step, with all tables held.
        width: Largest number of variables of a table in a message; tables that are only passed on do not count.
        cells: Largest number of cells of a table that counts for ``width``.
        mini_buckets: Number of mini-buckets.
        dtypes: Number types of the messages.
        rows: Number of rows sent, with filtering.
    """

    operations: int = 0
    bytes: int = 0
    width: int = 0
    cells: int = 1
    mini_buckets: int = 0
    dtypes: frozenset[str] = frozenset()
    rows: int = 0


class Efforts(NamedTuple):
    """Work of all variables; attributes have the names of a result's ``stats``.

    Attributes:
        largest_table: Largest number of cells of a table in a message.
        total_operations: Number of table reads: one for each table and combination of values.
        peak_bytes: Memory of the largest step of a variable.
        divided: Number of buckets that are partitioned.
        parts: Number of mini-buckets; a whole bucket counts as one.
        dtype: Widest number type of the messages; None if there are none.
    """

    largest_table: int = 1
    total_operations: int = 0
    peak_bytes: int = 0
    divided: int = 0
    parts: int = 0
    dtype: str | None = None

    @staticmethod
    def of(efforts: Sequence[Effort]) -> Efforts:
        """Combine the work of several variables."""
        dtypes = {dtype for effort in efforts for dtype in effort.dtypes}
        return Efforts(
            max((effort.cells for effort in efforts), default=1),
            sum(effort.operations for effort in efforts),
            max((effort.bytes for effort in efforts), default=0),
            sum(effort.mini_buckets > 1 for effort in efforts),
            sum(max(effort.mini_buckets, 1) for effort in efforts),
            max(dtypes, key=DTYPES.index, default=None),
        )


class Bucket:
    """One variable's cost functions and messages.

    Attributes:
        value: The variable's value; None until it is known, or if no value is allowed.
        bound: At a root: lower bound on the total of its tree, as a cost to be minimised; infinity if nothing is
            allowed.
        is_done: True if the value was sent, or if there is none.
        effort: Work of the elimination.

    Args:
        variable: Variable of the bucket.
        traversal: Position of the variable in the tree.
        functions: All cost functions of the variable.
        sizes: Domain sizes of their variables.
        settings: Settings that all agents share.
    """

    def __init__(
        self,
        variable: int,
        traversal: Traversal,
        functions: Sequence[Table],
        sizes: dict[int, int],
        settings: Settings,
    ) -> None:
        self.value: int | None = None
        self.bound: int | float | None = None
        self.is_done = False
        self.effort = Effort()
        self._variable, self._traversal, self._functions = variable, traversal, functions
        self._sizes, self._settings = sizes, settings
        self._is_ready = False
        self._child_utils: dict[int, Util] = {}
        self._tables: list[Utility] = []
        self._own_functions: tuple[list[Utility], int | float, bool] | None = None
        self._set_up()

    def _set_up(self) -> None:
        """Set the further attributes of a subclass."""

    def receive_util(self, child: int, util: Util, send: Send) -> None:
        """Store a child's UTIL message."""
        self._child_utils[child] = util

    def becomes_ready(self, send: Send) -> bool:
        """Return whether the variable can be eliminated; True is returned only once.

        The depth-first traversal of its subtree must have ended, and all children must have sent their tables.
        """
        if self._is_ready or not self._traversal.is_done:
            return False
        self._is_ready = len(self._child_utils) == len(self._traversal.children)
        return self._is_ready

    def eliminate(self, engine: Engine, room: int | None, send: Send) -> None:
        """Eliminate the variable, and send the costs of its subtree to the parent; a root chooses its value instead.

        Args:
            engine: Engine that computes the tables.
            room: Bytes that remain for the agent; None: no limit.
            send: Sender of messages to other variables.

        Raises:
            InputError: Costs are too far apart.
            MemoryLimitError: There is not enough room.
        """
        sent, bests, possible = self._split_tables(self._child_utils, *self._own_costs())
        for number, members in enumerate(self._mini_buckets() if possible and self._tables else ()):
            message_table = self._message([self._tables[m] for m in members], number, engine, room)
            if message_table.scope:
                sent.append(message_table)
            else:
                least = row(message_table, ()).item()
                possible = possible and least < message_table.forbidden
                bests.append(least)
        best = sum(bests) if self._settings.is_integer else math.fsum(bests)
        if self._traversal.parent >= 0:
            send(self._traversal.parent, Util(tuple(sent) if possible else (), best, possible))
        else:
            self.bound = best if possible else math.inf
            self.decide(Value(() if possible else None), send)

    def _mini_buckets(self) -> Sequence[Sequence[int]]:
        if self._settings.ibound is None:
            return [range(len(self._tables))]
        return mini_buckets([table.scope for table in self._tables], self._settings.ibound)

    def _split_tables(
        self, messages: Mapping[int, Util], own_tables: list[Utility], best: int | float, possible: bool
    ) -> tuple[list[Utility], list[int | float], bool]:
        """Store the tables that contain the variable, and return the children's other tables.

        Args:
            messages: Messages of the children.
            own_tables: Tables of cost functions.
            best: Best cost of these functions.
            possible: True if these functions allow an assignment.

        Returns:
            The children's tables without the variable, constants to add, and whether anything is allowed.
        """
        utils = [messages[child] for child in self._traversal.children]
        child_tables = [table for util in utils for table in util.tables]
        bucket_tables = sorted(
            (t for t in child_tables if self._variable in t.scope), key=lambda t: (-t.origin[0], t.origin[1])
        )
        self._tables = [*own_tables, *bucket_tables]
        other_tables = [table for table in child_tables if self._variable not in table.scope]
        return other_tables, [best, *(util.best for util in utils)], possible and all(util.possible for util in utils)

    def decide(self, value: Value, send: Send) -> None:
        """Choose the variable's value given those of ancestors, and send it to the children."""
        self.is_done = True
        self._send_values(value, send)
        # Tables and messages are not needed any more: free them.
        self._tables, self._child_utils, self._own_functions = [], {}, None

    def _send_values(self, value: Value, send: Send) -> dict[int, int] | None:
        """Choose the variable's value, and send the values that children need.

        Returns:
            All known values; None if there is no solution.
        """
        assignment = None
        if value.values is not None:
            assignment = dict(value.values)
            self.value = assignment[self._variable] = int(self._costs(assignment).argmin())
        for child in self._traversal.children:
            send(
                child,
                Value(None if assignment is None else tuple((v, assignment[v]) for v in self._needs(child))),
            )
        return assignment

    def _needs(self, child: int) -> Iterable[int]:
        """Return the variables that a child's subtree depends on."""
        return {v: None for table in self._child_utils[child].tables for v in table.scope}

    @property
    def held(self) -> int:
        """Bytes of the children's tables."""
        return sum(int(table.values.nbytes) for table in self.arrived())

    def arrived(self) -> Iterable[Utility]:
        """Return the children's tables."""
        return (table for util in self._child_utils.values() for table in util.tables)

    @property
    def combinations(self) -> int:
        """Largest number of combinations of a mini-bucket."""
        settings, variable = self._settings, self._variable
        tables = [*self._own_costs()[0], *(table for table in self.arrived() if variable in table.scope)]
        sizes = {v: n for table in tables for v, n in zip(table.scope, table.values.shape, strict=True)}
        count = len(sizes) if settings.ibound is None else settings.ibound + 1
        cells: int = math.prod(sorted(sizes.values(), reverse=True)[:count])
        return cells if settings.most_cells is None else min(cells, settings.most_cells * self._sizes[variable])

    def _own_costs(self) -> tuple[list[Utility], int | float, bool]:
        """Return the functions over the variable and its ancestors alone, with the sum of their best costs.

        The third result is False if one of the functions allows nothing.
        """
        if self._own_functions is None:
            self._own_functions = self._joined_functions()
        return self._own_functions

    def _joined_functions(self) -> tuple[list[Utility], int | float, bool]:
        """Return the same as ``_own_costs``, after functions over the same scope have been joined."""
        traversal = self._traversal
        visits = {self._variable: traversal.visit, **traversal.above}
        groups: dict[frozenset[int], list[Table]] = {}
        for function in self._functions:
            if all(map(visits.__contains__, function.scope)):
                groups.setdefault(frozenset(function.scope), []).append(function)
        settings, tables, bests, possible = self._settings, [], [], True
        for group in groups.values():
            scope = tuple(sorted(group[0].scope, key=visits.__getitem__, reverse=True))
            tables_of_scope = TableList(group)
            spread, forbidden = self._range(allowed_ranges(tables_of_scope, settings.sense))
            sizes = tuple(self._sizes[v] for v in scope)
            limit = int(forbidden) if settings.is_integer else None
            distances = distances_of(tables_of_scope, scope, sizes, settings.sense, limit)
            possible = possible and distances.possible
            bests.append(distances.offset)
            order = tuple(visits[v] for v in scope)
            tables.append(Utility(scope, order, distances.costs.reshape(sizes), forbidden, spread, (math.inf, 0)))
        return tables, sum(bests) if settings.is_integer else math.fsum(bests), possible

    def _range(self, ranges: Sequence[tuple[float, float] | None]) -> tuple[int | float, int | float]:
        """Return a bound on the spread of a sum of functions, and the number for forbidden cells."""
        finite_ranges = [ends for ends in ranges if ends is not None]
        if not self._settings.is_integer:
            return sum(
                (max(-float(low), float(high), float(high) - float(low)) for low, high in finite_ranges), 0.0
            ), math.inf
        spread = sum(high - low for low, high in finite_ranges)
        if spread >= MAX_SPREAD:
            problem = f"add up to {spread:.3g}, more than 64-bit integers add exactly; scale them down, and write "
            raise CostsError("variable", self._variable, f"{problem}forbidden ones as such")
        return spread, max(spread + 1, FORBIDDEN_COST)

    def _message(self, tables: Sequence[Utility], number: int, engine: Engine, room: int | None) -> Utility:
        """Eliminate the variable from the tables of a mini-bucket."""
        visits = {v: visit for table in tables for v, visit in zip(table.scope, table.visits, strict=True)}
        sizes = {v: n for table in tables for v, n in zip(table.scope, table.values.shape, strict=True)}
        scope = sorted(visits, key=visits.__getitem__, reverse=True)
        local = {v: i for i, v in enumerate(scope)}
        pairs = [(tuple(local[v] for v in table.scope), table) for table in tables]
        message_table = engine.eliminate(tuple(sizes[v] for v in scope), pairs, room)
        separator = tuple(scope[1:])
        effort = self.effort
        self.effort = Effort(
            effort.operations + message_table.operations,
            max(effort.bytes, message_table.bytes + self.held),
            max(effort.width, len(separator)),
            max(effort.cells, message_table.values.size),
            number + 1,
            effort.dtypes | {message_table.dtype},
            effort.rows,
        )
        order = tuple(visits[v] for v in separator)
        return Utility(
            separator,
            order,
            message_table.values,
            message_table.forbidden,
            message_table.spread,
            (self._traversal.visit, number),
        )

    def _costs(self, assignment: dict[int, int]) -> NDArray[np.generic]:
        """Return the cost of each value, given the ancestors' values; forbidden ones cost more than all others."""
        total: NDArray[Any] = np.zeros(
            self._sizes[self._variable], dtype=np.int64 if self._settings.is_integer else np.float64
        )
        forbidden = np.zeros(len(total), dtype=bool)
        for table in self._tables:
            cells = row(table, tuple(slice(None) if v == self._variable else assignment[v] for v in table.scope))
            total += cells
            forbidden |= cells >= table.forbidden
        total[forbidden] = LARGEST["int64"] if self._settings.is_integer else math.inf
        return total


_MAX_CONTEXTS = 1 << 24
"""Largest number of contexts of a variable: a run with more would not end in practice."""


def cut_ancestors(separator: Mapping[int, int], below: Iterable[int], most_cells: int) -> set[int]:
    """Return the ancestors whose values are fixed, so that a variable's message is small enough.

    They are those in ``below``, then the highest other ones, as many as necessary.

    Args:
        separator: The ancestors that the message depends on, the highest first, and their numbers of values.
        below: Ancestors that descendants condition on.
        most_cells: Limit on the cells of the message.
    """
    cuts = set(below)
    uncut = [v for v in separator if v not in cuts]
    while math.prod(separator[v] for v in uncut) > most_cells:
        cuts.add(uncut.pop(0))
    return cuts


class CycleBucket(Bucket):
    """A ``Bucket`` that keeps messages small, in the manner of MB-DPOP.

    A. Petcu and B. Faltings, "MB-DPOP: a new memory-bounded algorithm for distributed optimization", IJCAI 2007. Some
    variables are cut: their values are fixed while their descendants are eliminated. A label informs a parent of the
    ancestors on which a subtree depends, and of those that are cut. The values of a subtree's cut ancestors are its
    context. A cut variable requests its children's tables for each of its values in turn, and combines them. Thus no
    message has more cells than a limit. When values are chosen, the tables of the best context are requested again,
    unless they were the last ones.
    """

    def _set_up(self) -> None:
        self._labels: dict[int, Label] = {}
        self._cuts: tuple[int, ...] | None = None
        # State of the exploration: values of the cut ancestors, final values, and the last request to each child.
        self._context: dict[int, int] | None = None
        self._final: Value | None = None
        self._asked: dict[int, dict[int, int]] = {}
        self._silent: set[int] = set()
        self._slices: dict[int, list[Util]] = {}

    def receive_request(self, source: int, body: Label | Context, send: Send) -> None:
        """Process a child's label, or a request of the parent."""
        if isinstance(body, Label):
            self._labels[source] = body
        else:
            self._begin(dict(body.values), send)

    def receive_util(self, child: int, util: Util, send: Send) -> None:
        """Store a child's UTIL message; if it is a slice, request the next one."""
        if not self._is_cut_for(child):
            self._child_utils[child] = util
            self._silent.discard(child)
            return
        slices = self._slices[child]
        slices.append(util)
        if len(slices) < self._sizes[self._variable]:
            send(child, Context((*self._asked[child].items(), (self._variable, len(slices)))))
        else:
            self._silent.discard(child)

    def becomes_ready(self, send: Send) -> bool:
        """Return whether the variable can be eliminated: it has a context, and all children have answered it."""
        if self._cuts is None and self._traversal.is_done and len(self._labels) == len(self._traversal.children):
            self._cut(send)
        if self._is_ready or self._context is None or self._silent:
            return False
        self._is_ready = True
        return True

    def eliminate(self, engine: Engine, room: int | None, send: Send) -> None:
        """Send the tables of the present context to the parent, or choose the value there: see ``Bucket``."""
        assert self._context is not None
        for child in self._traversal.children:
            if child in self._slices:
                self._child_utils[child] = self._stacked(self._slices.pop(child), room)
        if self._final is None:
            super().eliminate(engine, room, send)
        else:
            self._split_tables(self._child_utils, *self._own_costs())
            super().decide(self._final, send)

    def decide(self, value: Value, send: Send) -> None:
        """Choose the variable's value; request the tables for this context first if the stored ones are for another."""
        context = None if value.values is None else {v: x for v, x in value.values if v in (self._cuts or ())}
        if context is None or context == self._context:
            super().decide(value, send)
        else:
            self._final = value
            self._begin(context, send)

    def arrived(self) -> Iterable[Utility]:
        """Yield the children's tables, also those received so far from children that send a table for each value."""
        yield from super().arrived()
        yield from (table for utils in self._slices.values() for util in utils for table in util.tables)

    def _is_cut_for(self, child: int) -> bool:
        # A child's table may arrive before the child's label, but only if the table needs no context.
        return child in self._labels and self._variable in self._labels[child].cuts

    def _cut(self, send: Send) -> None:
        """Cut ancestors, the highest first, until the message is small enough, and send the label to the parent."""
        separator = {v: (visit, size) for label in self._labels.values() for v, visit, size in label.separator}
        above = self._traversal.above
        for function in self._functions:
            others = [v for v in function.scope if v != self._variable]
            if all(v in above for v in others):
                separator.update((v, (above[v], self._sizes[v])) for v in others)
        separator.pop(self._variable, None)
        ordered = sorted(separator, key=lambda v: separator[v][0])
        below = {v for label in self._labels.values() for v in label.cuts} - {self._variable}
        assert self._settings.most_cells is not None
        cuts = cut_ancestors({v: separator[v][1] for v in ordered}, below, self._settings.most_cells)
        contexts = math.prod(separator[v][1] for v in cuts)
        if contexts > _MAX_CONTEXTS:
            raise MemoryLimitError(
                f"would have to make its table for {counted(contexts, 'combination', is_rounded=True)} of "
                f"{len(cuts)} ancestors' values"
            )
        self._cuts = tuple(v for v in ordered if v in cuts)
        if self._traversal.parent >= 0:
            send(self._traversal.parent, Label(tuple((v, *separator[v]) for v in ordered), self._cuts))
        if not cuts:
            self._begin({}, send)

    def _begin(self, context: dict[int, int], send: Send) -> None:
        """Set the values of cut ancestors, and request the children's tables that these values require."""
        self._context, self._is_ready = context, False
        for child in self._traversal.children:
            cuts = self._labels[child].cuts
            needed = {v: context[v] for v in cuts if v != self._variable}
            if not cuts and child in self._child_utils:
                continue
            if cuts and self._asked.get(child) == needed:
                continue
            self._asked[child] = needed
            self._silent.add(child)
            if self._variable in cuts:
                self._slices[child] = []
                send(child, Context((*needed.items(), (self._variable, 0))))
            elif cuts:
                send(child, Context(tuple(needed.items())))

    def _stacked(self, slices: Sequence[Util], room: int | None) -> Util:
        """Stack a child's tables for the values of this variable into one table, on the host."""
        allowed = [util for util in slices if util.possible]
        if not allowed:
            return Util((), 0, False)
        best = min(util.best for util in allowed)
        tables = [util.tables[0] if util.possible and util.tables else None for util in slices]
        present_tables = [table for table in tables if table is not None]
        spread = max(
            util.best - best + (table.spread if table is not None else 0)
            for util, table in zip(slices, tables, strict=True)
            if util.possible
        )
        dtype = bucket_dtype(1, spread)
        forbidden = spread + 1 if self._settings.is_integer else math.inf
        shape = present_tables[0].values.shape if present_tables else ()
        size = len(slices) * math.prod(shape) * np.dtype(dtype).itemsize
        if room is not None and size > room:
            raise MemoryLimitError(f"needs {bytes_text(size)} for a child's tables, and {bytes_text(room)} are left")
        stacked = np.full((len(slices), *shape), forbidden, dtype=dtype)
        for number, (util, table) in enumerate(zip(slices, tables, strict=True)):
            if table is not None:
                cells = row(table, ())
                added = cells.astype(dtype) + np.dtype(dtype).type(util.best - best)
                stacked[number] = np.where(cells < table.forbidden, added, forbidden)
            elif util.possible:
                stacked[number] = util.best - best
        scope = (self._variable, *(present_tables[0].scope if present_tables else ()))
        visits = (self._traversal.visit, *(present_tables[0].visits if present_tables else ()))
        origin = present_tables[0].origin if present_tables else (math.inf, 0)
        return Util((Utility(scope, visits, stacked, forbidden, spread, origin),), best, True)

    def _split_tables(
        self, messages: Mapping[int, Util], own_tables: list[Utility], best: int | float, possible: bool
    ) -> tuple[list[Utility], list[int | float], bool]:
        """Split tables as ``Bucket`` does, with the values of the present context fixed."""
        assert self._context is not None
        fixed = {
            child: util._replace(tables=tuple(_fixed(table, self._context) for table in util.tables))
            for child, util in messages.items()
        }
        return super()._split_tables(fixed, [_fixed(table, self._context) for table in own_tables], best, possible)

    def _needs(self, child: int) -> Iterable[int]:
        """Return the variables that a child's subtree depends on, including cut variables."""
        return [v for v, _, _ in self._labels[child].separator]


def _fixed(table: Utility, context: Mapping[int, int]) -> Utility:
    """Return a view of a table in which the context's values are fixed."""
    if not any(v in context for v in table.scope):
        return table
    free_axes = [number for number, v in enumerate(table.scope) if v not in context]
    return table._replace(
        scope=tuple(table.scope[n] for n in free_axes),
        visits=tuple(table.visits[n] for n in free_axes),
        values=table.values[tuple(context.get(v, slice(None)) for v in table.scope)],
    )
