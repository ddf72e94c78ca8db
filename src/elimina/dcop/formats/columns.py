"""Columns of values with the arithmetic of Python: exact, and computed by NumPy if that gives the same answer.

A column is an array of one axis: bool, int64 (only up to 2^53 in absolute value, so that a double holds it exactly),
float64, or object (strings, larger integers, mixtures), which is worked on element by element.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.number_texts import counted

Column = NDArray[Any]
EXACT = 2**53
MAX_INTEGER_BITS = 1024
_LARGEST_PLACES = 400
_MAX_NUMBER_CHARACTERS = 40

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def column(values: Iterable[Any]) -> Column:
    """Make a column of Python's booleans, integers, floats or strings."""
    listed = list(values)
    kinds = {type(value) for value in listed}
    if kinds <= {bool}:
        return np.array(listed, dtype=bool)
    if kinds <= {bool, int, float} and all(type(v) is float or abs(v) <= EXACT for v in listed):
        return np.array(listed, dtype=np.float64 if float in kinds else np.int64)
    mixed = np.empty(len(listed), dtype=object)
    mixed[:] = listed
    return mixed


def constant(value: Any, count: int) -> Column:
    """Return a column of one value."""
    return np.repeat(column([value]), count)


def merged(mask: NDArray[np.bool_], chosen: Column, otherwise: Column) -> Column:
    """Return a column with the next value of ``chosen`` where the mask is set, and of ``otherwise`` elsewhere."""
    kinds = {column.dtype.kind for column in (chosen, otherwise)}
    dtype = object if "O" in kinds else float if "f" in kinds else np.int64 if "i" in kinds else bool
    result = np.empty(len(mask), dtype=dtype)
    result[mask], result[~mask] = chosen, otherwise
    return result


def truth(values: Column) -> NDArray[np.bool_]:
    """Return whether each value counts as true."""
    return values.astype(bool)


def compare(kind: type[ast.cmpop], lhs: Column, rhs: Column) -> NDArray[np.bool_]:
    """Compare element by element.

    Raises:
        TextError: Values without an order, such as a string and a number, are ordered.
    """
    compared = _COMPARISONS[kind]
    if lhs.dtype.kind != "O" and rhs.dtype.kind != "O":
        result: NDArray[np.bool_] = compared(lhs, rhs)
        return result
    try:
        pairs = zip(lhs.tolist(), rhs.tolist(), strict=True)
        return np.fromiter((compared(a, b) for a, b in pairs), dtype=bool, count=len(lhs))
    except TypeError as error:
        raise TextError(f"the expression compares what has no order: {error}") from None


def arithmetic(kind: type[ast.operator], lhs: Column, rhs: Column) -> Column:
    """Add, subtract, multiply, divide or raise to a power.

    Raises:
        TextError: A divisor is 0, or the result is not a real number.
        UnsupportedError: A value is not a number, or an integer gets too large.
    """
    if kind in (ast.Div, ast.FloorDiv, ast.Mod) and not truth(rhs).all():
        raise TextError("the expression divides by zero")
    lhs, rhs = _number(lhs), _number(rhs)
    if "O" not in (lhs.dtype.kind, rhs.dtype.kind) and kind is not ast.Pow:
        are_integers = lhs.dtype.kind == rhs.dtype.kind == "i"
        if not (are_integers and kind is ast.Mult and _largest(lhs) * _largest(rhs) > EXACT):
            with np.errstate(all="ignore"):
                result: Column = _ARITHMETIC[kind](lhs, rhs)
            if result.dtype.kind == "f" or _largest(result) <= EXACT:
                return result
    pairs = zip(lhs.tolist(), rhs.tolist(), strict=True)
    return column(_exact(kind, a, b) for a, b in pairs)


def negative(values: Column) -> Column:
    """Return the negation of numbers."""
    values = _number(values)
    return column(-v for v in values.tolist()) if values.dtype.kind == "O" else -values


def positive(values: Column) -> Column:
    """Return numbers unchanged, and booleans as integers."""
    return _number(values)


