"""States: the translation between the values of evidence, cases, queries and answers, and the indices of tables.

All paths into and out of the package come through here. A state is a str, an int or a bool, as the model gives it. Text
(files, the command line) is compared with the states' texts by ``index_of_text``. Evidence in a mapping names states
with their types (``evidence_of``). Cells of tables have the types that a reader of files gave them (``index_of_cell``).
What ``is_missing`` is not observed, wherever it stands.
"""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError
from elimina.model.labels import are_positions, labelled_table, listed
from elimina.model.table import unmasked

if TYPE_CHECKING:
    from elimina.model.model import Model, Variable

State = str | int | bool
Evidence = Mapping[str, Any] | Mapping[int, Any] | Mapping[str | int, Any]
"""Variable (name or index) -> its state, a ``StateIndex``, or likelihoods: an array with one for each state, or a
mapping from states. None, NaN, NaT and pandas.NA: not observed."""
Weights = NDArray[Any]

UNOBSERVED = -1
"""Index that stands for 'not observed' in cases."""

MOST_STATES = 10**7
"""States of a variable that are listed one by one, in files, likelihoods and other packages' objects."""

_SHOWN = 8
"""States in an error."""

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,999}")
"""Texts of integers as ``str`` writes them; ``int`` takes many more."""

_BOOLEANS = {"true": True, "false": False}

_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?|inf|infinity)", re.I | re.ASCII)
"""Texts that readers of tables turn into numbers."""

_INTEGER_TEXT = re.compile(r"[+-]?[0-9]{1,1000}", re.ASCII)

_LARGEST_EXACT = 2**53 - 1
"""Largest integer that no other integer shares a float with."""


@dataclass(frozen=True, slots=True)
class StateIndex:
    """An index that stands for a state, for variables whose states have other names.

    Attributes:
        index: Index of the state, from 0 on.
    """

    index: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", arguments.integer("index", self.index, 0))


def native(value: Any) -> Any:
    """Return the Python object of a NumPy scalar; anything else as it is."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def checked_states(name: str, size: int, states: Iterable[Any]) -> tuple[State, ...]:
    """Check the states of a variable, and return them as Python objects.

    Raises:
        InputError: There are more or fewer than ``size``, one is not a str, int or bool, or two of them are equal or
            read the same as text.
        TypeError: ``states`` is not a sequence.
    """
    if isinstance(states, str | bytes | Set) or not isinstance(states, Iterable):
        raise arguments.wrong_type("states", states, "a sequence of str, int or bool")
    found = tuple(_plain(name, state) for state in states)
    if len(found) != size:
        raise InputError(f"variable {name!r} has {size} values but the states {_listed(found)}")
    if len(set(found)) == len(set(map(str, found))) == size:
        return found
    seen: dict[State, State] = {}
    texts: dict[str, State] = {}
    for state in found:
        other = seen.setdefault(state, state)
        if str(state) in texts and type(texts[str(state)]) is type(state):
            raise InputError(f"variable {name!r} has the state {state!r} twice")
        if type(other) is not type(state):
            raise InputError(f"variable {name!r} has the states {other!r} and {state!r}, which are equal in Python")
        if str(state) in texts:
            raise InputError(
                f"variable {name!r} has the states {texts[str(state)]!r} and {state!r}, which are the same as text"
            )
        texts[str(state)] = state
    return found


def _plain(name: str, state: Any) -> State:
    state = native(state)
    if isinstance(state, bool):
        return state
    if isinstance(state, str):
        return str.__str__(state)
    if isinstance(state, int):
        return int(state)
    raise InputError(
        f"variable {name!r} has the state {state!r}, a {type(state).__name__}; a state is str, int or bool"
    )


def _listed(states: Sequence[State]) -> str:
    return ", ".join(map(repr, states[:_SHOWN])) + (", ..." if len(states) > _SHOWN else "")


def listed_states(variable: Variable) -> list[State]:
    """Return the states of a variable, to be listed one by one.

    Raises:
        InputError: There are more than any list should have.
    """
    if variable.size > MOST_STATES:
        raise InputError(
            f"variable {variable.name!r} has {variable.size:,} states, which would be listed one by one here, and "
            f"at most {MOST_STATES:,} can be: give the variable fewer (.wcsp and .cfn files, for models of costs, "
            "list none)"
        )
    return list(variable.all_states)


def texts_of(variable: Variable) -> list[str]:
    """Return the texts of a variable's states, as files and printed answers have them.

    Raises:
        InputError: There are more than any list should have.
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
            f"its {variable.size} states have the indices 0 to {variable.size - 1}"
        )
    state = native(state)
    found = variable.find(state) if isinstance(state, str | int) else None
    if found is None:
        raise _no_such_state(variable, state)
    return found


