"""Arithmetic, logic and counts of expressions; most functions make a variable for their value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.cp.expressions import Condition, Expression, Operand, booleans_of, operand
from elimina.cp.operands import MAX_INTEGER, beyond_limits, several, whole, whole_array
from elimina.errors import InputError
from elimina.model.table import unmasked
from elimina.number_texts import counted


@arguments.with_checked_methods
class ExpressionFunctions(ABC):
    """Arithmetic, logic and counts of expressions. All indices count from 0."""

    @abstractmethod
    def int_var(self, lo: int | Iterable[int], hi: int | None = None, name: str = "") -> Expression:
        """Make a variable."""

    @abstractmethod
    def result_var(self, lo: int, hi: int, of: Iterable[Operand], name: str = "") -> Expression:
        """Make a variable for a function of operands; its bounds follow from the operands' bounds."""

    @abstractmethod
    def bool_var(self, name: str = "") -> Expression:
        """Make a variable of 0 and 1."""

    @abstractmethod
    def bounds(self, x: Operand) -> tuple[int, int]:
        """Return the smallest and the largest value that an expression can take."""

    @abstractmethod
    def expression(self, x: Operand) -> Expression:
        """Return an operand as an expression."""

    @abstractmethod
    def sum(self, xs: Iterable[Operand]) -> Expression:
        """Return the sum of expressions."""

    @abstractmethod
    def add(self, condition: Operand, *, iff: Operand | None = None, only_if: Operand | None = None) -> None:
        """Post a condition; ``iff`` makes it equivalent to another one, ``only_if`` a consequence of another one."""

    @abstractmethod
    def post(self, name: str, *arguments: Any) -> None:
        """Post a constraint by its name in the core."""

    def product(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable that is x times y, bounds consistent.

        Raises:
            InputError: The product may be beyond 2^52.
        """
        corners = [a * b for a in self.bounds(x) for b in self.bounds(y)]
        if max(map(abs, corners)) > MAX_INTEGER:
            raise beyond_limits(f"({x}) * ({y})", min(corners), max(corners))
        z = self.result_var(min(corners), max(corners), (x, y))
        self.post("int_times", x, y, z)
        return z

    def quotient(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable equal to x divided by y (not 0), truncated towards 0, bounds consistent."""
        largest = max(map(abs, self.bounds(x)))
        z = self.result_var(-largest, largest, (x,))
        self.post("int_div", x, operand(y, "a divisor"), z)
        return z

    def remainder(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable for the remainder of `quotient`; its sign is that of x."""
        largest = min(max(map(abs, self.bounds(x))), max(map(abs, self.bounds(y))))
        z = self.result_var(-largest, largest, (x, y))
        self.post("int_mod", x, y, z)
        return z

    def power(self, x: Operand, y: Operand, lo: int, hi: int) -> Expression:
        """Return a new variable from ``lo`` to ``hi`` that is x to the power y; 0 has no negative power."""
        z = self.int_var(lo, hi)
        self.post("int_pow", operand(x, "a base"), operand(y, "an exponent"), z)
        return z

    def absolute(self, x: Operand) -> Expression:
        """Return a new variable for the absolute value of an expression, bounds consistent."""
        lo, hi = self.bounds(x)
        z = self.result_var(max(lo, -hi, 0), max(-lo, hi), (x,))
        self.post("int_abs", x, z)
        return z

    def maximum(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable that is the greatest of several expressions, bounds consistent."""
        return self._extreme("array_int_maximum", several(xs, "maximum"), max)

    def minimum(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable that is the least of several expressions, bounds consistent."""
        return self._extreme("array_int_minimum", several(xs, "minimum"), min)

    def _extreme(self, name: str, xs: list[Operand], of: Any) -> Expression:
        if not xs:
            raise InputError("maximum and minimum need at least one expression")
        ends = [self.bounds(x) for x in xs]
        z = self.result_var(of(lo for lo, _ in ends), of(hi for _, hi in ends), xs)
        self.post(name, z, xs)
        return z

    def all_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 exactly if all Booleans of a list are 1."""
        b = self.bool_var()
        self.post("array_bool_and", booleans_of("all_of", several(booleans, "all_of")), b)
        return b

    def any_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 exactly if at least one Boolean of a list is 1."""
        b = self.bool_var()
        self.post("array_bool_or", booleans_of("any_of", several(booleans, "any_of")), b)
        return b

    def clause(self, positive: Iterable[Operand], negative: Iterable[Operand] = ()) -> None:
        """Require that a Boolean of one list is 1, or a Boolean of another list is 0.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> a, b = m.bool_vars(2)
            >>> m.clause([a], [b])
            >>> len(m.solve(all_solutions=True).solutions)
            3
        """
        self.post("bool_clause", *(booleans_of("clause", several(part, "clause")) for part in (positive, negative)))

    def holds_member(self, x: Operand, values: Sequence[int]) -> Expression:
        """Return a new Boolean that is 1 exactly if an expression has one of some values; 0 if there are no values."""
        if not values:
            return self.expression(0)
        b = self.bool_var()
        self.post("set_in_reif", x, values, b)
        return b

    def element(self, items: Sequence[Any] | NDArray[Any], index: Operand | tuple[Operand, ...]) -> Expression:
        """Return a new variable that is ``items[index]``.

        Args:
            items: Whole numbers, for example a row of a matrix, or expressions. Numbers are copied. A number takes 4
                bytes if it fits into 32 bits, and up to 8 bytes in the solver. For numbers, propagation is domain
                consistent. If the values of the result are more than 2^16 apart before the search, it is only bounds
                consistent for the result. For expressions, propagation is bounds consistent.
            index: Position, from 0 on; a tuple of positions where items have several dimensions.

        Raises:
            InputError: There are no items, something is not a whole number, or there are more or fewer positions than
                dimensions.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> row, column = m.int_vars(2, 0, 1)
            >>> m.maximize(m.element([[3, 1], [4, 2]], (row, column)))
            >>> m.solve()[[row, column]]
            [1, 0]
        """
        if isinstance(index, tuple):
            items, index = self._row_major(items, index)
        items = items if isinstance(items, np.ndarray) and items.ndim else several(items, "element")
        if not len(items):
            raise InputError("element: there are no items")
        of_variables = not isinstance(items, np.ndarray) and any(isinstance(x, Expression | Condition) for x in items)
        if of_variables:
            ends = [self.bounds(x) for x in items]
            z = self.result_var(min(lo for lo, _ in ends), max(hi for _, hi in ends), items)
        else:
            items = whole_array(items, "element: an item")
            z = self.int_var(int(items.min()), int(items.max()))
        index_from_1 = 1 + index if isinstance(index, Expression | Condition) else 1 + whole(index, "an index")
        self.post("array_var_int_element" if of_variables else "array_int_element", index_from_1, items, z)
        return z

    def _row_major(self, items: Any, indices: tuple[Operand, ...]) -> tuple[Any, Expression]:
        """Return the items of several dimensions as a list, and the position in it.

        Raises:
            InputError: The numbers of positions and of dimensions differ.
        """
        array = unmasked("the items of element", items)
        if array.ndim != len(indices):
            raise InputError(
                f"element: {counted(len(indices), 'position')} in items of {counted(array.ndim, 'dimension')}"
            )
        position = self.expression(0)
        for size, index in zip(array.shape, indices, strict=True):
            lo, hi = self.bounds(index)
            if lo < 0:
                self.add(self.expression(index) >= 0)
            if hi >= size:
                self.add(self.expression(index) < size)
            position = position * size + index
        return array.ravel() if array.dtype != object else array.ravel().tolist(), position

    def count(self, xs: Sequence[Operand], value: Operand) -> Expression:
        """Return a new variable that counts the expressions equal to ``value``."""
        xs = several(xs, "count")
        z = self.int_var(0, len(xs))
        self.post("count_eq", xs, operand(value, "a value"), z)
        return z

    def distinct_values(self, xs: Sequence[Operand]) -> Expression:
        """Return a new variable that counts the different values of the variables."""
        xs = several(xs, "distinct_values")
        z = self.int_var(min(1, len(xs)), len(xs))
        self.post("nvalue", z, xs)
        return z
