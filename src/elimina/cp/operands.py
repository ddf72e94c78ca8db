"""Whole numbers as arguments of constraints, and their limits."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from elimina.arguments import wrong_type
from elimina.display import cut
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


def whole_numbers(numbers: Iterable[Any], constraint: str, what: str) -> list[int]:
    """Return whole numbers as ints.

    Args:
        numbers: The numbers.
        constraint: Name of the constraint, for errors.
        what: Noun with its article for a number, for errors.

    Raises:
        InputError: A number is not whole, or beyond 2^52.
    """
    listed = [whole(x, f"{constraint}: {what}") for x in several(numbers, constraint)]
    for number in listed:
        if abs(number) > MAX_INTEGER:
            raise InputError(f"{constraint}: {what} is {number}, beyond -2^52..2^52: use smaller numbers")
    return listed


def check_pairs(constraint: str, first: str, second: str, counts: tuple[int, int]) -> None:
    """Check that two lists have equal lengths.

    Args:
        constraint: Name of the constraint, for errors.
        first: Name of the first list.
        second: Name of the second list.
        counts: Lengths of the lists.

    Raises:
        InputError: The lengths differ.
    """
    if counts[0] != counts[1]:
        raise InputError(f"{constraint}: {counts[0]} {first} and {counts[1]} {second}: give as many of both")


def beyond_limits(subject: str, lo: int, hi: int) -> InputError:
    """Return the error that an expression may have values beyond 2^52."""
    return InputError(
        f"{cut(subject, 120)} is from {lo} to {hi}, beyond -2^52..2^52: give its variables smaller bounds"
    )


def whole_array(numbers: Any, what: str = "an argument") -> Numbers:
    """Return whole numbers as a new array, of 32 bits if they fit: large tables dominate a model's memory.

    Args:
        numbers: The numbers.
        what: Noun with its article for a number, for errors.

    Raises:
        InputError: An item is not a whole number, or beyond 2^52.
    """
    if is_of_numbers(numbers):
        result = numbers
    else:
        numbers = [whole(x, what) for x in numbers]
        for number in numbers:
            if abs(number) > MAX_INTEGER:
                raise InputError(f"{what} is {number}, beyond -2^52..2^52: use smaller numbers")
        result = np.array(numbers, dtype=np.int64)
    smallest, largest = (int(result.min()), int(result.max())) if len(result) else (0, 0)
    if largest > MAX_INTEGER or smallest < -MAX_INTEGER:
        raise InputError(f"{what} is beyond -2^52..2^52: use smaller numbers")
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
