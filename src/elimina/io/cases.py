"""Cases, the rows of a batch: observed values of some variables, from CSV and Parquet files and from data frames."""

from __future__ import annotations

import csv
import io
import logging
import os
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina._core import TextError
from elimina.display import with_types_as_written
from elimina.errors import FormatError, InputError, source_text
from elimina.io.files import COMPRESSIONS, load
from elimina.model.cells import UNOBSERVED, index_of_cell, without_point
from elimina.model.model import Model, variable_indices
from elimina.model.states import State, is_missing, native
from elimina.model.variable import Variable, find_text, index_of_text
from elimina.number_texts import counted
from elimina.option_names import option
from elimina.system import require

_WHOLE_FLOAT = re.compile(r"(-?[0-9]+)\.0+")
MISSING = frozenset(("", "?", "NA", "NaN", "nan", "*"))
"""Cells of a CSV file that mean 'not observed', unless they are states of the column's variable."""

_TEXTS_THAT_PANDAS_DROPS = frozenset(
    (
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
        *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
    )
)
"""Texts that pandas.read_csv reads as missing cells by default."""

_ROWS_PER_BLOCK = 8192

_logger = logging.getLogger(__name__)

Codes = NDArray[np.int32]


_ACCEPTED_FORMS = "a data frame, a mapping from names to sequences, a list of mappings, an array or Cases"


@with_types_as_written
class Cases(NamedTuple):
    """Many cases with observations of the same variables.

    Attributes:
        columns: Indices of the variables, one for each column.
        values: int32 array of shape ``(cases, columns)``: indices of the observed values, -1 where there is none.
    """

    columns: tuple[int, ...]
    values: Codes


def read_cases(path: str | os.PathLike[str], model: Model, *, ignore_extra: bool = False) -> Cases:
    """Read cases from a table with a row for each case and a column for each variable.

    CSV files begin with the variables' names. A cell holds the text of a state; an empty cell, ``?``, ``NA`` and ``*``
    are unobserved. Parquet files hold strings, integers, booleans, categories and nulls, as in ``cases_from_frame``.

    Args:
        path: A .csv, .csv.gz, .csv.xz or .parquet file.
        model: Model of the cases.
        ignore_extra: Ignore columns that are not variables of the model.

    Raises:
        FormatError: The file is malformed, or names a variable or a value unknown to the model.
        InputError: The file cannot be read, its suffix is unknown, or a package for it is missing.
    """
    path = arguments.file("path", path)
    suffixes = [s.lower() for s in path.suffixes[-2:]]
    if suffixes[-1:] == [".parquet"]:
        return _read_parquet(path, model, ignore_extra)
    if suffixes[-1:] == [".csv"] or (suffixes[:1] == [".csv"] and suffixes[-1] in COMPRESSIONS):
        return _read_csv(path, model, ignore_extra)
    raise InputError(f"{path}: cases are read from .csv, .csv.gz, .csv.xz and .parquet files")


