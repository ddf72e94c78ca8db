"""Domains after propagation, and tables that stand for constraints: rows of values over a few variables each."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpSolver
from elimina.cp.running import Declaration
from elimina.errors import InputError

Words = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

_MOST_VALUES = 1 << 24
"""Values that are listed at once, as Python's integers: 0.6 GiB."""


class View(NamedTuple):
    """``scale * variable + offset``; a constant is one of the variable -1."""

    var: int
    scale: int
    offset: int

    def of(self, values: Words) -> Words:
        """Return the view's values, given those of its variable."""
        return self.scale * values + self.offset


def constant(value: int) -> View:
    """Return a view that has one value."""
    return View(-1, 0, value)


class Piece(NamedTuple):
    """The tuples that a constraint, or a part of it, allows.

    Attributes:
        scope: Different variables.
        rows: (number of rows, number of variables) values.
        origin: The constraint, for messages.
    """

    scope: tuple[int, ...]
    rows: Words
    origin: str


class Domains:
    """Values that propagation leaves to the variables of a model.

    Of a wide domain with holes, the core knows only the bounds. The values between them are the declared ones.

    Attributes:
        sizes: Largest number of values of each variable.
    """

    def __init__(self, variables: Sequence[Declaration], solver: CpSolver) -> None:
        self._variables, self._solver = variables, solver
        self._sizes = solver.sizes()[: len(variables)]
        self.sizes = [min(size, len(self._declared(v))) for v, size in enumerate(self._sizes)]

    def values(self, v: int) -> list[int]:
        """Return the values of a variable in ascending order."""
        declared, left = self._declared(v), self._sizes[v]
        if len(declared) <= left:
            return list(declared)
        values = self._solver.values_of(v)
        return values if isinstance(declared, range) else sorted(set(declared).intersection(values))

    def listed(self, name_of: Callable[[int], str]) -> list[list[int]]:
        """Return the values of all variables.

        Raises:
            InputError: There are too many.
        """
        if sum(self.sizes) > _MOST_VALUES:
            largest = max(range(len(self.sizes)), key=self.sizes.__getitem__)
            raise InputError(
                f"{sum(self.sizes):,} values are left, more than the {_MOST_VALUES:,} listed at most; "
                f"{self.sizes[largest]:,} of them to variable {name_of(largest)}: give it a smaller domain"
            )
        return [self.values(v) for v in range(len(self.sizes))]

    def _declared(self, v: int) -> Sequence[int]:
        lo, hi = self._solver.bounds_of(v)
        values = self._variables[v].values
        return range(lo, hi + 1) if values is None else values[bisect_left(values, lo) : bisect_right(values, hi)]


class Infeasible(Exception):
    """A constraint allows nothing."""


class Pieces:
    """Variables' values, the pieces over them, and new variables that the pieces define.

    Attributes:
        domains: Sorted values of each variable.
        pieces: In the order made.
        limit: Most rows of one of them.
        origin: Constraint or objective that the next pieces come from.
    """

    def __init__(self, domains: Sequence[Words], limit: int) -> None:
        self.domains = list(domains)
        self.pieces: list[Piece] = []
        self.limit = limit
        self.origin = ""

    def values(self, x: View) -> Words:
        """Return the values of a view, in the order of its variable's."""
        return np.array([x.offset]) if x.var < 0 else x.of(self.domains[x.var])

    def cells(self, views: Sequence[View]) -> int:
        """Return the number of assignments of the variables of some views."""
        return math.prod(len(self.domains[v]) for v in {x.var for x in views if x.var >= 0})

    def too_large(self, what: str) -> InputError:
        """Return the error of a table beyond the limit."""
        return InputError(
            f"{self.origin}: its table {what}; narrow the variables' domains, "
            "allow more tuples (rows=), or leave the model to the search (elimina cp, fzn-elimina, Model.solve)"
        )

    def _grid(self, views: Sequence[View]) -> tuple[list[int], list[Words], list[Words]]:
        """Return all assignments: the variables, their columns, and the values of each view."""
        scope = list(dict.fromkeys(x.var for x in views if x.var >= 0))
        cells = self.cells(views)
        if cells > self.limit:
            raise self.too_large(f"has {cells:,} assignments to check, more than {self.limit:,}")
        mesh = np.meshgrid(*(self.domains[v] for v in scope), indexing="ij") if scope else []
        columns = {v: column.ravel() for v, column in zip(scope, mesh, strict=True)}
        seen = [x.of(columns[x.var]) if x.var >= 0 else np.full(cells, x.offset) for x in views]
        return scope, list(columns.values()), seen

    def keep(self, scope: Sequence[int], rows: Words) -> None:
        """Add a piece.

        Raises:
            Infeasible: It has no rows.
        """
        if not len(rows):
            raise Infeasible
        if len(scope):
            self.pieces.append(Piece(tuple(scope), rows, self.origin))

    def where(self, views: Sequence[View], holds: Callable[..., Marks]) -> None:
        """Add the assignments of some views that fulfil a condition, which gets an array of values for each view.

        Raises:
            InputError: There are too many.
            Infeasible: There is none.
        """
        scope, columns, seen = self._grid(views)
        marks = np.broadcast_to(holds(*seen), seen[0].shape)
        self.keep(scope, _chosen(columns, marks))

    def define(
        self,
        views: Sequence[View],
        function: Callable[..., Words],
        *,
        valid: Callable[..., Marks] | None = None,
        to: View | None = None,
    ) -> View:
        """Add a variable that is a function of some views, or constrain an existing one to be.

        Args:
            views: Arguments of the function.
            function: Gets an array of values for each view.
            valid: Mask of the assignments that are allowed at all.
            to: Value of the function; None for a new variable.

        Returns:
            The new variable, or the given one.

        Raises:
            InputError: There are too many assignments.
            Infeasible: None is allowed.
        """
        scope, columns, seen = self._grid(views)
        values = np.broadcast_to(function(*seen), seen[0].shape)
        marks = np.ones(len(values), bool) if valid is None else np.broadcast_to(valid(*seen), values.shape)
        if to is None:
            if not marks.any():
                raise Infeasible
            if not scope:
                return constant(int(values[0]))
            to = View(len(self.domains), 1, 0)
            self.domains.append(np.unique(values[marks]))
        if to.var < 0 or to.var in scope:
            place = scope.index(to.var) if to.var >= 0 else -1
            marks = marks & (values == (to.of(columns[place]) if to.var >= 0 else to.offset))
            self.keep(scope, _chosen(columns, marks))
            return to
        wanted = (values - to.offset) // to.scale
        marks = marks & (to.of(wanted) == values) & np.isin(wanted, self.domains[to.var])
        self.keep([*scope, to.var], _chosen([*columns, wanted], marks))
        return to


def _chosen(columns: Sequence[Words], marks: Marks) -> Words:
    """Return the rows of some columns, also of none."""
    rows = np.empty((int(marks.sum()), len(columns)), np.int64)
    for k, column in enumerate(columns):
        rows[:, k] = column[marks]
    return rows


def views_of(argument: npt.NDArray[Any]) -> list[View]:
    """Return the views of an argument of the core: numbers, or rows of variable, scale and offset."""
    if argument.ndim == 1:
        return [constant(value) for value in argument.tolist()]
    return [View(var, scale if var >= 0 else 0, offset) for var, scale, offset in argument.tolist()]
