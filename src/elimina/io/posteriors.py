"""Files of posteriors: tables of a batch, and result files of the UAI competitions' MAR task.

A batch has a row for each case, written chunk by chunk to a file that appears only once it is complete.

A result file holds the word MAR, the number of variables, and for each its number of values and their probabilities;
line breaks carry no meaning. Some solvers write the number of evidence sets, which must be 1, before the number of
variables.
"""

from __future__ import annotations

import csv
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina import arguments
from elimina._core import Text, TextError, csv_lines
from elimina.errors import FormatError, InputError
from elimina.io.files import load, replacement_of
from elimina.io.network import number_starts
from elimina.io.parsing import token_text
from elimina.model.variable import Variable, texts_of
from elimina.number_texts import MAX_DIGITS, counted
from elimina.system import require

EVIDENCE = "log10_evidence"
"""Name of the column after the probabilities: base-10 logarithm of the probability of the case's observations."""

STATUS, ERROR = "status", "error"
"""Names of the last columns if cases may be estimated: a status (exact, estimated, infeasible), and the error."""

Floats = NDArray[np.floating[Any]]

_FLOAT32_DIGITS = 9
"""Number of digits that identify a float32."""

_CELLS_OF_TEXT = 1 << 18
"""Number of cells that are converted to text at once."""


def posterior_columns(variables: Sequence[Variable]) -> list[str]:
    """Return the names ``NAME=state`` of the columns of probabilities, a variable's states side by side."""
    return [f"{v.name}={text}" for v in variables for text in texts_of(v)]


class PosteriorWriter(ABC):
    """A writer of posteriors to a file under a temporary name.

    As a context manager, it completes the file at the end, or removes it after an error.

    Attributes:
        path: Path of the file.
        columns: Names of the columns of probabilities.
        has_errors: True if each case has a status and an error.
    """

    def __init__(self, path: Path, variables: Sequence[Variable], has_errors: bool, digits: int) -> None:
        self.path, self.has_errors, self._digits = path, has_errors, digits
        self.columns = posterior_columns(variables)
        with ExitStack() as stack:
            self._file = stack.enter_context(replacement_of(path))
            self._open()
            stack.push(self._end)
            self._open_files = stack.pop_all()

    def write(
        self,
        posteriors: Floats,
        log10_evidence: Floats,
        statuses: NDArray[np.str_] | None = None,
        errors: Floats | None = None,
    ) -> None:
        """Append cases.

        Args:
            posteriors: float32 or float64 array of shape ``(cases, len(columns))``; NaN where the observations are
                impossible.
            log10_evidence: Array of shape ``(cases,)``; minus infinity where the observations are impossible.
            statuses: Status of each case, if the file has errors.
            errors: Estimated error of each case, if the file has errors; NaN where it is unknown.

        Raises:
            InputError: The shapes do not fit, errors are missing or have no column, or the file cannot be written.
        """
        if posteriors.ndim != 2 or log10_evidence.shape != (len(posteriors),):
            raise InputError(
                f"posteriors of the shape {posteriors.shape} do not match logarithms of shape {log10_evidence.shape}"
            )
        if posteriors.shape[1] != len(self.columns):
            raise InputError(
                f"a row of posteriors has {counted(len(self.columns), 'column')}, not {posteriors.shape[1]}"
            )
        if self.has_errors != (errors is not None) or (statuses is None) != (errors is None):
            raise InputError(
                f"{self.path}: give statuses and errors of the cases with open_posteriors(has_errors=True), and only "
                "then"
            )
        notes = [] if statuses is None or errors is None else [statuses, errors]
        if any(len(note) != len(posteriors) for note in notes):
            raise InputError(f"expected a status and an error for each of {counted(len(posteriors), 'case')}")
        try:
            self._append(posteriors, log10_evidence, *notes)
        except OSError as error:
            raise self._unwritable(error) from error

    @property
    def _notes(self) -> tuple[str, ...]:
        """Names of the columns after the logarithms."""
        return (STATUS, ERROR) if self.has_errors else ()

    def __enter__(self) -> PosteriorWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._open_files.__exit__(kind, error, at)
        except OSError as failure:
            raise self._unwritable(failure) from failure

    def _end(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._finish()
        else:
            with suppress(OSError):
                self._release()

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _append(self, posteriors: Floats, log10_evidence: Floats, *notes: NDArray[Any]) -> None: ...

    @abstractmethod
    def _finish(self) -> None: ...

    def _release(self) -> None:
        """Close the open files, complete or not."""
        self._finish()

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self.path}: {error.strerror or error}")