class _StateIndices(dict[str, int]):
    """Map from a cell's text to the index of its state (-1 if nothing is observed), looked up once for each text."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def __missing__(self, cell: str) -> int:
        text = cell if find_text(self._variable, cell) is not None else cell.strip()
        index = find_text(self._variable, text)
        if index is None and (whole := _WHOLE_FLOAT.fullmatch(text)):
            # pandas writes integers as floats, such as 3.0, if a cell of their column is missing.
            index = find_text(self._variable, whole[1])
        if index is None:
            index = UNOBSERVED if text in MISSING else index_of_text(self._variable, text)
        self[cell] = index
        return index


def _read_csv(path: Path, model: Model, ignore_extra: bool) -> Cases:
    try:
        text = load(path).decode("utf-8-sig")
    except TextError as error:
        raise FormatError(str(path), None, str(error)) from None
    except UnicodeDecodeError as error:
        raise FormatError(str(path), None, f"expected UTF-8 text: {error.reason}") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name if model.find(name) is not None else name.strip() for name in next(reader, [])]
        _check_separator(header, model)
        columns = _columns(header, model, ignore_extra)
        cells = {column: _StateIndices(model.variables[v]) for column, v in columns.items()}
        chunks: list[Codes] = []
        filled = _filled(reader, len(header))
        while rows := list(islice(filled, _ROWS_PER_BLOCK)):
            chunks.append(_encode(rows, cells, header))
    except (csv.Error, InputError) as error:
        line = _line_of(text, error.row + sum(map(len, chunks))) if isinstance(error, _CellError) else reader.line_num
        raise FormatError(str(path), max(line, 1), str(error)) from None
    values = np.concatenate(chunks) if chunks else np.empty((0, len(columns)), dtype=np.int32)
    return Cases(tuple(columns.values()), values)


def _filled(reader: Iterator[list[str]], columns: int) -> Iterator[list[str]]:
    """Yield the rows that are not blank lines.

    Raises:
        InputError: A blank line between rows may be a case, because there is one column.
    """
    is_blank = False
    for row in reader:
        if not row:
            is_blank = True
            continue
        if is_blank and columns == 1:
            raise InputError(
                "the line before is blank: write NA for a case in which nothing is observed, or remove the line"
            )
        yield row


def _check_separator(header: Sequence[str], model: Model) -> None:
    """Raise InputError if the names in the first line are not separated by commas."""
    for separator in ";\t|":
        names = header[0].split(separator) if len(header) == 1 and model.find(header[0]) is None else []
        if len(names) > 1 and any(model.find(name.strip(' "')) is not None for name in names):
            raise InputError(f"expected names separated by commas, found {separator!r} between them")


def _columns(header: Sequence[str], model: Model, ignore_extra: bool) -> dict[int, int]:
    """Return the variables named by the columns of a file: position of a column -> index of its variable.

    Raises:
        InputError: The first line is empty, a column has no name, two columns have one name, or the names are invalid
            for ``_variables``.
    """
    if not header:
        raise InputError("expected the names of variables in the first line, found nothing")
    for number, name in enumerate(header, 1):
        is_extra = ignore_extra and model.find(name) is None
        if not name and not is_extra and model.find("") is None:
            raise InputError(f"column {number} has no name; leave row numbers out when the file is written")
        if name in header[: number - 1] and not is_extra:
            raise InputError(f"column {number} is the second one named {name!r}")
    return _variables(header, model, ignore_extra)


def _variables(names: Sequence[Any], model: Model, ignore_extra: bool) -> dict[int, int]:
    """Return the variables named by columns: position of a column -> index of its variable, without extra columns.

    Raises:
        InputError: A column that must not be ignored names no variable, no column names a variable, or two columns
            name the same one.
    """
    extra = [column for column, name in enumerate(names) if is_extra(name, model)]
    if extra and not ignore_extra:
        try:
            model.index(names[extra[0]])
        except InputError as error:
            joint = " Otherwise" if str(error).endswith("?") else ";"
            raise InputError(
                f"{error}{joint} remove the column, or ignore extra columns ({option('ignore_extra', True)})"
            ) from None
    if extra and len(extra) == len(names):
        raise InputError(f"none of the {len(names)} columns is a variable of the model; the first one is {names[0]!r}")
    columns = sorted({*range(len(names))}.difference(extra))
    variables = variable_indices(model, [names[column] for column in columns], "cases")
    if len(set(variables)) != len(variables):
        raise InputError("two columns are about the same variable")
    return dict(zip(columns, variables, strict=True))


def is_extra(name: Any, model: Model) -> bool:
    """Return whether a column's name is neither the name nor the index of a variable."""
    if isinstance(name, str) or model.find(str(name)) is not None:
        return model.find(str(name)) is None
    return not (hasattr(type(name), "__index__") and 0 <= name < len(model.variables))


class _CellError(InputError):
    """An invalid row of a block; ``row`` is its number in the block, from 0."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


def _encode(rows: Sequence[Sequence[str]], cells: Mapping[int, _StateIndices], header: Sequence[str]) -> Codes:
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise _CellError(number, f"expected {counted(len(header), 'cell')}, one for each column, found {len(row)}")
    values = np.empty((len(rows), len(cells)), dtype=np.int32)
    texts = list(zip(*rows, strict=True))
    for i, (column, codes) in enumerate(cells.items()):
        try:
            values[:, i] = np.fromiter(map(codes.__getitem__, texts[column]), dtype=np.int32, count=len(rows))
        except InputError as error:
            bad = next(number for number, cell in enumerate(texts[column]) if cell not in codes)
            raise _CellError(bad, f"column {header[column]!r}: {error}") from None
    return values


def _line_of(text: str, row: int) -> int:
    """Return the line on which a row of cases ends: cells may hold line breaks, so a row may have several lines."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    next(reader)
    for _ in islice((cells for cells in reader if cells), row + 1):
        pass
    return reader.line_num


