"""Sums of variables, and their comparisons."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn, Protocol, SupportsIndex, TypeAlias

from elimina.cp.operands import whole
from elimina.errors import InputError
from elimina.system import Slotted

Operand: TypeAlias = "Expression | SupportsIndex"


class ExpressionModel(Protocol):
    """The methods of a constraint model that its expressions and solutions use."""

    def name_of(self, var: int) -> str:
        """Return the name of a variable's number."""

    def maker(self, var: int) -> bytes:
        """Return the mark of the object that made a variable."""

    def bounds(self, x: Operand) -> tuple[int, int]:
        """Return the smallest and the largest value that an expression can take."""

    def product(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable that is x times y."""

    def maximum(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable that is the greatest of several."""

    def all_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 if all of several are 1."""

    def any_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 if at least one of several is."""


class Expression(Slotted):
    """A linear expression: coefficients times variables, and a constant. A variable is an expression, too.

    ``+``, ``-`` and ``*`` with whole numbers and other expressions make expressions, as do ``abs`` and, of Booleans,
    ``~``, ``&`` and ``|``; products, absolute values, ``&`` and ``|`` take a new variable.
    Comparisons make a `Relation`.

    Attributes:
        model: Model of the variables.
        constant: Constant term.
        name: Name of a variable; empty for other expressions.
    """

    # The terms are the first `_length` of a list that sums which begin alike share: sum(variables) copies none of them.
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
            return self._with((), self.constant + sign * whole(other, "an operand"))
        if other.model is not self.model:
            raise InputError(f"{self} and {other} belong to different models: use variables of one model")
        added = [(var, sign * factor) for var, factor in other.terms.items()]
        return self._with(added, self.constant + sign * other.constant)

    def _with(self, added: Collection[tuple[int, int]], constant: int) -> Expression:
        """Return an expression of more terms."""
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
        if isinstance(other, Expression):
            return self.model.product(self, other)
        by = whole(other, "a factor")
        return Expression(self.model, {var: by * factor for var, factor in self.terms.items()}, by * self.constant)

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> NoReturn:
        raise TypeError("expressions are divided by Model.quotient(x, y) and Model.remainder(x, y), which truncate")

    __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = __floordiv__

    def __pow__(self, other: object) -> NoReturn:
        raise TypeError("powers of expressions are made by Model.power(x, y, lo, hi); a square is x * x")

    __rpow__ = __pow__

    def __abs__(self) -> Expression:
        return self.model.maximum([self, -self])

    def __invert__(self) -> Expression:
        return 1 - self

    def __and__(self, other: Operand) -> Expression:
        return self.model.all_of([self, other])

    def __or__(self, other: Operand) -> Expression:
        return self.model.any_of([self, other])

    __rand__ = __and__
    __ror__ = __or__

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


class Relation(Slotted):
    """An expression compared with 0: a constraint for `Model.add`.

    Attributes:
        left: The expression.
        name: ``eq``, ``ne`` or ``le``.
    """

    __slots__ = ("left", "name")

    def __init__(self, left: Expression, name: str) -> None:
        self.left, self.name = left, name

    def __bool__(self) -> bool:
        raise InputError(
            f"{self} is a constraint, so it is neither true nor false in Python: add it with Model.add "
            "(the two parts of 1 < x < 4, or of 'and', one by one)"
        )

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
