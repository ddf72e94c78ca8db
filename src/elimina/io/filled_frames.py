"""Data frames with states in place of missing cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError
from elimina.io.cases import Cases, Codes, is_extra
from elimina.model.cells import UNOBSERVED, index_of_cell
from elimina.model.model import Model
from elimina.model.states import native
from elimina.model.variable import Variable, state_array
from elimina.system import require


class _Library(NamedTuple):
    """Functions that read and replace the columns of one library's frames.

    Attributes:
        names: Names of a frame's columns.
        cells: Cells of the column at a position, missing ones in any form.
        with_cells: A frame with other cells in the column at a position; the column keeps its type if it can hold them.
        with_column: A frame with one more column.
    """

    names: Callable[[Any], Iterable[Any]]
    cells: Callable[[Any, int], list[Any]]
    with_cells: Callable[[Any, int, list[Any]], Any]
    with_column: Callable[[Any, str, NDArray[Any]], Any]


def filled_frame(frame: Any, model: Model, cases: Cases, indices: NDArray[np.int32]) -> Any:
    """Return a frame with states in the missing cells of the variables' columns, and columns for other variables.

    A state has the type of the column's other cells. A reader of files may have converted their text to floats or
    Booleans. The state ``1`` then becomes 1.0, and ``true`` becomes True.

    Args:
        frame: A data frame of pandas, Polars or Arrow, or a mapping from names to sequences, which gives a dict; it is
            not changed.
        model: Model of the cases.
        cases: Cells of the frame, as ``as_cases`` reads them.
        indices: Index of each state, shape ``(rows, variables)``.

    Raises:
        TypeError: ``frame`` is something else.
    """
    library = _library_of(frame)
    names = list(library.names(frame))
    positions = [position for position, name in enumerate(names) if not is_extra(name, model)]
    for position, v, codes in zip(positions, cases.columns, cases.values.T, strict=True):
        if (codes == UNOBSERVED).any():
            cells = _filled(model.variables[v], library.cells(frame, position), codes, indices[:, v])
            frame = library.with_cells(frame, position, cells)
    for v, variable in enumerate(model.variables):
        if v not in cases.columns:
            frame = library.with_column(frame, variable.name, state_array(variable, indices[:, v]))
    return dict(frame) if library is _MAPPING else frame


def _filled(variable: Variable, cells: list[Any], codes: Codes, indices: NDArray[np.int32]) -> list[Any]:
    observed = np.flatnonzero(codes != UNOBSERVED)
    distinct, firsts = np.unique(codes[observed], return_index=True)
    cell_of = {code: cells[observed[first]] for code, first in zip(distinct.tolist(), firsts.tolist(), strict=True)}
    kinds = {type(native(cell)): None for cell in cell_of.values()}
    for row in np.flatnonzero(codes == UNOBSERVED).tolist():
        index = int(indices[row])
        if index not in cell_of:
            cell_of[index] = _cell(variable, index, kinds)
        cells[row] = cell_of[index]
    return cells


def _cell(variable: Variable, index: int, kinds: Iterable[type]) -> Any:
    """Return a cell of one of the given types that means this state; the state itself if there is none."""
    state = variable.all_states[index]
    for kind in kinds:
        try:
            cell = str(state).lower() == "true" if kind is bool else kind(str(state))
            if not isinstance(state, kind) and index_of_cell(variable, cell) == index:
                return cell
        except (ValueError, InputError):
            continue
    return state


def _with_pandas_cells(frame: Any, position: int, cells: list[Any]) -> Any:
    pandas = require("pandas", "frames", "a data frame")
    column = frame.iloc[:, position]
    dtype = column.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        more = [cell for cell in dict.fromkeys(cells) if cell not in dtype.categories]
        dtype = pandas.CategoricalDtype([*dtype.categories, *more], dtype.ordered)
    objects = pandas.Series(cells, index=frame.index, dtype=object, name=column.name)
    try:
        filled = objects.astype(dtype)
    except (TypeError, ValueError):
        filled = objects
    frame = frame.copy(deep=False)
    frame.isetitem(position, filled)
    return frame


def _with_polars_cells(frame: Any, position: int, cells: list[Any]) -> Any:
    polars = require("polars", "frames", "a data frame")
    column = frame.to_series(position)
    try:
        filled = polars.Series(column.name, cells, dtype=column.dtype)
    except (TypeError, ValueError, polars.exceptions.PolarsError):
        filled = polars.Series(column.name, list(map(str, cells)))
    return frame.with_columns(filled)


def _with_arrow_cells(frame: Any, position: int, cells: list[Any]) -> Any:
    arrow = require("pyarrow", "frames", "a data frame")
    column = frame.column(position)
    try:
        kind = column.type
        plain = arrow.array(cells, kind.value_type if arrow.types.is_dictionary(kind) else kind)
        filled = plain.dictionary_encode().cast(kind) if arrow.types.is_dictionary(kind) else plain
    except (TypeError, ValueError):
        filled = arrow.array(list(map(str, cells)))
    return frame.set_column(position, frame.schema.names[position], filled)


def _with_mapped_cells(columns: Mapping[Any, Any], position: int, cells: Sequence[Any]) -> dict[Any, Any]:
    return {**columns, list(columns)[position]: cells}


_PANDAS = _Library(
    lambda frame: frame.columns,
    lambda frame, position: frame.iloc[:, position].tolist(),
    _with_pandas_cells,
    lambda frame, name, cells: frame.assign(**{name: cells}),
)
_POLARS = _Library(
    lambda frame: frame.columns,
    lambda frame, position: frame.to_series(position).to_list(),
    _with_polars_cells,
    lambda frame, name, cells: frame.with_columns(type(frame)({name: cells}).to_series(0)),
)
_ARROW = _Library(
    lambda frame: frame.schema.names,
    lambda frame, position: frame.column(position).to_pylist(),
    _with_arrow_cells,
    lambda frame, name, cells: frame.append_column(name, [cells]),
)
_MAPPING = _Library(
    lambda columns: columns,
    lambda columns, position: list(list(columns.values())[position]),
    _with_mapped_cells,
    lambda columns, name, cells: {**columns, name: cells.tolist()},
)


def _library_of(frame: Any) -> _Library:
    if hasattr(frame, "iloc"):
        return _PANDAS
    if hasattr(frame, "with_columns") and hasattr(frame, "to_series"):
        return _POLARS
    if hasattr(frame, "append_column"):
        return _ARROW
    if isinstance(frame, Mapping):
        return _MAPPING
    raise arguments.wrong_type("frame", frame, "a data frame of pandas, Polars or Arrow, or a mapping")