def integer_of(text: str) -> int | None:
    """Return the integer whose ``str`` is this text; None if there is none."""
    return int(text) if _INTEGER.fullmatch(text) else None


def find_text(variable: Variable, text: str) -> int | None:
    """Return the index of the state with this text; None if there is none.

    A str is written as it is, an int in decimal digits, a bool as true or false, capitalised or not.
    """
    found = variable.find(text)
    if found is None and (integer := integer_of(text)) is not None:
        found = variable.find(integer)
    if found is None and text.lower() in _BOOLEANS:
        found = variable.find(_BOOLEANS[text.lower()])
    return found


def index_of_text(variable: Variable, text: str) -> int:
    """Return the index of the state that is written as this text: see ``find_text``.

    Raises:
        InputError: The variable has no such state.
    """
    found = find_text(variable, text)
    if found is None:
        raise _no_such_state(variable, text)
    return found


def is_missing(value: Any) -> bool:
    """Return whether a value of evidence, or a cell, is None, NaN, NaT, pandas.NA or masked: not observed."""
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
        return value is None or bool(value != value)
    return not hasattr(value, "__len__") and bool(value != value)


def index_of_cell(variable: Variable, cell: Any) -> int:
    """Return the index of the state in a cell of a table of cases, -1 for an empty cell.

    Text is read as ``index_of_text`` reads it; text without characters is an empty cell. A whole float is taken as an
    int, since a column of integers with a gap is one of floats. Readers of files turn text into Booleans and numbers:
    where no state is equal, a cell of these types stands for the state whose text reads the same (True for ``TRUE``, 1
    for ``1`` or ``01``).

    Raises:
        InputError: The variable has no such state, or several whose texts read the same.
    """
    if is_missing(cell):
        return UNOBSERVED
    cell = native(cell)
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    if isinstance(cell, str):
        return UNOBSERVED if cell == "" and find_text(variable, cell) is None else index_of_text(variable, cell)
    found = _find_parsed(variable, cell) if isinstance(cell, int | float) else index_of(variable, cell)
    if found is not None:
        return found
    if cell == UNOBSERVED:
        raise InputError(
            f"variable {variable.name!r} has no state {cell}; leave cells that are not observed empty (None, NaN), "
            "or give indices=True if all cells are indices"
        )
    raise _no_such_state(variable, cell)


def _find_parsed(variable: Variable, cell: float) -> int | None:
    """Return the index of the state that a Boolean or a number of a table stands for; None if there is none.

    Raises:
        InputError: The texts of several states read the same.
    """
    exact = _without_point(cell)
    found = None if isinstance(exact, float) else variable.find(exact)
    if found is not None or variable.states is None:
        return found
    alike = variable.find_reading(cell)
    if len(alike) > 1:
        states = " and ".join(repr(variable.states[x]) for x in alike[:2])
        raise InputError(
            f"variable {variable.name!r} has no state {cell!r}, and its states {states} both read as that; "
            "read the table's cells as text (dtype=str in pandas)"
        )
    return alike[0] if alike else None