def cases_from_frame(frame: Any, model: Model, *, indices: bool = False, ignore_extra: bool = False) -> Cases:
    """Take cases from a table in memory.

    Cells are states: integers and booleans match int and bool states, and text is read as in files. Whole floats count
    as integers. None, NaN, NaT, pandas.NA and masked cells are unobserved. Packages that read files turn text into
    Booleans and numbers. A cell of these types that equals no state is therefore matched by text: True stands for
    ``TRUE``, 1 or 1.0 for ``1`` or ``01``.

    Args:
        frame: A data frame (pandas, Polars, Arrow, or another with Arrow's streams or the protocol of
            ``__dataframe__``), a mapping from names to sequences of one length, a sequence of mappings (one for each
            case; variables without a key are unobserved), a structured NumPy array, or an array of shape ``(cases,
            variables)`` with a column for each variable of the model.
        model: Model of the cases.
        indices: Read the cells as indices of states instead, with -1 for unobserved ones.
        ignore_extra: Ignore columns that are not variables of the model.

    Raises:
        InputError: A column is not a variable, a cell matches no state of its variable or several, or columns differ
            in length.
        TypeError: ``frame`` is something else.
    """
    if isinstance(frame, np.ndarray) and frame.dtype.names is None:
        return _from_array(frame, model, indices)
    if isinstance(frame, np.ndarray):
        columns: dict[Any, Any] = {name: frame[name] for name in frame.dtype.names or ()}
    elif hasattr(frame, "columns") and hasattr(frame, "iloc"):
        columns = {}
        for i, name in enumerate(frame.columns):
            if name in columns and not (ignore_extra and is_extra(name, model)):
                raise InputError(f"two columns of the frame are named {name!r}")
            columns[name] = frame.iloc[:, i]
        if not columns:
            return _unobserved(len(frame))
        cases = _from_columns(columns, model, indices, ignore_extra)
        if not indices:
            _warn_of_dropped_states(cases, model)
        return cases
    elif hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__dataframe__"):
        return _from_arrow(frame, model, indices, ignore_extra)
    elif isinstance(frame, Mapping):
        columns = dict(frame)
    elif isinstance(frame, Sequence) and not isinstance(frame, str) and all(isinstance(r, Mapping) for r in frame):
        names = dict.fromkeys(name for record in frame for name in record)
        columns = {name: [record.get(name) for record in frame] for name in names}
        if not columns:
            return _unobserved(len(frame))
    else:
        raise arguments.wrong_type("cases", frame, _ACCEPTED_FORMS)
    return _from_columns(columns, model, indices, ignore_extra)


def states_in_frame(frame: Any, names: Sequence[str]) -> dict[str, list[State]]:
    """Return the states in columns of a frame: sorted if all have one type, else in the order of their first cells.

    The states of a column of categories are its categories, in their order. Whole floats are integers, since pandas
    stores a column of integers with missing cells as floats.

    Args:
        frame: A data frame of pandas or Polars, a table of PyArrow, a mapping from names to sequences, a list of
            mappings, or a structured array.
        names: Names of the columns.

    Raises:
        InputError: There is no such column, or it has no states.
        TypeError: ``frame`` is something else.
    """
    states = {}
    for name in names:
        try:
            if isinstance(frame, list):
                column: Any = [record[name] for record in frame if name in record]
            else:
                column = frame[name]
        except (KeyError, ValueError, IndexError, TypeError):
            column = []
        categories = getattr(getattr(column, "cat", None), "categories", None)
        cells = column if categories is None else categories
        if isinstance(cells, str | bytes) or not arguments.is_iterable(cells):
            raise arguments.wrong_type(f"column {name!r}", cells, "a sequence of states")
        conversion = getattr(cells, "to_list", None) or getattr(cells, "to_pylist", None)  # PyArrow has the latter
        if conversion is not None:
            cells = conversion()
        present = (native(cell) for cell in cells if not is_missing(cell) and isinstance(cell, Hashable))
        distinct = dict.fromkeys(map(without_point, present))
        if not distinct:
            raise InputError(
                f"column {name!r} is missing or empty, so its states are unknown: give them, states={{{name!r}: [...]}}"
            )
        types = set(map(type, distinct))
        is_sorted = categories is None and len(types) == 1 and issubclass(types.pop(), str | int | float)
        states[name] = sorted(distinct) if is_sorted else list(distinct)
    return states


