"""States of variables: str, int or bool, as models, evidence and answers have them.

Indices of states are found by ``model.variable``; those of cells and labels of tables by ``model.cells``; and evidence
is read by ``problem.observations``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from elimina import arguments
from elimina.errors import InputError
from elimina.number_texts import counted

State = str | int | bool
Evidence = Mapping[str, Any] | Mapping[int, Any] | Mapping[str | int, Any]
"""Variable (name or index) -> its state, a ``StateIndex``, or likelihoods: an array with one for each state, or a
mapping from states. None, NaN, NaT and pandas.NA: not observed."""

_SHOWN = 8
"""Largest number of states in an error."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,999}")
"""Texts of integers as ``str`` writes them; ``int`` also reads texts such as 007 and 1_000."""

BOOLEANS = {"true": True, "false": False}

_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?|inf|infinity)", re.I | re.ASCII)
"""Texts that readers of tables turn into numbers."""

_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,1000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StateIndex:
    """A state given by its index, for variables with named states.

    Attributes:
        index: Index of the state, from 0 on.

    Examples:
        >>> import elimina
        >>> evidence = {"Alarm": elimina.StateIndex(1)}
        >>> result = elimina.solve("examples/pump.bif", "mar", evidence=evidence, query=["Power"])
        >>> round(result.marginals["Power"]["out"], 3)
        0.094
    """

    index: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", arguments.integer("index", self.index, 0))


def native(value: Any) -> Any:
    """Return the Python object of a NumPy scalar; other values unchanged."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def checked_states(name: str, size: int, states: Iterable[Any]) -> tuple[State, ...]:
    """Check the states of a variable, and return them as Python objects.

    Raises:
        InputError: There are more or fewer than ``size`` states, one is not a str, int or bool, or two of them are
            equal or have the same text.
        TypeError: ``states`` is not a sequence.
    """
    if isinstance(states, str | bytes | Set) or not arguments.is_iterable(states):
        raise arguments.wrong_type("states", states, "a sequence of str, int or bool")
    plain_states = tuple(_plain(name, state) for state in states)
    if len(plain_states) != size:
        raise InputError(f"variable {name!r} has {counted(size, 'value')} but the states {states_text(plain_states)}")
    if len(set(plain_states)) == len(set(map(str, plain_states))) == size:
        return plain_states
    seen: dict[State, State] = {}
    texts: dict[str, State] = {}
    for state in plain_states:
        equal_state = seen.setdefault(state, state)
        if str(state) in texts and type(texts[str(state)]) is type(state):
            raise InputError(f"variable {name!r} has the state {state!r} twice")
        if type(equal_state) is not type(state):
            raise InputError(
                f"variable {name!r} has the states {equal_state!r} and {state!r}, which are equal in Python"
            )
        if str(state) in texts:
            raise InputError(
                f"variable {name!r} has the states {texts[str(state)]!r} and {state!r}, which are the same as text"
            )
        texts[str(state)] = state
    return plain_states


def _plain(name: str, state: Any) -> State:
    state = native(state)
    if isinstance(state, bool):
        return state
    if isinstance(state, str):
        return str.__str__(state)
    if isinstance(state, int):
        return int(state)
    raise InputError(
        f"variable {name!r} has the state {state!r}, a {type(state).__name__}; a state is str, int or bool: "
        "divide numbers into intervals, and write other values as text"
    )


def states_text(states: Sequence[State]) -> str:
    """Return the first states as an error lists them."""
    return ", ".join(map(repr, states[:_SHOWN])) + (", ..." if len(states) > _SHOWN else "")


def integer_of(text: str) -> int | None:
    """Return the integer whose ``str`` is this text; None if there is none."""
    return int(text) if _INTEGER.fullmatch(text) else None


def is_missing(value: Any) -> bool:
    """Return whether a value of evidence, or a cell, is None, NaN, NaT, pandas.NA or masked: not observed."""
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
        return value is None or bool(value != value)
    return not hasattr(value, "__len__") and bool(value != value)


def readings_of(states: Iterable[State]) -> dict[tuple[type, float], list[int]]:
    """Return the indices of states by the values that readers of tables may make of them: (type, value) -> indices."""
    indices: dict[tuple[type, float], list[int]] = {}
    for x, state in enumerate(states):
        for reading in _readings(state):
            indices.setdefault((type(reading), reading), []).append(x)
    return indices


def _readings(state: State) -> Iterator[float]:
    """Yield the Booleans and numbers that a state of another type may have become in a table."""
    if isinstance(state, bool):
        return
    if isinstance(state, int):
        # Several integers beyond 2^53 may become the same float, so ``readings_of`` lists indices. Integers beyond the
        # range of floats cannot become a float.
        if abs(state) <= sys.float_info.max:
            yield float(state)
        return
    text = state.strip()
    if text in ("0", "1") or text.lower() in BOOLEANS:
        # Arrow reads 0 and 1 as Booleans if the column also contains true or false.
        yield BOOLEANS.get(text.lower(), text == "1")
    if _NUMBER.fullmatch(text):
        number = float(text)
        yield number
        # Readers such as pandas' convert_dtypes turn a column of whole floats into integers.
        if number.is_integer() and not _INTEGER_TEXT.fullmatch(text):
            yield int(number)
    if _INTEGER_TEXT.fullmatch(text):
        yield int(text)