class _CsvWriter(PosteriorWriter):
    def _open(self) -> None:
        self._stream = _text_stream(self._file, self.path.suffix.lower())
        self._rows = csv.writer(self._stream, lineterminator="\n")
        self._rows.writerow([*self.columns, EVIDENCE, *self._notes])

    def _append(self, posteriors: Floats, log10_evidence: Floats, *notes: NDArray[Any]) -> None:
        if posteriors.dtype == np.float64 and not notes:
            rows = np.ascontiguousarray(posteriors, np.float64)
            # Lines are built in blocks of some MiB, since the buffer for their text has 32 bytes for each number.
            step = max(1, _CELLS_OF_TEXT // (1 + rows.shape[1]))
            for start in range(0, len(rows), step):
                block = slice(start, start + step)
                lines = csv_lines(rows[block], np.ascontiguousarray(log10_evidence[block], np.float64), self._digits)
                self._stream.write(lines.decode("ascii"))
            return
        # The digits of a float32 are those that identify it among float32 numbers, not among doubles.
        number_text = _number_text(self._digits or (0 if posteriors.dtype == np.float64 else _FLOAT32_DIGITS))
        end_text = _number_text(self._digits)
        ends = zip(*(note.tolist() for note in notes), strict=True) if notes else itertools.repeat((), len(posteriors))
        for row, evidence, end in zip(posteriors.tolist(), log10_evidence.tolist(), ends, strict=True):
            texts = ("" if p != p else number_text(p) for p in row)
            cells = ("" if note != note else end_text(note) if isinstance(note, float) else note for note in end)
            self._rows.writerow([*texts, end_text(evidence), *cells])

    def _finish(self) -> None:
        self._stream.close()


def _number_text(digits: int) -> Callable[[float], str]:
    """Return a function that writes numbers with a number of significant digits; 0: as many as identify each."""
    return f"{{:.{digits}g}}".format if digits else repr


def _text_stream(path: Path, suffix: str) -> IO[str]:
    import gzip
    import lzma

    if suffix == ".gz":
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    if suffix == ".xz":
        return lzma.open(path, "wt", encoding="utf-8", newline="")
    return path.open("w", encoding="utf-8", newline="")


class _ParquetWriter(PosteriorWriter):
    def _open(self) -> None:
        self._arrow = require("pyarrow", "frames", "writing a Parquet file")
        self._parquet = require("pyarrow.parquet", "frames", "writing a Parquet file")
        fields = [(name, self._arrow.float64()) for name in [*self.columns, EVIDENCE]]
        fields += zip(self._notes, (self._arrow.string(), self._arrow.float64()), strict=False)
        self._schema = self._arrow.schema(fields)
        self._writer = self._parquet.ParquetWriter(self._file, self._schema, use_dictionary=False)

    def _append(self, posteriors: Floats, log10_evidence: Floats, *notes: NDArray[Any]) -> None:
        arrays = [self._arrow.array(a.astype(np.float64)) for a in (*posteriors.T, log10_evidence)]
        arrays += map(self._arrow.array, notes)
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def _finish(self) -> None:
        self._writer.close()


class _NpzWriter(PosteriorWriter):
    """Writer of the arrays ``columns``, ``posteriors``, ``log10_evidence``, ``status`` and ``error``.

    The rows of posteriors are kept in a second file, not in memory, until all are known.
    """

    def _open(self) -> None:
        self._waiting = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}.rows")
        self._stream = self._waiting.open("wb")
        self._evidence: list[Floats] = []
        self._note_parts: list[tuple[NDArray[Any], ...]] = []

    def _append(self, posteriors: Floats, log10_evidence: Floats, *notes: NDArray[Any]) -> None:
        self._stream.write(np.ascontiguousarray(posteriors, dtype=np.float64).data)
        self._evidence.append(log10_evidence.astype(np.float64))
        self._note_parts.append(notes)

    def _finish(self) -> None:
        with ExitStack() as stack:
            stack.callback(self._waiting.unlink, missing_ok=True)
            self._stream.close()
            shape = (sum(map(len, self._evidence)), len(self.columns))
            rows: Floats = np.empty(shape)
            if rows.size:
                rows = np.memmap(self._waiting, dtype=np.float64, mode="r", shape=shape)
            evidence = np.concatenate([np.empty(0), *self._evidence])
            with self._file.open("wb") as stream:
                notes = zip(*self._note_parts, strict=True) if self._note_parts else itertools.repeat((np.empty(0),))
                named = {name: np.concatenate(blocks) for name, blocks in zip(self._notes, notes, strict=False)}
                arrays: dict[str, Any] = {"columns": np.array(self.columns, dtype=str), "posteriors": rows}
                arrays.update(named, log10_evidence=evidence)
                np.savez(stream, **arrays)

    def _release(self) -> None:
        self._stream.close()
        self._waiting.unlink(missing_ok=True)