def _warn_of_dropped_states(cases: Cases, model: Model) -> None:
    """Warn of missing cells of a pandas frame that may have been states in a file."""
    for v, codes in zip(cases.columns, cases.values.T, strict=True):
        dropped = _TEXTS_THAT_PANDAS_DROPS.intersection(map(str, model.variables[v].states or ()))
        if dropped and (codes == UNOBSERVED).any():
            _logger.warning(
                "column %r has missing cells, which are not observed, but %r is a state that pandas.read_csv takes for "
                "a missing cell: read the file with keep_default_na=False",
                model.variables[v].name,
                min(dropped),
            )


def _unobserved(cases: int) -> Cases:
    return Cases((), np.empty((cases, 0), dtype=np.int32))


def _from_arrow(frame: Any, model: Model, indices: bool, ignore_extra: bool) -> Cases:
    """Take cases from a frame through pyarrow.

    Raises:
        InputError: pyarrow is not installed, or the frame does not fit the model.
        TypeError: The frame is a single column.
    """
    purpose = "a data frame that is not of pandas"
    arrow = require("pyarrow", "frames", purpose)
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            table = arrow.RecordBatchReader.from_stream(frame).read_all()
        except arrow.ArrowInvalid:
            # The stream is a single column, such as a Series, and not a table.
            raise arguments.wrong_type("cases", frame, _ACCEPTED_FORMS) from None
    else:
        table = require("pyarrow.interchange", "frames", purpose).from_dataframe(frame)
    columns = _columns(table.column_names, model, ignore_extra) if table.num_columns else {}
    if indices:
        named = {v: table.column(column).to_numpy() for column, v in columns.items()}
        return _from_columns(named, model, indices, ignore_extra)
    return _arrow_cases(table, columns, model, arrow)


def _arrow_cases(table: Any, columns: Mapping[int, int], model: Model, arrow: Any) -> Cases:
    encoded = [_arrow_codes(model.variables[v], table.column(column), arrow) for column, v in columns.items()]
    return Cases(tuple(columns.values()), _side_by_side(encoded, len(table)))


def labels_of(cases: Any) -> Any:
    """Return the index of a pandas frame; None for cases of another form."""
    return cases.index if hasattr(cases, "iloc") else None


def as_cases(cases: Any, model: Model, *, indices: bool = False, ignore_extra: bool = False) -> Cases:
    """Take cases from a table in memory, or check ``Cases``: see ``cases_from_frame``.

    Raises:
        InputError: The table is invalid (see ``cases_from_frame``), or ``Cases`` have invalid columns or indices.
        TypeError: ``cases`` is something else.
    """
    if not isinstance(cases, Cases):
        return cases_from_frame(cases, model, indices=indices, ignore_extra=ignore_extra)
    columns = tuple(model.index(v) for v in cases.columns)
    if len(set(columns)) != len(columns):
        raise InputError("two columns are about the same variable")
    values = np.asarray(cases.values)
    if values.ndim != 2 or values.shape[1] != len(columns) or values.dtype.kind not in "iu":
        shape = f"(cases, {len(columns)})"
        raise InputError(f"expected integers of the shape {shape}, found {values.dtype} of the shape {values.shape}")
    rows = np.arange(len(values))
    for column, v in enumerate(columns):
        _checked_indices(model.variables[v], values[:, column], rows)
    return Cases(columns, values.astype(np.int32))


