"""Whole numbers as arguments of constraints, and their limits."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from elimina.arguments import wrong_type
from elimina.errors import InputError

Numbers: TypeAlias = npt.NDArray[np.signedinteger[Any]]

T = TypeVar("T")

MAX_INTEGER = 2**52
"""Largest absolute value of a bound of a variable or an expression."""


def whole(number: object, what: str) -> int:
    """Return a whole number as an int.

    Raises:
        InputError: ``number`` is not a whole number.
    """
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{what} is a whole number or an expression, not {number!r}") from None


def whole_array(numbers: Any) -> Numbers:
    """Return whole numbers as a new array, of 32 bits if they fit: large tables dominate a model's memory.

    Raises:
        InputError: An item is not a whole number, or beyond 2^52.
    """
    if is_of_numbers(numbers):
        result = numbers
    else:
        numbers = [whole(x, "an argument") for x in numbers]
        if any(abs(x) > MAX_INTEGER for x in numbers):
            raise InputError("an argument is beyond -2^52..2^52: use smaller numbers")
        result = np.array(numbers, dtype=np.int64)
    smallest, largest = (int(result.min()), int(result.max())) if len(result) else (0, 0)
    if largest > MAX_INTEGER or smallest < -MAX_INTEGER:
        raise InputError("an argument is beyond -2^52..2^52: use smaller numbers")
    return np.array(result, np.int32 if smallest >= -(2**31) and largest < 2**31 else np.int64)


def is_of_numbers(argument: Any) -> TypeGuard[Numbers]:
    """Return whether a value is an array of one dimension and of signed integers."""
    return isinstance(argument, np.ndarray) and argument.ndim == 1 and np.issubdtype(argument.dtype, np.signedinteger)


def several(items: Iterable[T], what: str) -> list[T]:
    """Return an iterable as a list: a data frame as the list of its rows.

    Raises:
        InputError: ``items`` is not iterable.
    """
    if hasattr(items, "columns") and hasattr(items, "__array__"):
        # Iterating over a frame of pandas would yield names of columns; over other frames, the columns.
        return list(np.asarray(items).tolist())
    try:
        return list(items)
    except TypeError:
        raise InputError(f"{what} gets a list of variables or numbers, not {items!r}") from None


def array_of_numbers(name: str, array_like: Any) -> npt.NDArray[Any]:
    """Return an array-like object as an array; raise ``TypeError`` if NumPy cannot convert it."""
    try:
        return np.asarray(array_like)
    except (TypeError, ValueError):
        raise wrong_type(name, array_like, "an array of numbers") from None