def open_posteriors(
    path: str | os.PathLike[str], variables: Sequence[Variable], *, has_errors: bool = False, digits: int | None = None
) -> PosteriorWriter:
    """Begin a file of posteriors.

    Args:
        path: A .csv, .csv.gz, .csv.xz, .parquet or .npz file.
        variables: Variables of the posteriors, in the order of their columns.
        has_errors: True if each case has a status and an estimated error.
        digits: Number of significant digits in CSV files, from 1 to 17. None: as many as identify each number.

    Raises:
        InputError: The suffix is unknown or takes no ``digits``, ``digits`` is out of range, a package is missing, or
            the file cannot be written.
        TypeError: ``digits`` is not an integer.
    """
    path = arguments.file("path", path)
    significant = 0 if digits is None else arguments.integer("digits", digits, 1, MAX_DIGITS)
    suffixes = [s.lower() for s in path.suffixes[-2:]]
    kinds: dict[str, type[PosteriorWriter]] = {".csv": _CsvWriter, ".parquet": _ParquetWriter, ".npz": _NpzWriter}
    kind = kinds.get(suffixes[-1]) if suffixes else None
    if len(suffixes) == 2 and suffixes[0] == ".csv" and suffixes[1] in (".gz", ".xz"):
        kind = _CsvWriter
    if kind is None:
        raise InputError(f"{path}: posteriors are written to .csv, .csv.gz, .csv.xz, .parquet and .npz files")
    if significant and kind is not _CsvWriter:
        raise InputError(f"{path}: only numbers in CSV files have a number of digits: leave digits out")
    try:
        return kind(path, variables, has_errors, significant)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def write_posteriors(
    path: str | os.PathLike[str], variables: Sequence[Variable], posteriors: Floats, log10_evidence: Floats
) -> None:
    """Write all cases at once.

    Args:
        path: Path of the file, as in ``open_posteriors``.
        variables: Variables in the order of the columns.
        posteriors: float64 of shape (cases, sum of the variables' sizes).
        log10_evidence: float64 of shape (cases,).

    Raises:
        InputError: The suffix is unknown, a package is missing, the shapes do not fit, or the file cannot be written.
    """
    with open_posteriors(path, variables) as writer:
        writer.write(posteriors, log10_evidence)


def read_marginals(path: str | os.PathLike[str]) -> list[NDArray[np.float64]]:
    """Read one array of probabilities for each variable, in index order.

    Args:
        path: The file; decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed, or holds a negative number.
        InputError: The file cannot be read.
    """
    path = arguments.file("path", path)
    text: Text | None = None
    try:
        data = load(path)
        text = Text(data)
        kind = text.token("MAR")
        if kind != b"MAR":
            raise TextError(f"expected MAR, found {token_text(kind)}")
        numbers = text.reals(int(number_starts(data).sum()) - 1, "a number")
        return _split(numbers)
    except TextError as error:
        raise FormatError(str(path), None if text is None else text.line, str(error)) from None


def _split(numbers: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    # A leading 1 is the number of variables if the length fits one variable, otherwise the number of evidence sets. No
    # file can be read in both ways, because each variable has at least one value.
    one_set = len(numbers) > 1 and numbers[0] == 1 and len(numbers) != 2 + numbers[1]
    at = 1 if one_set else 0
    if len(numbers) <= at:
        raise TextError("expected a number of variables, but the file ends here")
    count = numbers[at]
    at += 1
    result: list[NDArray[np.float64]] = []
    while at < len(numbers):
        size, v = numbers[at], len(result)
        if size < 1 or size != int(size) or at + size >= len(numbers):
            remaining = len(numbers) - at - 1
            raise TextError(f"expected a number of values from 1 to {remaining} of variable {v}, found {size:g}")
        values = numbers[at + 1 : at + 1 + int(size)]
        if values.min() < 0:
            raise TextError(f"expected non-negative probabilities of variable {v}, found {values.min()}")
        result.append(values.copy())
        at += 1 + int(size)
    if len(result) != count:
        raise TextError(f"found the marginals of {counted(len(result), 'variable')}, but the file says {count:g}")
    return result


def write_marginals(marginals: Iterable[ArrayLike]) -> str:
    """Return the text of a result file, with exact numbers.

    Args:
        marginals: One array of probabilities for each variable, in index order.

    Raises:
        InputError: A marginal is not one list of finite, non-negative numbers.
    """
    words = []
    for v, marginal in enumerate(marginals):
        values = np.asarray(marginal, dtype=np.float64)
        if values.ndim != 1 or not values.size or not np.isfinite(values).all() or values.min() < 0:
            raise InputError(f"the marginal of variable {v} is not one list of finite, non-negative numbers: {values}")
        words.append(f"{values.size} " + " ".join(map(repr, values.tolist())))
    return f"MAR\n{' '.join([str(len(words)), *words])}\n"