def _from_columns(named: Mapping[Any, Any], model: Model, indices: bool, ignore_extra: bool) -> Cases:
    columns = _variables(list(named), model, ignore_extra)
    cells = list(named.values())
    encoded = [_column_codes(model.variables[v], cells[column], indices) for column, v in columns.items()]
    lengths = {len(codes) for codes in encoded}
    if len(lengths) > 1:
        raise InputError(f"the columns' lengths differ: {', '.join(map(str, sorted(lengths)))}")
    return Cases(tuple(columns.values()), _side_by_side(encoded, 0))


def _side_by_side(columns: Sequence[Codes], count: int) -> Codes:
    """Return columns of codes as one array; a single one is not copied. ``count``: number of rows if none is given."""
    if len(columns) == 1:
        return columns[0][:, None]
    return np.stack(columns, axis=1) if columns else np.empty((count, 0), dtype=np.int32)


def _from_array(array: NDArray[Any], model: Model, indices: bool) -> Cases:
    if array.ndim != 2 or array.shape[1] != len(model.variables):
        raise InputError(
            f"an array of cases has a column for each of the {counted(len(model.variables), 'variable')}; "
            f"this one has the shape {array.shape}"
        )
    values = np.empty(array.shape, dtype=np.int32, order="F")
    for v, variable in enumerate(model.variables):
        values[:, v] = _column_codes(variable, array[:, v], indices)
    return Cases(tuple(range(len(model.variables))), values)


def _column_codes(variable: Variable, column: Any, indices: bool) -> Codes:
    """Return the indices of a column's states, -1 for missing cells; distinct cells are looked up once."""
    if not indices and (factorised := _factorised(column)) is not None:
        numbers, distinct = factorised
        return _codes_of_distinct(variable, distinct, numbers, range(len(numbers)))
    if hasattr(column, "isna"):
        is_missing = np.asarray(column.isna(), dtype=bool)
        column = np.ma.masked_array(column.to_numpy(dtype=object), is_missing)
    if isinstance(column, str | bytes | Set) or not isinstance(column, Collection):
        raise arguments.wrong_type(f"the column {variable.name!r}", column, "a sequence with a cell for each case")
    values = column if isinstance(column, np.ndarray) else np.fromiter(column, dtype=object, count=len(column))
    if values.ndim != 1:
        raise InputError(f"the column {variable.name!r} has the shape {values.shape}; a column has one dimension")
    if not indices and np.ma.getmask(values) is np.ma.nomask and _are_numbers(variable, values):
        return np.ma.getdata(values).astype(np.int32)
    observed = np.flatnonzero(~np.ma.getmaskarray(values))
    observed_cells = np.ma.getdata(values)[observed]
    codes = np.full(len(values), UNOBSERVED, dtype=np.int32)
    codes[observed] = (_checked_indices if indices else _known_codes)(variable, observed_cells, observed)
    return codes


def _factorised(column: Any) -> tuple[NDArray[np.intp], list[Any]] | None:
    """Return a number for each cell of a pandas column and the distinct cells; None for other columns and cells."""
    if not hasattr(column, "factorize") or column.dtype == object:
        return None
    try:
        numbers, distinct = column.factorize()
    except (TypeError, NotImplementedError):
        return None  # cells that are lists or mappings, say
    return numbers, distinct.tolist()


def _checked_indices(variable: Variable, values: NDArray[Any], rows: NDArray[np.intp]) -> Codes:
    """Return indices of states as integers: -1 for None and NaN, too; other numbers than indices are an error."""
    if values.dtype.kind == "O":
        values = np.array([UNOBSERVED if is_missing(value) else value for value in values])
    elif values.dtype.kind == "f":
        values = np.where(np.isnan(values), UNOBSERVED, values)
    if len(values) and values.dtype.kind not in "iuf":
        raise InputError(f"variable {variable.name!r}: indices of states are integers, not of type {values.dtype}")
    bad = (values < UNOBSERVED) | (values >= variable.size) | (values != np.floor(values))
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"row {rows[first]}: variable {variable.name!r} has no state of index {values[first]}; its "
            f"{variable.size} states have the indices 0 to {variable.size - 1}, and {UNOBSERVED} is unobserved"
        )
    return values.astype(np.int32)