def call(name: str, arguments: Sequence[Column], count: int) -> Column:
    """Call one of the functions that expressions may call.

    Raises:
        TextError: A value is outside what the function takes.
        UnsupportedError: A value is of a kind that is not handled.
    """
    if name in ("min", "max"):
        return _extreme(ast.Lt if name == "min" else ast.Gt, arguments)
    if name == "pow":
        return arithmetic(ast.Pow, *arguments)
    if name == "sum":
        total = constant(0, count)
        for argument in arguments:
            total = arithmetic(ast.Add, total, argument)
        return total
    if name == "bool":
        return truth(arguments[0])
    if name == "abs":
        values = _number(arguments[0])
        return column(abs(v) for v in values.tolist()) if values.dtype.kind == "O" else np.abs(values)
    if name == "round" and len(arguments) == 1:
        return _rounded(_number(arguments[0]))
    return column(_SCALAR[name](*row) for row in zip(*(a.tolist() for a in arguments), strict=True))


def _number(values: Column) -> Column:
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    if values.dtype.kind == "O" and any(isinstance(v, str) for v in values.tolist()):
        shown = next(v for v in values.tolist() if isinstance(v, str))
        raise UnsupportedError(f"an expression computes with the string {shown[:40]!r}; strings are only compared")
    return values


def _largest(values: Column) -> int:
    """Return the largest absolute value of integers."""
    return max(-int(values.min()), int(values.max())) if values.size else 0


def _exact(kind: type[ast.operator], lhs: Any, rhs: Any) -> Any:
    are_integers = isinstance(lhs, int) and isinstance(rhs, int)
    if kind is ast.Pow and are_integers and rhs > 0 and lhs.bit_length() * rhs > 2 * MAX_INTEGER_BITS:
        raise UnsupportedError(f"an expression raises an integer to the power {str(rhs)[:20]}, which is too large")
    try:
        result = _ARITHMETIC[kind](lhs, rhs)
    except ZeroDivisionError:
        raise TextError("the expression divides by zero") from None
    except OverflowError as error:
        raise UnsupportedError(f"an expression gets too large: {error.args[-1]}") from None
    if isinstance(result, complex):
        raise TextError(f"the expression raises {lhs} to the power {rhs}, which is not a real number")
    if isinstance(result, int) and result.bit_length() > MAX_INTEGER_BITS:
        raise UnsupportedError(
            f"an expression has an integer of {result.bit_length()} bits; up to {MAX_INTEGER_BITS} are handled"
        )
    return result


def _extreme(better: type[ast.cmpop], arguments: Sequence[Column]) -> Column:
    best = arguments[0]
    for candidate in arguments[1:]:
        mask = compare(better, candidate, best)
        best = merged(mask, candidate[mask], best[~mask])
    return best


def _rounded(values: Column) -> Column:
    if values.dtype.kind == "i":
        return values
    if values.dtype.kind == "f" and (np.abs(values) <= EXACT).all():
        return np.rint(values).astype(np.int64)
    return column(_to_int(v, round) for v in values.tolist())


def _to_int(value: Any, convert: Callable[[Any], int] = int) -> int:
    if isinstance(value, str) and len(value) > _MAX_NUMBER_CHARACTERS:
        raise UnsupportedError(
            f"an expression reads a number from {counted(len(value), 'character')}, which is not handled"
        )
    try:
        return convert(value)
    except (ValueError, OverflowError) as error:
        raise TextError(f"the expression needs an integer: {error}") from None


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise TextError(f"the expression needs a number: {error}") from None


def _round_to(value: Any, digits: Any) -> Any:
    if isinstance(value, str) or not isinstance(digits, int) or abs(digits) > _LARGEST_PLACES:
        raise UnsupportedError("an expression rounds to something that is not a small number of places")
    return round(value, digits)


def _length(value: Any) -> int:
    if not isinstance(value, str):
        raise TextError(f"the expression takes the length of {value!r}, which has none")
    return len(value)


_SCALAR: dict[str, Callable[..., Any]] = {
    "int": _to_int,
    "float": _to_float,
    "round": _round_to,
    "len": _length,
    "str": str,
}
