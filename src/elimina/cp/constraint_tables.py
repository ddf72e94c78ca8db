"""Tables of the tuples that constraints allow, each over few variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from elimina.cp.posting import check_time
from elimina.cp.views import Integers, Mask, View, constant
from elimina.errors import InputError
from elimina.option_names import by_interface


class ConstraintTable(NamedTuple):
    """The tuples that are allowed by a constraint, or by a part of it.

    Attributes:
        scope: Different variables.
        rows: Values of the variables in each tuple, of shape (tuples, variables).
        origin: The constraint, for messages.
    """

    scope: tuple[int, ...]
    rows: Integers
    origin: str


class Infeasible(Exception):
    """Signal that a constraint allows no tuple."""


class ConstraintTables:
    """Values of variables, tables over them, and auxiliary variables that the tables define.

    Attributes:
        domains: Sorted values of each variable.
        tables: Tables in the order in which they were added.
        limit: Largest number of tuples of a table.
        deadline: Deadline by ``time.monotonic``; None: there is none.
        origin: Constraint that the next tables come from, for messages.
    """

    def __init__(self, domains: Sequence[Integers], limit: int, deadline: float | None = None) -> None:
        self.domains = list(domains)
        self.tables: list[ConstraintTable] = []
        self.limit = limit
        self.deadline = deadline
        self.origin = ""

    def values(self, x: View) -> Integers:
        """Return the values of a view, in the order of its variable's values."""
        return np.array([x.offset]) if x.var < 0 else x.of(self.domains[x.var])

    def cells(self, views: Sequence[View]) -> int:
        """Return the number of assignments of the variables of some views."""
        return math.prod(len(self.domains[v]) for v in {x.var for x in views if x.var >= 0})

    def too_large(self, what: str) -> InputError:
        """Return the error of a table beyond the limit."""
        return InputError(
            f"{self.origin}: its table {what}; narrow the variables' domains, "
            + by_interface(
                "allow more tuples (rows=), or leave the model to the search (Model.solve)",
                "or leave the model to the search (elimina cp, fzn-elimina)",
            )
        )

    def _grid(self, views: Sequence[View]) -> tuple[list[int], list[Integers], list[Integers]]:
        """Return all assignments: the variables, their columns, and the values of each view.

        Raises:
            InputError: There are too many assignments.
        """
        check_time(self.deadline)
        scope = list(dict.fromkeys(x.var for x in views if x.var >= 0))
        cells = self.cells(views)
        if cells > self.limit:
            raise self.too_large(f"has {cells:,} assignments to check, more than {self.limit:,}")
        mesh = np.meshgrid(*(self.domains[v] for v in scope), indexing="ij") if scope else []
        columns = {v: column.ravel() for v, column in zip(scope, mesh, strict=True)}
        view_values = [x.of(columns[x.var]) if x.var >= 0 else np.full(cells, x.offset) for x in views]
        return scope, list(columns.values()), view_values

    def add_table(self, scope: Sequence[int], rows: Integers) -> None:
        """Add a table, unless it has no variables.

        Raises:
            Infeasible: The table has no tuples.
        """
        if not len(rows):
            raise Infeasible
        if len(scope):
            self.tables.append(ConstraintTable(tuple(scope), rows, self.origin))

    def add_condition(self, views: Sequence[View], holds: Callable[..., Mask]) -> None:
        """Add the assignments of some views for which a condition holds.

        Args:
            views: Views of the scope.
            holds: Condition: takes an array of values for each view, and returns a mask.

        Raises:
            InputError: There are too many assignments.
            TimeLimitError: The deadline passed.
            Infeasible: The condition holds for no assignment.
        """
        scope, columns, view_values = self._grid(views)
        marks = np.broadcast_to(holds(*view_values), view_values[0].shape)
        self.add_table(scope, _selected_rows(columns, marks))

    def define(
        self,
        views: Sequence[View],
        function: Callable[..., Integers],
        *,
        valid: Callable[..., Mask] | None = None,
        to: View | None = None,
    ) -> View:
        """Add a variable for a function of some views, or constrain an existing one to the function.

        Args:
            views: Arguments of the function.
            function: Function of an array of values for each view.
            valid: Condition of the allowed assignments: takes such arrays, and returns a mask. None: all are allowed.
            to: View that equals the function; None for a new variable.

        Returns:
            The new variable, or the given one.

        Raises:
            InputError: There are too many assignments.
            TimeLimitError: The deadline passed.
            Infeasible: No assignment is allowed.
        """
        scope, columns, view_values = self._grid(views)
        values = np.broadcast_to(function(*view_values), view_values[0].shape)
        marks = np.ones(len(values), bool) if valid is None else np.broadcast_to(valid(*view_values), values.shape)
        if to is None:
            if not marks.any():
                raise Infeasible
            if not scope:
                return constant(int(values[0]))
            to = View(len(self.domains), 1, 0)
            self.domains.append(np.unique(values[marks]))
        if to.var < 0 or to.var in scope:
            position = scope.index(to.var) if to.var >= 0 else -1
            marks = marks & (values == (to.of(columns[position]) if to.var >= 0 else to.offset))
            self.add_table(scope, _selected_rows(columns, marks))
            return to
        target_values = (values - to.offset) // to.scale
        marks = marks & (to.of(target_values) == values) & np.isin(target_values, self.domains[to.var])
        self.add_table([*scope, to.var], _selected_rows([*columns, target_values], marks))
        return to


def _selected_rows(columns: Sequence[Integers], marks: Mask) -> Integers:
    """Return the marked rows of some columns; without columns, as many empty rows."""
    rows = np.empty((int(marks.sum()), len(columns)), np.int64)
    for k, column in enumerate(columns):
        rows[:, k] = column[marks]
    return rows
