"""Data frames and series as tables of a model: their labels are aligned with variables and states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.model.cells import indices_of_labels
from elimina.model.labels import LabelledAxis, LabelledTable, labelled_table, listed
from elimina.model.variable import Variable
from elimina.number_texts import counted


def aligned(variables: Sequence[Variable], values: Any) -> Any:
    """Return the array of a Series or DataFrame with its axes in the order of variables and states.

    Each level of the row labels and of the column labels stands for a variable: the one with the level's name or, if
    levels have no names, the next one of the scope. The labels of a cell are its states; labels 0, 1, 2, ... that are
    no states are positions of states.

    Args:
        variables: Variables of the table's scope.
        values: A Series, a DataFrame, or anything else, which is returned as it is.

    Raises:
        InputError: A level is named after none of the variables, labels and states differ, or a combination of states
            has no cell, or two.
    """
    table = labelled_table("a table's values", values)
    return values if table is None else aligned_cells(variables, table)


def aligned_cells(variables: Sequence[Variable], table: LabelledTable) -> NDArray[Any]:
    """Return the array of a table with labels: see ``aligned``."""
    order = order_of_levels(table, [variable.name for variable in variables])
    members = [variables[position] for position in order]
    states = [_states(variable, axis) for variable, axis in zip(members, table.axes, strict=True)]
    sizes = [variable.size for variable in members]
    split = len(table.rows)
    rows = _cell_numbers(members[:split], states[:split], len(table.values))
    columns = _cell_numbers(members[split:], states[split:], table.values.shape[1])
    full = np.empty(table.values.shape, dtype=table.values.dtype)
    full[np.ix_(rows, columns)] = table.values
    cells: NDArray[Any] = full.reshape(sizes).transpose(np.argsort(order))
    return cells


def order_of_levels(table: LabelledTable, names: Sequence[str]) -> list[int]:
    """Return, for each level of labels, the position of its variable in a scope.

    Args:
        table: A table with labels.
        names: Names of the variables of the scope.

    Raises:
        InputError: There are more or fewer levels than variables, or one is named after none of them.
    """
    axes = table.axes
    if len(axes) != len(names):
        raise InputError(
            f"the table has {counted(len(table.rows), 'level')} of row labels and {len(table.columns)} of "
            f"column labels for a "
            f"scope of {counted(len(names), 'variable')}: give one level for each variable"
        )
    order = []
    for axis in axes:
        if axis.name is not None and (str(axis.name) not in names or names.index(str(axis.name)) in order):
            named = listed(axis.name for axis in axes if axis.name is not None)
            raise InputError(
                f"the table's labels are named {named}, and its scope is ({', '.join(names)}): name each level after "
                "its variable, or drop the names (rename_axis)"
            )
        order.append(-1 if axis.name is None else names.index(str(axis.name)))
    remaining = [position for position in range(len(names)) if position not in order]
    return [remaining.pop(0) if position < 0 else position for position in order]


def _states(variable: Variable, axis: LabelledAxis) -> NDArray[np.intp]:
    """Return the index of the state of each row or column; raise InputError if a state has no label."""
    indices = indices_of_labels(variable, axis.labels)
    if len(indices) < variable.size:
        present = set(indices)
        missing = (variable.state(x) for x in range(variable.size) if x not in present)
        raise InputError(
            f"the table has no cells for the states {listed(missing)} of variable {variable.name!r}: add them (reindex)"
        )
    return np.asarray(indices, dtype=np.intp)[axis.codes]


def _cell_numbers(members: Sequence[Variable], states: Sequence[NDArray[np.intp]], count: int) -> NDArray[np.intp]:
    """Return the position of each row or column among all combinations of states, the last variable fastest.

    Raises:
        InputError: A combination of states has no cell, or two.
    """
    sizes = [variable.size for variable in members]
    cell_numbers = np.ravel_multi_index(tuple(states), sizes) if sizes else np.zeros(count, dtype=np.intp)
    combinations = int(np.prod(sizes, dtype=object)) if sizes else 1
    distinct, counts = np.unique(cell_numbers, return_counts=True)
    problem = None
    if (counts > 1).any():
        problem, cell = "two cells", int(distinct[np.argmax(counts > 1)])
    elif len(distinct) < combinations:
        gaps = np.flatnonzero(distinct != np.arange(len(distinct)))
        problem, cell = "no cell", int(gaps[0]) if len(gaps) else len(distinct)
    if problem is None:
        return cell_numbers
    chosen = zip(members, np.unravel_index(cell, sizes), strict=True)
    assignment = ", ".join(f"{variable.name}={variable.state(int(x))}" for variable, x in chosen)
    raise InputError(f"the table has {problem} for {assignment}: give one for each combination of states")
