"""Values of options: checks of values in Python, and parsers of texts on command lines."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from elimina import arguments
from elimina.errors import InputError
from elimina.planning.devices import device_name
from elimina.planning.order import Method

DTYPES = ("int16", "int32", "int64", "float32", "float64", "uint64")
"""Number types of tables."""

IBound = int | Literal["auto"]
"""Largest number of variables of a message; ``auto``: as many as memory and time allow."""

MAX_IBOUND = 2**31 - 1
"""Largest i-bound that the core supports, above any number of variables."""

MAX_ORDER_SECONDS = 1e9
"""Largest time limit of the order search: about 30 years, within the range of the core's clock."""


class Values(NamedTuple):
    """Values of an option.

    Attributes:
        check: Function of the option's name and a value that returns the value in its plain form, or raises TypeError
            or InputError.
        read: Function that parses a text, or raises InputError; None: texts are parsed by ``words`` or ``limits``, or
            are used as they are.
        words: All values, if they are words.
        limits: Least and largest value, if all values are whole numbers.
        is_path: True for paths of files and directories.
        is_repeatable: True if a command line may contain several values, which are merged.
        is_flag: True if the option takes no value on a command line.
    """

    check: Callable[[str, Any], Any]
    read: Callable[[str], Any] | None = None
    words: tuple[str, ...] = ()
    limits: tuple[int, int] | None = None
    is_path: bool = False
    is_repeatable: bool = False
    is_flag: bool = False


def word_of(words: tuple[str, ...]) -> Values:
    """Describe values that are words."""
    return Values(lambda name, value: arguments.choice(name, value, words), words=words)


def integer_in(smallest: int, largest: int, is_optional: bool = False) -> Values:
    """Describe values that are whole numbers within limits, or None if ``is_optional`` is set."""

    def check(name: str, value: Any) -> int | None:
        return None if is_optional and value is None else arguments.integer(name, value, smallest, largest)

    return Values(check, limits=(smallest, largest))


def word_or_number(
    words: tuple[str, ...], unit: str, expected: str, largest: int = sys.maxsize, is_optional: bool = False
) -> Values:
    """Describe values that are words or numbers of at least 1.

    Args:
        words: The words.
        unit: Unit of the number, for errors of the command line.
        expected: Description of the values, for errors in Python.
        largest: Value by which larger numbers are replaced.
        is_optional: True if None is allowed.
    """

    def check(name: str, value: Any) -> Any:
        if is_optional and value is None:
            return None
        if not isinstance(value, str):
            return min(arguments.integer(name, value, 1, taken=expected), largest)
        if value not in words:
            raise InputError(f"{name} is {arguments.shown(value)}; it takes {expected}")
        return value

    def read(text: str) -> int | str:
        if text in words:
            return text
        if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
            raise InputError(f"{text!r} is invalid: expected {', '.join(words)} or a number of {unit} from 1 on")
        return int(text)

    return Values(check, read)


def check_device(name: str, device: Any) -> str:
    """Return a device's name, or the names of several GPUs in one text."""
    if not isinstance(device, str | list | tuple):
        raise arguments.wrong_type(name, device, "a name such as 'cuda', or a list of GPUs such as ['cuda:0']")
    return device_name(device)


def read_device(text: str) -> str:
    """Parse a device, or several GPUs: ``cuda``, ``cuda:0,cuda:1``, ``0,1``."""
    names = [name.strip() for name in text.split(",")]
    return device_name(f"cuda:{name}" if name.isdecimal() else name for name in names)


def check_seconds(name: str, seconds: Any) -> float:
    """Return a time limit of the order search, capped at the range of the core's clock."""
    checked = arguments.number(name, seconds, "a number of seconds")
    if checked < 0:
        raise InputError(f"{name} is {arguments.shown(checked)}; it cannot be negative")
    return min(checked, MAX_ORDER_SECONDS)


def read_seconds(text: str | float) -> float:
    """Parse a positive time in seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise InputError(f"{text!r} is invalid: expected a positive number of seconds")
    return number


def check_cost(name: str, cost: Any) -> int | float | None:
    """Check that an option is None or a cost within the range of floats, and return it."""
    if cost is None:
        return None
    checked = arguments.number(name, cost, "the cost of a known solution, or None")
    if abs(checked) > sys.float_info.max:
        raise InputError(f"{name} is {arguments.shown(checked)}; it takes a number within the range of a float")
    return checked


def read_cost(text: str) -> int | float:
    """Parse a cost: ``1400``, ``12.5``."""
    for kind in (int, float):
        try:
            cost = kind(text)
        except ValueError:
            continue
        if math.isfinite(cost):
            return cost
    raise InputError(f"{text!r} is invalid: expected a cost, such as 1400 or 12.5")


def read_gap(text: str | float) -> float:
    """Parse a relative gap: ``0.01`` or ``1%``."""
    return arguments.share("gap", text)


def check_order(name: str, order: Any) -> str | tuple[Any, ...]:
    """Return the name of an order search's method, which is checked later, or a tuple of names and indices."""
    if isinstance(order, str):
        return order
    if not isinstance(order, bytes | Mapping | Set):
        try:
            return tuple(order)
        except TypeError:
            pass
    raise arguments.wrong_type(name, order, f"a method ({', '.join(get_args(Method))}) or a sequence of variables")


def check_dtype(name: str, dtype: Any) -> str | None:
    """Return the name of a NumPy dtype; None stays None. The planner checks the name against the task."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        if isinstance(dtype, type | np.dtype):
            return np.dtype(dtype).name
    except TypeError:
        pass
    expected = "the name of a dtype such as 'float32', or None for the narrowest exact one"
    raise arguments.wrong_type(name, dtype, expected)


def check_assignment(name: str, assignment: Any) -> Any:
    """Check that an option is a mapping from variables to states, or None, and return it."""
    if assignment is not None:
        arguments.check_mapping(name, assignment)
    return assignment


def check_function(name: str, function: Any) -> Any:
    """Check that an option is a function or None, and return it."""
    arguments.function(name, function)
    return function


def check_progress(name: str, progress: Any) -> Any:
    """Check that an option is a function, a Boolean or None, and return it."""
    return progress if isinstance(progress, bool) else check_function(name, progress)


def check_truth(name: str, value: Any) -> bool:
    """Check that an option is a Boolean, and return it."""
    if not isinstance(value, bool):
        raise arguments.wrong_type(name, value, "True or False")
    return value


DEVICE = Values(check_device, read_device)
BYTES = Values(arguments.memory_size, arguments.parse_size)
ORDER = Values(check_order)
SECONDS = Values(check_seconds, read_seconds)
DTYPE = Values(check_dtype, words=DTYPES)
PATH = Values(arguments.path, is_path=True)
COST = Values(check_cost, read_cost)
GAP = Values(arguments.share, read_gap)
ASSIGNMENT = Values(check_assignment, is_repeatable=True)
FUNCTION = Values(check_function)
PROGRESS = Values(check_progress)
FLAG = Values(check_truth, is_flag=True)
SLICES = word_or_number(("auto", "never"), "slices", "auto, never or the most slices allowed")
IBOUND = word_or_number(("auto",), "variables", "auto, a number of variables, or None", MAX_IBOUND, is_optional=True)


def joined(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: ``mpe, pr and count``."""
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])