def _known_codes(variable: Variable, values: NDArray[Any], rows: NDArray[np.intp]) -> Codes:
    if _are_numbers(variable, values):
        return values.astype(np.int32)
    if values.dtype.kind != "O":
        distinct, numbers = np.unique(values, return_inverse=True)
        return _codes_of_distinct(variable, distinct.tolist(), numbers, rows)
    cells = values.tolist()
    try:
        # With several types, the type is part of the key, because 1, 1.0 and True are equal.
        has_one_type = len(set(map(type, cells)) - {str, type(None)}) < 2
        keys: list[Any] = cells if has_one_type else list(zip(map(type, cells), cells, strict=True))
        distinct_keys = list(dict.fromkeys(keys))
    except TypeError:
        has_one_type = False
        keys = [_hashable_key(variable, cell, row) for row, cell in zip(rows, cells, strict=True)]
        distinct_keys = list(dict.fromkeys(keys))
    number_of_key = {key: number for number, key in enumerate(distinct_keys)}
    numbers = np.fromiter(map(number_of_key.__getitem__, keys), dtype=np.intp, count=len(keys))
    return _codes_of_distinct(
        variable, distinct_keys if has_one_type else [cell for _, cell in distinct_keys], numbers, rows
    )


def _hashable_key(variable: Variable, value: Any, row: int) -> tuple[type, Any]:
    """Return a cell and its type; None and its type for a missing cell without a hash."""
    if isinstance(value, Hashable):
        return type(value), value
    if is_missing(value):
        return type(None), None
    raise InputError(
        f"row {row}: variable {variable.name!r} has no state {value!r}; cells hold states, and "
        "JunctionTree.set_evidence takes likelihoods"
    )


def _codes_of_distinct(
    variable: Variable,
    distinct: Sequence[Any],
    numbers: NDArray[np.integer[Any]],
    rows: Sequence[int] | NDArray[np.intp],
) -> Codes:
    """Return the codes of cells, each given by its number among the distinct cells; -1 is a missing cell.

    Args:
        variable: Variable of the cells.
        distinct: Distinct cells; only those that occur need to be states.
        numbers: Number of each cell.
        rows: Row of each cell, for errors.
    """
    occurs = np.zeros(len(distinct) + 1, dtype=bool)
    occurs[numbers] = True
    codes = np.full(len(distinct) + 1, UNOBSERVED, dtype=np.int32)
    for number in np.flatnonzero(occurs[:-1]).tolist():
        try:
            codes[number] = index_of_cell(variable, distinct[number])
        except InputError as error:
            raise InputError(f"row {rows[int(np.argmax(numbers == number))]}: {error}") from None
    coded: Codes = codes[numbers]
    return coded


def _are_numbers(variable: Variable, values: NDArray[Any]) -> bool:
    """Return whether the variable's states have no names, and all cells are indices of its states."""
    if variable.states is not None or values.dtype.kind not in "iu":
        return False
    return not len(values) or bool(values.min() >= 0 and values.max() < variable.size)


def _read_parquet(path: Path, model: Model, ignore_extra: bool) -> Cases:
    arrow = require("pyarrow", "frames", "reading a Parquet file")
    parquet = require("pyarrow.parquet", "frames", "reading a Parquet file")
    try:
        is_file = source_text(path) == str(path)
        table = parquet.ParquetFile(path if is_file else arrow.BufferReader(load(path))).read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except arrow.ArrowException as error:
        raise FormatError(str(path), None, f"expected a Parquet file: {error}") from None
    try:
        return _arrow_cases(table, _columns(table.column_names, model, ignore_extra), model, arrow)
    except (InputError, arrow.ArrowException) as error:
        raise FormatError(str(path), None, str(error)) from None


def _arrow_codes(variable: Variable, column: Any, arrow: Any) -> Codes:
    combined = arrow.concat_arrays(column.chunks) if column.num_chunks else arrow.array([], column.type)
    if not arrow.types.is_dictionary(combined.type):
        try:
            combined = combined.dictionary_encode()
        except arrow.ArrowNotImplementedError:
            # Arrow cannot dictionary-encode run-end encoded arrays, unions, and cells that are lists or mappings.
            return _column_codes(variable, combined.to_pylist(), indices=False)
    numbers = combined.indices.cast(arrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return _codes_of_distinct(variable, combined.dictionary.to_pylist(), numbers, range(len(numbers)))