def _without_point(value: Any) -> Any:
    """Return a whole float as an int; anything else as it is."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT
    return int(value) if is_whole else value


def readings_of(states: Iterable[State]) -> dict[tuple[type, float], list[int]]:
    """Return what readers of tables turn states into: the type and value of a cell -> indices of the states."""
    found: dict[tuple[type, float], list[int]] = {}
    for x, state in enumerate(states):
        for reading in _readings(state):
            found.setdefault((type(reading), reading), []).append(x)
    return found


def _readings(state: State) -> Iterator[float]:
    """Yield the Booleans and numbers that a state of another type may have become in a table."""
    if isinstance(state, bool):
        return
    if isinstance(state, int):
        # Beyond 2^53, several integers are written as one float.
        if abs(state) <= sys.float_info.max:
            yield float(state)
        return
    text = state.strip()
    if text in ("0", "1") or text.lower() in _BOOLEANS:
        # Arrow reads 1 as True beside other Booleans.
        yield _BOOLEANS.get(text.lower(), text == "1")
    if _INTEGER_TEXT.fullmatch(text):
        yield int(text)
    if _NUMBER.fullmatch(text):
        yield float(text)


def indices_of_labels(variable: Variable, labels: Sequence[Any]) -> list[int]:
    """Return the indices of the states that different labels of a data frame name.

    A label is read as the cell of a table of cases is. Labels 0, 1, 2, ... that name no states are indices: pandas
    gives them to rows and columns without labels.

    Raises:
        InputError: A label names no state, two name the same one, or labels may be indices or names of other states.
    """
    indices: list[int] = []
    unknown: list[Any] = []
    for label in labels:
        try:
            indices.append(index_of_cell(variable, label))
        except InputError:
            indices.append(UNOBSERVED)
        if indices[-1] == UNOBSERVED:
            unknown.append(label)
    if are_positions(labels) and len(labels) == variable.size:
        if all(index in (UNOBSERVED, place) for place, index in enumerate(indices)):
            return list(range(len(labels)))
        if unknown or not all(isinstance(state, int) for state in variable.all_states):
            raise InputError(
                f"the labels {listed(labels)} may be indices of the states of variable {variable.name!r}, or stand for "
                f"the states {_listed(variable.all_states)}: use the states as labels"
            )
    if unknown:
        raise InputError(
            f"the labels {listed(unknown)} name no state of variable {variable.name!r}; its states are "
            f"{_listed(variable.all_states)}"
        )
    if len(set(indices)) < len(indices):
        twice = next(x for x in indices if indices.count(x) > 1)
        alike = listed(label for label, x in zip(labels, indices, strict=True) if x == twice)
        raise InputError(f"the labels {alike} stand for one state of variable {variable.name!r}")
    return indices


def _no_such_state(variable: Variable, state: Any) -> InputError:
    known = f"0 to {variable.size - 1}" if variable.states is None else _listed(variable.states)
    written = str(int(state)) if isinstance(state, float) and state.is_integer() else str(state)
    like = find_text(variable, written) if isinstance(state, str | int | float) else None
    if like is None and isinstance(state, int | float):
        like = next(iter(variable.find_reading(state)), None)
    hint = ""
    if like is not None:
        kinds = type(variable.state(like)).__name__, type(state).__name__
        hint = f"; {variable.state(like)!r} is a state, but of type {kinds[0]}, not {kinds[1]}"
    elif type(state) is int and 0 <= state < variable.size:
        hint = f"; an index is written elimina.StateIndex({state}), and cases of indices are read with indices=True"
    elif np.ndim(state) == 0 and is_missing(state):
        hint = "; leave out a variable that is not observed"
    return InputError(f"variable {variable.name!r} has no state {state!r}; its states are {known}{hint}")


def indices_of(model: Model, names: Iterable[str | int], argument: str) -> list[int]:
    """Return the indices of variables that are given by names or indices.

    Args:
        model: The variables' model.
        names: Names or indices.
        argument: Name of ``names`` in errors.

    Raises:
        InputError: There is no such variable.
        TypeError: ``names`` is a single name, a mapping, or nothing that can be iterated over.
    """
    # The names of a mapping alone would leave out what it says of them: it may be meant as evidence.
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        example = f", such as [{names!r}]" if isinstance(names, str) else ""
        raise arguments.wrong_type(argument, names, f"a sequence of names or indices of variables{example}")
    try:
        listed = list(names)
    except TypeError:  # an array without axes is iterable by its type only
        raise arguments.wrong_type(argument, names, "a sequence of names or indices of variables") from None
    return [_variable(model, name) for name in listed]


def _variable(model: Model, name: str | int) -> int:
    """Return a variable's index by its name or index.

    Raises:
        InputError: There is no such variable, or an integer is one variable's index and another one's name: networks
            of other packages may have integers as names.
    """
    found = model.index(name)
    other = None if isinstance(name, str) else model.find(str(name))
    if other is not None and other != found:
        raise InputError(
            f"variable {name} may be the one named {str(name)!r}, or the one of index {name}, named "
            f"{model.variables[found].name!r}; give its name"
        )
    return found


def check_mapping(argument: str, evidence: Any) -> None:
    """Check that evidence is a mapping.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(evidence, Mapping):
        raise arguments.wrong_type(argument, evidence, "a mapping from variables to states, such as {'A': 'yes'}")


def evidence_of(model: Model, evidence: Evidence) -> dict[int, int | Weights]:
    """Translate evidence to indices.

    Args:
        model: Model of the evidence.
        evidence: See ``Evidence``.

    Returns:
        Variable index -> index of its state, or float64 likelihoods of shape ``(size,)``. Variables that are not
        observed are left out.

    Raises:
        InputError: There is no such variable or state, likelihoods are negative, infinite, NaN or of the wrong number,
            or a name and an index say different things about one variable.
        TypeError: ``evidence`` is not a mapping.
    """
    return _observed(_indexed(model, evidence, "evidence", known_of))


def changes_of(model: Model, changes: Evidence) -> dict[int, int | Weights | None]:
    """Translate changes of evidence to indices: see ``evidence_of``; None for a variable that is no longer observed."""
    return _indexed(model, changes, "evidence", known_of)


def assignment_of(model: Model, given: Evidence, argument: str) -> dict[int, int]:
    """Translate the states of some variables to indices; those that are missing are left out.

    Args:
        model: The variables' model.
        given: Variable (name or index) -> its state.
        argument: Name of ``given`` in errors.

    Raises:
        InputError: There is no such variable or state, or a name and an index give one variable two states.
        TypeError: ``given`` is not a mapping.
    """
    return _observed(_indexed(model, given, argument, index_of))


