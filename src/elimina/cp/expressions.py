"""Sums of variables, their comparisons, and conditions made of these."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn, Protocol, SupportsIndex, TypeAlias

from elimina.cp.operands import whole
from elimina.errors import InputError
from elimina.system import Slotted

Operand: TypeAlias = "Expression | Condition | SupportsIndex"


class ExpressionModel(Protocol):
    """The methods of a constraint model that its expressions, conditions and solutions use."""

    def name_of(self, var: int) -> str:
        """Return the name of a variable, given its number."""

    def maker(self, var: int) -> bytes:
        """Return the mark of the object that made a variable."""

    def bounds(self, x: Operand) -> tuple[int, int]:
        """Return the smallest and the largest value that an expression can take."""

    def product(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable that is x times y."""

    def floor_division(self, x: Operand, y: Operand) -> tuple[Expression, Expression]:
        """Return the quotient and the remainder of Python's ``divmod``."""

    def whole_power(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable that is x to a power of at least 0."""

    def holds(self, condition: Condition) -> Expression:
        """Return a new Boolean that is 1 exactly if a condition holds."""

    def absolute(self, x: Operand) -> Expression:
        """Return a new variable for the absolute value of an expression."""

    def all_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 exactly if all Booleans of a list are 1."""

    def any_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 exactly if at least one Boolean of a list is 1."""


class Expression(Slotted):
    """A linear expression: coefficients times variables, and a constant. A variable is an expression, too.

    ``+``, ``-``, ``*``, ``//``, ``%`` and ``**`` with whole numbers and other expressions make expressions, as do
    ``abs`` and, of Booleans, ``~``, ``&`` and ``|``. All except sums, multiples and ``~`` need a new variable. ``//``
    and ``%`` round down, as in Python. Comparisons, and ``^`` of Booleans, make a `Relation`.

    Attributes:
        model: Model of the variables.
        constant: Constant term.
        name: Name of a variable; empty for other expressions.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x, y = m.int_var(0, 9, "x"), m.int_var(0, 9, "y")
        >>> 2 * x - y + 3
        2*x - y + 3
    """

    # Terms are the first `_length` items of a list. Sums with the same first terms share the list, so sum() copies
    # nothing.
    __slots__ = ("_length", "_listed", "_terms", "constant", "model", "name")

    def __init__(self, model: ExpressionModel, terms: Mapping[int, int], constant: int = 0, name: str = "") -> None:
        self.model = model
        self._listed = list(terms.items())
        self._length = len(self._listed)
        self._terms: dict[int, int] | None = None
        self.constant = constant
        self.name = name

    @property
    def terms(self) -> dict[int, int]:
        """Number of a variable -> its coefficient, which is not 0."""
        if self._terms is None:
            total: dict[int, int] = {}
            for var, factor in itertools.islice(self._listed, self._length):
                total[var] = total.get(var, 0) + factor
            self._terms = {var: factor for var, factor in total.items() if factor}
        return self._terms

    def _plus(self, other: Operand, sign: int) -> Expression:
        if not isinstance(other, Expression):
            if not isinstance(other, Condition):
                return self._with((), self.constant + sign * whole(other, "an operand"))
            other = other.truth
        if other.model is not self.model:
            raise InputError(f"{self} and {other} belong to different models: use variables of one model")
        added = [(var, sign * factor) for var, factor in other.terms.items()]
        return self._with(added, self.constant + sign * other.constant)

    def _with(self, added: Collection[tuple[int, int]], constant: int) -> Expression:
        """Return this expression with more terms, and with another constant."""
        extended = Expression(self.model, {}, constant)
        is_end = len(self._listed) == self._length
        extended._listed = self._listed if is_end else self._listed[: self._length]
        extended._listed.extend(added)
        extended._length = self._length + len(added)
        return extended

    def __add__(self, other: Operand) -> Expression:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Expression:
        return self._plus(other, -1)

    def __rsub__(self, other: Operand) -> Expression:
        return (-self)._plus(other, 1)

    def __neg__(self) -> Expression:
        return self * -1

    def __mul__(self, other: Operand) -> Expression:
        if isinstance(other, Expression | Condition):
            return self.model.product(self, other)
        by = whole(other, "a factor")
        return Expression(self.model, {var: by * factor for var, factor in self.terms.items()}, by * self.constant)

    __rmul__ = __mul__

    def __floordiv__(self, other: Operand) -> Expression:
        return self.model.floor_division(self, other)[0]

    def __rfloordiv__(self, other: Operand) -> Expression:
        return self.model.floor_division(other, self)[0]

    def __mod__(self, other: Operand) -> Expression:
        return self.model.floor_division(self, other)[1]

    def __rmod__(self, other: Operand) -> Expression:
        return self.model.floor_division(other, self)[1]

    def __divmod__(self, other: Operand) -> tuple[Expression, Expression]:
        return self.model.floor_division(self, other)

    def __rdivmod__(self, other: Operand) -> tuple[Expression, Expression]:
        return self.model.floor_division(other, self)

    def __truediv__(self, other: object) -> NoReturn:
        raise TypeError("expressions are whole numbers: x // y rounds down, Model.quotient(x, y) towards 0")

    __rtruediv__ = __truediv__

    def __pow__(self, other: Operand) -> Expression:
        return self.model.whole_power(self, other)

    def __rpow__(self, other: Operand) -> Expression:
        return self.model.whole_power(other, self)

    def __abs__(self) -> Expression:
        return self.model.absolute(self)

    def __invert__(self) -> Expression:
        return 1 - self

    def __and__(self, other: Operand) -> Expression | Combination:
        return Combination("and", (self, other)) if isinstance(other, Condition) else self.model.all_of([self, other])

    def __or__(self, other: Operand) -> Expression | Combination:
        return Combination("or", (self, other)) if isinstance(other, Condition) else self.model.any_of([self, other])

    __rand__ = __and__
    __ror__ = __or__

    def __xor__(self, other: Operand) -> Relation:
        return self != other

    __rxor__ = __xor__

    def implies(self, other: Operand) -> Combination:
        """Return the condition that the other condition holds if this Boolean is 1."""
        return Combination("or", (~self, other))

    def __eq__(self, other: Operand) -> Relation:  # type: ignore[override]
        return Relation(self - other, "eq")

    def __ne__(self, other: Operand) -> Relation:  # type: ignore[override]
        return Relation(self - other, "ne")

    def __le__(self, other: Operand) -> Relation:
        return Relation(self - other, "le")

    def __ge__(self, other: Operand) -> Relation:
        return Relation(other - self, "le")

    def __lt__(self, other: Operand) -> Relation:
        return Relation(self - other + 1, "le")

    def __gt__(self, other: Operand) -> Relation:
        return Relation(other - self + 1, "le")

    __hash__ = object.__hash__

    def __str__(self) -> str:
        if self.name:
            return self.name
        text = ""
        for var, factor in self.terms.items():
            size = "" if abs(factor) == 1 else f"{abs(factor)}*"
            text += f"{_sign(factor, bool(text))}{size}{self.model.name_of(var)}"
        if self.constant or not text:
            text += f"{_sign(self.constant, bool(text))}{abs(self.constant)}"
        return text

    __repr__ = __str__


_SYMBOLS = {"eq": "==", "ne": "!=", "le": "<="}


def _sign(number: int, is_later: bool) -> str:
    if is_later:
        return " - " if number < 0 else " + "
    return "-" if number < 0 else ""


class Condition(Slotted):
    """A constraint for `Model.add`, which can also be used as a Boolean expression.

    ``&``, ``|``, ``~``, ``^`` and `implies` of conditions and Booleans make conditions. As an operand of ``+``, ``-``,
    ``*``, ``sum``, comparisons and functions, a condition is the Boolean `truth`.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x, y = m.int_var(0, 9, "x"), m.int_var(0, 9, "y")
        >>> (x < 3) | ~(y >= 2)
        (x <= 2) | (y <= 1)
    """

    __slots__ = ("_truth",)

    def __init__(self) -> None:
        self._truth: Expression | None = None

    # The class is not abstract, because checking the type of an operand would then take ten times as long.

    @property
    def model(self) -> ExpressionModel:
        """Model of the variables."""
        raise NotImplementedError

    @property
    def truth(self) -> Expression:
        """A Boolean that is 1 exactly if the condition holds: a new variable on first use."""
        if self._truth is None:
            self._truth = self.model.holds(self)
        return self._truth

    def implies(self, other: Operand) -> Combination:
        """Return the condition that the other condition holds if this one does."""
        return Combination("or", (~self, other))

    def __invert__(self) -> Condition:
        raise NotImplementedError

    def __and__(self, other: Operand) -> Combination:
        return Combination("and", (self, other))

    def __or__(self, other: Operand) -> Combination:
        return Combination("or", (self, other))

    __rand__ = __and__
    __ror__ = __or__

    def __xor__(self, other: Operand) -> Relation:
        return self.truth != other

    __rxor__ = __xor__

    def __add__(self, other: Operand) -> Expression:
        return self.truth + other

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Expression:
        return self.truth - other

    def __rsub__(self, other: Operand) -> Expression:
        return -self.truth + other

    def __neg__(self) -> Expression:
        return -self.truth

    def __mul__(self, other: Operand) -> Expression:
        return self.truth * other

    __rmul__ = __mul__

    def __eq__(self, other: Operand) -> Relation:  # type: ignore[override]
        return self.truth == other

    def __ne__(self, other: Operand) -> Relation:  # type: ignore[override]
        return self.truth != other

    def __le__(self, other: Operand) -> Relation:
        return self.truth <= other

    def __ge__(self, other: Operand) -> Relation:
        return self.truth >= other

    def __lt__(self, other: Operand) -> Relation:
        return self.truth < other

    def __gt__(self, other: Operand) -> Relation:
        return self.truth > other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InputError(
            f"{self} is a constraint, so it is neither true nor false in Python: add it with Model.add, and combine "
            "conditions by & (1 < x < 4 is (1 < x) & (x < 4)), | and ~ instead of 'and', 'or' and 'not'"
        )


class Relation(Condition):
    """An expression compared with 0.

    Attributes:
        left: The expression.
        name: ``eq``, ``ne`` or ``le``.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x = m.int_var(0, 9, "x")
        >>> m.add(2 * x >= 15)
        >>> m.solve()[x] >= 8
        True
    """

    __slots__ = ("left", "name")

    def __init__(self, left: Expression, name: str) -> None:
        super().__init__()
        self.left, self.name = left, name

    @property
    def model(self) -> ExpressionModel:
        """Model of the variables."""
        return self.left.model

    def __invert__(self) -> Relation:
        if self.name == "le":
            return Relation(1 - self.left, "le")
        return Relation(self.left, "ne" if self.name == "eq" else "eq")

    def __str__(self) -> str:
        terms, constant = self.left.terms, self.left.constant
        if not terms:
            return f"{constant} {_SYMBOLS[self.name]} 0"
        # The constant is on the right, and some factor on the left is positive.
        sign = 1 if max(terms.values()) > 0 else -1
        left = Expression(self.left.model, {var: sign * factor for var, factor in terms.items()}, 0)
        symbol = ">=" if (self.name, sign) == ("le", -1) else _SYMBOLS[self.name]
        return f"{left} {symbol} {-sign * constant}"

    __repr__ = __str__


class Combination(Condition):
    """All or any of several conditions and Booleans.

    Attributes:
        name: ``and`` or ``or``.
        operands: The conditions and Booleans.

    Raises:
        InputError: An operand is neither a condition nor a Boolean.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x, y = m.int_var(0, 9, "x"), m.int_var(0, 9, "y")
        >>> m.add((x > 8) & (y < 1))
        >>> m.solve()[[x, y]]
        [9, 0]
    """

    __slots__ = ("name", "operands")

    def __init__(self, name: str, operands: Iterable[Operand]) -> None:
        super().__init__()
        self.name = name
        self.operands: list[Expression | Condition | int] = []
        for operand in operands:
            if isinstance(operand, Combination) and operand.name == name:
                self.operands += operand.operands
            else:
                self.operands.append(operand if isinstance(operand, Condition) else boolean(operand))

    @property
    def model(self) -> ExpressionModel:
        """Model of the variables."""
        return next(operand.model for operand in self.operands if not isinstance(operand, int))

    def __invert__(self) -> Combination:
        opposites = [1 - operand if isinstance(operand, int) else ~operand for operand in self.operands]
        return Combination("or" if self.name == "and" else "and", opposites)

    def __str__(self) -> str:
        return (" & " if self.name == "and" else " | ").join(f"({operand})" for operand in self.operands)

    __repr__ = __str__


def operand(x: Operand, what: str) -> Expression | Condition | int:
    """Return an operand, a whole number as an int.

    Args:
        x: The operand.
        what: Noun for errors, with its article.

    Raises:
        InputError: The operand is neither an expression nor a whole number.
    """
    return x if isinstance(x, Expression | Condition) else whole(x, what)


def booleans_of(constraint: str, xs: Iterable[Operand]) -> list[Operand]:
    """Return conditions and operands as Booleans: see `boolean`.

    Args:
        constraint: Name of the constraint, for errors.
        xs: Conditions and operands.

    Raises:
        InputError: An operand may have other values than 0 and 1.
    """
    try:
        return [boolean(x) for x in xs]
    except InputError as error:
        raise InputError(f"{constraint}: {error}") from None


def boolean(x: Operand) -> Expression | int:
    """Return a condition's Boolean, or an operand whose values are 0 and 1.

    Raises:
        InputError: The operand may have other values.
    """
    operand = x.truth if isinstance(x, Condition) else x if isinstance(x, Expression) else whole(x, "a condition")
    if isinstance(operand, int):
        if operand not in (0, 1):
            raise InputError(f"a condition is 0 or 1, not {operand}")
        return operand
    lo, hi = operand.model.bounds(operand)
    if lo < 0 or hi > 1:
        raise InputError(f"{operand} is from {lo} to {hi}, and a condition is 0 or 1: compare it, as {operand} != 0")
    return operand
