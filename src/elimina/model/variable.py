"""A discrete variable, and the translation between its states and their indices.

Text (files, the command line) is compared with the states' texts.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import cut, sample
from elimina.errors import InputError
from elimina.model.states import (
    BOOLEANS,
    State,
    StateIndex,
    checked_states,
    integer_of,
    is_missing,
    native,
    readings_of,
    states_text,
)
from elimina.number_texts import counted
from elimina.option_names import by_interface
from elimina.system import Slotted

MAX_STATES = 2**31 - 1
"""Largest number of states of a variable: tuples hold indices of 32 bits."""


class Variable(Slotted):
    """A discrete variable.

    Args:
        name: Name, unique in its model.
        size: Number of states, from 1 to 2^31 - 1.
        states: The states: different str, int or bool (also of NumPy). None: the integers from 0 to ``size - 1``.

    Attributes:
        name: Name, unique in its model.
        size: Number of states.
        states: The states as Python objects, in the order of the tables; None if they are ``0, ..., size - 1``.

    Examples:
        >>> import elimina
        >>> elimina.Variable("Noise", 2, ["quiet", "loud"])
        Variable('Noise', 2, states=('quiet', 'loud'))
    """

    __slots__ = ("_indices", "_readings", "name", "size", "states")

    def __init__(self, name: str, size: int, states: Sequence[State] | None = None) -> None:
        if not isinstance(name, str):
            raise arguments.wrong_type("name", name, "text, the name of a variable")
        try:
            self.name, self.size = name, operator.index(size)
        except TypeError:
            problem = (
                f"variable {name!r} has {size!r} values; that must be an integer, and states are the next argument"
            )
            raise InputError(problem) from None
        if self.size < 1:
            raise InputError(f"variable {name!r} has {size} values; at least one is needed")
        if self.size > MAX_STATES:
            raise InputError(
                f"variable {name!r} has {arguments.shown(self.size)} values; at most 2^31 - 1 are possible"
            )
        self.states = None if states is None else checked_states(name, self.size, states)
        self._indices: dict[State, int] | None = None
        self._readings: dict[tuple[type, float], list[int]] | None = None

    @property
    def all_states(self) -> Sequence[State]:
        """The states in the order of the tables; a range if ``states`` is None."""
        return range(self.size) if self.states is None else self.states

    def state(self, index: int) -> State:
        """Return the state with this index.

        Raises:
            InputError: There is no state with this index.
            TypeError: The index is not an integer.
        """
        # Large assignments look up a hundred thousand states. Valid indices are tested first, because even making the
        # text for an error takes long.
        if type(index) is not int or not 0 <= index < self.size:
            index = arguments.integer(f"the index of a state of variable {self.name!r}", index, 0, self.size - 1)
        return index if self.states is None else self.states[index]

    def index(self, state: State | StateIndex) -> int:
        """Return the index of a state: see ``elimina.model.variable.index_of``.

        Raises:
            InputError: There is no such state.
        """
        return index_of(self, state)

    def find(self, state: State) -> int | None:
        """Return the index of a state of exactly this type and value; None if there is none."""
        if self.states is None:
            if isinstance(state, bool) or not isinstance(state, int):
                return None
            return int(state) if 0 <= state < self.size else None
        if self._indices is None:
            self._indices = {known_state: i for i, known_state in enumerate(self.states)}
        index = self._indices.get(state) if isinstance(state, Hashable) else None
        # 1 and True are equal in Python, so the types are compared, too.
        if index is None or isinstance(self.states[index], bool) != isinstance(state, bool):
            return None
        return index

    def find_reading(self, cell: float) -> Sequence[int]:
        """Return the indices of the states, of another type, that readers of files turn into this Boolean or number."""
        if self.states is None:
            return ()
        if self._readings is None:
            self._readings = readings_of(self.states)
        return self._readings.get((type(cell), cell), ())

    def __repr__(self) -> str:
        named = "" if self.states is None else f", states=({sample(map(repr, self.states), self.size)})"
        return f"Variable({cut(repr(self.name), 100)}, {self.size}{named})"


def variable_of(name: str, states: Any, argument: str) -> Variable:
    """Return a variable with these states.

    Args:
        name: Name of the variable.
        states: The states in a list, an array or an index, or their number.
        argument: The user's name for ``states`` in errors.

    Raises:
        InputError: See ``Variable``.
        TypeError: See ``Variable``.
    """
    is_number = hasattr(type(states), "__index__") and getattr(states, "ndim", 0) == 0
    if not is_number and (isinstance(states, str | bytes | Set) or not hasattr(states, "__len__")):
        raise arguments.wrong_type(argument, states, "the states in a sequence, or their number")
    return Variable(name, states) if is_number else Variable(name, len(states), states)


MAX_LISTED_STATES = 10**7
"""Largest number of states of a variable that are listed one by one, as files and other packages require."""


def listed_states(variable: Variable) -> list[State]:
    """Return the states of a variable, to be listed one by one.

    Raises:
        InputError: There are more than ``MAX_LISTED_STATES``.
    """
    if variable.size > MAX_LISTED_STATES:
        raise InputError(
            f"variable {variable.name!r} has {counted(variable.size, 'state')}, which would have to be listed; "
            f"at most {MAX_LISTED_STATES:,} can be: give the variable fewer (.wcsp and .cfn files, for models of "
            "costs, list none)"
        )
    return list(variable.all_states)


def texts_of(variable: Variable) -> list[str]:
    """Return the texts of a variable's states, as files and printed answers have them.

    Raises:
        InputError: There are more than ``MAX_LISTED_STATES``.
    """
    return list(map(str, listed_states(variable)))


def index_of(variable: Variable, state: Any) -> int:
    """Return the index of a state: an equal str, int or bool (also of NumPy), or a ``StateIndex``.

    A bool is not an int here: True is never the state 1.

    Raises:
        InputError: The variable has no such state.
    """
    if isinstance(state, StateIndex):
        if 0 <= state.index < variable.size:
            return state.index
        raise InputError(
            f"variable {variable.name!r} has no state of index {state.index}; "
            f"its {counted(variable.size, 'state')} have the indices 0 to {variable.size - 1}"
        )
    state = native(state)
    index = variable.find(state) if isinstance(state, str | int) else None
    if index is None:
        raise no_such_state(variable, state)
    return index


def find_text(variable: Variable, text: str) -> int | None:
    """Return the index of the state with this text; None if there is none.

    A str is written as it is, an int in decimal digits, a bool as true or false, capitalised or not.
    """
    index = variable.find(text)
    if index is None and (integer := integer_of(text)) is not None:
        index = variable.find(integer)
    if index is None and text.lower() in BOOLEANS:
        index = variable.find(BOOLEANS[text.lower()])
    return index


def index_of_text(variable: Variable, text: str) -> int:
    """Return the index of the state that is written as this text: see ``find_text``.

    Raises:
        InputError: The variable has no such state.
    """
    index = find_text(variable, text)
    if index is None:
        raise no_such_state(variable, text)
    return index


def no_such_state(variable: Variable, state: Any) -> InputError:
    """Return the error about a state that a variable does not have."""
    listing = f"0 to {variable.size - 1}" if variable.states is None else states_text(variable.states)
    written = str(int(state)) if isinstance(state, float) and state.is_integer() else str(state)
    similar = find_text(variable, written) if isinstance(state, str | int | float) else None
    if similar is None and isinstance(state, int | float):
        similar = next(iter(variable.find_reading(state)), None)
    hint = ""
    if similar is not None:
        kinds = type(variable.state(similar)).__name__, type(state).__name__
        hint = f"; {variable.state(similar)!r} is a state, but of type {kinds[0]}, not {kinds[1]}"
    elif type(state) is int and 0 <= state < variable.size:
        hint = by_interface(
            f"; an index is written elimina.StateIndex({state}), and cases of indices are read with indices=True", ""
        )
    elif arguments.axis_count(state) == 0 and is_missing(state):
        hint = "; leave out a variable that is not observed"
    return InputError(f"variable {variable.name!r} has no state {state!r}; its states are {listing}{hint}")


def named(variables: Iterable[Variable], indices: Iterable[int]) -> dict[str, State]:
    """Return an assignment as answers have it: variable name -> state."""
    pairs = zip(variables, indices, strict=True)
    return {v.name: operator.index(x) if v.states is None else v.states[x] for v, x in pairs}


def state_array(variable: Variable, indices: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Return the states of many indices, as an array of int64 or bool, or of objects."""
    if variable.states is None:
        return indices.astype(np.int64)
    states = variable.states
    kinds = {type(state) for state in states}
    dtype = {frozenset({int}): np.int64, frozenset({bool}): np.bool_}.get(frozenset(kinds), object)
    table: NDArray[Any]
    try:
        table = np.array(states, dtype=dtype)
    except OverflowError:
        table = np.array(states, dtype=object)
    chosen: NDArray[Any] = table[indices]
    return chosen
