"""Cells and labels of tables of cases, as indices of states.

Cells have the types that a reader of files gave them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elimina.errors import InputError
from elimina.model.labels import are_positions, listed
from elimina.model.states import is_missing, native, states_text
from elimina.model.variable import Variable, find_text, index_of, index_of_text, no_such_state
from elimina.option_names import by_interface

UNOBSERVED = -1
"""Index that stands for 'not observed' in cases."""

_MAX_EXACT_INTEGER = 2**53 - 1
"""Largest integer that shares its float with no other integer."""


def index_of_cell(variable: Variable, cell: Any) -> int:
    """Return the index of the state in a cell of a table of cases, -1 for an empty cell.

    Text is read as ``index_of_text`` reads it; text without characters is an empty cell. A whole float is taken as an
    int, since pandas stores a column of integers with empty cells as floats. Readers of files turn text into Booleans
    and numbers. A cell of these types that equals no state is therefore matched by text (True for ``TRUE``, 1 for
    ``1`` or ``01``).

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
    index = _find_parsed(variable, cell) if isinstance(cell, int | float) else index_of(variable, cell)
    if index is not None:
        return index
    if cell == UNOBSERVED:
        raise InputError(
            f"variable {variable.name!r} has no state {cell}; leave cells that are not observed empty"
            + by_interface(" (None, NaN); where all cells are indices, JunctionTree.batch takes indices=True", "")
        )
    raise no_such_state(variable, cell)


def _find_parsed(variable: Variable, cell: float) -> int | None:
    """Return the index of the state that a Boolean or a number of a table stands for; None if there is none.

    Raises:
        InputError: The texts of several states read the same.
    """
    exact = without_point(cell)
    index = None if isinstance(exact, float) else variable.find(exact)
    if index is not None or variable.states is None:
        return index
    alike = variable.find_reading(cell)
    if len(alike) > 1:
        states = " and ".join(repr(variable.states[x]) for x in alike[:2])
        raise InputError(
            f"variable {variable.name!r} has no state {cell!r}, and its states {states} both read as that; "
            "read the table's cells as text (dtype=str in pandas)"
        )
    return alike[0] if alike else None


def without_point(value: Any) -> Any:
    """Return a whole float as an int; other values unchanged."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_INTEGER
    return int(value) if is_whole else value


def indices_of_labels(variable: Variable, labels: Sequence[Any]) -> list[int]:
    """Return the indices of the states that different labels of a data frame name.

    Labels are read like cells of a table of cases. Labels 0, 1, 2, ... that name no states are indices: pandas
    gives them to rows and columns without labels.

    Raises:
        InputError: A label names no state, two labels name the same state, or it is unclear whether labels 0, 1, 2, ...
            are indices or the names of other states.
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
        if all(index in (UNOBSERVED, position) for position, index in enumerate(indices)):
            return list(range(len(labels)))
        if unknown or not all(isinstance(state, int) for state in variable.all_states):
            raise InputError(
                f"the labels {listed(labels)} may be indices of the states of variable {variable.name!r}, or stand for "
                f"the states {states_text(variable.all_states)}: use the states as labels"
            )
    if unknown:
        raise InputError(
            f"the labels {listed(unknown)} name no state of variable {variable.name!r}; its states are "
            f"{states_text(variable.all_states)}"
        )
    if len(set(indices)) < len(indices):
        twice = next(x for x in indices if indices.count(x) > 1)
        alike = listed(label for label, x in zip(labels, indices, strict=True) if x == twice)
        raise InputError(f"the labels {alike} stand for one state of variable {variable.name!r}")
    return indices
