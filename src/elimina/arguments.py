"""Checks of arguments. A wrong type raises a TypeError, a senseless value an InputError; both name the argument.

A wrong type's message has three parts: the argument's name, its value and type, and the expected types.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
import os
import re
import reprlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeGuard, TypeVar, cast

import numpy as np

from elimina.errors import InputError

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    from _typeshed import DataclassInstance

Word = TypeVar("Word", bound=str)
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Owner = TypeVar("Owner")

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][0-9]{1,2})?)\s*([kKmMgGtT]?i?)([bB]?)\s*", re.ASCII)
_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*(%?)\s*", re.ASCII)

_LEAST_WITHOUT_UNIT = 2**20
"""A memory size of fewer bytes needs a unit."""

_CHECKED = "checks_keywords"
"""Name of the attribute of functions whose keywords are checked."""

_EQUIVALENTS = {"variables": "query", "target": "query", "targets": "query", "nodes": "query", "timeout": "time_limit"}
"""Keywords of other libraries -> those of this one, which their spelling does not suggest."""

_LONGEST_INTEGER = 10_000
"""Errors describe an integer of more bits by its length: Python takes long to write its digits, or refuses to."""

_LINES = re.compile(r"\s*\n\s*")

_NAMES_SHOWN = 8
"""Largest number of names in an error."""


class Bytes(int):
    """A checked number of bytes, which needs no unit."""


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxlong = 40


def shown(argument: Any) -> str:
    """Return a value as errors quote it, shortened if it is long."""
    if isinstance(argument, int) and argument.bit_length() > _LONGEST_INTEGER:
        return f"an integer of {argument.bit_length():,} bits"
    return _LINES.sub(" ", _short.repr(argument))


def wrong_type(name: str, argument: Any, taken: str) -> TypeError:
    """Return the error of an argument of the wrong type, to be raised.

    Args:
        name: The argument's name.
        argument: Value of the argument.
        taken: Description of the accepted values.
    """
    description = "None" if argument is None else f"{shown(argument)} ({type(argument).__name__})"
    return TypeError(f"{name} is {description}; it takes {taken}")


def in_order(name: str, argument: Any) -> None:
    """Refuse a set where a sequence in the order of an array's axes is needed.

    Raises:
        TypeError: The argument is a set.
    """
    if isinstance(argument, set | frozenset):
        raise wrong_type(name, argument, "a sequence in the order of the axes; a set has no order")


def with_checked_keywords(
    options_type: type[DataclassInstance] | None = None, written: str = ""
) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """Return a decorator for public functions: an unknown keyword gets an error that names the likely one.

    If the keyword is a field of the function's options, the error tells the user to write it inside ``options``.

    Args:
        options_type: Type of the function's argument ``options``, if it has one.
        written: Name of that type, as a user writes it.
    """
    fields = () if options_type is None else tuple(field.name for field in dataclasses.fields(options_type))

    def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        code = _undecorated(function).__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        accepted = frozenset(names[code.co_posonlyargcount :])

        @functools.wraps(function)
        def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            if not accepted.issuperset(kwargs):
                name = next(name for name in kwargs if name not in accepted)
                value = shown(kwargs[name])
                if name in fields:
                    raise TypeError(f"{name} is one of the options: write options={written}({name}={value})")
                keywords = [keyword for keyword in names if keyword in accepted and keyword not in ("self", "cls")]
                likely = _EQUIVALENTS.get(name)
                likely = likely if likely in keywords else name
                closest = close_names(likely, (*keywords, *fields))[:1]
                is_option = bool(closest) and closest[0] not in accepted
                advice = f"options={written}({closest[0]}={value})" if is_option else ""
                hint = f"; did you mean {advice}?" if is_option else names_like(likely, keywords)
                called_name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
                raise TypeError(f"{called_name}() got an unexpected keyword argument {name!r}{hint}")
            return function(*args, **kwargs)

        # Decorators above this one copy the attribute (``functools.wraps``).
        vars(called)[_CHECKED] = True
        return called

    return decorate


def _undecorated(function: Callable[..., Any]) -> types.FunctionType:
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    return cast(types.FunctionType, function)


def with_checked_methods(owner: type[Owner]) -> type[Owner]:
    """Check the keywords of a class's constructor and public methods, as ``with_checked_keywords`` does.

    Methods without optional arguments, and methods that take arbitrary keywords, stay as they are.
    """
    for name, member in [*vars(owner).items()]:
        function = getattr(member, "__func__", member)
        is_public = name == "__init__" or not name.startswith("_")
        if not is_public or not isinstance(function, types.FunctionType) or _CHECKED in vars(function):
            continue
        undecorated = _undecorated(function)
        takes_any = undecorated.__code__.co_flags & inspect.CO_VARKEYWORDS
        if not takes_any and (undecorated.__defaults__ or undecorated.__kwdefaults__):
            checked = with_checked_keywords()(function)
            setattr(owner, name, checked if function is member else type(member)(checked))
    return owner


def close_names(name: str, existing: Iterable[str]) -> list[str]:
    """Return existing names close to a wrong one, the closest first; case and underscores make no difference."""
    from difflib import get_close_matches

    by_folded: dict[str, str] = {}
    for existing_name in existing:
        by_folded.setdefault(_folded(existing_name), existing_name)
    return [by_folded[match] for match in get_close_matches(_folded(str(name)), by_folded, n=3)]


def _folded(name: str) -> str:
    return name.casefold().replace("_", "")


def names_like(name: str, existing: Iterable[str]) -> str:
    """Return the hint of an error about a wrong name: existing names close to it, otherwise the first existing ones."""
    names = list(dict.fromkeys(existing))
    matches = close_names(name, names)
    if matches:
        *others, last = map(repr, matches)
        return f"; did you mean {' or '.join([', '.join(others), last] if others else [last])}?"
    more = ", ..." if len(names) > _NAMES_SHOWN else ""
    return f"; it has {', '.join(map(repr, names[:_NAMES_SHOWN]))}{more}" if names else "; it has none"


def unknown_key(noun: str, name: Any, existing: Iterable[str]) -> KeyError:
    """Return the error of a mapping by names that lacks one, to be raised.

    Args:
        noun: Entries of the mapping, in the singular.
        name: The key.
        existing: The mapping's keys.
    """
    return KeyError(f"there is no {noun} of {shown(name)}{names_like(str(name), existing)}")


def integer(
    name: str, argument: Any, minimum: int | None = None, maximum: int | None = None, *, taken: str = ""
) -> int:
    """Return an integer as an int, and refuse a bool.

    Args:
        name: The argument's name.
        argument: A Python or NumPy integer.
        minimum: The smallest value allowed.
        maximum: The largest value allowed.
        taken: Description of the allowed values in a TypeError; empty for "an integer".

    Raises:
        TypeError: The argument is not an integer.
        InputError: The argument is out of range.
    """
    if isinstance(argument, bool) or not hasattr(type(argument), "__index__"):
        raise wrong_type(name, argument, taken or "an integer")
    try:
        value = operator.index(argument)
    except TypeError:
        raise wrong_type(name, argument, taken or "an integer") from None
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        limits = f"at least {minimum:,}" if maximum is None else f"from {minimum:,} to {maximum:,}"
        raise InputError(f"{name} is {shown(value)}; it must be {limits}")
    return value


def value_in(assignment: Mapping[int, int] | Sequence[int], variable: int, size: int) -> int:
    """Return the index of a variable's value in an assignment.

    Raises:
        InputError: The value is missing, or not an integer from 0 to ``size - 1``.
        TypeError: The assignment is neither a mapping nor a sequence.
    """
    try:
        value = assignment[variable]
    except LookupError:
        raise InputError(f"the assignment has no value of variable {variable}") from None
    except TypeError:
        taken = "a mapping from variables to values, by index, or a sequence of values"
        raise wrong_type("assignment", assignment, taken) from None
    if not isinstance(value, int | np.integer) or not 0 <= value < size:
        raise InputError(f"variable {variable} has the values 0 to {size - 1}, not {shown(value)}")
    return int(value)


def number(name: str, argument: Any, taken: str = "a number") -> int | float:
    """Return a real number: an int for an integer, otherwise a float.

    Raises:
        TypeError: The argument is not a real number.
        InputError: The argument is NaN, or a non-integer beyond the range of a float.
    """
    if hasattr(type(argument), "__index__") and not isinstance(argument, bool):
        return integer(name, argument, taken=taken)
    if isinstance(argument, bool | str | bytes) or not hasattr(type(argument), "__float__"):
        raise wrong_type(name, argument, taken)
    try:
        value = float(argument)
    except (TypeError, ValueError):
        raise wrong_type(name, argument, taken) from None
    except OverflowError:
        raise _beyond_floats(name, argument) from None
    if math.isnan(value):
        raise InputError(f"{name} is NaN; it takes {taken}")
    return value


def real(name: str, argument: Any, taken: str = "a number") -> float:
    """Return a real number as a float.

    Raises:
        TypeError: The argument is not a real number.
        InputError: The argument is NaN, or out of the range of a float.
    """
    value = number(name, argument, taken)
    try:
        return float(value)
    except OverflowError:
        raise _beyond_floats(name, argument) from None


def _beyond_floats(name: str, argument: Any) -> InputError:
    return InputError(f"{name} is {shown(argument)}, which is out of the range of a float")


def seconds(name: str, argument: Any) -> float | None:
    """Return a time limit in seconds; None if there is no limit.

    Raises:
        TypeError: The argument is not a number.
        InputError: The argument is NaN, not above 0, or a non-integer beyond the range of a float.
    """
    if argument is None:
        return None
    value = number(name, argument, "a number of seconds, or None for no limit")
    if not value > 0:
        raise InputError(f"{name} is {shown(value)} s; it must be above 0")
    return float(min(value, 1e300))


def memory_size(name: str, argument: Any) -> Bytes | None:
    """Return a number of bytes from a number, or from text with a unit such as 8GiB; None stays None.

    Raises:
        TypeError: The argument is neither a number nor text.
        InputError: The argument is NaN, infinite, less than one byte, a number of less than 1 MiB, or text that
            ``parse_size`` refuses.
    """
    if argument is None or isinstance(argument, Bytes):
        return argument
    if isinstance(argument, str):
        return parse_size(argument, name)
    value = number(name, argument, "a number of bytes, text such as '8GiB', or None for what is free")
    if 1 <= value < _LEAST_WITHOUT_UNIT:
        raise _without_unit(name, value, f"'{value}GiB' or '{value}{'B' if isinstance(value, int) else 'MiB'}'")
    return _bytes(name, value)


def parse_size(text: str, name: str = "memory") -> Bytes:
    """Read a number of bytes: ``8GiB``, ``500 MB``, ``1e9``.

    Raises:
        InputError: The text is not a size, is less than one byte, or is a number of less than 1 MiB without a unit,
            which was probably forgotten.
    """
    match = _SIZE.fullmatch(text)
    if match is None or match[2].lower() not in _UNITS:
        raise InputError(
            f"invalid {name} size {shown(text)}: expected a number with a unit, such as 8GiB, 500MB or 100000000"
        )
    from fractions import Fraction

    size = Fraction(match[1]) * _UNITS[match[2].lower()]
    if not match[2] and not match[3] and 0 < size < _LEAST_WITHOUT_UNIT:
        raise _without_unit(name, text, f"{match[1]}GiB or {match[1]}{'B' if size.denominator == 1 else 'MiB'}")
    return _bytes(name, size)


def _without_unit(name: str, argument: Any, examples: str) -> InputError:
    return InputError(f"invalid {name} size {shown(argument)}: a number this small needs a unit, such as {examples}")


def _bytes(name: str, argument: float | Fraction) -> Bytes:
    if not 1 <= argument < math.inf:
        size = shown(argument) if isinstance(argument, int) else f"{float(argument):g}"
        raise InputError(f"{name} is {size} bytes: expected a finite size of at least one, such as 500MB")
    # Larger sizes have the same effect, because no machine addresses more bytes.
    return Bytes(min(int(argument), sys.maxsize))


def share(name: str, argument: Any) -> float:
    """Return a share of a whole from a number, or from text such as 1%.

    Raises:
        TypeError: The argument is neither a number nor text.
        InputError: The argument is NaN, infinite or negative, or text that ``parse_share`` refuses.
    """
    if isinstance(argument, str):
        return parse_share(argument, name)
    value = number(name, argument, "a number such as 0.01, or text such as '1%'")
    if not 0 <= value <= sys.float_info.max:
        raise InputError(f"{name} is {shown(value)}; it must be finite and not negative, such as 0.01 or '1%'")
    return float(value)


def parse_share(text: str, name: str = "gap") -> float:
    """Read a share: ``0.01`` or ``1%``.

    Raises:
        InputError: The text is not a share, is infinite, or is above 1 without the sign %.
    """
    match = _SHARE.fullmatch(text)
    if match is None:
        raise InputError(f"invalid {name} {shown(text)}: expected a share of 0 or more, such as 0.01 or 1%")
    value = float(match[1] + (match[2] or "")) / (100 if match[3] else 1)
    if value == math.inf:
        raise InputError(f"invalid {name} {shown(text)}: it must be finite, such as 0.01 or 1%")
    if value > 1 and not match[3]:
        raise InputError(
            f"invalid {name} {shown(text)}: shares above 1 are written in per cent; for {text.strip()} per cent, write "
            f"{text.strip()}%"
        )
    return value


def choice(name: str, argument: Any, words: Sequence[Word]) -> Word:
    """Return an argument that has to be one of some words.

    Raises:
        TypeError: The argument is not text.
        InputError: The argument is none of the words.
    """
    if not isinstance(argument, str):
        raise wrong_type(name, argument, f"one of {', '.join(words)}")
    for word in words:
        if word == argument:
            return word
    raise InputError(f"unknown {name} {shown(argument)}; it is one of {', '.join(words)}")


def flag(name: str, argument: Any) -> bool:
    """Return a Boolean of Python or NumPy as a bool.

    Raises:
        TypeError: The argument is not a Boolean.
    """
    if not isinstance(argument, bool | np.bool_):
        raise wrong_type(name, argument, "True or False")
    return bool(argument)


def path(name: str, argument: Any) -> str | None:
    """Return a path as text; None stays None.

    Raises:
        TypeError: The argument is neither text nor a path object.
        InputError: No file can have that name.
    """
    if argument is None:
        return None
    if not isinstance(argument, str | os.PathLike):
        raise wrong_type(name, argument, "a path, or None")
    text = os.fspath(argument)
    if not isinstance(text, str):
        raise wrong_type(name, argument, "a path as text, or None")
    try:
        is_possible = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise InputError(f"{name} is {shown(text)}, which no file can have as its name")
    return text


def file(name: str, argument: Any) -> Path:
    """Return the path of a file.

    Raises:
        TypeError: The argument is neither text nor a path object.
        InputError: No file can have that name.
    """
    text = path(name, argument) if isinstance(argument, str | os.PathLike) else None
    if text is None:
        raise wrong_type(name, argument, "the path of a file")
    from pathlib import Path

    return Path(text)


def function(name: str, argument: Callable[..., Any] | None) -> None:
    """Check that an argument is a function or None.

    Raises:
        TypeError: The argument is neither.
    """
    if argument is not None and not callable(argument):
        raise wrong_type(name, argument, "a function, or None")


def is_iterable(argument: Any) -> TypeGuard[Iterable[Any]]:
    """Return whether a value can be iterated over. An array without axes cannot, although its type has the method."""
    return isinstance(argument, Iterable) and getattr(argument, "ndim", 1) != 0


def axis_count(argument: Any) -> int | None:
    """Return the number of axes of an array or of nested lists, 0 for a scalar; None if lists differ in length."""
    try:
        return np.ndim(argument)
    except ValueError:
        return None


def elements(name: str, argument: Any, taken: str) -> list[Any]:
    """Return the elements of an iterable as a list; refuse text.

    Raises:
        TypeError: The argument is text, or not iterable.
    """
    if isinstance(argument, str | bytes) or not is_iterable(argument):
        raise wrong_type(name, argument, taken)
    return list(argument)


def check_mapping(
    name: str, mapping: Any, taken: str = "a mapping from variables to states, such as {'A': 'yes'}"
) -> None:
    """Check that an argument is a mapping.

    Args:
        name: Name of the argument.
        mapping: Value of the argument.
        taken: Description of a suitable value, for the error.

    Raises:
        TypeError: The argument is not a mapping.
    """
    if not isinstance(mapping, Mapping):
        raise wrong_type(name, mapping, taken)