def _observed(known: dict[int, Any]) -> dict[int, Any]:
    return {v: what for v, what in known.items() if what is not None}


def _indexed(model: Model, given: Evidence, argument: str, read: Callable[[Variable, Any], Any]) -> dict[int, Any]:
    """Return what is said about each variable, None if it is missing; a function reads what is not a state's name."""
    check_mapping(argument, given)
    found: dict[int, Any] = {}
    for name, known in given.items():
        v = model.find(name) if type(name) is str else None
        if v is None:
            v = _variable(model, name)
        variable = model.variables[v]
        new = variable.find(known) if type(known) is str else None
        if new is None and not is_missing(known):
            new = read(variable, known)
        if v in found:
            _check_agreement(argument, variable, found[v], new)
        found[v] = new
    return found


def known_of(variable: Variable, known: Any) -> int | Weights:
    """Return the index of an observed state, or checked likelihoods: see ``evidence_of``.

    A whole float is taken as an int, as in ``index_of_cell``: a row of a frame has one type.
    """
    if isinstance(known, str | StateIndex):
        return index_of(variable, known)
    if isinstance(known, Mapping):
        known = _in_order(variable, [index_of(variable, state) for state in known], known.values())
    elif hasattr(known, "items") and np.ndim(known) == 1:
        labels, likelihoods = [list(column) for column in zip(*known.items(), strict=True)] or ([], [])
        known = _in_order(variable, indices_of_labels(variable, labels), likelihoods)
    given = unmasked(f"the likelihoods of variable {variable.name!r}", known)
    if given.ndim == 0:
        return index_of(variable, _without_point(native(known)))
    labelled_table(f"the likelihoods of variable {variable.name!r}", known)
    try:
        # Text and complex numbers have a float, too, but not by intent.
        if given.dtype.kind not in "buifO" or any(isinstance(likelihood, str) for likelihood in given.flat):
            raise TypeError
        weights = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the likelihoods of variable {variable.name!r} are not numbers: {known!r}") from error
    if weights.shape != (variable.size,):
        raise InputError(
            f"variable {variable.name!r} has {variable.size} states and got likelihoods of shape {weights.shape}"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InputError(
            f"the likelihoods of variable {variable.name!r} are {weights.tolist()}; "
            "they must be finite and not negative"
        )
    return weights


def _in_order(variable: Variable, indices: Sequence[int], likelihoods: Iterable[Any]) -> list[Any]:
    """Return likelihoods of some states, by their indices, in the order of the states; states left out have 0."""
    if variable.size > MOST_STATES:
        raise InputError(
            f"the likelihoods of variable {variable.name!r} would be one for each of its {variable.size:,} states, and "
            f"at most {MOST_STATES:,} are possible: add a factor that lists the states instead (an elimina.Table with "
            "rows and default=0)"
        )
    if len(set(indices)) < len(indices):
        twice = next(x for x in indices if indices.count(x) > 1)
        raise InputError(
            f"the likelihoods of variable {variable.name!r} name the state {variable.state(twice)!r} twice"
        )
    ordered: list[Any] = [0.0] * variable.size
    for x, likelihood in zip(indices, likelihoods, strict=True):
        ordered[x] = likelihood
    return ordered


def _check_agreement(argument: str, variable: Variable, one: int | Weights | None, other: int | Weights | None) -> None:
    if one is other is None:
        return
    if one is None or other is None:
        raise InputError(
            f"{argument} about variable {variable.name!r} is given and taken back at once, by its name and its index; "
            "give one of them"
        )
    if not isinstance(one, int) or not isinstance(other, int):
        raise InputError(
            f"{argument} about variable {variable.name!r} is given twice, and one of them is soft; combine them"
        )
    if one != other:
        states = variable.state(one), variable.state(other)
        raise InputError(f"{argument} gives variable {variable.name!r} two states: {states[0]!r} and {states[1]!r}")


def named(variables: Iterable[Variable], indices: Iterable[int]) -> dict[str, State]:
    """Return an assignment as answers have it: variable name -> state."""
    pairs = zip(variables, indices, strict=True)
    return {v.name: operator.index(x) if v.states is None else v.states[x] for v, x in pairs}


def state_array(variable: Variable, indices: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Return the states of many indices, as an array of int64 or bool, or of objects."""
    states = variable.all_states
    kinds = {type(state) for state in states}
    dtype = {frozenset({int}): np.int64, frozenset({bool}): np.bool_}.get(frozenset(kinds), object)
    table: NDArray[Any]
    try:
        table = np.array(states, dtype=dtype)
    except OverflowError:
        table = np.array(states, dtype=object)
    chosen: NDArray[Any] = table[indices]
    return chosen
