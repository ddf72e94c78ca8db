"""Variables whose tables would be too large: ancestors are fixed to one value after another.

In the manner of MB-DPOP (A. Petcu and B. Faltings, "MB-DPOP: a new memory-bounded algorithm for distributed
optimization", IJCAI 2007): labels tell ancestors what their descendants' tables depend on, and which variables are cut.
A variable that is cut asks for its children's tables for each of its values in turn, in the context of the values of
ancestors that are cut themselves, and puts what it hears together; so no message has more cells than a limit. When
values are chosen, tables of other contexts than the best one are asked for again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from elimina._core import Traversal
from elimina.dcop.dpop import Bucket
from elimina.dcop.engine import Engine, bucket_dtype, row
from elimina.dcop.messages import Context, Label, Send, Util, Utility, Value
from elimina.dcop.problem import Settings
from elimina.errors import MemoryLimitError
from elimina.planning.plan import bytes_text, count_text
from elimina.table import Table

_MOST_CONTEXTS = 1 << 24
"""More would never end."""


def cut_ancestors(separator: Mapping[int, int], below: Iterable[int], most_cells: int) -> set[int]:
    """Return the ancestors to condition a message on: those of descendants, and the highest others until it is small.

    Args:
        separator: The ancestors that the message depends on, the highest first, and their numbers of values.
        below: Ancestors that descendants condition on.
        most_cells: Limit on the cells of the message.
    """
    cuts = set(below)
    left = [v for v in separator if v not in cuts]
    while math.prod(separator[v] for v in left) > most_cells:
        cuts.add(left.pop(0))
    return cuts


class CycleBucket(Bucket):
    """A ``Bucket`` that keeps messages small."""

    def __init__(
        self,
        variable: int,
        traversal: Traversal,
        functions: Sequence[Table],
        sizes: dict[int, int],
        settings: Settings,
    ) -> None:
        super().__init__(variable, traversal, functions, sizes, settings)
        self._labels: dict[int, Label] = {}
        self._cuts: tuple[int, ...] | None = None
        # What is explored: values of the own cuts, and why; and what each child was asked for last.
        self._context: dict[int, int] | None = None
        self._final: Value | None = None
        self._asked: dict[int, dict[int, int]] = {}
        self._silent: set[int] = set()
        self._slices: dict[int, list[Util]] = {}

    def note(self, source: int, body: Label | Context, send: Send) -> None:
        """Take a child's label, or start on a request of the parent."""
        if isinstance(body, Label):
            self._labels[source] = body
        else:
            self._begin(dict(body.values), send)

    def hear(self, child: int, util: Util, send: Send) -> None:
        """Take a child's message; if it is a slice, ask for the next one."""
        if not self._is_cut_for(child):
            self._heard[child] = util
            self._silent.discard(child)
            return
        slices = self._slices[child]
        slices.append(util)
        if len(slices) < self._sizes[self._variable]:
            send(child, Context((*self._asked[child].items(), (self._variable, len(slices)))))
        else:
            self._silent.discard(child)

    def becomes_ready(self, send: Send) -> bool:
        """Return whether the variable can go on: all children have answered its requests."""
        if self._cuts is None and self._place.is_done and len(self._labels) == len(self._place.children):
            self._cut(send)
        if self._is_ready or self._context is None or self._silent:
            return False
        self._is_ready = True
        return True

    def eliminate(self, engine: Engine, room: int | None, send: Send) -> None:
        """Send the tables of the present context to the parent, or choose the value there: see ``Bucket``."""
        assert self._context is not None
        for child in self._place.children:
            if child in self._slices:
                self._heard[child] = self._stacked(self._slices.pop(child), room)
        if self._final is None:
            super().eliminate(engine, room, send)
        else:
            self._collect(self._heard, *self._own_costs())
            super().decide(self._final, send)

    def decide(self, value: Value, send: Send) -> None:
        """Choose the own value, if the tables at hand are those of the ancestors' values; else ask for them."""
        context = None if value.values is None else {v: x for v, x in value.values if v in (self._cuts or ())}
        if context is None or context == self._context:
            super().decide(value, send)
        else:
            self._final = value
            self._begin(context, send)

    @property
    def held(self) -> int:
        """Bytes of the tables that are kept."""
        slices = (util for utils in self._slices.values() for util in utils)
        return super().held + sum(int(table.values.nbytes) for util in slices for table in util.tables)

    def _is_cut_for(self, child: int) -> bool:
        # A table may overtake its label, but only if it needed no context.
        return child in self._labels and self._variable in self._labels[child].cuts

    def _cut(self, send: Send) -> None:
        """Cut ancestors, the highest first, until the message is small enough, and tell the parent."""
        separator = {v: (visit, size) for label in self._labels.values() for v, visit, size in label.separator}
        above = self._place.above
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
        if contexts > _MOST_CONTEXTS:
            raise MemoryLimitError(
                f"would have to make its table for {count_text(contexts)} combinations of {len(cuts)} ancestors' values"
            )
        self._cuts = tuple(v for v in ordered if v in cuts)
        if self._place.parent >= 0:
            send(self._place.parent, Label(tuple((v, *separator[v]) for v in ordered), self._cuts))
        if not cuts:
            self._begin({}, send)

    def _begin(self, context: dict[int, int], send: Send) -> None:
        """Ask the children for tables that are missing for these values of the cuts."""
        self._context, self._is_ready = context, False
        for child in self._place.children:
            cuts = self._labels[child].cuts
            needed = {v: context[v] for v in cuts if v != self._variable}
            if not cuts and child in self._heard:
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
        """Stack the tables of the own values into one, on the host."""
        allowed = [util for util in slices if util.possible]
        if not allowed:
            return Util((), 0, False)
        best = min(util.best for util in allowed)
        tables = [util.tables[0] if util.possible and util.tables else None for util in slices]
        known = [table for table in tables if table is not None]
        spread = max(
            util.best - best + (table.spread if table is not None else 0)
            for util, table in zip(slices, tables, strict=True)
            if util.possible
        )
        dtype = bucket_dtype(1, spread)
        forbidden = spread + 1 if self._settings.is_integer else math.inf
        shape = known[0].values.shape if known else ()
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
        scope = (self._variable, *(known[0].scope if known else ()))
        visits = (self._place.visit, *(known[0].visits if known else ()))
        origin = known[0].origin if known else (math.inf, 0)
        return Util((Utility(scope, visits, stacked, forbidden, spread, origin),), best, True)

    def _collect(
        self, heard: Mapping[int, Util], own: list[Utility], best: int | float, possible: bool
    ) -> tuple[list[Utility], list[int | float], bool]:
        """Collect tables as ``Bucket`` does, in the present context."""
        assert self._context is not None
        fixed = {
            child: util._replace(tables=tuple(_fixed(table, self._context) for table in util.tables))
            for child, util in heard.items()
        }
        return super()._collect(fixed, [_fixed(table, self._context) for table in own], best, possible)

    def _needs(self, child: int) -> Iterable[int]:
        """Return the variables that a child's subtree depends on, those that are cut among them."""
        return [v for v, _, _ in self._labels[child].separator]


def _fixed(table: Utility, context: Mapping[int, int]) -> Utility:
    """Return a table in a context: a view."""
    if not any(v in context for v in table.scope):
        return table
    left = [number for number, v in enumerate(table.scope) if v not in context]
    return table._replace(
        scope=tuple(table.scope[n] for n in left),
        visits=tuple(table.visits[n] for n in left),
        values=table.values[tuple(context.get(v, slice(None)) for v in table.scope)],
    )
